"""Figures that compare mean scores in each world's default metric: by agent, and by how far a model looks."""

import math
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from backcast.core.arrays import Vector
from backcast.report import colours, drawing, style
from backcast.report.medium import medium
from backcast.report.scores import StudyResults, judged_by, mean_score, own_names, with_divergences
from backcast.studies.statistics import Interval

ACROSS = 3  # worlds side by side
FEW_KINDS = 6  # most kinds whose colours are named
MARKERS = "osD^vP"
OUTSIDE = 1e30  # above every panel
NUMBER = re.compile(r"\d+(\.\d+)?(e-\d+)?")


def error_by_agent(results: StudyResults) -> Figure:
    """Mean score of each agent, a panel per world, with a line down from the first agent."""
    agents = _in_the_studys_order(results)
    names, places = own_names(results), _places(agents)
    bottom = max(places.values()) + 0.7
    rows, columns = _shape(results)
    figure, panels = style.sheet(rows, columns, height=1.1 + rows * (0.9 + 0.22 * bottom), sharey=True)
    for axes, world in zip(panels.flat, results.worlds, strict=False):
        found = {agent: mean_score(results, world, agent) for agent in results.agents(world)}
        measure = found[results.agents(world)[0]].estimate
        if np.isfinite(measure):
            axes.axvline(measure, color=style.MUTED, linewidth=1.0, zorder=1)
        for agent, interval in found.items():
            _dot(axes, interval, places[agent], names[agent].partition(",")[0])
        metric = judged_by(results, world).label
        style.caption(axes, style.stacked_title(results.picture(world), 30), metric, size=style.MEDIUM)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    panels[0, 0].set_yticks(list(places.values()), _row_names(agents))
    panels[0, 0].set_ylim(bottom, -0.7)
    for axes in panels.flat[len(results.worlds) :]:
        axes.remove()
    if len({names[agent].partition(",")[0] for agent in agents}) <= FEW_KINDS:  # else the rows say it all
        style.key(figure, "outside upper right", columns=9)
    first = dict.fromkeys(style.agent_label(results.agents(world)[0], []) for world in results.worlds)
    style.write_below(figure, with_divergences(results, f"{_over(results)}; vertical line: {' or '.join(first)}"))
    return figure


def _in_the_studys_order(results: StudyResults) -> list[str]:
    """The agents of all worlds, in one order."""
    found = dict.fromkeys(agent for world in results.worlds for agent in results.agents(world))
    places = {cell.label: cell.place for cell in results.study.runs()}
    return sorted(found, key=places.__getitem__)


def groups(agents: Sequence[str]) -> list[list[str]]:
    """Agents in the order of the study, in groups.

    The first agent, which the others are compared with, is alone. Variations of one agent (its name with a suffix, or
    with another number at the end) stay together; so do consecutive agents without variations.
    """
    heads = list(agents[:1])
    for agent in agents[1:]:
        stem = re.sub(r"[\d.]+$", "", heads[-1])
        heads.append(heads[-1] if len(heads) > 1 and agent.startswith(stem) else agent)
    keys = [head if heads.count(head) > 1 or head == agents[0] else "" for head in heads]
    return [[agent for _, agent in group] for _, group in groupby(zip(keys, agents, strict=True), lambda pair: pair[0])]


def _places(agents: Sequence[str]) -> dict[str, float]:
    """The row of each agent, counted from above, with a gap between groups."""
    places: dict[str, float] = {}
    row = 0.0
    for group in groups(agents):
        places |= {agent: row + i for i, agent in enumerate(group)}
        row += len(group) + 0.6
    return places


def _row_names(agents: Sequence[str]) -> list[str]:
    """Agents in words, without their kind if all but the first share it, because the key names it."""
    first, *others = (style.agent_label(agent, agents) for agent in agents)
    kinds = {name.partition(", ")[0] for name in others}
    alike = len(kinds) == 1 and not kinds & set(others)
    return [first, *(name.partition(", ")[2] if alike else name for name in others)]


def _dot(axes: Axes, found: Interval, place: float, kind: str) -> None:
    """A mean in the colour of a kind, and its interval if that is known; a word if it diverged."""
    shade = colours.colour(kind)
    if not np.isfinite(found.estimate):
        words = axes.text(
            0.02, place, "× diverged", transform=axes.get_yaxis_transform(), fontsize=style.points(style.SMALL)
        )
        words.set(color=shade, va="center_baseline", bbox={"color": "white", "pad": 1})
        return
    if np.isfinite(found.low) and np.isfinite(found.high):
        axes.plot([found.low, found.high], [place, place], color=shade, linewidth=2.5, alpha=0.5)
    axes.plot(found.estimate, place, "o", color=shade, markersize=6.5, label=style.agent_label(kind, []))


