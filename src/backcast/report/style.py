"""How figures look: the colours and names of agents and worlds, thumbnails of worlds, labels at the ends of curves."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from scipy.optimize import isotonic_regression

from backcast.arrays import Vector
from backcast.worlds.maze import PAPER_MAZE

INK, MUTED, FAINT = "#22303c", "#64717c", "#e4e9ed"
FORWARD, BACKWARD = "#0072b2", "#d55e00"  # all colours but grey are Okabe and Ito's, safe for the colour-blind
COLOURS = {
    "td": "#4d4d4d",
    "q": "#4d4d4d",
    "forward": FORWARD,
    "backward": BACKWARD,
    "true-forward": "#56b4e9",
    "true-backward": "#e69f00",
}
READABLE = {"#56b4e9": FORWARD, "#e69f00": BACKWARD}  # words in a light hue are hard to read
OTHERS = ("#009e73", "#cc79a7")
DASHED, DOTTED = (0, (4, 1.4)), (0, (1.3, 1.1))
NAMES = {"td": "TD", "q": "Q-learning"}
SYMBOLS = {"alpha": "α", "alpha_model": "αₘ", "alpha_plan": "αₚ", "epsilon": "ε"}
BESIDE_TITLE = (1.05, 1.03, 0.26, 0.22)  # left, bottom, width and height in fractions of the panel
SMALL, MEDIUM, LARGE = 10.0, 12.0, 14.0


def is_pure(agent: str) -> bool:
    """Whether an agent plans without learning beside it."""
    return agent.startswith("pure:")


def plans(agent: str) -> bool:
    """Whether an agent plans: all but TD and Q-learning do."""
    return kind_and_frame(agent)[0] not in NAMES


def kind_and_frame(agent: str) -> tuple[str, str]:
    """What kind of agent it is, and from where it plans if its name says so."""
    kind, _, frame = agent.removeprefix("pure:").partition(",")[0].partition("@")
    return kind, frame


def colour(agent: str) -> str:
    """The colour of an agent's kind, the same in all figures."""
    kind, _ = kind_and_frame(agent)
    return COLOURS.get(kind, OTHERS[crc32(kind.encode()) % len(OTHERS)])


def line_style(agent: str, among: Sequence[str]) -> dict[str, Any]:
    """How an agent's curve is drawn among others.

    True models are dashed; planning from s' is dotted if planning from s is there too; where one agent was run with
    several settings (`forward,alpha=0.5`), the curves fade in their order.
    """
    kind, frame = kind_and_frame(agent)
    dashes: Any = DASHED if kind.startswith("true-") else "solid"
    if frame == "current" and agent.replace("@current", "@previous") in among:
        dashes = DOTTED
    alike = [other for other in among if other.partition(",")[0] == agent.partition(",")[0]]
    strength = 1 - 0.7 * alike.index(agent) / len(alike)
    label = agent_label(agent, among)
    return {"color": colour(agent), "linestyle": dashes, "linewidth": 2.0, "alpha": strength, "label": label}


def agent_label(agent: str, among: Sequence[str]) -> str:
    """An agent in words; that it plans without learning is said where others of the panel do both."""
    kind, frame = kind_and_frame(agent)
    words = NAMES.get(kind, kind.replace("-", " "))
    words += {"previous": " from s", "current": " from s′"}.get(frame, "")
    mixed = any(plans(other) and not is_pure(other) for other in among)
    words += " (pure)" if is_pure(agent) and mixed else ""
    return ", ".join([words, *map(_setting, agent.split(",")[1:])])


def _setting(given: str) -> str:
    """`alpha=0.5` as α = 0.5, which is shorter."""
    name, _, value = given.partition("=")
    return f"{SYMBOLS.get(name, name)} = {value}"


def levels(world: str) -> tuple[int, ...]:
    """The sizes of the levels of a chain, from its name; () for other worlds."""
    start, *sizes = world.split("-")
    return tuple(map(int, sizes)) if start == "chain" else ()


def world_title(world: str) -> str:
    """A world in words."""
    sizes = levels(world)
    if sizes:
        pattern = "Channelling" if sizes[0] > sizes[-1] else "Broadcasting" if sizes[0] < sizes[-1] else "Even levels"
        return f"{pattern}: {' → '.join(map(str, sizes))} states"
    if not world.startswith("maze"):
        return world
    words = world.removeprefix("maze").replace("-slip-", ", slips with probability ")
    return "Maze" + (words.replace("-reward-", ", reward with probability ") or ", deterministic")


