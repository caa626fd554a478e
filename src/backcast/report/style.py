"""The style of figures: names of agents and worlds, lines, thumbnails of worlds, labels at the ends of curves."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from textwrap import fill, wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox
from scipy.optimize import isotonic_regression

from backcast.agents.kinds import KINDS
from backcast.agents.settings import COMMON, SETTINGS
from backcast.core.arrays import Vector
from backcast.report.colours import READABLE, colour, kind_and_frame, kind_of
from backcast.report.medium import medium
from backcast.worlds.kinds import Picture

INK, MUTED, FAINT = "#22303c", "#64717c", "#e4e9ed"
DASHED, DOTTED, DASH_DOTTED = (0, (4, 1.4)), (0, (1.3, 1.1)), (0, (5, 1.2, 1.2, 1.2))
SYMBOLS = {name: each.symbol for name, each in {**COMMON, **SETTINGS}.items() if each.symbol}
WORDS = {
    "variant=moore-atkeson": "Moore and Atkeson",
    "variant=peng-williams": "Peng and Williams",
    "variant=mcmahan-gordon": "McMahan and Gordon",
    "lam_by=td": "λ-model by TD",
    "lam_by=mc": "λ-model from episodes",
    "learn_by=lms": "LMS",
    "learn_by=rls": "RLS",
}
BESIDE_TITLE = (1.05, 1.03, 0.26, 0.22)  # left, bottom, width and height in fractions of the panel, or further right
TITLE = "title"  # the group of titles
MOST_DOTS = 30  # most dots of a level, levels, and rows of cells in a small picture
SMALL, MEDIUM, LARGE = 10.0, 12.0, 14.0
ENDS = 9  # most curves of a panel that are labelled at their ends
EDGE, TOP = 0.99, 0.9  # fractions of a panel: ends beyond it count as at the edge; highest label of other curves


def is_pure(agent: str) -> bool:
    """Whether an agent plans without learning from real steps."""
    return agent.startswith("pure:")


def plans(agent: str) -> bool:
    """Whether an agent plans, rather than only learning from real steps."""
    its = kind_of(agent)
    return its is None or its.plans


def settings(agent: str) -> dict[str, str]:
    """The settings in an agent's name, {"model": "counts", "horizon": "2"} of backward,model=counts,horizon=2."""
    return {name: value for name, _, value in (given.partition("=") for given in agent.split(",")[1:])}


def line_style(agent: str, among: Sequence[str]) -> dict[str, Any]:
    """The style of an agent's curve among others.

    True models are dashed. Planning from s' is dotted if planning from s is present too; a non-default model is
    dash-dotted if the default is present. If one agent was run with several settings (`forward,alpha=0.5`), the curves
    fade in their order.
    """
    _, frame = kind_and_frame(agent)
    its = kind_of(agent)
    dashes: Any = DASHED if its is not None and its.true else "solid"
    if frame == "current" and agent.replace("@current", "@previous") in among:
        dashes = DOTTED
    with_usual_model = {agent.replace("model=counts", "model=softmax"), re.sub(r",model=[^,]*", "", agent)}
    if with_usual_model & (set(among) - {agent}):
        dashes = DASH_DOTTED
    alike = [other for other in among if _base(other) == _base(agent)]
    strength = 1 - 0.7 * alike.index(agent) / len(alike)
    label = agent_label(agent, among)
    return {"color": colour(agent), "linestyle": dashes, "linewidth": 2.0, "alpha": strength, "label": label}


def _base(agent: str) -> tuple[str, str | None]:
    """An agent without its settings, except the model."""
    return agent.partition(",")[0], settings(agent).get("model")


def agent_label(agent: str, among: Sequence[str]) -> str:
    """An agent in words.

    Planning without learning is mentioned if other agents of the panel do both; the default model, a softmax or with
    linear values the expectation, if other agents of the kind have another one.
    """
    kind, frame = kind_and_frame(agent)
    words = KINDS[kind].in_words if kind in KINDS else kind.replace("-", " ")
    words += {"previous": " from s", "current": " from s′"}.get(frame, "")
    mixed = any(plans(other) and not is_pure(other) for other in among)
    words += " (pure)" if is_pure(agent) and mixed else ""
    models = {settings(other).get("model") for other in among if kind_and_frame(other)[0] == kind}
    linear = {"features", "learn_by"} & settings(agent).keys()
    usual = ["expectation" if linear else "softmax"]
    said = len(models) > 1 and not {"model", "lam_by"} & settings(agent).keys()
    return ", ".join([words, *(usual if said else []), *map(_setting, agent.split(",")[1:])])


