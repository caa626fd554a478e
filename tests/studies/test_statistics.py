"""Statistics: by hand, against scipy, and as properties of random data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from backcast.studies import resampling, statistics
from backcast.studies.statistics import (
    Interval,
    band,
    bootstrap,
    iqm,
    mean_and_error,
    paired_difference,
    probability_of_improvement,
    seeds_needed,
    simultaneous,
    stratified_bootstrap,
)

NAN = np.nan
numbers = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=2, max_size=25).map(np.array)
scales = st.floats(0.01, 100)
shifts = st.floats(-1e3, 1e3)
seeds = st.integers(0, 2**32)


def ends(interval):
    return np.array([interval.estimate, interval.low, interval.high])


# Intervals


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(3.214, 2.9, 3.553, 20), "3.21 [2.90, 3.55]"),
        (Interval(321.4, 290, 355.3, 20), "321 [290, 355]"),
        (Interval(0.00123, -0.0011, 0.0036, 20), "0.0012 [-0.0011, 0.0036]"),
        (Interval(1.0, 1.0, 1.0, 3), "1 [1, 1]"),
        (Interval(-0.03, -1.1, 1.6, 12), "0.0 [-1.1, 1.6]"),
        (Interval(3.21, NAN, NAN, 1), "3.21"),
        (Interval(0.0, -1e-300, 1e-300, 2), "0.000000000000000 [0.000000000000000, 0.000000000000000]"),
    ],
)
def test_an_interval_prints_the_digits_that_matter(interval, text):
    assert str(interval) == text


@pytest.mark.parametrize(
    ("low", "high", "excludes"), [(1, 2, True), (-2, -1, True), (-1, 1, False), (0, 1, False), (NAN, NAN, False)]
)
def test_an_interval_excludes_zero(low, high, excludes):
    assert Interval(1.5, low, high, 5).excludes_zero is excludes


# Mean and standard error


def test_mean_and_error_by_hand():
    """1, 2, 3, 6: mean 3, squares 4 + 1 + 0 + 9 = 14, sd² = 14/3, error √(14/12)."""
    assert mean_and_error([1, 2, 3, 6]) == pytest.approx((3, np.sqrt(14 / 12)))


def test_mean_and_error_of_one_value_is_not_known():
    mean, error = mean_and_error([[4.0, 5.0]])
    assert mean.tolist() == [4, 5]
    assert np.isnan(error).all()


def test_mean_and_error_of_what_is_there():
    mean, error = mean_and_error([[1, 5, NAN], [3, NAN, NAN]], ragged=True)
    np.testing.assert_allclose(mean, [2, 5, NAN])
    np.testing.assert_allclose(error, [1, NAN, NAN])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_mean_and_error_is_that_of_scipy(axis):
    x = np.random.default_rng(0).normal(3, 2, size=(7, 5))
    mean, error = mean_and_error(x, axis)
    np.testing.assert_allclose(mean, x.mean(axis))
    np.testing.assert_allclose(error, stats.sem(x, axis))


@given(numbers, scales, shifts)
def test_mean_and_error_follow_shift_and_scale(x, scale, shift):
    mean, error = mean_and_error(x)
    np.testing.assert_allclose(mean_and_error(shift - scale * x), (shift - scale * mean, scale * error), atol=1e-7)


# The interquartile mean


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7], 7),
        ([1, 3], 2),
        ([100, 1, 4], (1 + 4 * 4 + 100) / 6),
        ([9, 1, -50, 4], 2.5),
        ([0, 1, 2, 3, 100], (0.75 * 1 + 2 + 0.75 * 3) / 2.5),
        ([0, 1, 2, 4, 5, 100], (0.5 * 1 + 2 + 4 + 0.5 * 5) / 3),
    ],
)
def test_iqm_by_hand(values, expected):
    assert iqm(values) == pytest.approx(expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_iqm_is_the_trimmed_mean_where_4_divides_n(axis):
    x = np.random.default_rng(0).standard_cauchy(size=(4, 8, 12))
    np.testing.assert_allclose(iqm(x, axis), stats.trim_mean(x, 0.25, axis=axis))


@given(numbers, st.integers(1, 4))
def test_iqm_does_not_change_when_every_value_comes_k_times(x, k):
    """Which pins the weights at the edges for every n: of 4 copies, scipy trims whole values."""
    assert iqm(np.repeat(x, k)) == pytest.approx(iqm(x), abs=1e-9)
    assert iqm(x) == pytest.approx(stats.trim_mean(np.repeat(x, 4), 0.25), abs=1e-9)


# Bootstrap


def plainly(x, statistic, error, level, resamples=5_000, seed=7):
    """The studentised bootstrap one resample at a time, with another stream, and Student's interval of SciPy."""
    rng = np.random.default_rng(seed)
    estimate, t = statistic(x), np.empty(resamples)
    for i in range(resamples):
        drawn = rng.choice(x, x.size)
        t[i] = (statistic(drawn) - estimate) / max(error(drawn), resampling.FLOOR * error(x))
    near, far = np.quantile(t, [(1 - level) / 2, (1 + level) / 2])
    kept = x.size if statistic is np.mean else x.size - 2 * (x.size // 4)
    low, high = stats.t(kept - 1, loc=estimate, scale=error(x)).interval(level)
    return min(low, estimate - far * error(x)), max(high, estimate - near * error(x))


def error_of_iqm(x):
    """Tukey and McLaughlin: the values at the edges stand for those beyond them."""
    ordered, cut = np.sort(x), x.size // 4
    return 2 * stats.sem(np.clip(x, ordered[cut], ordered[-1 - cut]))


def test_bootstrap_by_hand():
    """Two seeds 0 and 2: the mean is 1 ± 1, and a half of the resamples have no spread and t* = ± 1 / 0.1.

    Student's t of one degree of freedom ends at tan(π level / 2), which is 12.7 for 0.95, 6.3 for 0.9, 0.7 for 0.4.
    """
    for level, end in ((0.95, np.tan(0.475 * np.pi)), (0.9, 10), (0.4, np.tan(0.2 * np.pi))):
        found = bootstrap([0, 2], seed=0, level=level)
        np.testing.assert_allclose((found.low, found.high), (1 - end, 1 + end))
    assert bootstrap([2, 2, 2], seed=0) == Interval(2, 2, 2, n=3)
    tenths = bootstrap([0.1] * 3, seed=0)
    np.testing.assert_allclose([tenths.low, tenths.high], 0.1, rtol=1e-15)


@pytest.mark.parametrize(("statistic", "error"), [(np.mean, stats.sem), (iqm, error_of_iqm)])
@pytest.mark.parametrize("n", [6, *(pytest.param(n, marks=pytest.mark.slow) for n in (13, 30))])
def test_bootstrap_agrees_with_a_plain_one(statistic, error, n):
    """Another 5,000 resamples: each end has a standard error of about a fiftieth of the width."""
    x = np.random.default_rng(3).exponential(size=n)
    ours = bootstrap(x, statistic, seed=0, level=0.9)
    np.testing.assert_allclose(
        (ours.low, ours.high), plainly(x, statistic, error, 0.9), atol=0.06 * (ours.high - ours.low)
    )


def test_where_most_seeds_are_equal_the_interval_is_finite():
    """Of 20 seeds one differs: a third of the resamples are without it, and without spread."""
    interval = bootstrap([1] * 19 + [2], seed=0)
    assert 0.9 < interval.low < 1.05 < 1.2 < interval.high < 2


def test_the_middle_values_may_all_be_equal():
    """Then there is no standard error, but resamples differ: those with three of 0 or of 2 among five."""
    interval = bootstrap([0, 1, 1, 1, 2], iqm, seed=0)
    assert 0 < interval.low < 0.5 < 1.5 < interval.high < 2
    assert bootstrap([0] + [1] * 28 + [2], iqm, seed=0) == Interval(1, 1, 1, n=30)


def test_the_order_of_seeds_makes_no_difference_but_of_chance():
    x = np.random.default_rng(1).normal(size=20)
    assert ends(bootstrap(x, seed=0)) == pytest.approx(ends(bootstrap(x[::-1], seed=0)), abs=0.05)
    assert bootstrap(x, iqm, seed=0) == bootstrap(x[::-1], iqm, seed=0)


def test_huge_numbers_have_intervals():
    interval = bootstrap([1e300, 2e300, 4e300], seed=0)
    assert 1e300 <= interval.low < interval.high <= 4e300


def test_one_seed_has_no_interval():
    for interval in (
        bootstrap([3], seed=0),
        stratified_bootstrap([[3], [3, 3]], seed=0),
        probability_of_improvement([1, 1], [2], better="lower", paired=False, seed=0),
    ):
        assert np.isnan([interval.low, interval.high]).all()
        assert not interval.excludes_zero


@settings(max_examples=25)
@given(numbers, numbers, seeds)
def test_intervals_repeat_themselves_whatever_fits_into_memory(x, y, seed):
    def intervals(resamples):
        unpaired = dict(better="lower", paired=False, seed=seed, resamples=resamples)
        return repr(
            [
                bootstrap(x, seed=seed, resamples=resamples),
                stratified_bootstrap([x, y], iqm, seed=seed, resamples=resamples),
                probability_of_improvement(x, y, **unpaired),
            ]
        )

    at_once = intervals(200)
    assert intervals(200.0) == at_once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "DRAWN_AT_ONCE", 64)
        assert intervals(200) == at_once


