"""The figure of mean errors against a model's capacity: the number of its features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from backcast.report import colours, style
from backcast.report.comparisons import MARKERS, draw_line
from backcast.report.scores import StudyResults, judged_by, mean_score, own_names, with_divergences
from backcast.studies.statistics import Interval, paired_difference


def error_by_capacity(results: StudyResults) -> Figure:
    """Mean error against the number at the end of agents' labels, that of a model's features.

    Agents that differ only in it are joined by a line. Errors are relative to the first agent without one, seed by
    seed, because worlds that every seed draws anew differ more than agents do. A column for each world; a row for pure
    planning and one for planning with learning.
    """
    agents = list(dict.fromkeys(agent for world in results.worlds for agent in results.agents(world)))
    modes = {"planning alone": True, "beside learning": False}
    shown = [mode for mode, pure in modes.items() if any(style.is_pure(a) == pure for a in _with_numbers(agents))]
    size = {"width": min(12.0, 1.5 + 5.0 * len(results.worlds)), "height": 1.6 + 3.2 * len(shown)}
    figure, panels = style.sheet(len(shown), len(results.worlds), **size, sharex=True, sharey="row")
    for row, mode in zip(panels, shown, strict=True):
        for axes, world in zip(row, results.worlds, strict=True):
            reference = _draw(results, world, axes, modes[mode])
            metric = judged_by(results, world).label.partition(",")[0]
            against = f", less {style.agent_label(reference, [])}'s" if reference else ""
            title = f"{style.stacked_title(results.picture(world), 40)}, {mode}"
            style.caption(axes, title, "model features", metric + against, size=style.MEDIUM)
            axes.label_outer()
    style.key(figure, "outside upper right", columns=2)
    note = f"mean over episodes and {results.seeds} seeds, 95 % bootstrap interval of the paired difference"
    style.write_below(figure, with_divergences(results, note))
    return figure


def _draw(results: StudyResults, world: str, axes: Axes, pure: bool) -> str | None:
    """The lines of a world, for pure planning or the other agents, and the agent that they are compared with."""
    families, levels = capacities(results.agents(world))
    families = {family: points for family, points in families.items() if style.is_pure(family) == pure}
    reference = next((agent for agent in levels if not results.diverged(world, agent).any()), None)
    own = own_names(results)
    looks = _told_apart({family: own[next(iter(points.values()))] for family, points in families.items()})
    if reference:
        label = style.agent_label(reference, [])
        axes.axhline(0.0, color=colours.colour(own[reference]), linestyle=style.DASHED, label=label)
    for number, (family, points) in enumerate(families.items()):
        found = [_compared(results, world, agent, reference) for agent in points.values()]
        beside = 1.02 ** (number - (len(families) - 1) / 2)
        draw_line(axes, beside * np.array(list(points)), found, looks[family])
    ticks = sorted({x for points in families.values() for x in points})
    axes.set_xscale("log" if all(ticks) else "linear")
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    return reference


def _compared(results: StudyResults, world: str, agent: str, reference: str | None) -> Interval:
    """The mean error minus that of the reference; infinite if the agent diverged."""
    if reference is None or results.diverged(world, agent).any():
        return mean_score(results, world, agent)
    metric = judged_by(results, world).name
    return paired_difference(results.means(world, agent, metric), results.means(world, reference, metric), seed=0)


def _told_apart(names: dict[str, str]) -> dict[str, dict[str, Any]]:
    """How each label is drawn, given agents' own names: in the colour of the kind, others of that kind dashed."""
    kinds = {label: colours.kind_and_frame(name)[0] for label, name in names.items()}
    looks = {}
    for label, kind in kinds.items():
        number = [other for other, its_kind in kinds.items() if its_kind == kind].index(label)
        looks[label] = {
            "color": colours.colour(kind),
            "linestyle": style.DASHED if number else "-",
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 5.5,
            "linewidth": 1.8,
            "label": label.removeprefix("pure:"),
        }
    return looks


def _with_numbers(agents: Sequence[str]) -> list[str]:
    families, _ = capacities(agents)
    return [agent for points in families.values() for agent in points.values()]


def capacities(agents: Sequence[str]) -> tuple[dict[str, dict[int, str]], list[str]]:
    """Agents by family and capacity (the label up to its last space, and the number after it), and the others."""
    families: dict[str, dict[int, str]] = {}
    for agent in agents:
        family, _, capacity = agent.rpartition(" ")
        if family and capacity.isdecimal():
            families.setdefault(family, {})[int(capacity)] = agent
    of_family = {agent for points in families.values() for agent in points.values()}
    ordered = {family: dict(sorted(points.items())) for family, points in families.items()}
    return ordered, [agent for agent in agents if agent not in of_family]
