"""What can be seen in a figure."""

from matplotlib.text import Text


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
