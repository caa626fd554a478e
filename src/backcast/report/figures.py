"""Figures of a study's results, by name: `PLOTS["error-curves"](results)`; `save` writes one as SVG and PNG."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from backcast.core.arrays import Vector
from backcast.core.files import atomic_path
from backcast.drivers.metrics import METRICS
from backcast.report import drawing, style
from backcast.report.capacity import error_by_capacity
from backcast.report.comparisons import ACROSS, error_by_agent, error_by_horizon
from backcast.report.computation import error_against_seconds, error_against_updates
from backcast.report.medium import medium
from backcast.report.scores import CurveResults, StudyResults, finite_part, over, with_divergences
from backcast.report.sensitivity import sensitivity
from backcast.report.solving import updates_to_solve
from backcast.studies.spec import SENSITIVITY, Study
from backcast.studies.statistics import cumulative_on_grid, mean_and_error
from backcast.worlds.kinds import Picture

POINTS = 250  # most points of a curve that are drawn


class Curve(NamedTuple):
    """A curve of an agent: positions (E,), values (seeds, E), and whether it ends because the agent diverged."""

    x: Vector
    values: Vector
    diverged: bool = False


def error_curves(results: StudyResults) -> Figure:
    """Error of the values over episodes, two panels per world: all states above, non-terminal states below."""
    columns = medium().across(2 * len(results.worlds), min(ACROSS, len(results.worlds)))
    blocks = math.ceil(len(results.worlds) / columns)
    figure, panels = style.sheet(2 * blocks, columns, height=6.75 * blocks)
    pairs = panels.reshape(blocks, 2, columns).swapaxes(1, 2).reshape(-1, 2)
    for (above, below), world in zip(pairs, results.worlds, strict=False):
        for axes, metric in ((above, "rmsve"), (below, "rmsve_inner")):
            _bands(axes, _by_episode(results, world, results.agents(world), metric))
            axes.set_ylim(bottom=0)
        above.sharex(below)
        above.tick_params(labelbottom=False)
        style.thumbnail(above, results.picture(world))
        narrow, picture = columns == ACROSS, results.picture(world)
        title = style.stacked_title(picture, 24) if narrow else picture.title
        style.caption(above, title, y=METRICS["rmsve"].label, size=style.MEDIUM if narrow else style.LARGE)
        style.caption(below, x="episode", y=METRICS["rmsve_inner"].label)
    for axes in pairs[len(results.worlds) :].flat:
        axes.remove()
    pure = any(style.is_pure(agent) for world in results.worlds for agent in results.agents(world))
    note = over(results) + ("; pure: planning without learning" if pure else "")
    return style.finish(figure, with_divergences(results, note))


def error_by_ratio(results: StudyResults) -> Figure:
    """Mean error (AUC) against the ratio of two levels' sizes: normalised per ratio above, raw below."""
    modes = _modes(results.agents(results.worlds[0]))
    figure, panels = style.sheet(2, len(modes), sharex=True)
    for (above, below), (mode, agents) in zip(panels.T, modes.items(), strict=True):
        errors = {agent: _areas(results, agent) for agent in agents}
        means = np.ma.masked_invalid([mean for mean, _ in errors.values()])  # without agents that diverged
        low, width = means.min(axis=0).filled(0), np.ma.ptp(means, axis=0).filled(0) + np.finfo(float).tiny  # equal: 0
        _points(above, {agent: ((mean - low) / width, error / width) for agent, (mean, error) in errors.items()})
        _points(below, errors)
        drawing.log_axis(below)
        below.set_xticks(range(len(results.worlds)), [_ratio(results.picture(world)) for world in results.worlds])
        style.caption(above, mode, y="AUC of RMSVE, normalised")
        style.caption(below, x="← channelling   states before : after   broadcasting →", y="AUC of RMSVE")
    note = "normalised per ratio: (AUC − min) / (max − min) over the panel's agents"
    return style.finish(figure, with_divergences(results, f"{over(results)}; {note}"))


def reward_over_steps(results: StudyResults) -> Figure:
    """Cumulative reward of finished episodes against environment steps, up to the end of the shortest run."""
    figure, panes = _panes(results, "environment steps", "cumulative reward", alike=False)
    for axes, world, agents in panes:
        earned = _earned(results, world)
        _bands(axes, {agent: earned[agent] for agent in agents if agent in earned})
    for axes, _, _ in panes:
        if axes.dataLim.y0 >= 0:
            axes.set_ylim(bottom=0)
    return style.finish(figure, with_divergences(results, f"{over(results)}; cut at the shortest run"))


