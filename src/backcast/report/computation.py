"""Figures of scores against computation, in value updates or in processor time: a row for each family of agents."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from backcast.core.arrays import Vector
from backcast.report import colours, drawing, style
from backcast.report.scores import (
    RECENT,
    StudyResults,
    budget,
    computed_seconds_per_update,
    judged_by,
    over,
    own_names,
    score_at,
    seconds_per_update,
    with_divergences,
)
from backcast.studies.statistics import mean_and_error
from backcast.worlds.kinds import Picture

POINTS = 70  # number of points at which scores are read
SPAN = 500  # the last of them over the first: before that all agents are as good as untrained
MARKERS = "osD^vP"
Looks = dict[str, Any]
Curve = tuple[Vector, Vector, Vector, bool]  # computation, mean score, its standard error; whether the agent diverged
FIRST: Looks = {"color": style.INK, "linewidth": 1.4}
BEHIND: Looks = {"color": "#d0d7dd", "linewidth": 0.8, "zorder": 1}
WORDS: Looks = {"labelcolor": style.INK, "frameon": False}


def error_against_updates(results: StudyResults) -> Figure:
    """Score against value updates: a column per world, a row per family, with other agents in the background."""
    return _against(results, lambda world, agent: 1.0, "value updates")


def error_against_seconds(results: StudyResults) -> Figure:
    """Score against processor time, divided equally among the updates of an agent.

    The time is computed (`backcast.studies.costs`) if the costs of all agents are known, else measured.
    """
    everyone = [(world, agent) for world in results.worlds for agent in results.agents(world)]
    computed = {(world, agent): computed_seconds_per_update(results, world, agent) for world, agent in everyone}
    known = {place: seconds for place, seconds in computed.items() if seconds is not None}
    if len(known) == len(everyone):
        return _against(results, lambda world, agent: 1e6 * known[world, agent], "computed time, µs")
    return _against(results, lambda world, agent: 1e6 * seconds_per_update(results, world, agent), "measured time, µs")


def _against(results: StudyResults, cost: Callable[[str, str], float], x: str) -> Figure:
    """Score against the number of updates times the cost of one."""
    families = _families(results)
    size = 3.8 + 1.9 * len(results.worlds), 1.7 + 1.16 * len(families)
    figure, panels = style.sheet(len(families), len(results.worlds), *size, sharex="col", sharey="col")
    for column, world in zip(panels.T, results.worlds, strict=True):
        grid, metric = _grid(results, world), judged_by(results, world)
        curves = {agent: _curve(results, world, agent, grid, cost(world, agent)) for agent in results.agents(world)}
        for axes, looks in zip(column, families.values(), strict=True):
            _draw(axes, curves, looks)
            drawing.metric_axis(axes, metric)
        _caption(column, results.picture(world), metric.label, x)
    for axes, (family, looks) in zip(panels[:, -1], families.items(), strict=True):
        _name(axes, family, looks)
    _key(figure, results)
    style.write_below(figure, with_divergences(results, _note(results)))
    return figure


def _families(results: StudyResults) -> dict[str, dict[str, Looks]]:
    """The styles of the agents of each family; agents that come first in a world are in every row instead.

    Except if there are no others.
    """
    names, first = own_names(results), {results.agents(world)[0] for world in results.worlds}
    names = {agent: name for agent, name in names.items() if agent not in first} or names
    families: dict[str, dict[str, Looks]] = {}
    found = [colours.family(name) for name in names.values()]
    others = dict.fromkeys(each for each in found if each not in (*colours.FAMILIES, colours.NO_FAMILY))
    for family in (*colours.FAMILIES, *others, colours.NO_FAMILY):
        members = [agent for agent, name in names.items() if colours.family(name) == family]
        if members:
            families[family] = {agent: _looks(agent, names[agent], members) for agent in members}
    return families


def _looks(agent: str, name: str, members: list[str]) -> Looks:
    """The style of a member of a family: the colour of its kind, and its own marker."""
    return {
        "color": colours.colour(name),
        "marker": MARKERS[members.index(agent) % len(MARKERS)],
        "markerfacecolor": "white",
        "markersize": 4.6,
        "linewidth": 1.6,
        "label": style.agent_label(agent, members),
    }


def _grid(results: StudyResults, world: str) -> Vector:
    """Numbers of updates up to the budget or, if there is none, to the end of the longest run that did not diverge."""
    agents = results.agents(world)
    whole = [agent for agent in agents if not results.diverged(world, agent).any()] or agents
    end = budget(results, world) or max(results.updates(world, agent).max() for agent in whole)
    return np.geomspace(end / SPAN, end, POINTS)


def _curve(results: StudyResults, world: str, agent: str, grid: Vector, cost: float) -> Curve:
    """An agent's score where all its runs have finished an episode and none is over."""
    scores = score_at(results, world, agent, grid)
    known = np.isfinite(scores).all(axis=0)
    return grid[known] * cost, *mean_and_error(scores[:, known]), bool(results.diverged(world, agent).any())


