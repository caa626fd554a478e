"""Seeds of many runs at once are those of NumPy."""

import itertools

import numpy as np
import pytest

from backcast.core.randomness import cumulative_in_rows, imagination, many_imaginations, many_streams, streams
from backcast.core.seeding import generate_states

pytestmark = pytest.mark.interpreted

SMALL = [*range(40), 2**32 - 1, 2**32, 2**63 + 5, 2**64 - 1]
LARGE = [2**64, 2**200 + 1, (1, 2), (3, 2**40), 5, 6, 7]


@pytest.mark.parametrize("seeds", [SMALL, LARGE, [3], [2**64 - 1, 0]])
@pytest.mark.parametrize("key", [(), (1,), (2, 0), (2, 1)])
def test_states_are_those_of_seed_sequences(seeds, key):
    for words in (4, 8):
        each = [np.random.SeedSequence(seed, spawn_key=key).generate_state(words, np.uint64) for seed in seeds]
        np.testing.assert_array_equal(generate_states(seeds, key, words), each)


def test_streams_of_many_seeds_are_those_of_each():
    worlds, agents = many_streams(SMALL)
    for seed, world, agent in zip(SMALL, worlds, agents, strict=True):
        np.testing.assert_array_equal([world, agent], streams(seed))
        state = np.random.PCG64(seed).state["state"]
        assert [int(word) for word in world] == [
            state["state"] >> 64,
            state["state"] % 2**64,
            state["inc"] >> 64,
            state["inc"] % 2**64,
        ]
    for purpose in range(3):
        each = [imagination(seed, purpose) for seed in SMALL]
        np.testing.assert_array_equal(many_imaginations(SMALL, purpose), each)


def test_rows_are_summed_up_from_their_beginning():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = rng.choice([0, 1, 2, 5, 63, 64, 65, 200], size=rng.integers(1, 12))
        offset = np.concatenate([[0], np.cumsum(sizes)])
        numbers = rng.random(offset[-1])
        expected = [np.cumsum(numbers[first:last]) for first, last in itertools.pairwise(offset)]
        np.testing.assert_array_equal(cumulative_in_rows(numbers, offset), np.concatenate(expected))