def error_by_horizon(results: StudyResults) -> Figure:
    """Mean score against the horizon of a model, two panels per world: n-step models and λ-models."""
    rows, columns = _shape(results)
    figure, panels = style.sheet(rows, 2 * columns, height=1.2 + 4.4 * rows)
    pairs = panels.reshape(-1, 2)
    for pair, world in zip(pairs, results.worlds, strict=False):
        _draw_pair(results, world, *pair)
        metric = judged_by(results, world).label
        style.caption(pair[0], style.stacked_title(results.picture(world), 32), "n steps", metric, size=style.MEDIUM)
        style.caption(pair[1], x="λ")
    for axes in pairs[len(results.worlds) :].flat:
        axes.remove()
    style.key(figure, "outside upper right", columns=9)
    style.write_below(figure, with_divergences(results, _over(results)))
    return figure


def _draw_pair(results: StudyResults, world: str, left: Axes, right: Axes) -> None:
    """A world's mean scores by n at the left, and by λ at the right."""
    right.sharey(left)
    right.tick_params(labelleft=False)
    names = own_names(results)
    first, *others = results.agents(world)
    level = {"color": colours.colour(first), "linewidth": 1.6, "label": style.agent_label(first, [])}
    spans = _spans({agent: names[agent] for agent in others})
    series = list(dict.fromkeys(name for lines in spans for name in lines))
    for axes, lines in zip((left, right), spans, strict=True):
        _level(axes, mean_score(results, world, first), level)
        for name, points in lines.items():
            place = series.index(name) - (len(series) - 1) / 2
            found = [mean_score(results, world, agent) for _, agent in sorted(points.items())]
            draw_line(axes, np.array(sorted(points)) + place * 0.015 * max(points), found, _looks(name))
        ticks = sorted({x for points in lines.values() for x in points})
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])


def _spans(names: dict[str, str]) -> tuple[dict[str, dict[float, str]], dict[str, dict[float, str]]]:
    """Groups of agents that differ only in n, and only in λ; λ = 0 is the one-step model.

    Agents with a λ for each state are in neither.
    """
    steps: dict[str, dict[float, str]] = {}
    lambdas: dict[str, dict[float, str]] = {}
    for agent, name in names.items():
        series = re.sub(r",(horizon|lam)=[^,]*", "", name)
        given = style.settings(name)
        if NUMBER.fullmatch(given.get("lam", "")):
            lambdas.setdefault(series, {})[float(given["lam"])] = agent
        elif "lam" not in given:
            steps.setdefault(series, {})[float(given.get("horizon", 1))] = agent
    for series in lambdas.keys() & steps.keys():
        lambdas[series] |= {0.0: steps[series][1.0]} if 1.0 in steps[series] else {}
    return steps, lambdas


def _looks(series: str) -> dict[str, Any]:
    """The style of a series: that of its kind; dotted and with other markers if learned by TD."""
    by_td = style.settings(series).get("lam_by") == "td"
    looks = style.line_style(series, [series])
    return looks | {"marker": "D" if by_td else "o", "markersize": 5} | ({"linestyle": style.DOTTED} if by_td else {})


def draw_line(axes: Axes, x: Vector, found: Sequence[Interval], looks: dict[str, Any]) -> None:
    """Draw joined means; the x of each series are slightly shifted, so that intervals can be told apart.

    An interval without an upper end extends to the top of the panel.
    """
    means, low, high = np.array([(each.estimate, each.low, each.high) for each in found]).T
    drawing.joined(axes, x, means, looks)
    for endless in (False, True):
        known = np.isfinite(means) & np.isfinite(low) & (np.isposinf(high) if endless else np.isfinite(high))
        with drawing.limits_kept(axes, endless):
            axes.vlines(x[known], low[known], np.minimum(high[known], OUTSIDE), color=looks["color"], alpha=0.5)


def _level(axes: Axes, found: Interval, looks: dict[str, Any]) -> None:
    """The mean of an agent that is the same everywhere on the x axis, and its interval; nothing if it diverged."""
    if np.isfinite(found.estimate):
        axes.axhline(found.estimate, **looks)
    if np.isfinite(found.low) and np.isfinite(found.high):
        axes.axhspan(found.low, found.high, color=looks["color"], alpha=0.15, linewidth=0)


def _over(results: StudyResults) -> str:
    if results.seeds == 1:
        return "mean over episodes, one seed"
    means = f"mean over episodes and {results.seeds} seeds, 95 % bootstrap interval over seeds"
    return f"{means}; agents share seeds: differences are surer"


def _shape(results: StudyResults) -> tuple[int, int]:
    """Rows and columns of worlds."""
    columns = medium().across(len(results.worlds), ACROSS)
    return math.ceil(len(results.worlds) / columns), columns
