"""Statistics of runs of which some diverged: infinite where they must be, NaN nowhere."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis.extra import numpy as hnp

from backcast.core.errors import InputError
from backcast.studies import resampling
from backcast.studies.statistics import (
    Interval,
    align_by_steps,
    bootstrap,
    iqm,
    mean_and_error,
    on_update_grid,
    paired_difference,
    probability_of_improvement,
    seeds_needed,
)

INF = np.inf


def test_a_mean_is_infinite_if_one_run_diverged():
    mean, error = mean_and_error([[1, INF, INF], [3, 5, INF]])
    assert mean.tolist() == [2, INF, INF]
    assert error.tolist() == [1, INF, INF]


def test_the_interquartile_mean_is_infinite_if_more_than_a_quarter_diverged():
    assert iqm([4, INF, 1, 2]) == 3
    assert iqm([4, INF, 1, INF]) == INF
    assert iqm([[1, 2, INF, 4], [INF, INF, 1, 1]], axis=1).tolist() == [3, INF]
    assert iqm([[1, INF], [2, 1], [INF, INF], [4, 1]]).tolist() == [3, INF]


def test_intervals_may_end_at_infinity():
    """Of the resamples of (0, ∞), a quarter is without infinity."""
    assert bootstrap([0, INF], seed=0) == Interval(INF, 0, INF, 2)
    assert bootstrap([0, INF], seed=0, level=0.4) == Interval(INF, INF, INF, 2, 0.4)
    assert bootstrap([INF] * 3, seed=0) == Interval(INF, INF, INF, 3)
    assert str(bootstrap([0, INF], seed=0)) == "inf [0, inf]"
    assert not bootstrap([0, INF], seed=0).excludes_zero


def test_the_ends_among_infinite_values_are_some_of_them_outwards():
    """Among four values, a quarter of the way is at 0.75 and three quarters at 2.25."""
    assert resampling.middle(np.array([2, INF, 0, 1]), level=0.5) == (0, INF)
    assert resampling.middle(np.array([2, 3, 0, 1]), level=0.5) == (0.75, 2.25)


@given(hnp.arrays(np.float64, st.integers(2, 12), elements=st.sampled_from([0.0, 1.5, 3.0, INF])), st.sampled_from([
    np.mean, iqm,
]), st.sampled_from([0.5, 0.9, 0.95]))  # fmt: skip
@example(np.array([1.0, INF, INF, 3.0]), iqm, 0.5)
@example(np.array([1.5, INF, INF, INF]), iqm, 0.95)
@example(np.array([0.0, 1.5, 3.0, 3.0, INF]), iqm, 0.95)  # finite, but infinite in some resamples
@example(np.array([0, INF, INF, 0, INF, 0, INF, 0, INF]), iqm, 0.95)  # its lower end lies between finite and infinite
def test_no_interval_is_nan_and_each_holds_what_the_infinite_was_before(values, statistic, level):
    interval = bootstrap(values, statistic, seed=1, level=level, resamples=200)
    assert interval.low <= interval.high
    assert not np.isnan([interval.estimate, interval.low, interval.high]).any()
    huge = bootstrap(np.where(np.isinf(values), 1e200, values), statistic, seed=1, level=level, resamples=200)
    assert min(interval.low, 1e150) <= huge.low
    assert interval.high >= min(huge.high, 1e150)


def test_who_diverged_is_worse():
    chance = probability_of_improvement([1, INF, INF, 2], [2, 1, INF, INF], better="lower", seed=0)
    assert chance.estimate == (1 + 0 + 0.5 + 1) / 4
    unpaired = probability_of_improvement([1, INF], [INF, 2], better="lower", paired=False, seed=0)
    assert unpaired.estimate == (1 + 1 + 0.5 + 0) / 4


def test_an_infinite_error_is_read_at_numbers_of_updates():
    read = on_update_grid([[2, 4, 4]], [[1, INF, INF]], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(read, [[np.nan, 1, 1, INF, np.nan]])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: paired_difference(x, [1, 2], seed=0),
        lambda x: probability_of_improvement(x, [1, 2], better="higher", seed=0),
        lambda x: align_by_steps([[1, 2]], [x], [1], between="linear"),
        lambda x: seeds_needed(x, Interval(1, 1, 1, 2)),
    ],
)
def test_what_has_no_meaning_with_infinity_is_refused(call):
    with pytest.raises(InputError, match=r"entry 1 is inf; every entry must be finite$"):
        call([1, INF])


@pytest.mark.parametrize("call", [mean_and_error, iqm, lambda x: bootstrap(x, seed=0)])
def test_minus_infinity_is_no_error_of_a_run(call):
    with pytest.raises(InputError, match="values: entry 1 is -inf"):
        call([1, -INF])
