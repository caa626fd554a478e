"""Choosing the best of many settings, and what is as good as it."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backcast.studies.best import best
from backcast.studies.choice import MANY, alike, on_fresh_seeds, over_worlds, winner
from backcast.studies.statistics import paired_difference
from made_up import Scores

INF = np.inf


def test_choosing_by_hand():
    costs = np.array([[10, 20, 10, 20], [12, 12, 12, 12], [11, 14, 11, 14]], dtype=float)
    assert winner(costs) == 1
    assert on_fresh_seeds(costs).tolist() == [12, 20, 12, 20]
    assert winner(np.array([[1.0, INF], [3.0, 3.0]])) == 1
    assert winner(np.array([[INF, INF], [3.0, INF]])) == 1
    assert on_fresh_seeds(np.array([[1.0, 5.0, 3.0], [2.0, 2.0, 2.0]])).tolist() == [2, 5, 2]  # a tie: the first


def test_relative_costs_by_hand():
    first, second = np.array([[2.0, 4.0], [6.0, 6.0]]), np.array([[10.0, 30.0], [5.0, 15.0]])
    np.testing.assert_allclose(over_worlds([first, second], True), [[5 / 6, 13 / 6], [1.25, 1.75]])
    np.testing.assert_allclose(over_worlds([first], False), first)
    lost = np.full((2, 2), INF)
    assert np.isinf(over_worlds([first, lost], True)).all()
    zero = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert over_worlds([zero], True).tolist() == [[1, 1], [INF, INF]]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(2, 12), st.floats(0.01, 3.0))
def test_all_at_once_tells_the_same_apart_as_one_by_one(seed, n, candidates, spread):
    """Up to ties of rounding: where 0 is all but the end of an interval, either may be said."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0, 2, size=(candidates, 1)) + spread * rng.standard_exponential(size=(candidates, n))
    chosen = winner(costs)
    lows = [paired_difference(row, costs[chosen], seed=0).low for i, row in enumerate(costs) if i != chosen]
    surely = sum(low < -0.02 * spread for low in lows)
    perhaps = sum(low < 0.02 * spread for low in lows)
    assert surely <= alike(costs, chosen).sum() - 1 <= perhaps
    assert alike(costs, chosen)[chosen]


def test_fresh_seeds_are_free_of_the_winners_curse():
    """Fifty settings that are all the same: the best looks better than it is, but not on fresh seeds."""
    rng = np.random.default_rng(3)
    studies = rng.normal(10, 1, size=(200, 50, 20))
    looks = np.mean([costs.mean(axis=1).min() for costs in studies])
    fresh = np.mean([on_fresh_seeds(costs).mean() for costs in studies])
    assert looks < 9.6
    assert fresh == pytest.approx(10, abs=0.05)


def test_the_best_of_twenty_thousand_settings():
    n = 20_000
    stub = Scores({}, grid={"alpha": [(i + 1) / n for i in range(n)]})
    rows = np.random.default_rng(0).normal(10, 1, size=(n, 20)) + np.abs(np.linspace(-5, 5, n))[:, None]
    stub.scores = {cell.label: row for cell, row in zip(stub.study.runs(), rows, strict=True)}
    (found,) = best(stub)
    assert found.tried == n
    assert 0 < found.alike < n / 2
    assert abs(dict(found.settings)["alpha"] - 0.5) < 0.1


@pytest.mark.parametrize("seeds", [MANY, MANY + 1])
def test_of_many_seeds_the_mean_is_as_good_as_normal(seeds):
    """Differences of mean 0.1 and 0.2 and deviation 2.24: 0.1 is 1.4 standard errors of the mean, 0.2 is 2.8."""
    noise = np.random.default_rng(0).normal(size=(3, seeds))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, keepdims=True)
    best = np.zeros(seeds)
    costs = np.stack([best, 0.1 + sqrt(5) * noise[1], 0.2 + sqrt(5) * noise[2]])
    assert alike(costs, 0).tolist() == [True, True, False]
