"""What the numbers of several seeds say: means, intervals, comparisons, and curves made comparable.

A seed is one run, and runs are independent: seeds are what is averaged and what is resampled. Two agents that ran the
same seeds met the same worlds, so that their difference is taken seed by seed (`paired_difference`), which removes
what the two have in common. Intervals are percentile bootstrap intervals: resample the seeds with replacement, compute
the statistic each time, and take the middle `level` of the results. The same arguments give the same bytes.

NaN is refused everywhere; only `mean_and_error(ragged=True)` reads it, as "this run was shorter". Infinity is the error
of a run that diverged: a mean is infinite if one run diverged, and the interquartile mean if more than a quarter did.
Where infinity would be taken from infinity, as in a paired difference, it is refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from backcast.arrays import Vector, as_floats, as_whole, refuse_non_finite
from backcast.errors import InputError

Statistic = Callable[..., Any]  # reduces the axis given as `axis=`: np.mean, np.median, iqm, …
Runs = Sequence[ArrayLike] | Vector  # one array per run

_RESAMPLES, _DRAWS = (1_000, 10_000), 200_000_000  # so many, and no more than so many draws in all if they can be
_NUMBERS_AT_ONCE = 2**20  # that many resampled values are in memory at a time


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it.

    Attributes:
        estimate: the statistic of the data themselves.
        low: where the interval begins; NaN when a single seed leaves its spread unknown.
        high: where it ends; NaN likewise.
        n: the seeds it rests on.
        level: the share of such intervals that contain the truth, if all is well; few seeds make it smaller.

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
        """Two significant digits of the interval's width, at most 15 decimals; four digits when it has none."""
        width = self.high - self.low
        style = f".{min(15, max(0, 1 - floor(log10(width))))}f" if 0 < width < np.inf else ".4g"
        return f"{self.estimate:{style}} [{self.low:{style}}, {self.high:{style}}]"

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; never when its ends are unknown."""
        return self.low > 0 or self.high < 0


def mean_and_error(values: ArrayLike, axis: int = 0, *, ragged: bool = False) -> tuple[Vector, Vector]:
    """The mean and its standard error, sd / √n with sd² = Σ (x − mean)² / (n − 1).

    One value has no spread: its error is NaN. An infinite mean has an infinite error.

    Args:
        values: numbers, one per seed along `axis`.
        axis: the axis of the seeds, which the results lack.
        ragged: leave out NaN, which `align_by_episode` puts where a run has no more episodes. Mean, n and error then
            rest on the runs that are still there, which are no fair sample of all if long runs differ from short ones;
            NaN where there is none.
    """
    x = _numbers_along(axis, values, ragged)
    there = ~np.isnan(x)
    n = there.sum(axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = x.sum(axis=axis, keepdims=True, where=there) / n
        variance = np.square(x - mean).sum(axis=axis, keepdims=True, where=there) / (n - 1)
        error = np.where(np.isinf(mean), np.inf, np.sqrt(variance / n))
    return mean.squeeze(axis), error.squeeze(axis)


def iqm(values: ArrayLike, axis: int = 0) -> Vector:
    """The interquartile mean: the mean of the middle half.

    In order of size, the i-th of n values covers the stretch from (i − 1)/n to i/n, and counts by as much of it as lies
    between 1/4 and 3/4. Where 4 divides n, that is `scipy.stats.trim_mean(values, 0.25)`; elsewhere the two values at
    the edges count in part (of 3 values: 1/6, 2/3, 1/6), while `trim_mean` would keep them whole.
    """
    x = _numbers_along(axis, values)
    n = x.shape[axis]
    weights = np.diff(np.clip(np.arange(n + 1), n / 4, 3 * n / 4))
    middle = np.where(weights > 0, np.moveaxis(np.sort(x, axis=axis), axis, -1), 0.0)  # 0 · ∞ is not 0
    return np.average(middle, axis=-1, weights=weights)


def bootstrap(
    values: ArrayLike, statistic: Statistic = np.mean, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> Interval:
    """The percentile bootstrap interval of a statistic.

    Where runs diverged its ends may be infinite; they are then resampled values, and none between two of them.

    Args:
        values: (n,), one number per seed.
        statistic: reduces the axis given as `axis=`: `np.mean`, `np.median`, `iqm`, …
        seed: of the resampling.
        level: how much of the resampled statistics the interval holds, in (0, 1).
        resamples: how many there are; by default 10,000, of more than 20,000 seeds fewer, but never below 1,000.
    """
    return _stratified([_numbers("values", values, or_infinite=True)], statistic, seed, level, resamples)


def stratified_bootstrap(
    groups: Runs, statistic: Statistic = np.mean, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> Interval:
    """The interval of the statistic's mean over strata (n_g,), worlds say; else as `bootstrap`.

    The seeds of each stratum are resampled on their own. Every stratum counts the same, however many seeds it has, so
    make the numbers of different worlds comparable first. The interval's n is the seeds of all strata.
    """
    strata = [_numbers(f"groups[{g}]", group, or_infinite=True) for g, group in enumerate(groups)]
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
    """The interval of a − b, both (n,) from the same seeds in the same order; else as `bootstrap`."""
    x, y = _paired("a", a, "b", b)
    return _stratified([x - y], statistic, seed, level, resamples)


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
    """The chance that a run of a is better than one of b, P(a better) + ½ P(a = b); no difference is ½, not 0.

    `better` is "lower" for steps and errors, "higher" for rewards. Paired, both are (n,) from the same seeds in the
    same order, and it is the share of seeds on which a is better. Otherwise it is the share of all pairs of a run of a
    and a run of b (the Mann–Whitney U over n_a n_b); the runs of each are resampled on their own, and n counts both.

    Where lower is better a run that diverged is worse than any that did not.

    When a is better in every pair, so it is in every resample: the interval [1, 1] says that no loss was seen, not that
    there can be none. Everything else is as in `bootstrap`.
    """
    _check_choice("better", better, ("lower", "higher"))
    worst = better == "lower"
    x, y = _paired("a", a, "b", b, worst) if paired else (_numbers("a", a, worst), _numbers("b", b, worst))
    smaller, larger = (x, y) if better == "lower" else (y, x)
    if paired:
        return _stratified([(smaller < larger) + (smaller == larger) / 2], np.mean, seed, level, resamples)
    rng, chances = _begin(seed, level, resamples, x.size + y.size)
    rngs = rng.spawn(2)
    for part in _parts(chances.size, x.size + y.size):
        chances[part] = _chance_below(_resampled(smaller, part, rngs[0]), _resampled(larger, part, rngs[1]))
    return _interval(_chance_below(smaller[None], larger[None])[0], chances, [x, y], level)


def seeds_needed(differences: ArrayLike, level: float = 0.95) -> int | None:
    """How many seeds in all make the interval of the mean exclude 0, if mean and spread stay as they are.

    The normal approximation n = (z sd / |mean|)², rounded up, with z the (1 + level)/2 quantile; at least 2, as one
    seed has no spread. None if the mean is 0, which no number of seeds tells from 0.
    """
    x = _numbers("differences", differences)
    _check_level(level)
    if x.size < 2:
        raise InputError("differences: 1 value given, expected at least 2; one has no spread")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        n = np.square(ndtri((1 + level) / 2) * x.std(ddof=1) / np.abs(x.mean()))
    return max(2, ceil(n)) if np.isfinite(n) else None


def align_by_episode(curves: Runs) -> Vector:
    """The curves (E_i,) as rows of one array (n, longest), with NaN where a run has no more episodes.

    `mean_and_error(…, ragged=True)` takes the mean over those runs that are still there.
    """
    runs = [_numbers(f"curves[{i}]", curve) for i, curve in enumerate(curves)]
    if not runs:
        raise InputError("curves: none given, expected one array of numbers per run, at least one")
    aligned = np.full((len(runs), max(run.size for run in runs)), np.nan)
    for row, run in zip(aligned, runs, strict=True):
        row[: run.size] = run
    return aligned


def align_by_steps(
    positions: Runs, values: Runs, grid: ArrayLike, *, between: Literal["step", "linear"] = "step"
) -> Vector:
    """The values of each run, known at its increasing positions (E_i,), read at the same grid (G,): (n, G).

    Between two positions, "step" keeps the value of the earlier one and "linear" goes straight to the next. Before the
    first and after the last position of a run nothing is known: NaN.
    """
    _check_choice("between", between, ("step", "linear"))
    if len(positions) != len(values) or len(values) == 0:
        raise InputError(f"values: {len(values)} runs given, {len(positions)} of positions; expected as many, not 0")
    at = _numbers("grid", grid)
    aligned = np.empty((len(values), at.size))
    for i, row in enumerate(aligned):
        x = _numbers(f"positions[{i}]", positions[i])
        y = _numbers(f"values[{i}]", values[i], or_infinite=between == "step")
        _check_pairs(f"positions[{i}]", x, f"values[{i}]", y)
        if (np.diff(x) <= 0).any():
            raise InputError(f"positions[{i}]: they do not increase; each must be larger than the one before")
        row[:] = np.interp(at, x, y) if between == "linear" else y[np.searchsorted(x, at, side="right") - 1]
        row[(at < x[0]) | (at > x[-1])] = np.nan
    return aligned


def cumulative_on_grid(steps: ArrayLike, reward: ArrayLike, points: int) -> tuple[Vector, Vector]:
    """The reward of all episodes finished so far, against environment steps, up to the end of the shortest run.

    So agents that need different numbers of steps per episode are compared at the same experience. A run is a
    staircase that begins at 0 and rises by an episode's reward at its last step.

    Args:
        steps: (n, E), the steps of each episode of each run.
        reward: (n, E), the reward of each episode.
        points: how many places to read, 2 or more.

    Returns:
        The places (points,), evenly spaced up to rounding to whole steps, and the rewards there (n, points).
    """
    lengths, earned = _by_episode("steps", steps, "reward", reward)
    wrong = lengths[(lengths < 1) | (lengths != np.floor(lengths))]
    if wrong.size:
        raise InputError(f"steps: {wrong[0]:g} given, expected whole numbers, 1 or more in each episode")
    ends, totals = (np.pad(x.cumsum(axis=1), ((0, 0), (1, 0))) for x in (lengths, earned))
    grid = np.rint(np.linspace(0, ends[:, -1].min(), as_whole("points", points, 2)))
    return grid, align_by_steps(ends, totals, grid)


def on_update_grid(updates: ArrayLike, values: ArrayLike, grid: ArrayLike) -> Vector:
    """What each episode was worth, against the value updates that its run had made when it ended.

    So agents that make different numbers of updates per episode are compared at the same computation. At each place
    stands the value of the last episode that was finished with at most so many updates. Before its first episode is
    finished, and after the end of its last, nothing is known of a run: NaN.

    Args:
        updates: (n, E), value updates of each run up to the end of each episode.
        values: (n, E), what was measured in the episode.
        grid: (G,), the numbers of updates at which to read.

    Returns:
        (n, G).
    """
    made, measured = _by_episode("updates", updates, "values", values, or_infinite=True)
    if (np.diff(made) < 0).any():
        raise InputError("updates: they fall within a run; expected how many were made up to the end of each episode")
    last = np.diff(made, append=np.inf) > 0  # of the episodes that ended after equally many updates
    rows = range(len(made))
    return align_by_steps([made[i, last[i]] for i in rows], [measured[i, last[i]] for i in rows], grid)


def normalised(values: Mapping[str, float]) -> dict[str, float]:
    """Each agent's (x − min) / (max − min) over the agents compared; 0 for all if they are equal."""
    x = _numbers("values", list(values.values()))
    spread = np.ptp(x)
    scaled = (x - x.min()) / (spread if spread > 0 else 1)
    return dict(zip(values, scaled.tolist(), strict=True))