def _draw(axes: Axes, curves: dict[str, Curve], looks: dict[str, Looks]) -> None:
    """Draw the agents of a family, and behind them the first agent of the world, in black, and all others.

    Diverged agents end in a cross, and do not affect the limits unless there are no others.
    """
    everyone = all(diverged for *_, diverged in curves.values())
    for agent, (x, mean, error, diverged) in curves.items():
        if x.size == 0:
            continue
        look = looks.get(agent, FIRST if agent == next(iter(curves)) else BEHIND)
        place = 0.1 + 0.07 * list(looks).index(agent) if agent in looks else 0.0
        look_here = look | {"markevery": (place, 0.4)}  # in parts of the panel's diagonal
        with drawing.limits_kept(axes, diverged and not everyone):
            drawing.band(axes, x, mean, None if look is BEHIND else error, look_here)
            if look is not BEHIND and diverged:
                drawing.cross(axes, x[-1], mean[-1], look["color"])
    if not drawing.is_empty(axes):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(numticks=9))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if x < 1000 else f"{x / 1000:g}k"))


def _caption(column: Sequence[Axes], world: Picture, metric: str, x: str) -> None:
    """Label the world and its metric."""
    small = style.points(style.SMALL)
    for axes in column:
        axes.tick_params(labelsize=small)
    style.caption(column[0], style.stacked_title(world, 20), size=style.MEDIUM, above=24)
    column[0].text(0, 1.06, metric, transform=column[0].transAxes, fontsize=small, color=style.MUTED)
    column[-1].set_xlabel(x, fontsize=small, color=style.INK)


def _name(axes: Axes, family: str, looks: dict[str, Looks]) -> None:
    """Name the agents of a family to the right of its row."""
    lines = [Line2D([], [], **look) for look in looks.values()]
    shade = colours.FAMILIES.get(family, style.INK)
    place: Looks = {"loc": "center left", "bbox_to_anchor": (1.03, 0.5), "alignment": "left", "borderaxespad": 0}
    legend = axes.legend(
        handles=lines, title=family, labelspacing=0.25, fontsize=style.points(style.SMALL), **WORDS, **place
    )
    legend.get_title().set(color=shade, fontsize=style.points(style.SMALL + 1), fontweight="bold")


def _key(figure: Figure, results: StudyResults) -> None:
    """Label what is in every row, in the corner above the names of the families."""
    first = dict.fromkeys(style.agent_label(results.agents(world)[0], []) for world in results.worlds)
    lines = [
        Line2D([], [], label=" or ".join(first), **FIRST),
        Line2D([], [], label="agents of other rows", **BEHIND),
    ]
    figure.legend(handles=lines, loc="upper right", fontsize=style.points(style.SMALL), **WORDS)


def _note(results: StudyResults) -> str:
    parts = [over(results), "a curve begins where every seed has finished an episode and ends where a run is over"]
    judges = [judged_by(results, world) for world in results.worlds]
    luck = dict.fromkeys(metric.name for metric in judges if metric.per_episode)
    if luck:
        parts.insert(1, f"{' and '.join(luck)}: mean of the last {RECENT} episodes")
    return "; ".join(parts)
