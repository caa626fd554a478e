"""Figures of a study's results, by name: `PLOTS["error-curves"](results)`; `save` writes one as SVG and PNG."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from backcast.arrays import Vector
from backcast.files import atomic_path
from backcast.report import style
from backcast.report.comparisons import error_by_agent, error_by_horizon
from backcast.report.computation import error_against_seconds, error_against_updates
from backcast.report.numbers import Results, over
from backcast.studies.statistics import cumulative_on_grid, mean_and_error

POINTS = 250  # of a curve that are drawn at most


def error_curves(results: Results) -> Figure:
    """Error of the values over episodes, a column per world: over all states above, over non-terminal ones below."""
    figure, panels = style.sheet(2, len(results.worlds), sharex="col")
    for column, world in zip(panels.T, results.worlds, strict=True):
        agents = results.agents(world)
        for axes, metric in zip(column, ("rmsve", "rmsve_inner"), strict=True):
            _bands(axes, {agent: results.curves(world, agent, metric) for agent in agents})
            axes.set_ylim(bottom=0)
        style.thumbnail(column[0], world)
        style.caption(column[0], style.world_title(world), y="RMSVE, all states")
        style.caption(column[1], x="episode", y="RMSVE, non-terminal states")
    pure = any(style.is_pure(agent) for world in results.worlds for agent in results.agents(world))
    return style.finish(figure, over(results) + ("; pure: planning without learning" if pure else ""))


def error_by_ratio(results: Results) -> Figure:
    """Mean error (AUC) against the ratio of two levels' sizes: normalised per ratio above, raw below."""
    modes = _modes(results.agents(results.worlds[0]))
    figure, panels = style.sheet(2, len(modes), sharex=True)
    for (above, below), (mode, agents) in zip(panels.T, modes.items(), strict=True):
        errors = {agent: _areas(results, agent) for agent in agents}
        means = np.array([mean for mean, _ in errors.values()])
        low, width = means.min(axis=0), np.ptp(means, axis=0) + np.finfo(float).tiny  # equal means are all 0
        _points(above, {agent: ((mean - low) / width, error / width) for agent, (mean, error) in errors.items()})
        _points(below, errors)
        style.log_axis(below)
        below.set_xticks(range(len(results.worlds)), [_ratio(world) for world in results.worlds])
        style.caption(above, mode, y="AUC of RMSVE, normalised")
        style.caption(below, x="← channelling   states before : after   broadcasting →", y="AUC of RMSVE")
    note = "normalised per ratio: (AUC − min) / (max − min) over the panel's agents"
    return style.finish(figure, f"{over(results)}; {note}")


def reward_over_steps(results: Results) -> Figure:
    """Reward of the episodes finished so far against environment steps, up to the end of the shortest run."""
    figure, panes = _panes(results, "environment steps", "cumulative reward")
    for axes, world, agents in panes:
        grid, earned = _earned(results, world)
        _bands(axes, {agent: earned[agent] for agent in agents}, grid)
        axes.set_ylim(bottom=0)
    return style.finish(figure, f"{over(results)}; cut at the shortest run")


def steps_per_episode(results: Results) -> Figure:
    """Steps of each episode, a panel per world; where agents also plan without learning, one more for those."""
    figure, panes = _panes(results, "episode", "steps per episode")
    for axes, world, agents in panes:
        _bands(axes, {agent: results.curves(world, agent, "steps") for agent in agents})
        style.log_axis(axes)
    return style.finish(figure, over(results))


PLOTS: dict[str, Callable[[Results], Figure]] = {
    "error-curves": error_curves,
    "error-by-ratio": error_by_ratio,
    "reward-over-steps": reward_over_steps,
    "steps-per-episode": steps_per_episode,
    "error-by-agent": error_by_agent,
    "error-by-horizon": error_by_horizon,
    "error-against-updates": error_against_updates,
    "error-against-seconds": error_against_seconds,
}