def test_another_seed_is_another_interval():
    x = np.random.default_rng(0).normal(size=20)
    assert bootstrap(x, seed=0) != bootstrap(x, seed=1)


@settings(max_examples=25)
@given(numbers, scales, shifts, seeds)
def test_bootstrap_follows_shift_and_scale(x, scale, shift, seed):
    plain = ends(bootstrap(x, seed=seed, resamples=300))
    moved = ends(bootstrap(shift + scale * x, seed=seed, resamples=300))
    np.testing.assert_allclose(moved, shift + scale * plain, atol=1e-7)


@settings(max_examples=25)
@given(numbers, seeds)
def test_the_interval_contains_the_mean_and_grows_with_its_level(x, seed):
    narrow = bootstrap(x, seed=seed, resamples=1000, level=0.8)
    wide = bootstrap(x, seed=seed, resamples=1000, level=0.99)
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert wide.low - 1e-9 <= wide.estimate <= wide.high + 1e-9


@pytest.mark.parametrize("n", [2, 3, 20])
def test_a_band_is_the_intervals_of_its_columns(n):
    curves = np.random.default_rng(n).exponential(size=(n, 50)).cumsum(axis=1)
    mean, low, high = band(curves, seed=3, resamples=500)
    np.testing.assert_allclose(mean, curves.mean(axis=0))
    for column, *interval in zip(curves.T, mean, low, high, strict=True):
        np.testing.assert_allclose(ends(bootstrap(column, seed=3, resamples=500)), interval)


