"""The metrics of runs: their names, which way is better, and how they are computed.

Agents are compared by the metric that the world names (`World.judged_by`), unless another one is requested. Searches
minimise a *cost*: the metric if lower is better, its negative if higher is better. So a run that
diverged costs ∞ in any metric. `register_metric` adds one; Backcast's own are registered in the same way.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.errors import InputError, shown
from backcast.core.registry import Registered, refuse_taken
from backcast.worlds.world import Purpose

F = TypeVar("F", bound=Callable[[Any], ArrayLike])

COUNTED = ("seed", "episode", "updates")  # columns of stored tables that are not metrics
OF_A_METRIC = "-per-episode"  # suffix of the names of plots of one metric
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}")


class Measurable(Protocol):
    """The input of a metric: `backcast.Runs`, with the attributes that most metrics need."""

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps of each episode, (seeds, episodes)."""

    @property
    def reward(self) -> Vector:
        """Undiscounted reward of each episode, (seeds, episodes)."""

    @property
    def rmsve(self) -> Vector | None:
        """In prediction, the error of the values after each episode, (seeds, episodes); else None."""

    @property
    def rmsve_inner(self) -> Vector | None:
        """The same over states that do not end an episode."""

    @property
    def diverged(self) -> NDArray[np.int64]:
        """The step at which values diverged, (seeds,); 0 where they did not."""


@dataclass(frozen=True)
class Metric(Registered):
    """A metric.

    Attributes:
        name: name in exported tables.
        label: label in figures and tables of reports.
        compute: function from runs to an array (seeds, episodes).
        higher_is_better: which way is better.
        per_episode: whether it is measured in each episode, so that a single value is noisy, or after each episode.
        purpose: purpose of the worlds in which it is measured; None: all.
        positive: whether it is always positive: axes are then logarithmic, and worlds are compared by ratios.
        plot: the plot of a study that shows it by episode.
    """

    name: str
    label: str
    compute: Callable[[Any], ArrayLike]
    higher_is_better: bool = False
    per_episode: bool = True
    purpose: Purpose | None = None
    positive: bool = False
    plot: str = ""

    @property
    def function(self) -> Callable[[Any], ArrayLike]:
        """The registered function."""
        return self.compute

    @property
    def sign(self) -> float:
        """The factor between the metric and its cost: 1 where lower is better, −1 where higher is better."""
        return -1.0 if self.higher_is_better else 1.0

    @property
    def worst(self) -> float:
        """The value assigned to a run that diverged: ∞ where lower is better, −∞ where higher is better."""
        return self.sign * np.inf

    @property
    def better(self) -> str:
        """Which way is better, in words."""
        return "higher is better" if self.higher_is_better else "lower is better"

    def is_measured_in(self, purpose: Purpose) -> bool:
        """Whether it is measured in worlds of this purpose."""
        return self.purpose in (None, purpose)

    def of(self, runs: Measurable) -> Vector:
        """The metric by seed and episode; raise InputError unless it is an array of numbers of that shape."""
        found = np.asarray(self.compute(runs))
        if found.shape != runs.steps.shape or found.dtype.kind not in "biuf":
            raise InputError(
                f"metric: {self.name!r} is an array of shape {found.shape} and type {found.dtype}, expected numbers"
                f" (seeds, episodes), {runs.steps.shape}"
            )
        return found.astype(np.float64)

    def before_divergence(self, runs: Measurable) -> Vector:
        """The metric by seed and episode, the worst possible from the episode in which a run diverged."""
        return np.where(lost_episodes(runs.steps.astype(np.float64), runs.diverged), self.worst, self.of(runs))


METRICS: dict[str, Metric] = {}


def register_metric(
    name: str,
    *,
    label: str = "",
    higher_is_better: bool = False,
    per_episode: bool = True,
    purpose: Purpose | None = None,
    positive: bool = False,
    plot: str = "",
) -> Callable[[F], F]:
    """Decorator: make a function from `backcast.Runs` to an array (seeds, episodes) available as a metric.

    Runs then list it among their metrics, comparisons and exported tables show it, and so do studies that name its
    module among their plugins.

    Args:
        name: name in exported tables: letters, digits, "_" and "-".
        label: label in figures and reports; by default the name.
        higher_is_better: which way is better.
        per_episode: whether it is measured in each episode, as steps are, or after it, as errors are. Metrics of the
            first kind are noisy and are therefore shown as a mean over the last episodes.
        purpose: "prediction" or "control" if it only makes sense in one of them.
        positive: whether it is always positive. Axes of figures are then logarithmic, and over several worlds settings
            are compared by their ratio to the best.
        plot: the plot of a study that shows it by episode; by default a new one, `<name>-per-episode`.
    """

    def add(compute: F) -> F:
        refuse_taken("metric", name, METRICS.get(name))
        refuse_bad_name(name)
        shown_by = plot or f"{name}{OF_A_METRIC}"
        METRICS[name] = Metric(name, label or name, compute, higher_is_better, per_episode, purpose, positive, shown_by)
        return compute

    return add


def refuse_bad_name(name: str) -> None:
    """Raise InputError unless the name is valid for a metric, which is a column of tables."""
    if not _NAME.fullmatch(name) or name in COUNTED:
        raise InputError(
            f"metric: {shown(name)} given, expected a name of letters, digits, '_' and '-' other than"
            f" {', '.join(COUNTED)}"
        )


def metrics_in(purpose: Purpose) -> list[Metric]:
    """The metrics of runs in worlds of this purpose."""
    return [metric for metric in METRICS.values() if metric.is_measured_in(purpose) and not metric.is_absent]


def lost_episodes(steps: Vector, diverged: Indices) -> Mask:
    """Whether each episode is the one in which its run diverged or one after it, (seeds, episodes).

    Args:
        steps: (seeds, episodes), the steps of each episode, up to the step at which the run was abandoned.
        diverged: (seeds,), the step at which values diverged, or 0.
    """
    taken = np.maximum(steps, 0).cumsum(axis=1)  # −1 where a run has no such episode
    mask: Mask = (diverged[:, None] > 0) & (taken >= diverged[:, None])
    return mask


_ERROR: Any = {"per_episode": False, "purpose": "prediction", "positive": True, "plot": "error-curves"}


@register_metric("rmsve", label="RMSVE, all states", **_ERROR)
def rmsve(runs: Measurable) -> ArrayLike:
    """Root mean squared value error after each episode, over all states."""
    return np.asarray(runs.rmsve)


@register_metric("rmsve_inner", label="RMSVE, non-terminal states", **_ERROR)
def rmsve_inner(runs: Measurable) -> ArrayLike:
    """Root mean squared value error after each episode, over states that do not end an episode."""
    return np.asarray(runs.rmsve_inner)


@register_metric("steps", label="steps per episode", purpose="control", positive=True)
def steps(runs: Measurable) -> ArrayLike:
    """Steps of each episode; NaN where a run has no such episode."""
    return np.where(runs.steps < 0, np.nan, runs.steps)


@register_metric("reward", label="reward per episode", higher_is_better=True, purpose="control")
def reward(runs: Measurable) -> ArrayLike:
    """Undiscounted reward of each episode."""
    return runs.reward
