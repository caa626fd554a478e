"""Statistics over seeds: means, intervals, comparisons, and curves on a common grid.

A seed is one run, and runs are independent: seeds are what is averaged and resampled. Two agents that ran the same
seeds met the same worlds. Their difference is therefore taken seed by seed (`paired_difference`), which removes
what the two have in common. Intervals are studentised bootstrap intervals whose ends are at least as far out as those
of Student's t (`backcast.studies.resampling` has the formulas, the reasons and the references); docs/studies.md shows
their coverage. The same arguments give the same bytes.

NaN is refused everywhere, except in `mean_and_error(ragged=True)`, which reads it as "this run was shorter". Infinity
is the error of a run that diverged: a mean is infinite if one run diverged, the interquartile mean if more than a
quarter did. Input that would subtract infinity from infinity, as in a paired difference, is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from backcast.core.arrays import Vector, as_whole
from backcast.core.errors import InputError
from backcast.studies import resampling
from backcast.studies.given_numbers import (
    by_episode,
    check_choice,
    check_level,
    check_pairs,
    in_pairs,
    numbers,
    numbers_along,
    table,
)
from backcast.studies.rounding import rounded

Statistic = Callable[..., Any]  # reduces the axis given as `axis=`; the standard error is known for np.mean and iqm
Runs = Sequence[ArrayLike] | Vector  # one array per run

_POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it.

    Attributes:
        estimate: the statistic of the data.
        low: lower end of the interval; NaN if there is a single seed, whose spread is unknown.
        high: upper end; NaN likewise.
        n: number of seeds.
        level: nominal coverage: the share of such intervals that contain the truth.

    Example:
        >>> print(Interval(3.21, 2.9, 3.55, n=20))
        3.21 [2.90, 3.55]
    """

    estimate: float
    low: float
    high: float
    n: int
    level: float = 0.95

    def __str__(self) -> str:
        """Format, rounded by the width of the interval; only the estimate if the ends are unknown."""
        estimate, *ends = rounded(self.estimate, self.low, self.high)
        return f"{estimate} [{', '.join(ends)}]" if ends else estimate

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; False if its ends are unknown."""
        return self.low > 0 or self.high < 0


def mean_and_error(values: ArrayLike, axis: int = 0, *, ragged: bool = False) -> tuple[Vector, Vector]:
    """The mean and its standard error, sd / √n with sd² = Σ (x − mean)² / (n − 1).

    The error of a single value is NaN. An infinite mean has an infinite error.

    Args:
        values: numbers, one per seed along `axis`.
        axis: the axis of the seeds, which is removed.
        ragged: ignore NaN, which `align_by_episode` puts where a run has no more episodes. Mean, n and error then rest
            on the runs that are still there, which are a biased sample if long runs differ from short ones; NaN if
            there is none.
    """
    x = numbers_along(axis, values, ragged)
    there = ~np.isnan(x)
    n = there.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = x.sum(axis=axis, keepdims=True, where=there) / n
        variance = np.square(x - mean).sum(axis=axis, keepdims=True, where=there) / (n - 1)
        error = np.where(np.isinf(mean), np.inf, np.sqrt(variance / n))
    return mean.squeeze(axis), error.squeeze(axis)


def iqm(values: ArrayLike, axis: int = 0) -> Vector:
    """The interquartile mean: the mean of the middle half.

    In order of size, the i-th of n values covers the interval from (i − 1)/n to i/n. Its weight is the part of this
    that lies between 1/4 and 3/4. If 4 divides n, this is `scipy.stats.trim_mean(values, 0.25)`; otherwise the two
    values at the edges have partial weights (for 3 values: 1/6, 2/3, 1/6), while `trim_mean` would keep them whole.
    """
    x = numbers_along(axis, values)
    n = x.shape[axis]
    weights = np.diff(np.clip(np.arange(n + 1), n / 4, 3 * n / 4))
    middle = np.where(weights > 0, np.moveaxis(np.sort(x, axis=axis), axis, -1), 0.0)  # 0 · ∞ is not 0
    return np.average(middle, axis=-1, weights=weights)


_SHARES: dict[Statistic, float] = {np.mean: 0.0, iqm: 0.25}  # share of the values trimmed at each side


def bootstrap(
    values: ArrayLike, statistic: Statistic = np.mean, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> Interval:
    """The studentised bootstrap interval of a mean or interquartile mean; the percentile interval of others.

    Skewness, which few seeds hardly distinguish from chance, moves an end outward from that of Student's t, but never
    inward. Percentile intervals, such as those of `np.median`, have less than nominal coverage if there are few seeds.
    If runs diverged there is no standard error: the interval is then the middle of the resampled statistics, and its
    ends may be infinite.

    Args:
        values: (n,), one number per seed.
        statistic: `np.mean`, `iqm`, or another function that reduces the axis given as `axis=`.
        seed: seed of the resampling.
        level: nominal coverage, in (0, 1).
        resamples: number of resamples; by default 10,000, fewer for more than 20,000 seeds, but at least 1,000.
    """
    return _stratified([numbers("values", values, or_infinite=True)], statistic, seed, level, resamples)


def stratified_bootstrap(
    groups: Runs, statistic: Statistic = np.mean, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> Interval:
    """The interval of the statistic's mean over strata (n_g,), such as worlds; otherwise as `bootstrap`.

    The seeds of each stratum are resampled separately. Every stratum has the same weight, however many seeds it has, so
    make the numbers of different worlds comparable first. The interval's n is the number of seeds in all strata.
    """
    strata = [numbers(f"groups[{g}]", group, or_infinite=True) for g, group in enumerate(groups)]
    if not strata:
        raise InputError("groups: none given, expected one array of numbers per stratum, at least one")
    return _stratified(strata, statistic, seed, level, resamples)


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    statistic: Statistic = np.mean,
    *,
    seed: int,
    level: float = 0.95,
    resamples: int | None = None,
) -> Interval:
    """The interval of a − b, both (n,) from the same seeds in the same order; otherwise as `bootstrap`."""
    x, y = in_pairs("a", a, "b", b)
    return _stratified([x - y], statistic, seed, level, resamples)


def band(
    curves: ArrayLike, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> tuple[Vector, Vector, Vector]:
    """The mean of curves (n, E) over seeds, and the lower and upper ends of its intervals, (E,) each.

    The intervals are pointwise, as of `bootstrap`: the whole curve lies in the band less often than `level`.
    """
    x = table("curves", curves)
    _, resamples = _begin(seed, level, resamples, *x.shape)
    low, high = np.full((2, x.shape[1]), np.nan)
    at_once = max(1, resampling.NUMBERS_AT_ONCE // resamples)
    for first in range(0, x.shape[1] if len(x) > 1 else 0, at_once):
        part = slice(first, first + at_once)
        found = resampling.resample(x.T[part], 0.0, np.random.default_rng(seed), resamples)
        low[part], high[part] = resampling.ends(found, level)
    return x.mean(axis=0), low, high


def simultaneous(values: ArrayLike, *, seed: int, level: float = 0.95, resamples: int | None = None) -> list[Interval]:
    """Simultaneous intervals of the means of m quantities (n, m), which all hold together with probability `level`.

    A row holds all quantities for one seed. All quantities use the same resamples, so that dependence between them is
    taken into account: where `bootstrap` takes the ends of the middle of t*, this takes the upper end of the largest
    and the lower end of the smallest t* over all quantities (max-t: Westfall and Young 1993, Romano and Wolf 2005). So
    no interval lies above its truth, and none below, with probability (1 + level)/2 each. The t* of a quantity are
    moved outward, in their order, to where every quantile is at least that of Student's t; the dependence between
    quantities stays that of the resamples. For one quantity it is the interval of `bootstrap`.
    """
    x = table("values", values)
    rng, resamples = _begin(seed, level, resamples, *x.shape)
    found = resampling.resample(x.T, 0.0, rng, resamples)
    known, (below, above) = found.has_error, resampling.tails(level)
    ends = np.stack([found.estimate, found.estimate])  # for constant quantities
    if known.any():
        t = found.only(known).studentised_outward()
        far, near = np.quantile(t.max(axis=0), above), np.quantile(t.min(axis=0), below)
        ends[:, known] -= np.outer((far, near), np.sqrt(found.variance[known]))
    if len(x) == 1:
        ends[:] = np.nan
    columns = zip(x.mean(axis=0), *ends, strict=True)
    return [Interval(float(mean), float(low), float(high), len(x), level) for mean, low, high in columns]


def probability_of_improvement(
    a: ArrayLike,
    b: ArrayLike,
    *,
    better: Literal["lower", "higher"],
    paired: bool = True,
    seed: int,
    level: float = 0.95,
    resamples: int | None = None,
) -> Interval:
    """The probability that a run of a is better than one of b, P(a better) + ½ P(a = b); no difference is ½, not 0.

    `better` is "lower" for steps and errors, "higher" for rewards. If lower is better, a run that diverged is worse
    than any that did not.

    Paired, both are (n,) from the same seeds in the same order. The estimate is the share of seeds on which a is
    better, with the score interval of a proportion (Wilson 1927), which is valid near 0 and 1. Nothing is resampled.

    Otherwise it is the share of all pairs of a run of a and a run of b (the Mann–Whitney U over n_a n_b). The runs of
    each are resampled separately, the interval is the middle of the results, and n counts both. If a is better in every
    pair, it is so in every resample: [1, 1] says that no loss was observed, not that there can be none.
    """
    check_choice("better", better, ("lower", "higher"))
    worst = better == "lower"
    x, y = in_pairs("a", a, "b", b, worst) if paired else (numbers("a", a, worst), numbers("b", b, worst))
    smaller, larger = (x, y) if better == "lower" else (y, x)
    rng, resamples = _begin(seed, level, resamples, x.size + y.size)
    if paired:
        return _of_a_proportion((smaller < larger).mean() + (smaller == larger).mean() / 2, x.size, level)
    below = (smaller[:, None] < larger) + (smaller[:, None] == larger) / 2
    chances = np.empty(resamples)
    parts = (
        resampling.times_drawn(each, resamples, z.size, x.size + y.size)
        for each, z in zip(rng.spawn(2), (smaller, larger), strict=True)
    )
    for (part, first), (_, second) in zip(*parts, strict=True):
        chances[part] = (first @ below * second).sum(axis=1) / below.size
    low, high = resampling.middle(chances, level) if min(below.shape) > 1 else (np.nan, np.nan)
    return Interval(float(below.mean()), float(low), float(high), x.size + y.size, level)


def _of_a_proportion(share: float, n: int, level: float) -> Interval:
    """The score interval of a proportion: all p that differ from the share by at most z √(p (1 − p)/n)."""
    z2 = ndtri((1 + level) / 2) ** 2
    centre, reach = share + z2 / (2 * n), np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n)))
    low, high = (centre - reach) / (1 + z2 / n), (centre + reach) / (1 + z2 / n)
    return Interval(float(share), max(0.0, float(low)), min(1.0, float(high)), n, level)


def seeds_needed(differences: ArrayLike, found: Interval) -> int | None:
    """A lower bound on the seeds needed to distinguish the mean from 0; if the mean is small, any number may be needed.

    If the mean were μ, n = ((z + z′) sd / μ)² seeds, rounded up, would distinguish it from 0 in four of five studies,
    with z and z′ the (1 + level)/2 and 0.8 quantiles of the normal distribution; at least 2, as one seed has no spread.
    μ is unknown, and is taken to be the end of its interval farthest from 0. None if all differences are 0.

    Args:
        differences: (n,), two or more.
        found: their mean with its interval.
    """
    x = numbers("differences", differences)
    if x.size < 2:
        raise InputError("differences: 1 value given, expected at least 2; one has no spread")
    reach = (ndtri((1 + found.level) / 2) + ndtri(_POWER)) * x.std(ddof=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        n = np.square(reach / np.max(np.abs([found.low, found.high])))
    return max(2, ceil(n)) if np.isfinite(n) else None


def align_by_episode(curves: Runs) -> Vector:
    """Put curves (E_i,) into the rows of one array (n, longest), with NaN where a run has no more episodes.

    `mean_and_error(…, ragged=True)` averages over the runs that are still there.
    """
    runs = [numbers(f"curves[{i}]", curve) for i, curve in enumerate(curves)]
    if not runs:
        raise InputError("curves: none given, expected one array of numbers per run, at least one")
    aligned = np.full((len(runs), max(run.size for run in runs)), np.nan)
    for row, run in zip(aligned, runs, strict=True):
        row[: run.size] = run
    return aligned


def align_by_steps(
    positions: Runs, values: Runs, grid: ArrayLike, *, between: Literal["step", "linear"] = "step"
) -> Vector:
    """Read the values of each run, known at increasing positions (E_i,), on a common grid (G,): (n, G).

    Between two positions, "step" keeps the value of the earlier one and "linear" interpolates. Before the first and
    after the last position of a run, the result is NaN.
    """
    check_choice("between", between, ("step", "linear"))
    if len(positions) != len(values) or len(values) == 0:
        raise InputError(f"values: {len(values)} runs given, {len(positions)} of positions; expected as many, not 0")
    at = numbers("grid", grid)
    aligned = np.empty((len(values), at.size))
    for i, row in enumerate(aligned):
        x = numbers(f"positions[{i}]", positions[i])
        y = numbers(f"values[{i}]", values[i], or_infinite=between == "step")
        check_pairs(f"positions[{i}]", x, f"values[{i}]", y)
        if (np.diff(x) <= 0).any():
            raise InputError(f"positions[{i}]: they do not increase; each must be larger than the one before")
        row[:] = np.interp(at, x, y) if between == "linear" else y[np.searchsorted(x, at, side="right") - 1]
        row[(at < x[0]) | (at > x[-1])] = np.nan
    return aligned


def cumulative_on_grid(steps: ArrayLike, reward: ArrayLike, points: int) -> tuple[Vector, Vector]:
    """The cumulative reward of finished episodes against environment steps, up to the end of the shortest run.

    This compares agents with different numbers of steps per episode at equal experience. A run is a step function that
    begins at 0 and rises by an episode's reward at its last step.

    Args:
        steps: (n, E), the steps of each episode of each run.
        reward: (n, E), the reward of each episode.
        points: number of grid points, 2 or more.

    Returns:
        The grid (points,), evenly spaced up to rounding to whole steps, and the rewards there (n, points).
    """
    lengths, earned = by_episode("steps", steps, "reward", reward)
    wrong = lengths[(lengths < 1) | (lengths != np.floor(lengths))]
    if wrong.size:
        raise InputError(f"steps: {wrong[0]:g} given, expected whole numbers, 1 or more in each episode")
    ends, totals = (np.pad(x.cumsum(axis=1), ((0, 0), (1, 0))) for x in (lengths, earned))
    grid = np.rint(np.linspace(0, ends[:, -1].min(), as_whole("points", points, 2)))
    return grid, align_by_steps(ends, totals, grid)


def on_update_grid(updates: ArrayLike, values: ArrayLike, grid: ArrayLike) -> Vector:
    """Read a value per episode against the value updates that its run had made when the episode ended.

    This compares agents with different numbers of updates per episode at equal computation. Each grid point gets the
    value of the last episode that was finished with at most that many updates. Before a run's first episode is
    finished, and after the end of its last, the result is NaN.

    Args:
        updates: (n, E), value updates of each run up to the end of each episode.
        values: (n, E), the value of each episode.
        grid: (G,), the numbers of updates at which to read.

    Returns:
        (n, G).
    """
    made, measured = by_episode("updates", updates, "values", values, or_infinite=True)
    if (np.diff(made) < 0).any():
        raise InputError("updates: they fall within a run; expected how many were made up to the end of each episode")
    last = np.diff(made, append=np.inf) > 0  # the last of the episodes that ended after equally many updates
    rows = range(len(made))
    return align_by_steps([made[i, last[i]] for i in rows], [measured[i, last[i]] for i in rows], grid)


def normalised(values: Mapping[str, float]) -> dict[str, float]:
    """Each agent's (x − min) / (max − min) over the agents compared; 0 for all if they are equal."""
    x = numbers("values", list(values.values()))
    spread = np.ptp(x)
    scaled = (x - x.min()) / (spread if spread > 0 else 1)
    return dict(zip(values, scaled.tolist(), strict=True))


