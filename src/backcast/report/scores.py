"""The numbers behind figures and tables: the interface of results, and scores at equal numbers of value updates."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from backcast.core.arrays import Indices, Vector
from backcast.drivers.metrics import METRICS, Metric
from backcast.report import style
from backcast.studies.cells import Cell
from backcast.studies.divergence import divergences
from backcast.studies.spec import Study
from backcast.studies.statistics import Interval, bootstrap, on_update_grid
from backcast.studies.study_metrics import in_units
from backcast.studies.trials import episodes_run
from backcast.studies.worldspec import WorldSpec
from backcast.worlds.kinds import Picture

RECENT = 5  # number of last episodes that are averaged, because single ones are noisy
MOST_LINES = 6  # most lines about diverged agents below a figure


class CurveResults(Protocol):
    """What figures of curves need of runs."""

    @property
    def worlds(self) -> Sequence[str]:
        """The names of the worlds."""

    @property
    def seeds(self) -> int:
        """How many seeds were run."""

    def agents(self, world: str) -> Sequence[str]:
        """The names of the agents that were run in a world; the others are compared with the first."""

    def picture(self, world: str) -> Picture:
        """What figures show of a world."""

    def curves(self, world: str, agent: str, metric: str) -> Vector:
        """A metric, (seeds, episodes); ∞, or −∞ for a reward, from the episode on in which a run diverged."""

    def diverged(self, world: str, agent: str) -> Indices:
        """The step, counted from 1, at which the values of each seed diverged, (seeds,); 0 where they did not."""


class StudyResults(CurveResults, Protocol):
    """What figures and tables need of a study."""

    @property
    def study(self) -> Study:
        """The study itself."""

    def cells(self, world: str) -> Sequence[Cell]:
        """What the agents of a world are, in their order."""

    def metrics(self, world: str, agent: str) -> Sequence[str]:
        """The names of the metrics that were measured."""

    def means(self, world: str, agent: str, metric: str) -> Vector:
        """The mean of each seed's curve, (seeds,)."""

    def updates(self, world: str, agent: str) -> Vector:
        """Value updates made up to the end of each episode, (seeds, episodes)."""

    def seconds(self, world: str, agent: str) -> float:
        """Mean processor seconds of a run, measured."""

    def computed_nanoseconds(self, world: str, agent: str) -> float | None:
        """Mean processor time of a run, computed from what it did; None if that is not known."""


def over(results: CurveResults) -> str:
    """Describe the curves of a figure."""
    return f"mean ± standard error over {results.seeds} seeds" if results.seeds > 1 else "one seed"


def with_divergences(results: CurveResults, note: str) -> str:
    """A note below a figure and, if runs of its agents diverged, a line about each agent and world."""
    lines = []
    for world, agent, words in divergences(results):
        where = f" ({results.picture(world).title})" if len(results.worlds) > 1 else ""
        lines.append(f"× {style.agent_label(agent, results.agents(world))} {words}{where}")
    more = len(lines) - MOST_LINES
    rest = [f"… and {more} more, in the table"] if more > 0 else []
    return "\n".join([note, *lines[:MOST_LINES], *rest])


def finite_part(curves: Vector) -> Vector:
    """The episodes before the first one in which a run diverged, (seeds, up to all episodes)."""
    return curves[:, np.logical_and.accumulate(np.isfinite(curves).all(axis=0))]


def judged_by(results: StudyResults, world: str) -> Metric:
    """The default metric of a world."""
    return METRICS[_specification(results, world).judged_by]


def mean_score(results: StudyResults, world: str, agent: str) -> Interval:
    """An agent's mean over episodes and seeds, with the 95 % studentised bootstrap interval over seeds."""
    metric = judged_by(results, world)
    return in_units(bootstrap(metric.sign * results.means(world, agent, metric.name), seed=0), metric)


def own_names(results: StudyResults) -> dict[str, str]:
    """Each agent's own name, with its kind and settings, by its label in the study."""
    return {cell.label: cell.agent.name for cell in results.study.runs()}


def budget(results: StudyResults, world: str) -> int | None:
    """The value updates after which a run is over in a world, if the study sets a limit."""
    given = _specification(results, world).updates
    return results.study.updates if given is None else given


def _specification(results: StudyResults, world: str) -> WorldSpec:
    """The world as the study describes it."""
    return next(spec for spec in results.study.worlds if spec.name == world)


def score_at(results: StudyResults, world: str, agent: str, grid: Vector) -> Vector:
    """The score after given numbers of value updates, (seeds, G); NaN before the first episode ends and after the run.

    RMSVE at the end of the last episode finished by then; steps and reward as a mean over the `RECENT` last such
    episodes. A diverged run is not over, but infinitely bad from then on.
    """
    updates, costs = results.updates(world, agent), recent_costs(results, world, agent)
    found = on_update_grid(updates, costs, grid)
    return judged_by(results, world).sign * np.where(np.isinf(costs[:, -1:]) & (grid >= updates[:, -1:]), np.inf, found)


def recent_costs(results: StudyResults, world: str, agent: str) -> Vector:
    """The cost in a world's default metric after each episode, (seeds, episodes).

    For a metric that is measured in each episode, as steps are, the mean of the `RECENT` last episodes.
    """
    metric = judged_by(results, world)
    costs = metric.sign * results.curves(world, agent, metric.name)
    return _recent(costs, episodes_run(results.updates(world, agent))) if metric.per_episode else costs


def _recent(values: Vector, episodes: Indices) -> Vector:
    """The running mean over each episode and those just before; repetitions of the last episode repeat its mean."""
    windows = sliding_window_view(np.pad(values, ((0, 0), (RECENT - 1, 0))), RECENT, axis=1)
    number = np.arange(values.shape[1])
    means = windows.sum(axis=-1) / np.minimum(number + 1, RECENT)
    return np.take_along_axis(means, np.minimum(number, episodes[:, None] - 1), axis=1)


def seconds_per_update(results: StudyResults, world: str, agent: str) -> float:
    """Mean processor seconds per value update, including everything else in a run."""
    return results.seconds(world, agent) / float(results.updates(world, agent)[:, -1].mean())


def computed_seconds_per_update(results: StudyResults, world: str, agent: str) -> float | None:
    """Computed processor seconds per value update, equal on all machines; None if the agent's costs are unknown."""
    computed = results.computed_nanoseconds(world, agent)
    return None if computed is None else 1e-9 * computed / float(results.updates(world, agent)[:, -1].mean())


def updates_per_step(results: StudyResults, world: str, agent: str) -> float:
    """Value updates per environment step; NaN if the number of steps is unknown.

    In control steps are recorded, but not for diverged runs; in a chain every episode has one step less than there are
    levels.
    """
    updates = results.updates(world, agent)
    episodes, levels = episodes_run(updates), results.picture(world).levels
    if "steps" in results.metrics(world, agent):
        before_the_end = np.arange(updates.shape[1]) < episodes[:, None]
        steps = results.curves(world, agent, "steps").sum(where=before_the_end)
    else:
        steps = episodes.sum() * (len(levels) - 1) if levels else np.nan
    return float(updates[:, -1].sum() / steps) if np.isfinite(steps) else np.nan
