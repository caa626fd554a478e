"""The figure of sensitivity to settings: scores against each number that a study searched."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from backcast.core.arrays import Indices, Vector
from backcast.drivers.metrics import METRICS, Metric
from backcast.report import colours, drawing, style
from backcast.report.comparisons import MARKERS, draw_line
from backcast.report.medium import medium
from backcast.report.scores import StudyResults, judged_by
from backcast.studies.choice import winner
from backcast.studies.search import Range, is_number
from backcast.studies.spec import Study
from backcast.studies.statistics import Interval, bootstrap
from backcast.studies.study_metrics import in_units
from backcast.studies.trials import Trial, tried

ACROSS = 4  # worlds side by side
MOST = 12  # worlds drawn
FEW = 60  # most values of a setting that are drawn one by one
MARKED = 20  # most points of a line with markers
STRETCHES, IN_EACH = 12, 8  # most segments of an axis, and the mean number of settings in each
DOTS, DOT = 400, "."  # most settings tried that are drawn for each agent
TICKS = 8  # most values with a tick each, in wide panels
DASHES = ("solid", style.DOTTED, style.DASH_DOTTED, style.DASHED)
NAMES = {
    "alpha": "step size α",
    "alpha_model": "step size of the model, αₘ",
    "alpha_plan": "step size of planning, αₚ",
    "epsilon": "exploration, ε",
}


class Tried(NamedTuple):
    """The trials of an agent in a world.

    Attributes:
        x: (C,), the values of the setting; empty if the agent does not have it.
        metric: the metric of the world.
        costs: (C, seeds), the metric, negated if higher is better.
        crossed: whether each value was tried with the same other settings, or most of them.
    """

    x: Vector
    metric: Metric
    costs: Vector
    crossed: bool

    def mean(self, i: int) -> Interval:
        """The mean of the metric over seeds, of one of the settings tried."""
        return in_units(bootstrap(self.costs[i], seed=0), self.metric)

    def best_of(self, rows: Indices) -> int:
        """Which of these settings is best."""
        return int(rows[winner(self.costs[rows])])


def sensitivity(results: StudyResults) -> Figure:
    """Mean score against each searched number, with a row for each setting and a column for each world.

    A point is the best over all other settings. If these differ from value to value, as in a random search, settings
    are dots, and the line is the best of each segment of the axis. Agents without the setting are horizontal lines at
    their best.
    """
    settings, worlds = results.study.searched_numbers, list(results.worlds)[:MOST]
    metrics = [judged_by(results, world) for world in worlds]
    columns = medium().across(len(worlds), ACROSS)
    blocks = math.ceil(len(worlds) / columns)
    size = {"width": min(13.0, 4.5 + 3.5 * columns), "height": 1.4 + 3.1 * blocks * len(settings)}
    figure, panels = style.sheet(blocks * len(settings), columns, **size)
    by_world = panels.reshape(blocks, len(settings), columns).swapaxes(1, 2).reshape(-1, len(settings))
    for number, (column, world) in enumerate(zip(by_world, worlds, strict=False)):
        trials = tried(results, world)
        told = number % columns > 0 and metrics[number] == metrics[number - 1]  # labelled by the panel to the left
        label = "" if told else metrics[number].label.partition(",")[0]
        for axes, setting in zip(column, settings, strict=True):
            if axes is not column[0]:
                axes.sharey(column[0])
            _draw(axes, trials, setting, _on_log_scale(results.study, setting), columns <= 2)
            style.caption(axes, "", NAMES.get(setting, setting.replace("_", " ")), label)
        title = style.stacked_title(results.picture(world), 40)
        style.caption(column[0], title, column[0].get_xlabel(), column[0].get_ylabel(), style.MEDIUM)
        drawing.metric_axis(column[0], metrics[number])
    for axes in by_world[len(worlds) :].flat:
        axes.remove()
    style.key(figure, "outside upper right", columns=int(size["width"] / 2.6))
    style.write_below(figure, _note(results, figure.axes))
    return figure


def _note(results: StudyResults, axes: Sequence[Axes]) -> str:
    """Describe the marks in the figure."""
    marks = {str(line.get_marker()) for each in axes for line in each.get_lines()}
    seeds = f"{results.seeds} seeds, 95 % bootstrap interval" if results.seeds > 1 else "one seed"
    parts = [f"mean over episodes and {seeds}", "line: the best over all other settings", "circle: an agent's best"]
    parts += ["dots: settings tried, and the line the best of each stretch"] if DOT in marks else []
    parts += ["×: all diverged"] if "x" in marks else []
    more = len(results.worlds) - MOST
    return "; ".join(parts + ([f"and {more:,} more world{'s' if more > 1 else ''}"] if more > 0 else []))


def _on_log_scale(study: Study, setting: str) -> bool:
    """Whether all numbers are positive and span a decade, or a search says so."""
    sources = [space.sources.get(setting, ()) for space in study.spaces]
    ends = [
        number
        for source in sources
        for number in ((source.low, source.high) if isinstance(source, Range) else filter(is_number, source))
    ]
    said = any(isinstance(source, Range) and source.scale == "log" for source in sources)
    return min(ends) > 0 and (said or max(ends) >= 10 * min(ends))


def _draw(axes: Axes, trials: Sequence[Trial], setting: str, log: bool, wide: bool) -> None:
    """All agents of a world against a setting, in a panel that is wide or not."""
    agents = _by_agent(trials, setting)
    looks = _looks({trial.cell.base: trial.cell.agent.kind for trial in trials})
    ticks = sorted({float(x) for each in agents.values() for x in each.x})
    if log:
        axes.set_xscale("log")
    lined = [base for base, each in agents.items() if each.x.size]
    for base, each in agents.items():
        if each.x.size:
            beside = lined.index(base) - (len(lined) - 1) / 2
            _curve(axes, each, looks[base], beside, log)
        else:
            _level(axes, each, looks[base])
    if len(ticks) <= (TICKS if wide else TICKS // 2):
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    elif log:
        axes.xaxis.set_major_locator(LogLocator(subs=(1,) if ticks[-1] > 50 * ticks[0] else (1, 2, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _by_agent(trials: Sequence[Trial], setting: str) -> dict[str, Tried]:
    """The trials of each agent; for agents that have the setting, those in which it is a number."""
    rows: dict[str, list[tuple[dict[str, Any], Vector]]] = {}
    for trial in trials:
        rows.setdefault(trial.cell.base, []).append((dict(trial.cell.point), trial.costs))
    found = {}
    for base, pairs in rows.items():
        numbers = [(point, costs) for point, costs in pairs if is_number(point.get(setting))]
        x = np.array([point.pop(setting) for point, _ in numbers], dtype=np.float64)
        others = {tuple(point.items()) for point, _ in numbers}
        costs = np.array([costs for _, costs in numbers or pairs])
        found[base] = Tried(x, METRICS[trials[0].metric], costs, 2 * len(x) > len(np.unique(x)) * len(others))
    return found


def _looks(kinds: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The style of each agent: the colour of its kind; agents of one kind differ by dashes and markers.

    If there are more agents than dashes, their colours fade in their order.
    """
    looks = {}
    for base, kind in kinds.items():
        usual = style.line_style(base, list(kinds))
        alike = [other for other, its_kind in kinds.items() if its_kind == kind]
        number, many = alike.index(base), len(alike) > len(DASHES)
        dashes = usual["linestyle"] if many or usual["linestyle"] != "solid" else DASHES[number % len(DASHES)]
        marks = {"marker": MARKERS[number % len(MARKERS)], "markersize": 5.5}
        strength = usual["alpha"] if many else 1.0
        looks[base] = usual | marks | {"color": colours.colour(kind), "linestyle": dashes, "alpha": strength}
    return looks


