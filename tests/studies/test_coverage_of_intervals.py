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
    """2,000 samples of 20 seeds; the standard error of a share of 0.95 is 0.005, of 0.92 0.006."""
    found = SIMULATION["coverage"](case, 20, 2_000, seed=1)
    if case.data == "lognormal":
        assert 0.9 < found < 0.97
    else:
        assert 0.93 < found < 0.97


def test_percentiles_would_not():
    """Percentile intervals of the mean of 20 lognormal numbers contain it in 0.86 of all cases."""
    case = next(case for case in CASES if (case.statistic, case.data) == ("mean", "lognormal"))
    rng = np.random.default_rng(0)
    found = resampling.resample(case.draw(rng, (1_000, 20)), 0.0, rng, 1_000)
    low, high = np.quantile(found.estimates, [0.025, 0.975], axis=1)
    assert ((low <= case.truth) & (case.truth <= high)).mean() < 0.89


@pytest.mark.parametrize("noise", ["normal", "exponential"])
def test_joint_intervals_hold_together(noise):
    """Ten quantities of 20 seeds, one half depending on each other; 800 times."""
    rng, missed = np.random.default_rng(5), 0
    for _ in range(800):
        x = SIMULATION["NOISE"][noise](rng, (20, 10))
        x[:, 5:] += 2 * x[:, :1]
        missed += any(each.excludes_zero for each in simultaneous(x, seed=0, resamples=1_000))
    assert missed / 800 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 800)