def save(figure: Figure, directory: Path, stem: str) -> list[Path]:
    """Write stem.svg and stem.png; the same figure gives the same bytes."""
    targets = [directory / f"{stem}.svg", directory / f"{stem}.png"]
    with matplotlib.rc_context({"svg.hashsalt": stem}):
        for target, metadata in zip(targets, ({"Date": None}, {}), strict=True):
            with atomic_path(target) as part:
                figure.savefig(part, format=target.suffix[1:], dpi=160, metadata=metadata)
    return targets


def _modes(agents: Sequence[str]) -> dict[str, list[str]]:
    """Agents that learn (and plan) and those that only plan, if any do; TD and Q-learning are the measure of both."""
    learning = [agent for agent in agents if not style.is_pure(agent)]
    pure = [agent for agent in agents if style.is_pure(agent) or not style.plans(agent)]
    if not any(map(style.is_pure, pure)):
        return {"": learning}
    return ({"Learning and planning": learning} if learning else {}) | {"Pure planning": pure}


def _panes(results: Results, x: str, y: str) -> tuple[Figure, list[tuple[Axes, str, list[str]]]]:
    """A figure with a panel for each world and mode, titled by what tells them apart: axes, world and agents."""
    panes = [(world, *mode) for world in results.worlds for mode in _modes(results.agents(world)).items()]
    columns = min(2, len(panes))
    rows = math.ceil(len(panes) / columns)
    figure, panels = style.sheet(rows, columns, height=1.6 + 3.0 * rows, sharey=True)
    for number, (axes, (world, mode, _)) in enumerate(zip(panels.flat, panes, strict=False)):
        where = style.world_title(world) if len(results.worlds) > 1 or not mode else ""
        style.caption(axes, ": ".join(filter(None, (where, mode))), x, "" if number % columns else y)
    style.thumbnail(panels[0, -1], panes[columns - 1][0])
    for axes in panels.flat[len(panes) :]:
        axes.remove()
    return figure, [(axes, world, agents) for axes, (world, _, agents) in zip(panels.flat, panes, strict=False)]


def _bands(axes: Axes, curves: dict[str, Vector], x: Vector | None = None) -> None:
    """Each agent's mean with its standard error; of long curves every so many episodes, none of them smoothed."""
    for agent, values in curves.items():
        at = np.arange(values.shape[1]) + 1 if x is None else x
        chosen = np.unique(np.linspace(0, len(at) - 1, POINTS).astype(int))
        mean, error = (part[chosen] for part in mean_and_error(values))
        axes.plot(at[chosen], mean, **style.line_style(agent, list(curves)))
        axes.fill_between(at[chosen], mean - error, mean + error, color=style.colour(agent), alpha=0.2, linewidth=0)
    axes.margins(x=0)


def _earned(results: Results, world: str) -> tuple[Vector, dict[str, Vector]]:
    """Environment steps up to the shortest run of all agents, and what each agent had earned there."""
    agents = results.agents(world)
    steps, reward = (
        np.concatenate([results.curves(world, agent, metric) for agent in agents]) for metric in ("steps", "reward")
    )
    grid, earned = cumulative_on_grid(steps, reward, POINTS)
    return grid, dict(zip(agents, np.split(earned, len(agents)), strict=True))


def _areas(results: Results, agent: str) -> tuple[Vector, Vector]:
    """Mean and standard error of an agent's area under the curve (its mean over episodes) in each world."""
    areas = [results.curves(world, agent, "rmsve").mean(axis=1) for world in results.worlds]
    return mean_and_error(np.stack(areas, axis=1))


def _points(axes: Axes, errors: dict[str, tuple[Vector, Vector]]) -> None:
    """Each agent's mean and standard error in each world, joined by a line."""
    for agent, (mean, error) in errors.items():
        looks = style.line_style(agent, list(errors))
        axes.plot(mean, marker="o", markersize=5, clip_on=False, **looks)
        axes.errorbar(range(len(mean)), mean, error, fmt="none", ecolor=looks["color"], capsize=3, clip_on=False)
    axes.set_xlim(-0.2, len(mean) - 1)


def _ratio(world: str) -> str:
    """First to last level of a chain, 100:1 for 500 to 5 states; the name of other worlds."""
    sizes = style.levels(world)
    return "{}:{}".format(*Fraction(sizes[0], sizes[-1]).as_integer_ratio()) if sizes else world
