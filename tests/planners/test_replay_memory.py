"""What replay remembers, and how often it draws what."""

import numpy as np
import pytest
from scipy import stats

from backcast.core.interaction import Step
from backcast.core.randomness import imagination
from backcast.planners.dyna import draw_pair, enlist, no_pairs
from backcast.planners.replay import empty_memory, empty_prioritized_memory, write_priority
from backcast.values.table import zeros

RATES = np.array([0.5, 1.0, 0.5, 0.0])


def likely(counted, probabilities):
    """Whether counts are as they should be, by a χ² test that a fixed seed makes certain."""
    return stats.chisquare(counted, np.asarray(probabilities) * counted.sum()).pvalue > 0.01


def counts(draw, n, times=100_000):
    stream = imagination(1, 0)
    return np.bincount([draw(stream) for _ in range(times)], minlength=n)


def remember(memory, transitions):
    for k in range(transitions):
        memory.learn(zeros(1, 1), Step(k, 0, 0.0, k + 1, False, False), 0.9, RATES)


def test_pairs_are_listed_once_and_drawn_uniformly():
    known = no_pairs(60)
    for pair in [7, *range(10, 40), 7, 20]:
        enlist(known, pair)
    assert known.length[0] == 31
    drawn = counts(lambda stream: draw_pair(known, stream), 60)
    assert set(np.flatnonzero(drawn)) == {7, *range(10, 40)}
    assert likely(drawn[drawn > 0], np.full(31, 1 / 31))


@pytest.mark.parametrize(("places", "transitions"), [(50, 20), (50, 50), (50, 170)])
def test_replay_draws_uniformly_from_the_last_transitions(places, transitions):
    memory = empty_memory(places)
    remember(memory, transitions)
    n = min(places, transitions)
    drawn = counts(memory.draw_place, n)
    assert len(drawn) == n
    assert likely(drawn, np.full(n, 1 / n))
    assert {memory.transition_at(k).s for k in range(n)} == set(range(transitions - n, transitions))


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(("places", "transitions"), [(21, 13), (32, 100), (33, 100)])
def test_prioritized_replay_draws_in_proportion_to_priorities(places, transitions, exponent):
    memory = empty_prioritized_memory(places, exponent)
    remember(memory, transitions)
    n = min(places, transitions)
    errors = np.linspace(-2, 3, n)
    for place, error in enumerate(errors):
        memory.note_error(place, error)
    powers = (np.abs(errors) + 1e-6) ** exponent
    drawn = counts(memory.draw_place, n)
    assert len(drawn) == n
    common = powers / powers.sum() > 1e-4  # χ² wants expected counts that are not small
    assert likely(drawn[common], powers[common] / powers[common].sum())
    chances = powers / powers.sum()
    weights = (n * chances) ** -0.5
    np.testing.assert_allclose([memory.importance_of(k) for k in range(n)], weights / weights.max())


def test_trees_of_priorities():
    """Three of four places, exponent 1: errors 5, 1 and none yet; then a fourth and a fifth transition with p = 5."""
    memory = empty_prioritized_memory(4, 1.0)
    remember(memory, 3)
    memory.note_error(0, -5.0)
    memory.note_error(1, 1.0)
    np.testing.assert_allclose(memory.sums[1:], [7, 6, 1, 5, 1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(memory.minima[1:], [1, 1, 1, 5, 1, 1, np.inf], atol=1e-5)
    memory.note_error(0, 2.0)
    assert memory.highest[0] == 5 + 1e-6
    remember(memory, 2)
    np.testing.assert_allclose(memory.sums[1:], [12, 6, 6, 5, 1, 1, 5], atol=1e-5)
    assert [memory.importance_of(k) for k in (0, 1)] == pytest.approx([np.sqrt(1 / 5), 1])


def test_the_largest_random_number_leads_to_no_place_where_nothing_is_stored():
    """In about one of 100 trees, the sums on the way down are rounded so that 1 − 2⁻⁵³ leads past the last leaf.

    A stream is made to give that number: its next state has complementary halves.
    """
    multiplier = 2549297995355413924 << 64 | 4865540595714422341
    before = (2**64 - 1 - 1) * pow(multiplier, -1, 2**128) % 2**128
    rng = np.random.default_rng(0)
    for places, stored in [(16, 11), (11, 11), (11, 30)] * 300:
        memory = empty_prioritized_memory(places, 1.0)
        remember(memory, stored)
        for place, power in enumerate(rng.random(11) * 10.0 ** rng.integers(-3, 2, 11)):
            write_priority(memory, place, power)
        stream = np.array([before >> 64, before % 2**64, 0, 1], dtype=np.uint64)
        assert memory.draw_place(stream) == 10
        assert (int(stream[0]), int(stream[1])) == (0, 2**64 - 1)


def test_extreme_exponents_leave_numbers():
    assert_numbers_are_left()


@pytest.mark.interpreted
def test_extreme_exponents_leave_numbers_without_a_compiler():
    """Python raises where machine code gives an infinite power."""
    assert_numbers_are_left()


def assert_numbers_are_left():
    memory = empty_prioritized_memory(4, 400.0)
    remember(memory, 4)
    for place, error in enumerate([0.0, 1e-3, 1.0, 1e9]):
        memory.note_error(place, error)
    assert np.isfinite(memory.sums).all()
    assert [memory.importance_of(k) for k in range(4)] == pytest.approx([1, 1, 1e-50, 1e-100], rel=1e-3)
    assert set(np.flatnonzero(counts(memory.draw_place, 4, 100))) == {3}
