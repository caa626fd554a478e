"""What the numbers of several seeds say: means, intervals, comparisons, and curves made comparable.

A seed is one run, and runs are independent: seeds are what is averaged and what is resampled. Two agents that ran the
same seeds met the same worlds, so that their difference is taken seed by seed (`paired_difference`), which removes
what the two have in common. Intervals are studentised bootstrap intervals whose ends are at least as far out as those
of Student's t (`backcast.studies.resampling` has the formulas, the reasons and the literature); how often they contain
the truth is in docs/studies.md. The same arguments give the same bytes.

NaN is refused everywhere; only `mean_and_error(ragged=True)` reads it, as "this run was shorter". Infinity is the error
of a run that diverged: a mean is infinite if one run diverged, and the interquartile mean if more than a quarter did.
Where infinity would be taken from infinity, as in a paired difference, it is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from backcast.core.arrays import Vector, as_floats, as_whole, refuse_non_finite
from backcast.core.errors import InputError
from backcast.studies import resampling
from backcast.studies.rounding import rounded

Statistic = Callable[..., Any]  # reduces the axis given as `axis=`; of np.mean and iqm the standard error is known
Runs = Sequence[ArrayLike] | Vector  # one array per run

_POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it.

    Attributes:
        estimate: the statistic of the data themselves.
        low: where the interval begins; NaN when a single seed leaves its spread unknown.
        high: where it ends; NaN likewise.
        n: the seeds it rests on.
        level: the share of such intervals that contain the truth, nearly.

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
        """Rounded by the width of the interval; the estimate alone where the ends are not known."""
        estimate, *ends = rounded(self.estimate, self.low, self.high)
        return f"{estimate} [{', '.join(ends)}]" if ends else estimate

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


_SHARES: dict[Statistic, float] = {np.mean: 0.0, iqm: 0.25}  # of the values, cut off at each side


def bootstrap(
    values: ArrayLike, statistic: Statistic = np.mean, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> Interval:
    """The studentised bootstrap interval of a mean or interquartile mean; of others, the percentile interval.

    Skewness, which few seeds hardly tell from chance, moves an end outward from that of Student's t, but never inward.
    Percentile intervals, as of `np.median`, contain the truth less often than they say if seeds are few. Where runs
    diverged there is no standard error, and the interval holds the middle of the resampled statistics; its
    ends may be infinite.

    Args:
        values: (n,), one number per seed.
        statistic: `np.mean`, `iqm`, or another function that reduces the axis given as `axis=`.
        seed: of the resampling.
        level: how often such an interval is to contain the truth, in (0, 1).
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


def band(
    curves: ArrayLike, *, seed: int, level: float = 0.95, resamples: int | None = None
) -> tuple[Vector, Vector, Vector]:
    """The mean of curves (n, E) over seeds, and where its interval begins and ends, (E,) each.

    Each interval is that of `bootstrap`, on its own: the whole curve lies in the band less often than `level`.
    """
    x = _table("curves", curves)
    _, resamples = _begin(seed, level, resamples, *x.shape)
    low, high = np.full((2, x.shape[1]), np.nan)
    at_once = max(1, resampling.NUMBERS_AT_ONCE // resamples)
    for first in range(0, x.shape[1] if len(x) > 1 else 0, at_once):
        part = slice(first, first + at_once)
        found = resampling.resample(x.T[part], 0.0, np.random.default_rng(seed), resamples)
        low[part], high[part] = resampling.ends(found, level)
    return x.mean(axis=0), low, high


def simultaneous(values: ArrayLike, *, seed: int, level: float = 0.95, resamples: int | None = None) -> list[Interval]:
    """Intervals of the means of m quantities (n, m) that all hold together with probability `level`.

    A row is what one seed says of all of them. The resamples of all are the same, so that what depends on each other is
    not paid for twice: where `bootstrap` takes the ends of the middle of t*, these are the upper end of the largest and
    the lower end of the smallest t* over all quantities (max-t: Westfall and Young 1993, Romano and Wolf 2005). So no
    interval lies above its truth, and none below, with probability (1 + level)/2 each. The t* of a quantity are moved
    outward, in their order, to where every quantile is at least that of Student's t: how quantities depend on each
    other is that of the resamples. Of one quantity it is the interval of `bootstrap`.
    """
    x = _table("values", values)
    rng, resamples = _begin(seed, level, resamples, *x.shape)
    found = resampling.resample(x.T, 0.0, rng, resamples)
    known, (below, above) = found.has_error, resampling.tails(level)
    ends = np.stack([found.estimate, found.estimate])  # of what is always the same
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
    """The chance that a run of a is better than one of b, P(a better) + ½ P(a = b); no difference is ½, not 0.

    `better` is "lower" for steps and errors, "higher" for rewards. Where lower is better a run that diverged is worse
    than any that did not.

    Paired, both are (n,) from the same seeds in the same order. It is the share of seeds on which a is better, and its
    interval is the score interval of a proportion (Wilson 1927), which is right near 0 and 1. Nothing is resampled.

    Otherwise it is the share of all pairs of a run of a and a run of b (the Mann–Whitney U over n_a n_b). The runs of
    each are resampled on their own, the interval is the middle of what comes out, and n counts both. When a is better
    in every pair, so it is in every resample: [1, 1] says that no loss was seen, not that there can be none.
    """
    _check_choice("better", better, ("lower", "higher"))
    worst = better == "lower"
    x, y = _paired("a", a, "b", b, worst) if paired else (_numbers("a", a, worst), _numbers("b", b, worst))
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
    """How many seeds in all it takes at least to tell the mean from 0; any number, if the mean is small.

    If the mean were μ, n = ((z + z′) sd / μ)² seeds, rounded up, would tell it from 0 in four of five studies, with
    z and z′ the (1 + level)/2 and 0.8 quantiles of the normal distribution; at least 2, as one seed has no spread. But
    μ is not known, and taken to be the end of its interval that is farthest from 0. None if all differences are 0.

    Args:
        differences: (n,), two or more.
        found: their mean with its interval.
    """
    x = _numbers("differences", differences)
    if x.size < 2:
        raise InputError("differences: 1 value given, expected at least 2; one has no spread")
    reach = (ndtri((1 + found.level) / 2) + ndtri(_POWER)) * x.std(ddof=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        n = np.square(reach / np.max(np.abs([found.low, found.high])))
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
    """The interval of the mean over strata of a statistic; unknown where a stratum is a single seed."""
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
    """The generator, and how many resamples to make of n seeds."""
    _check_level(level)
    if resamples is None:
        resamples = resampling.how_many(n, quantities)
    return np.random.default_rng(as_whole("seed", seed, 0)), as_whole("resamples", resamples, 1)


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


def _table(field: str, values: ArrayLike) -> Vector:
    """Finite numbers (n, m), at least one."""
    x = as_floats(field, values)
    if x.ndim != 2 or x.size == 0:
        raise InputError(f"{field}: shape {x.shape} given, expected (n, m), a row for each seed, at least one number")
    refuse_non_finite(field, x)
    return x


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
