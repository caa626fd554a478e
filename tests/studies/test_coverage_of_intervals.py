"""How often intervals hold the truth, in simulations."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from backcast.studies import resampling
from backcast.studies.statistics import (
    bootstrap,
    simultaneous,
)

SIMULATION = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "measurements" / "intervals.py"))
CASES = list(SIMULATION["cases"]())


def test_of_another_statistic_it_is_the_middle_of_the_resampled_ones():
    """The median of 0 … 8: its quantiles are those of binomial chances, P(median* ≤ k) = P(B(9, (k + 1)/9) ≥ 5)."""
    below = stats.binom.sf(4, 9, np.arange(1, 10) / 9)
    found = bootstrap(np.arange(9), np.median, seed=0, level=0.9)
    assert found.estimate == 4
    assert (found.low, found.high) == (np.searchsorted(below, 0.05), np.searchsorted(below, 0.95))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.statistic}-{case.data}")
def test_intervals_contain_the_truth_as_often_as_they_should(case):
    """2,000 samples of 20 seeds; the standard error of a share of 0.95 is 0.005, of 0.92 0.006.

    Of the bootstrap-t alone, 0.925 contain the difference of two exponential numbers, 0.905 that of lognormal ones.
    """
    found = SIMULATION["coverage"](case, 20, 2_000, seed=1)
    if (case.statistic, case.data) == ("mean", "lognormal"):
        assert 0.9 < found < 0.95
    else:
        assert 0.94 < found < 0.975


def test_percentiles_would_not():
    """Percentile intervals of the mean of 20 lognormal numbers contain it in 0.86 of all cases."""
    case = next(case for case in CASES if (case.statistic, case.data) == ("mean", "lognormal"))
    rng = np.random.default_rng(0)
    found = resampling.resample(case.draw(rng, (1_000, 20)), 0.0, rng, 1_000)
    low, high = np.quantile(found.estimates, [0.025, 0.975], axis=1)
    assert ((low <= case.truth) & (case.truth <= high)).mean() < 0.89


@pytest.mark.parametrize("noise", ["normal", "exponential", "lognormal"])
@pytest.mark.parametrize("differences", [False, True])
def test_joint_intervals_hold_together(noise, differences):
    """Ten quantities of 20 seeds, one half depending on each other; 800 times."""
    rng, missed, draw = np.random.default_rng(5), 0, SIMULATION["NOISE"][noise]
    for _ in range(800):
        x = draw(rng, (20, 10))
        if differences:
            x -= draw(rng, (20, 10))
        x[:, 5:] += 2 * x[:, :1]
        missed += any(each.excludes_zero for each in simultaneous(x, seed=0, resamples=1_000))
    assert missed / 800 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 800)


def test_the_standard_error_over_strata_is_that_of_welch():
    x, y = np.random.default_rng(0).normal(size=6), np.random.default_rng(1).normal(scale=3, size=20)
    welch = stats.ttest_ind(x, y, equal_var=False)
    parts = [resampling.resample(each[None], 0.0, np.random.default_rng(0), 10) for each in (x, y)]
    found = resampling.mean_over_strata(parts)
    assert found.freedom == pytest.approx(welch.df)
    assert 2 * np.sqrt(found.variance[0]) == pytest.approx((x.mean() - y.mean()) / welch.statistic)


def test_joint_intervals_of_one_quantity_are_those_of_bootstrap_and_students_at_least():
    """Where data are symmetric to the point, the bootstrap-t may end inside Student's interval, and does not."""
    x = np.repeat([-1.0, 0.0, 0.0, 0.0, 1.0], 4)
    (joint,), own = simultaneous(x[:, None], seed=0, level=0.9), bootstrap(x, seed=0, level=0.9)
    student = stats.t(19, scale=stats.sem(x)).interval(0.9)
    np.testing.assert_allclose((joint.low, joint.high), (own.low, own.high), rtol=1e-6)
    assert own.low <= student[0] * (1 - 1e-12)
    assert own.high >= student[1] * (1 - 1e-12)
