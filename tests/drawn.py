"""What can be seen in a figure."""

import itertools

from matplotlib.text import Text


def named_lines(axes):
    """The lines that have a name, by it."""
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def panels(figure):
    """The axes that are shown."""
    figure.canvas.draw()
    return [axes for axes in figure.axes if axes.axison]


def words(figure):
    """All text that can be seen, and where it is; labels of ticks outside the panels cannot."""
    figure.canvas.draw()
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    hidden = {
        id(tick_label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for tick_label in (tick.label1, tick.label2)
        if not axis.get_view_interval().min() <= tick.get_loc() <= axis.get_view_interval().max()
    }
    return [(text.get_text(), text.get_window_extent()) for text in found if id(text) not in hidden]


def assert_text_can_be_read(figure):
    """All text is inside the figure, and none over another."""
    boxes = words(figure)
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, text
    for (text, box), (other, place) in itertools.combinations(boxes, 2):
        width, height = min(box.x1, place.x1) - max(box.x0, place.x0), min(box.y1, place.y1) - max(box.y0, place.y0)
        assert width <= 1 or height <= 1, (text, other)