def _curve(axes: Axes, each: Tried, looks: dict[str, Any], beside: float, log: bool) -> None:
    """An agent's line, with a circle around its best."""
    distinct, place = np.unique(each.x, return_inverse=True)
    one_by_one = each.crossed and distinct.size <= FEW
    if not one_by_one:
        _dots(axes, each, looks["color"])
        scale = np.log(each.x) if log else each.x
        stretches = min(STRETCHES, len(scale) // IN_EACH + 1)
        place = np.digitize(scale, np.linspace(scale.min(), scale.max(), stretches + 1)[1:-1])
    chosen = [each.best_of(np.flatnonzero(place == i)) for i in np.unique(place)]
    x = each.x[chosen]
    if one_by_one:  # slightly shifted, so that intervals can be told apart
        x = x * 1.02**beside if log else x + 0.008 * beside * np.ptp(distinct)
    found = [each.mean(i) for i in chosen]
    draw_line(axes, x, found, looks | ({"marker": None} if len(x) > MARKED else {}))
    means = [interval.estimate for interval in found]
    best = chosen.index(each.best_of(np.array(chosen)))
    if np.isfinite(means[best]):
        ring: dict[str, Any] = {"markersize": 14, "markeredgewidth": 2.0, "markerfacecolor": "none", "zorder": 4}
        axes.plot(x[best], means[best], "o", markeredgecolor=looks["color"], clip_on=False, **ring)


def _dots(axes: Axes, each: Tried, shade: str) -> None:
    """Settings tried, evenly spread over their order if there are many."""
    means = each.metric.sign * each.costs.mean(axis=1)
    finite = np.flatnonzero(np.isfinite(means))
    shown = finite[np.unique(np.linspace(0, len(finite) - 1, DOTS).astype(int))] if len(finite) > DOTS else finite
    axes.plot(each.x[shown], means[shown], DOT, color=shade, markersize=7, alpha=0.3, markeredgewidth=0)


def _level(axes: Axes, each: Tried, looks: dict[str, Any]) -> None:
    """Draw the best of an agent as a horizontal line; nothing if it diverged."""
    found = each.mean(winner(each.costs))
    if np.isfinite(found.estimate):
        axes.axhline(found.estimate, **{name: looks[name] for name in ("color", "linestyle", "linewidth", "label")})