def test_a_band_of_one_seed_is_not_known_and_that_of_equal_seeds_has_no_width():
    mean, low, high = band([[1, 2]], seed=0)
    assert mean.tolist() == [1, 2]
    assert np.isnan([low, high]).all()
    assert [line.tolist() for line in band([[1, 2]] * 3, seed=0)] == [[1, 2]] * 3


def test_a_band_does_not_depend_on_what_fits_into_memory(monkeypatch):
    curves = np.random.default_rng(0).normal(size=(12, 30))
    at_once = band(curves, seed=0, resamples=400)
    monkeypatch.setattr(resampling, "NUMBERS_AT_ONCE", 1000)
    monkeypatch.setattr(resampling, "DRAWN_AT_ONCE", 100)
    np.testing.assert_allclose(band(curves, seed=0, resamples=400), at_once, rtol=1e-12)


# Several at once


def test_of_one_quantity_the_joint_interval_is_its_own():
    x = np.random.default_rng(0).exponential(size=(15, 1))
    (joint,) = simultaneous(x, seed=4)
    np.testing.assert_allclose(ends(joint), ends(bootstrap(x[:, 0], seed=4)))


def test_joint_intervals_are_wider_unless_all_say_the_same():
    x = np.random.default_rng(0).normal(size=(20, 8))
    own = [bootstrap(column, seed=0) for column in x.T]
    for joint, alone in zip(simultaneous(x, seed=0), own, strict=True):
        assert joint.low < alone.low < alone.high < joint.high
    same = simultaneous(x[:, :1] * np.array([1, 2, 100]) + 5, seed=0)
    alone = bootstrap(x[:, 0], seed=0)
    for joint, scale in zip(same, (1, 2, 100), strict=True):
        np.testing.assert_allclose(ends(joint), 5 + scale * ends(alone), rtol=1e-6)  # quantiles are interpolated