def per_episode(metric: str, results: StudyResults) -> Figure:
    """A metric by episode: a panel per world that has it, and one more for pure planning."""
    figure, panes = _panes(results, "episode", METRICS[metric].label, alike=metric == "steps")
    for axes, world, agents in panes:
        _bands(axes, _by_episode(results, world, agents, metric))
        drawing.metric_axis(axes, METRICS[metric])
    return style.finish(figure, with_divergences(results, over(results)))


def as_judged(results: CurveResults, judged_by: Mapping[str, str]) -> Figure:
    """The default metric of each world, by episode."""
    figure, panes = _panes(results, "episode", "", alike=False)
    for axes, world, agents in panes:
        metric = METRICS[judged_by[world]]
        _bands(axes, _by_episode(results, world, agents, metric.name))
        drawing.metric_axis(axes, metric)
        axes.set_ylabel(metric.label, fontsize=style.points(style.MEDIUM), color=style.INK)
    return style.finish(figure, with_divergences(results, over(results)))


PLOTS: dict[str, Callable[[StudyResults], Figure]] = {
    "error-curves": error_curves,
    "error-by-ratio": error_by_ratio,
    "reward-over-steps": reward_over_steps,
    "steps-per-episode": partial(per_episode, "steps"),
    "reward-per-episode": partial(per_episode, "reward"),
    "error-by-agent": error_by_agent,
    "error-by-horizon": error_by_horizon,
    "error-by-capacity": error_by_capacity,
    "error-against-updates": error_against_updates,
    "error-against-seconds": error_against_seconds,
    "updates-to-solve": updates_to_solve,
    SENSITIVITY: sensitivity,
}


def draw(plot: str, results: StudyResults) -> Figure | None:
    """The plot of this name: one of `PLOTS`, or that of a plugin's metric; None if not all runs have the metric."""
    if plot in PLOTS:
        return PLOTS[plot](results)
    metric = next(each.name for each in METRICS.values() if each.plot == plot)
    runs = [(world, agent) for world in results.worlds for agent in results.agents(world)]
    return per_episode(metric, results) if all(metric in results.metrics(*run) for run in runs) else None


def plots_of(study: Study) -> list[str]:
    """The plots that a study names and, if it searched numeric settings, their sensitivity plot."""
    searched = [SENSITIVITY] if study.searched_numbers else []
    return list(dict.fromkeys([*study.plots, *searched]))


def save(figure: Figure, directory: Path, stem: str) -> list[Path]:
    """Write stem.svg and stem.png; the same figure gives the same bytes.

    Panels are placed once, and each file is drawn once: `savefig` would draw everything twice, the first time for the
    layout.
    """
    style.lay_out(figure)
    figure.set_layout_engine("none")
    png, svg = directory / f"{stem}.png", _save_svg(figure, directory, stem)
    figure.set_dpi(160)  # saving an SVG leaves its own dpi behind
    with atomic_path(png) as part:
        FigureCanvasAgg(figure).print_png(part)  # type: ignore[no-untyped-call]
    return [svg, png]


def save_for_print(figure: Figure, directory: Path, stem: str) -> list[Path]:
    """Write stem.pdf and stem.svg of a figure drawn `for_print`; the same figure gives the same bytes."""
    medium().thin(figure)
    style.lay_out(figure)
    figure.set_layout_engine("none")
    pdf = directory / f"{stem}.pdf"
    with matplotlib.rc_context({"pdf.fonttype": 42}), atomic_path(pdf) as part:  # text that can be searched and edited
        FigureCanvasPdf(figure).print_pdf(part, metadata={"CreationDate": None})  # type: ignore[no-untyped-call]
    return [pdf, _save_svg(figure, directory, stem)]