def sheet(rows: int, columns: int, width: float = 12.0, height: float = 6.75, **shared: Any) -> tuple[Figure, Any]:
    """A figure of rows × columns panels, ready to be drawn on."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        axes.grid(color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(MUTED)
        axes.tick_params(labelsize=SMALL + 1, color=MUTED, labelcolor=INK)
    return figure, panels


def caption(axes: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Title a panel and its axes."""
    axes.set_title(title, fontsize=LARGE, color=INK, loc="left", y=1.0, pad=10)
    axes.set_xlabel(x, fontsize=MEDIUM, color=INK)
    axes.set_ylabel(y, fontsize=MEDIUM, color=INK)


def log_axis(axes: Axes) -> None:
    """A logarithmic y axis whose ticks are plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def finish(figure: Figure, note: str) -> Figure:
    """Write a note below the figure and name the curves where they end, once it is known how large the panels are."""
    figure.supxlabel(note, x=0.99, ha="right", fontsize=SMALL, color=MUTED)
    figure.draw_without_rendering()
    for axes in figure.axes:
        name_ends(axes)
    return figure


def name_ends(axes: Axes) -> None:
    """Write each curve's label to the right of its end, in its colour, no two over each other."""
    named = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    lines = sorted(named, key=lambda line: _end(axes, line))
    ends = np.array([_end(axes, line) for line in lines])
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    for line, end, place in zip(lines, ends, spread(ends, 1.25 * MEDIUM / height), strict=True):
        looks: dict[str, Any] = {"color": line.get_color(), "linestyle": line.get_linestyle(), "linewidth": 1.0}
        axes.plot([1, 1.035], [end, place], transform=axes.transAxes, clip_on=False, **looks)
        words, ink = str(line.get_label()), READABLE.get(looks["color"], looks["color"])
        axes.text(1.045, place, words, transform=axes.transAxes, va="center", fontsize=MEDIUM, color=ink)


def _end(axes: Axes, line: Line2D) -> float:
    """The height of a curve's end as a fraction of its panel's."""
    last = np.asarray(line.get_xydata())[-1]
    return float((axes.transScale + axes.transLimits).transform(last)[1])


def spread(heights: Vector, gap: float) -> Vector:
    """Heights in [0, 1] nearest, in least squares, to the rising ones given, and `gap` or more apart if they can be."""
    last = max(1, len(heights) - 1)
    steps = min(gap, 1 / last) * np.arange(len(heights))
    return np.clip(isotonic_regression(heights - steps).x, 0, 1 - steps[-1]) + steps


def thumbnail(axes: Axes, world: str) -> None:
    """A small picture of the world beside a panel's title, if it is one of the paper's."""
    if levels(world):
        _draw_levels(axes.inset_axes(BESIDE_TITLE), levels(world))
    elif world.startswith("maze"):
        _draw_maze(axes.inset_axes(BESIDE_TITLE))


def _draw_levels(inset: Axes, sizes: tuple[int, ...]) -> None:
    """Levels from left to right, the cube root of their states each (8, 4 and 2 for 500, 50 and 5), and all edges."""
    columns = [np.arange(n) - (n - 1) / 2 for n in (max(1, round(math.cbrt(size))) for size in sizes)]
    for x, (here, there) in enumerate(pairwise(columns)):
        ends = np.array([(a, b) for a in here for b in there])
        inset.plot([x, x + 1], ends.T, color=MUTED, linewidth=0.4, alpha=0.6)
    for x, column in enumerate(columns):
        inset.plot(np.full(len(column), x), column, "o", markersize=3.2, color=INK)
    inset.set_axis_off()


def _draw_maze(inset: Axes) -> None:
    cells = np.array([list(line) for line in PAPER_MAZE.split()])
    inset.imshow(cells == "X", cmap="Greys", vmin=0, vmax=1.4)
    for letter in "SG":
        row, column = np.argwhere(cells == letter)[0]
        inset.text(column, row, letter, fontsize=7, color=INK, ha="center", va="center_baseline")
    inset.set(xticks=[], yticks=[])
    inset.spines[:].set_color(MUTED)
