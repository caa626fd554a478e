"""Assumptions of a planner about pairs and states seen rarely or never: three pieces, each optional.

*Shrinkage* (prediction). The estimate of a state that was visited n times is shown as (n E + k m) / (n + k), where m is
the mean of all estimates and k the variance of one target over the variance of values between states: Bühlmann's
credibility, an empirical-Bayes estimate. Only the shown value is shrunk, never the value that others bootstrap from:
along a chain of states each state would otherwise shrink again what the next has shrunk.

*Unseen states* (prediction). A state that was never visited is assumed to have the value of recent discoveries, times
the estimated share of non-terminal states among those not visited yet. That share comes from Chao's formula for unseen
species, f₁ (f₁ − 1) / (2 (f₂ + 1)), with the numbers of states visited once and twice.

*Untried actions* (control). An action that was never tried is assumed to have the mean of all estimates, so that it is
tried where all others are worse.

Uncertain means are shrunk towards 0 (James and Stein): by the factor 1 − variance / (n mean²), or 0.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.values.table import TableValues

PAIRS, SUM, SQUARES, MEAN, VARIANCE, INVERSE, REPEATED, WITHIN, POOLED, BETWEEN = range(10)  # indices of `estimates`
ASSUMED, FOUND, FOUND_MEAN, FOUND_SQUARES, ONCE, TWICE, ENDS_ONCE, ENDS_TWICE = range(8)  # indices of `discoveries`
_PSEUDO = 5.0  # pseudo-counts of pairs and visits for the variance of all, if few were repeated
_LEAST = 0.1  # least share of the variance of estimates between states
_RECENT = 20.0  # number of recent discoveries that count
_UNSURE = 0.5  # weight of a single discovery


@part
class NoPrior(NamedTuple):
    """No assumptions."""

    unused: int = 0

    def meet(self, values: TableValues, s: int, ends: bool) -> int:
        """Do nothing."""
        return 0

    def try_once_more(self, pair: int, before: float, after: float, target: float, share: float) -> None:
        """Do nothing."""

    def revise(self, before: float, after: float) -> None:
        """Do nothing."""

    def shown(self, s: int, value: float) -> float:
        """The value, unchanged."""
        return value

    def untried(self) -> float:
        """The initial value."""
        return 0.0

    def assume(self, values: TableValues, worth: float) -> int:
        """Leave states never visited unchanged."""
        return 0


@part
class Prior(NamedTuple):
    """Shrinkage, unseen states and untried actions.

    Attributes:
        shrinks: whether shown values are shrunk.
        assumes: whether states never visited are given a value.
        hopes: whether actions never tried are given a value.
        tries: (S·A,), the number of trials of each pair.
        scatter: (S·A,), the sum of squared deviations of its targets from their mean.
        met: (S,), the number of visits to each state.
        estimates: sums over the pairs that were tried, and quantities derived from them.
        discoveries: counts and means of states visited once or twice.
    """

    shrinks: bool
    assumes: bool
    hopes: bool
    tries: Vector
    scatter: Vector
    met: Vector
    estimates: Vector
    discoveries: Vector

    def meet(self, values: TableValues, s: int, ends: bool) -> int:
        """Record a visit to s; if it ended the episode, its value is 0. Return the number of value updates."""
        if not self.assumes:
            return 0
        self.met[s] += 1.0
        once = ENDS_ONCE if ends else ONCE
        if self.met[s] <= 2.0:
            self.discoveries[once + int(self.met[s]) - 1] += 1.0
        if 2.0 <= self.met[s] <= 3.0:
            self.discoveries[once + int(self.met[s]) - 2] -= 1.0
        if ends and values.get(s, 0) != 0.0:
            values.put(s, 0, 0.0)
            return 1
        return 0

    def try_once_more(self, pair: int, before: float, after: float, target: float, share: float) -> None:
        """Record a trial of a pair: its estimate changed from `before` to a new one in which the target has this share.

        The deviation of the target is taken from the mean of all others, with their current values.
        """
        self.tries[pair] += 1.0
        first = self.tries[pair] == 1.0
        if first:
            self.estimates[PAIRS] += 1.0
            before = 0.0
        self.revise(before, after)
        _average(self.estimates)
        if self.shrinks:
            _spread(self, pair, target, target if first else (after - share * target) / (1.0 - share))

    def revise(self, before: float, after: float) -> None:
        """Record a change of the estimate of a pair that was tried."""
        self.estimates[SUM] += after - before
        self.estimates[SQUARES] += after * after - before * before

    def shown(self, s: int, value: float) -> float:
        """(n v + k m) / (n + k), k = within / between; in prediction. A state visited once is a discovery."""
        of, n, shown = self.estimates, self.tries[s], value
        if self.shrinks and n > 0.0 and of[BETWEEN] > 0.0:
            within = (self.scatter[s] + _PSEUDO * of[POOLED]) / (n - 1.0 + _PSEUDO)
            k = within / of[BETWEEN]
            shown = (n * value + k * of[MEAN]) / (n + k)
        if self.assumes and self.met[s] == 1.0:
            _discover(self.discoveries, shown)
        return shown

    def untried(self) -> float:
        """The mean of all estimates, shrunk towards 0; 0 if nothing is assumed about actions never tried."""
        return self.estimates[MEAN] if self.hopes else 0.0

    def assume(self, values: TableValues, worth: float) -> int:
        """Change the value of states never visited, if worthwhile; return the number of value updates."""
        if not self.assumes:
            return 0
        value = _undiscovered(self.discoveries)
        if value == self.discoveries[ASSUMED] or abs(value - self.discoveries[ASSUMED]) < worth:
            return 0
        self.discoveries[ASSUMED] = value
        updates = 0
        for s in range(self.met.size):
            if self.met[s] == 0.0:
                values.put(s, 0, value)
                updates += 1
        return updates


@kernel
def _average(of: Vector) -> None:
    """The mean and the variance of all estimates, from their sums."""
    n = of[PAIRS]
    if n > 1.0:
        mean = of[SUM] / n
        of[VARIANCE] = max(of[SQUARES] - mean * of[SUM], 0.0) / (n - 1.0)
        of[MEAN] = drawn_to_zero(mean, of[VARIANCE], n)


@kernel
def _spread(prior: Prior, pair: int, target: float, others: float) -> None:
    """Update the variances within and between after a target of a pair whose other targets have the mean `others`."""
    of, n = prior.estimates, prior.tries[pair]
    if n == 1.0:
        of[INVERSE] += 1.0
    else:
        of[INVERSE] += 1.0 / n - 1.0 / (n - 1.0)
        if n == 2.0:
            of[REPEATED] += 1.0
        else:
            of[WITHIN] -= prior.scatter[pair] / (n - 2.0)
        prior.scatter[pair] += (target - others) * (target - others) * (n - 1.0) / n
        of[WITHIN] += prior.scatter[pair] / (n - 1.0)
    if of[PAIRS] > 1.0:
        of[POOLED] = (of[WITHIN] + _PSEUDO * of[VARIANCE]) / (of[REPEATED] + _PSEUDO)
        of[BETWEEN] = max(of[VARIANCE] - of[POOLED] * of[INVERSE] / of[PAIRS], _LEAST * of[VARIANCE])


@kernel
def drawn_to_zero(mean: float, variance: float, n: float) -> float:
    """The mean of n numbers, times max(0, 1 − variance / (n mean²))."""
    return 0.0 if mean == 0.0 else mean * max(0.0, 1.0 - variance / (n * mean * mean))


@kernel
def _discover(of: Vector, shown: float) -> None:
    """Record a newly visited state with this shown value, in a running mean over recent ones."""
    of[FOUND] += 1.0
    rate = max(1.0 / of[FOUND], 1.0 / _RECENT)
    of[FOUND_MEAN] += rate * (shown - of[FOUND_MEAN])
    of[FOUND_SQUARES] += rate * (shown * shown - of[FOUND_SQUARES])


@kernel
def _undiscovered(of: Vector) -> float:
    """The assumed value of a state never visited."""
    inner, ends = unseen_species(of[ONCE], of[TWICE]), unseen_species(of[ENDS_ONCE], of[ENDS_TWICE])
    if inner == 0.0:
        return 0.0
    mean, n = of[FOUND_MEAN], min(of[FOUND], _RECENT)
    spread = max(of[FOUND_SQUARES] - mean * mean, 0.0)
    return inner / (inner + ends) * (_UNSURE * mean if n < 2.0 else drawn_to_zero(mean, spread, n))


@kernel
def unseen_species(once: float, twice: float) -> float:
    """The estimated number of unseen ones, from the numbers seen once and twice (Chao 1984, bias-corrected)."""
    return once * (once - 1.0) / (2.0 * (twice + 1.0))


def no_experience(n_states: int, n_actions: int, shrinks: bool, assumes: bool, hopes: bool) -> Prior:
    """A prior without observations; each piece belongs to prediction or to control."""
    pairs, prediction = n_states * n_actions, n_actions == 1
    return Prior(
        shrinks and prediction,
        assumes and prediction,
        hopes and not prediction,
        np.zeros(pairs),
        np.zeros(pairs),
        np.zeros(n_states),
        np.zeros(10),
        np.zeros(8),
    )