def test_joint_intervals_of_what_does_not_vary_and_of_one_seed():
    x = np.column_stack([np.full(12, 3.0), np.arange(12)])
    constant, other = simultaneous(x, seed=0)
    assert constant == Interval(3, 3, 3, n=12)
    np.testing.assert_allclose(ends(other), ends(bootstrap(np.arange(12), seed=0)))
    assert np.isnan([each.low for each in simultaneous([[1, 2]], seed=0)]).all()


# Strata


def test_strata_count_the_same_whatever_their_size():
    interval = stratified_bootstrap([[0, 0, 0, 0], [6, 6]], seed=0)
    assert interval == Interval(3, 3, 3, n=6)


def test_strata_are_not_mixed():
    """Within each world the seeds hardly differ; mixing the worlds would make the interval about 10 wide."""
    interval = stratified_bootstrap([[0, 1, 0, 1], [10, 11, 10, 11]], seed=0)
    assert interval.estimate == 5.5
    assert 4.5 <= interval.low < 5.5 < interval.high <= 6.5


def test_the_variance_of_strata_adds_up():
    """sd² of the mean over G strata is Σ_g var_g / n_g / G²; the 68.27 % interval is ± one of it."""
    rng = np.random.default_rng(5)
    groups = [rng.normal(size=200), rng.normal(7, 3, size=100), rng.normal(-1, 0.5, size=400)]
    interval = stratified_bootstrap(groups, seed=0, level=0.6827)
    expected = np.sqrt(sum(g.var(ddof=1) / g.size for g in groups)) / 3
    assert (interval.high - interval.low) / 2 == pytest.approx(expected, rel=0.04)


@settings(max_examples=20)
@given(numbers, seeds)
def test_one_stratum_is_the_plain_bootstrap(x, seed):
    assert stratified_bootstrap([x], iqm, seed=seed, resamples=100) == bootstrap(x, iqm, seed=seed, resamples=100)


# Two agents


def test_paired_difference_by_hand():
    assert paired_difference([5, 7, 100], [3, 5, 98], seed=0) == Interval(2, 2, 2, n=3)
    assert paired_difference([1, 2, 9], [0, 0, 0], iqm, seed=0).estimate == (1 / 6 + 4 / 3 + 9 / 6)
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    assert paired_difference(a, b, seed=0) == bootstrap(a - b, seed=0)


@settings(max_examples=25)
@given(seeds, st.integers(40, 80), st.floats(0.5, 5))  # of fewer, the skewness of a sample matters as well
def test_pairing_narrows_the_interval_when_seeds_matter_to_both(seed, n, common):
    """a and b share the seed's luck, which a − b is rid of, unless b is in another order."""
    rng = np.random.default_rng(seed)
    luck, noise = rng.normal(size=n), rng.normal(size=(2, n))
    luck, noise = luck / luck.std(), 0.1 * noise / noise.std()
    a, b = common * luck + noise[0], common * luck + noise[1]
    paired = paired_difference(a, b, seed=seed, resamples=1000)
    unpaired = paired_difference(a, np.roll(b, 1), seed=seed, resamples=1000)
    expected = np.std(a - b) / np.std(a - np.roll(b, 1))
    assert (paired.high - paired.low) / (unpaired.high - unpaired.low) == pytest.approx(expected, rel=0.25)
    assert paired.estimate == pytest.approx(unpaired.estimate)


