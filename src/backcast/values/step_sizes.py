"""Step sizes of updates: from the agent's schedule, or averaged over the number of updates.

A learner, planner or model that moves entries towards targets has one of these parts and asks it for each update,

    values.move(pair, target, self.step_size.of(pair, α, 1))

With schedule="average", n is the sum of the weights of all updates of an entry so far, this one included, and an update
of weight w has step size α w / n. For α = 1 an entry is the weighted mean of its targets; Robbins and Monro (1951).
"""

from typing import NamedTuple, Protocol

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, part
from backcast.values.linear import Features, LinearValues


class StepSizes(Protocol):
    """The step sizes of updates of entries."""

    def of(self, entry: int, step: float, weight: float) -> float:
        """The step size of an update of this weight; `step` is α times the weight, or proportional to it."""


@part
class Scheduled(NamedTuple):
    """Step sizes follow the schedule; nothing is counted."""

    unused: int = 0

    def of(self, entry: int, step: float, weight: float) -> float:
        """The step itself."""
        return step

    @in_python
    def with_places(self, at: int, places: int) -> "Scheduled":
        """The same."""
        return self


SCHEDULED = Scheduled()


@part
class Averaged(NamedTuple):
    """Steps are divided by the weights of all updates of the same entry.

    Attributes:
        n: (entries,), the sum of the weights.
    """

    n: Vector

    def of(self, entry: int, step: float, weight: float) -> float:
        """Count an update of an entry with this weight; return step / n.

        Args:
            entry: the entry.
            step: α times the weight, or a number proportional to it.
            weight: weight of the update; 0 if it was counted before.
        """
        self.n[entry] += weight
        return step / self.n[entry] if self.n[entry] > 0.0 else 0.0

    @in_python
    def with_places(self, at: int, places: int) -> "Averaged":
        """The same with new entries inserted before a place."""
        return Averaged(np.insert(self.n, at, np.zeros(places)))


@part
class AveragedAtFirst(NamedTuple):
    """Step sizes follow the schedule, but are at least 1 / n, so that an entry begins as a mean.

    Attributes:
        n: (entries,), the sum of the weights.
    """

    n: Vector

    def of(self, entry: int, step: float, weight: float) -> float:
        """Count an update of an entry with this weight; return the larger of step and 1 / n."""
        self.n[entry] += weight
        return max(step, 1.0 / self.n[entry])


@part
class AveragedFeatures(NamedTuple):
    """Averaged step sizes for values that are linear in features, with the weights of component averaging.

    An update of a pair moves all its features i by α w x_i (target − q) / Σ_j x_j² n_j, where n_j is the sum of the
    weights of all updates so far of pairs that have feature j, this one included. (Censor, Gordon and Gordon, Component
    averaging, Parallel Computing 27, 2001, solve a linear system in this way, where n_j counts the equations that
    contain the unknown j.) With one-hot features it is α w / n as in a table, whatever their size; constant features
    give an average, too. As Σ_j x_j² n_j is never less than w ‖x‖², no update overshoots its target.

    Attributes:
        features: x(s).
        n: (A · d,) n_j, those of action a from a · d on.
        n_actions: A.
        n_features: d.
    """

    features: Features
    n: Vector
    n_actions: int
    n_features: int

    def of(self, entry: int, step: float, weight: float) -> float:
        """Count an update of a pair s·A + a with this weight; return step / Σ_j x_j² n_j."""
        s, start = entry // self.n_actions, entry % self.n_actions * self.n_features
        total = 0.0
        for k in range(self.features.offset[s], self.features.offset[s + 1]):
            size, key = self.features.size[k], start + self.features.which[k]
            if size != 0.0:
                self.n[key] += weight
                total += size * size * self.n[key]
        return step / total if total > 0.0 else 0.0


def step_sizes(averages: bool, entries: int) -> Scheduled | Averaged:
    """Step sizes of entries that are updated one by one: averaged, or following the schedule."""
    return Averaged(np.zeros(entries)) if averages else SCHEDULED


def step_sizes_at_first(averages: bool, entries: int) -> Averaged | AveragedAtFirst:
    """Step sizes of entries that always begin as a mean."""
    return (Averaged if averages else AveragedAtFirst)(np.zeros(entries))


def step_sizes_of_features(values: LinearValues) -> AveragedFeatures:
    """Averaged step sizes for values that are linear in features."""
    return AveragedFeatures(values.features, np.zeros(values.w.size), values.n_actions, values.n_features)