def _stratified(strata: list[Vector], statistic: Statistic, seed: int, level: float, resamples: int | None) -> Interval:
    """The interval of a statistic's mean over strata; unknown if a stratum is a single seed."""
    n = sum(x.size for x in strata)
    rng, resamples = _begin(seed, level, resamples, n)
    estimate = sum(float(statistic(x, axis=0)) for x in strata) / len(strata)
    low = high = np.nan
    if min(x.size for x in strata) > 1 and statistic not in _SHARES:
        resampled = sum(resampling.of_any(x, statistic, rng, resamples) for x in strata) / len(strata)
        low, high = resampling.middle(np.asarray(resampled), level)
    elif min(x.size for x in strata) > 1:
        parts = [resampling.resample(x[None], _SHARES[statistic], rng, resamples) for x in strata]
        (low,), (high,) = resampling.ends(resampling.mean_over_strata(parts), level)
    return Interval(estimate, float(low), float(high), n, level)


def _begin(
    seed: int, level: float, resamples: int | None, n: int, quantities: int = 1
) -> tuple[np.random.Generator, int]:
    """The generator, and the number of resamples of n seeds."""
    check_level(level)
    if resamples is None:
        resamples = resampling.how_many(n, quantities)
    return np.random.default_rng(as_whole("seed", seed, 0)), as_whole("resamples", resamples, 1)