def _setting(given: str) -> str:
    """`alpha=0.5` as α = 0.5, `model=counts` as counts: shorter."""
    name, _, value = given.strip().partition("=")
    if value in ("", "true"):
        return SYMBOLS.get(name, name)
    return WORDS.get(given, value if name == "model" else f"{SYMBOLS.get(name, name)} = {value}")


def points(size: float) -> float:
    """The font size in points, from that on a page."""
    return size * medium().scale


def stacked_title(picture: Picture, width: int) -> str:
    """A world in words, wrapped to a number of characters for a narrow panel."""
    lines = picture.title.replace(": ", ":\n").replace(", ", ",\n").splitlines()
    return "\n".join(fill(line, width) for line in lines)


def sheet(rows: int, columns: int, width: float = 12.0, height: float = 6.75, **shared: Any) -> tuple[Figure, Any]:
    """A figure of rows × columns panels, ready to be drawn on."""
    figure = Figure(figsize=medium().size(columns, width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12 * medium().scale, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        axes.grid(color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(MUTED)
        axes.tick_params(labelsize=points(SMALL + 1), color=MUTED, labelcolor=INK)
    return figure, panels


def caption(axes: Axes, title: str = "", x: str = "", y: str = "", size: float = LARGE, above: float = 10.0) -> None:
    """Set the title of a panel, a number of points above it, and label its axes."""
    axes.set_title(title, fontsize=points(size), color=INK, loc="left", y=1.0, pad=points(above), gid=TITLE)
    axes.set_xlabel(x, fontsize=points(MEDIUM), color=INK)
    axes.set_ylabel(y, fontsize=points(MEDIUM), color=INK)


def finish(figure: Figure, note: str) -> Figure:
    """Write a note below the figure and label the curves: at their ends or, if there are too many, in a legend."""
    write_below(figure, note)
    if not medium().names_ends or any(len(_named(axes)) > ENDS for axes in figure.axes):
        key(figure, "outside lower left" if medium().names_ends else "outside upper left", columns=2)
        return figure
    lay_out(figure)  # now the sizes of the panels are known
    for axes in filter(_named, figure.axes):
        name_ends(axes)
    return figure


def lay_out(figure: Figure) -> None:
    """Lay out the panels of a figure, as large as the text around them allows."""
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]


def write_below(figure: Figure, note: str) -> None:
    """Write a note at the lower right of the figure, which grows by the lines beyond the first."""
    width, height = figure.get_size_inches()
    lines = [part for line in note.splitlines() for part in wrap(line, int(12.3 * width / medium().scale))]
    figure.set_figheight(height + (len(lines) - 1) * 1.25 * points(SMALL) / 72)
    figure.supxlabel("\n".join(lines), x=0.99, ha="right", fontsize=points(SMALL), color=MUTED)


def key(figure: Figure, place: str, columns: int = 1) -> None:
    """Add a legend of the curves of all panels, each once."""
    curves = {str(line.get_label()): line for axes in figure.axes for line in _named(axes)}
    looks: dict[str, Any] = {"loc": place, "frameon": False, "fontsize": points(MEDIUM - 1), "labelcolor": INK}
    ncols = medium().key_columns(figure.get_figwidth(), columns)
    _make_room(figure, math.ceil(len(curves) / ncols))
    figure.legend(handles=list(curves.values()), ncols=ncols, handlelength=2.4, **looks)


def _make_room(figure: Figure, lines: int) -> None:
    """Make a figure for print higher by the lines of its legend, which would otherwise shrink the panels."""
    if not medium().names_ends:
        figure.set_figheight(figure.get_figheight() + max(0, lines - 1) * 1.4 * points(MEDIUM) / 72)


def _named(axes: Axes) -> list[Line2D]:
    """The curves of a panel that have a name."""
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


def name_ends(axes: Axes) -> None:
    """Write each curve's label to the right of its panel, in its colour, near the height of its end.

    No two are over each other. To a curve that ends before the right edge, where its agent diverged, no line leads.
    """
    ends = {line: _end(axes, line) for line in _named(axes)}
    heights = {line: y if x > EDGE else float(np.clip(y, 0, TOP)) for line, (x, y) in ends.items()}
    lines = sorted(ends, key=lambda line: heights[line])
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    places = spread(np.array([heights[line] for line in lines]), 1.25 * MEDIUM / height)
    for line, place in zip(lines, places, strict=True):
        looks: dict[str, Any] = {"color": line.get_color(), "linestyle": line.get_linestyle(), "linewidth": 1.0}
        x, end = ends[line]
        if x > EDGE:
            axes.plot([1, 1.035], [end, place], transform=axes.transAxes, clip_on=False, **looks)
        words, ink = str(line.get_label()), READABLE.get(looks["color"], looks["color"])
        axes.text(1.045, place, words, transform=axes.transAxes, va="center", fontsize=MEDIUM, color=ink)


def _end(axes: Axes, line: Line2D) -> Vector:
    """Where a curve ends, (2,), in fractions of its panel."""
    last = np.asarray(line.get_xydata())[-1]
    return np.asarray((axes.transScale + axes.transLimits).transform(last))


def spread(heights: Vector, gap: float) -> Vector:
    """Heights in [0, 1] nearest, in least squares, to the rising ones given, and `gap` or more apart if they can be."""
    last = max(1, len(heights) - 1)
    steps = min(gap, 1 / last) * np.arange(len(heights))
    return np.clip(isotonic_regression(heights - steps).x, 0, 1 - steps[-1]) + steps


def thumbnail(axes: Axes, picture: Picture) -> None:
    """A small picture of the world beside a panel's title, if there is one and room for it."""
    if not medium().names_ends:
        return
    if picture.levels and max(len(picture.levels), _dots(max(picture.levels))) <= MOST_DOTS:
        _draw_levels(_inset_beside_title(axes), picture.levels)
    elif 0 < len(picture.cells.split()) <= MOST_DOTS and len(picture.cells) <= MOST_DOTS**2:
        _draw_maze(_inset_beside_title(axes), picture.cells)


def _inset_beside_title(axes: Axes) -> Axes:
    """Room at the upper right of a panel, to the right of its title however long that is."""
    inset = axes.inset_axes(BESIDE_TITLE)
    usual = inset.get_axes_locator()

    def place(_: object, renderer: RendererBase) -> Bbox:
        box, panel = usual(inset, renderer), axes.figure.transSubfigure.inverted()
        titles = axes.findobj(lambda artist: artist.get_gid() == TITLE)
        ends = [panel.transform((title.get_window_extent(renderer).x1 + points(SMALL), 0))[0] for title in titles]
        left = max([box.x0, *ends])
        return Bbox.from_bounds(left, box.y0, box.width, box.height)

    inset.set_axes_locator(place)
    return inset


def _dots(states: int) -> int:
    """The number of dots for a level with a number of states: 8, 4 and 2 for 500, 50 and 5."""
    return max(1, round(math.cbrt(states)))


def _draw_levels(inset: Axes, sizes: tuple[int, ...]) -> None:
    """Levels from left to right, some dots for each, and all edges."""
    columns = [np.arange(n) - (n - 1) / 2 for n in map(_dots, sizes)]
    for x, (here, there) in enumerate(pairwise(columns)):
        ends = np.array([(a, b) for a in here for b in there])
        inset.plot([x, x + 1], ends.T, color=MUTED, linewidth=0.4, alpha=0.6)
    for x, column in enumerate(columns):
        inset.plot(np.full(len(column), x), column, "o", markersize=3.2, color=INK)
    inset.set_axis_off()


def _draw_maze(inset: Axes, text: str) -> None:
    rows = text.split()
    cells = np.array([list(row.ljust(max(map(len, rows)), "X")) for row in rows])
    inset.imshow(cells == "X", cmap="Greys", vmin=0, vmax=1.4)
    for letter in "SG":
        for row, column in np.argwhere(cells == letter):
            inset.text(column, row, letter, fontsize=7, color=INK, ha="center", va="center_baseline")
    inset.set(xticks=[], yticks=[])
    inset.spines[:].set_color(MUTED)