def _stratified(strata: list[Vector], statistic: Statistic, seed: int, level: float, resamples: int | None) -> Interval:
    """The interval of the mean over strata of a statistic."""
    rng, sums = _begin(seed, level, resamples, sum(x.size for x in strata))
    for x in strata:
        for part in _parts(sums.size, x.size):
            sums[part] += statistic(_resampled(x, part, rng), axis=1)
    estimate = sum(float(statistic(x, axis=0)) for x in strata) / len(strata)
    return _interval(estimate, sums / len(strata), strata, level)


def _begin(seed: int, level: float, resamples: int | None, n: int) -> tuple[np.random.Generator, Vector]:
    """The generator, and a zero for each resample of n values."""
    _check_level(level)
    if resamples is None:
        resamples = int(np.clip(_DRAWS // n, *_RESAMPLES))
    return np.random.default_rng(as_whole("seed", seed, 0)), np.zeros(as_whole("resamples", resamples, 1))


def _parts(resamples: int, n: int) -> Iterator[slice]:
    """All resamples of n values, as many at a time as memory should hold; the draws do not depend on it."""
    at_once = max(1, _NUMBERS_AT_ONCE // n)
    return (slice(first, min(first + at_once, resamples)) for first in range(0, resamples, at_once))


def _resampled(x: Vector, part: slice, rng: np.random.Generator) -> Vector:
    """One resample of x (n,) per row."""
    return x[rng.integers(x.size, size=(part.stop - part.start, x.size))]


def _interval(estimate: float, resampled: Vector, samples: list[Vector], level: float) -> Interval:
    """The middle `level` of the resampled statistics; unknown where a sample is a single seed."""
    low, high = _middle(resampled, level)
    if min(x.size for x in samples) == 1:
        low = high = np.nan
    return Interval(float(estimate), float(low), float(high), sum(x.size for x in samples), level)


def _middle(x: Vector, level: float) -> tuple[float, float]:
    """The ends of the middle `level` of x; among values of which some are infinite, two of them, outwards."""
    ends = (1 - level) / 2, (1 + level) / 2
    if np.isfinite(x).all():
        low, high = np.quantile(x, ends)
        return low, high
    ordered, last = np.sort(x), x.size - 1
    return ordered[floor(ends[0] * last)], ordered[ceil(ends[1] * last)]


def _chance_below(first: Vector, second: Vector) -> Vector:
    """Of each row, the share of pairs with first < second, ties half: the rank sum of second less its smallest."""
    from scipy.stats import rankdata  # takes half a second to import

    n, m = first.shape[1], second.shape[1]
    ranks = rankdata(np.hstack([first, second]), axis=1)[:, n:]
    return (ranks.sum(axis=1) - m * (m + 1) / 2) / (n * m)


def _numbers(field: str, values: ArrayLike, or_infinite: bool = False) -> Vector:
    """Finite numbers (n,), or +∞ too, at least one."""
    x = as_floats(field, values)
    if x.ndim != 1 or x.size == 0:
        raise InputError(f"{field}: shape {x.shape} given, expected (n,), at least one number")
    _refuse(field, x, or_infinite)
    return x


def _numbers_along(axis: int, values: ArrayLike, ragged: bool = False) -> Vector:
    """Numbers of any shape, +∞ or, if they are ragged, NaN among them; at least one along the axis."""
    x = as_floats("values", values)
    if not -x.ndim <= axis < x.ndim or x.shape[axis] == 0:
        raise InputError(f"values: shape {x.shape} given, expected at least one value along axis {axis}")
    _refuse("values", np.where(np.isnan(x), 0, x) if ragged else x, or_infinite=not ragged)
    return x


def _refuse(field: str, x: Vector, or_infinite: bool) -> None:
    """Raise where x is not finite; unless it may be infinite and is +∞."""
    refuse_non_finite(field, np.where(x == np.inf, 0, x) if or_infinite else x)


def _paired(
    field: str, values: ArrayLike, other: str, others: ArrayLike, or_infinite: bool = False
) -> tuple[Vector, Vector]:
    """Two arrays (n,) that belong together entry by entry."""
    x, y = _numbers(field, values, or_infinite), _numbers(other, others, or_infinite)
    _check_pairs(field, x, other, y)
    return x, y


def _check_pairs(field: str, x: Vector, other: str, y: Vector) -> None:
    if x.shape != y.shape:
        raise InputError(f"{other}: {y.size} numbers given, expected {x.size}, one for each of {field}")


def _by_episode(
    field: str, values: ArrayLike, other: str, others: ArrayLike, or_infinite: bool = False
) -> tuple[Vector, Vector]:
    """Two arrays of finite numbers (n, E), one for each episode of each run, at least one; the others may be +∞."""
    x, y = as_floats(field, values), as_floats(other, others)
    if x.ndim != 2 or x.size == 0:
        raise InputError(f"{field}: shape {x.shape} given, expected (n, E), E episodes of n runs, at least one")
    if y.shape != x.shape:
        raise InputError(f"{other}: shape {y.shape} given, expected {x.shape}, as that of {field}")
    _refuse(field, x, or_infinite=False)
    _refuse(other, y, or_infinite)
    return x, y


def _check_choice(field: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise InputError(f"{field}: {given!r} given, expected one of {', '.join(allowed)}")


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"level: {level!r} given, expected a number above 0 and below 1")
