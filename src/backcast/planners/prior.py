"""What a planner assumes of what it has seen little of, or nothing: three pieces, each of which can be left out.

*Shrinkage* (prediction). The estimate of a state that was visited n times is shown as (n E + k m) / (n + k), where m is
the mean of all estimates and k the variance of one target over the variance of values between states: Bühlmann's
credibility, an empirical-Bayes estimate. Only what is shown is shrunk, never what others bootstrap from: along a chain
of states each would shrink what the next has shrunk already.

*Unseen states* (prediction). A state that was never met is assumed to be worth what recent discoveries were, times the
share of states that do not end an episode among those not met yet. That share is estimated by Chao's formula for unseen
species, f₁ (f₁ − 1) / (2 (f₂ + 1)), from how many states were met once and twice.

*Untried actions* (control). An action that was never tried is assumed to be worth the mean of all estimates, so that it
is tried where all others are worse.

Means are drawn towards 0 where they are not sure (James and Stein): by the factor 1 − variance / (n mean²), or 0.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.values.table import TableValues

PAIRS, SUM, SQUARES, MEAN, VARIANCE, INVERSE, REPEATED, WITHIN, POOLED, BETWEEN = range(10)  # of `estimates`
ASSUMED, FOUND, FOUND_MEAN, FOUND_SQUARES, ONCE, TWICE, ENDS_ONCE, ENDS_TWICE = range(8)  # of `discoveries`
_PSEUDO = 5.0  # pairs, and visits, that the variance of all counts as where few were repeated
_LEAST = 0.1  # of the variance of estimates is between states, at least
_RECENT = 20.0  # discoveries that count
_UNSURE = 0.5  # how much a single discovery counts


@part
class NoPrior(NamedTuple):
    """Nothing is assumed."""

    unused: int = 0

    def meet(self, values: TableValues, s: int, ends: bool) -> int:
        """Plays no part."""
        return 0

    def try_once_more(self, pair: int, before: float, after: float, target: float, share: float) -> None:
        """Plays no part."""

    def revise(self, before: float, after: float) -> None:
        """Plays no part."""

    def shown(self, s: int, value: float) -> float:
        """The value as it is."""
        return value

    def untried(self) -> float:
        """What values begin with."""
        return 0.0

    def assume(self, values: TableValues, worth: float) -> int:
        """States never met stay as they are."""
        return 0


@part
class Prior(NamedTuple):
    """Shrinkage, unseen states and untried actions.

    Attributes:
        shrinks: whether what is shown is shrunk.
        assumes: whether states never met are given a value.
        hopes: whether actions never tried are.
        tries: (S·A,) how often each pair was tried.
        scatter: (S·A,) the sum of squared deviations of its targets from their mean.
        met: (S,) how often each state was met.
        estimates: sums over the pairs that were tried, and what follows from them.
        discoveries: counts and means of states that were met once or twice.
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
        """The agent is in s; if that ended the episode, it is worth 0. The number of value updates."""
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
        """A pair was tried: its estimate went from `before` to `after`, in which the target has this share.

        The deviation of the target is that from the mean of all others, as they are valued now.
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
        """The estimate of a pair that was tried has changed."""
        self.estimates[SUM] += after - before
        self.estimates[SQUARES] += after * after - before * before

    def shown(self, s: int, value: float) -> float:
        """(n v + k m) / (n + k), k = within / between; in prediction. A state met once is a discovery."""
        of, n, shown = self.estimates, self.tries[s], value
        if self.shrinks and n > 0.0 and of[BETWEEN] > 0.0:
            within = (self.scatter[s] + _PSEUDO * of[POOLED]) / (n - 1.0 + _PSEUDO)
            k = within / of[BETWEEN]
            shown = (n * value + k * of[MEAN]) / (n + k)
        if self.assumes and self.met[s] == 1.0:
            _discover(self.discoveries, shown)
        return shown

    def untried(self) -> float:
        """The mean of all estimates, drawn towards 0; 0 if actions never tried are not hoped for."""
        return self.estimates[MEAN] if self.hopes else 0.0

    def assume(self, values: TableValues, worth: float) -> int:
        """Give states never met another value, if that is worth it; the number of value updates."""
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
    """A pair was tried with this target, where the mean of its others is `others`: variances within and between."""
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
    """One more state, met once, is shown with this value: a running mean over the recent ones."""
    of[FOUND] += 1.0
    rate = max(1.0 / of[FOUND], 1.0 / _RECENT)
    of[FOUND_MEAN] += rate * (shown - of[FOUND_MEAN])
    of[FOUND_SQUARES] += rate * (shown * shown - of[FOUND_SQUARES])


@kernel
def _undiscovered(of: Vector) -> float:
    """What a state never met is assumed to be worth."""
    inner, ends = unseen_species(of[ONCE], of[TWICE]), unseen_species(of[ENDS_ONCE], of[ENDS_TWICE])
    if inner == 0.0:
        return 0.0
    mean, n = of[FOUND_MEAN], min(of[FOUND], _RECENT)
    spread = max(of[FOUND_SQUARES] - mean * mean, 0.0)
    return inner / (inner + ends) * (_UNSURE * mean if n < 2.0 else drawn_to_zero(mean, spread, n))


@kernel
def unseen_species(once: float, twice: float) -> float:
    """How many there are that were not met, from how many were met once and twice (Chao 1984, corrected for bias)."""
    return once * (once - 1.0) / (2.0 * (twice + 1.0))


def no_experience(n_states: int, n_actions: int, shrinks: bool, assumes: bool, hopes: bool) -> Prior:
    """A prior that has seen nothing; each piece belongs to prediction or to control."""
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