def test_probability_of_improvement_by_hand():
    """Seed by seed, lower: win, tie, loss, win. Of all pairs, 1 is below 2, 2, 4 and ties with 1, and so on."""
    a, b = [1, 2, 5, 2], [2, 2, 1, 4]
    assert probability_of_improvement(a, b, better="lower", seed=0).estimate == 2.5 / 4
    assert probability_of_improvement(a, b, better="higher", seed=0).estimate == 1.5 / 4
    wins = (3 + 1 / 2) + (1 + 2 / 2) + 0 + (1 + 2 / 2)
    unpaired = probability_of_improvement(a, b, better="lower", paired=False, seed=0)
    assert (unpaired.estimate, unpaired.n) == (wins / 16, 8)
    sure = probability_of_improvement([1, 2, 3], [4, 5], better="lower", paired=False, seed=0)
    assert sure == Interval(1, 1, 1, n=5)


@given(numbers, numbers)
def test_unpaired_probability_of_improvement_is_mann_whitney(a, b):
    a, b = np.round(a, -2), np.round(b, -2)  # with ties
    u = stats.mannwhitneyu(a, b, method="asymptotic").statistic if np.ptp(np.r_[a, b]) else a.size * b.size / 2
    higher = probability_of_improvement(a, b, better="higher", paired=False, seed=0, resamples=1)
    lower = probability_of_improvement(a, b, better="lower", paired=False, seed=0, resamples=1)
    assert higher.estimate == pytest.approx(u / (a.size * b.size))
    assert higher.estimate + lower.estimate == pytest.approx(1)


def test_the_unpaired_interval_agrees_with_scipy():
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=15), rng.normal(0.5, size=25)

    def chance(x, y):
        return np.mean(x[:, None] < y[None, :])

    ours = probability_of_improvement(a, b, better="lower", paired=False, seed=0)
    theirs = stats.bootstrap((a, b), chance, n_resamples=10_000, method="percentile", vectorized=False, rng=1)
    assert ours.estimate == chance(a, b)
    np.testing.assert_allclose([ours.low, ours.high], theirs.confidence_interval, atol=0.02)


# How many seeds


def test_seeds_needed_by_hand():
    """sd √2, the interval reaches to 2: (1.95996 + 0.84162)² · 2 / 4 = 3.92; with 99 %, (2.57583 + 0.84162)² / 2."""
    assert seeds_needed([0, 2], Interval(1, 0, 2, n=2)) == 4
    assert seeds_needed([0, -2], Interval(-1, -2, 1, n=2)) == 4
    assert seeds_needed([0, 2], Interval(1, 0, 2, n=2, level=0.99)) == 6
    assert seeds_needed([5, 5, 5], Interval(5, 5, 5, n=3)) == 2
    assert seeds_needed([0, 0], Interval(0, 0, 0, n=2)) is None


def test_with_the_seeds_needed_four_of_five_studies_tell_an_effect_from_0():
    """Of an effect that is where the interval of the first study ends."""
    first = np.random.default_rng(2).normal(0.1, 1, size=20)
    found = bootstrap(first, seed=0)
    n = seeds_needed(first, found)
    studies = np.random.default_rng(3).normal(found.high, first.std(ddof=1), size=(2_000, n))
    low, _ = resampling.ends(resampling.resample(studies, 0.0, np.random.default_rng(4), 1_000), 0.95)
    assert (low > 0).mean() == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(("n", "resamples"), [(20, 10_000), (20_000, 10_000), (40_000, 5_000), (10**6, 1_000)])
def test_of_very_many_seeds_there_are_fewer_resamples(n, resamples):
    assert statistics._begin(0, 0.95, None, n)[1] == resamples
    assert statistics._begin(0, 0.95, 30, n)[1] == 30


@pytest.mark.interpreted
def test_huge_numbers_are_written_with_four_digits():
    """Rounding by the width would write 200 digits, all but a few of which are not known."""
    assert str(statistics.Interval(1.23456e200, 1.2e200, 1.3e200, n=20)) == "1.235e+200 [1.2e+200, 1.3e+200]"
    assert str(statistics.Interval(123456.0, 120000.0, 130000.0, n=20)) == "123456 [120000, 130000]"