def _save_svg(figure: Figure, directory: Path, stem: str) -> Path:
    svg = directory / f"{stem}.svg"
    with matplotlib.rc_context({"svg.hashsalt": stem}), atomic_path(svg) as part:
        FigureCanvasSVG(figure).print_svg(part, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return svg


def _modes(agents: Sequence[str]) -> dict[str, list[str]]:
    """Agents that learn, and agents that only plan, if any; TD and Q-learning are the baselines of both."""
    learning = [agent for agent in agents if not style.is_pure(agent)]
    pure = [agent for agent in agents if style.is_pure(agent) or not style.plans(agent)]
    if not any(map(style.is_pure, pure)):
        return {"": learning}
    return ({"Learning and planning": learning} if learning else {}) | {"Pure planning": pure}


def _panes(results: CurveResults, x: str, y: str, alike: bool) -> tuple[Figure, list[tuple[Axes, str, list[str]]]]:
    """A figure with a panel for each world and mode, titled by their difference: axes, world and agents.

    Panels share the y axis if there is one world, or if worlds are `alike` in what y measures.
    """
    panes = [(world, *mode) for world in results.worlds for mode in _modes(results.agents(world)).items()]
    columns = medium().across(len(panes), 2)
    rows = math.ceil(len(panes) / columns)
    figure, panels = style.sheet(rows, columns, height=1.6 + 3.0 * rows, sharey=alike or len(results.worlds) == 1)
    for number, (axes, (world, mode, _)) in enumerate(zip(panels.flat, panes, strict=False)):
        where = results.picture(world).title if len(results.worlds) > 1 or not mode else ""
        style.caption(axes, ": ".join(filter(None, (where, mode))), x, "" if number % columns else y)
    style.thumbnail(panels[0, -1], results.picture(panes[columns - 1][0]))
    for axes in panels.flat[len(panes) :]:
        axes.remove()
    return figure, [(axes, world, agents) for axes, (world, _, agents) in zip(panels.flat, panes, strict=False)]


def _by_episode(results: CurveResults, world: str, agents: Iterable[str], metric: str) -> dict[str, Curve]:
    """The curves of agents against the number of the episode."""
    found = {}
    for agent in agents:
        values = results.curves(world, agent, metric)
        part = finite_part(values)
        found[agent] = Curve(np.arange(1.0, part.shape[1] + 1), part, part.shape != values.shape)
    return found


def _bands(axes: Axes, curves: dict[str, Curve]) -> None:
    """Draw each agent's mean with its standard error; long curves are thinned, not smoothed.

    Diverged agents end in a cross, and do not affect the limits unless there are no others.
    """
    everyone = all(curve.diverged for curve in curves.values())
    for agent, curve in curves.items():
        if curve.x.size == 0:
            continue
        chosen = np.unique(np.linspace(0, curve.x.size - 1, POINTS).astype(int))
        x, (mean, error) = curve.x[chosen], (part[chosen] for part in mean_and_error(curve.values))
        looks = style.line_style(agent, list(curves))
        with drawing.limits_kept(axes, curve.diverged and not everyone):
            if curve.diverged:
                looks["label"] += " ×"
                drawing.cross(axes, x[-1], mean[-1], looks["color"])
            drawing.band(axes, x, mean, error, looks)
    axes.margins(x=0)


def _earned(results: StudyResults, world: str) -> dict[str, Curve]:
    """Cumulative rewards against environment steps, up to the shortest run of all agents.

    An agent that diverged earlier is drawn up to its own shortest run, if that finishes an episode.
    """
    lost = [agent for agent in results.agents(world) if results.diverged(world, agent).any()]
    found = _on_one_grid(results, world, [agent for agent in results.agents(world) if agent not in lost])
    end = min((curve.x[-1] for curve in found.values()), default=np.inf)
    for agent in lost:
        for x, values, _ in _on_one_grid(results, world, [agent]).values():
            found[agent] = Curve(x[x <= end], values[:, x <= end], bool(x[-1] <= end))
    return found


def _on_one_grid(results: StudyResults, world: str, agents: Sequence[str]) -> dict[str, Curve]:
    """Cumulative rewards against environment steps, up to the shortest of their runs."""
    steps, reward = ([results.curves(world, agent, metric) for agent in agents] for metric in ("steps", "reward"))
    lengths = finite_part(np.concatenate(steps)) if agents else np.empty((0, 0))
    if lengths.size == 0:
        return {}
    grid, earned = cumulative_on_grid(lengths, finite_part(np.concatenate(reward)), POINTS)
    rows = np.split(earned, len(agents))
    return {agent: Curve(grid, values) for agent, values in zip(agents, rows, strict=True)}


def _areas(results: StudyResults, agent: str) -> tuple[Vector, Vector]:
    """Mean and standard error of an agent's area under the curve (its mean over episodes) in each world."""
    areas = [results.curves(world, agent, "rmsve").mean(axis=1) for world in results.worlds]
    return mean_and_error(np.stack(areas, axis=1))


def _points(axes: Axes, errors: dict[str, tuple[Vector, Vector]]) -> None:
    """Each agent's mean and standard error in each world, joined by a line."""
    for agent, (mean, error) in errors.items():
        looks = style.line_style(agent, list(errors))
        x, known = np.arange(float(len(mean))), np.isfinite(mean)
        drawing.joined(axes, x, mean, looks | {"marker": "o", "markersize": 5, "clip_on": False})
        bars: dict[str, Any] = {"fmt": "none", "ecolor": looks["color"], "capsize": 3, "clip_on": False}
        axes.errorbar(x[known], mean[known], error[known], **bars)
    axes.set_xlim(-0.2, len(mean) - 1)


def _ratio(picture: Picture) -> str:
    """First to last level of a chain, 100:1 for 500 to 5 states; the title of other worlds."""
    if not picture.levels or 0 in picture.levels:
        return picture.title
    return "{}:{}".format(*Fraction(picture.levels[0], picture.levels[-1]).as_integer_ratio())
