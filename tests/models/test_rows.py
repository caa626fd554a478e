"""Rows of outcomes: where they are kept, and what an entry is worth if a model says nothing else."""

import numpy as np
import pytest

import backcast as bc
from backcast.models.rows import heads
from by_hand import walk

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(("places", "bits"), [(2**31 - 1, 32), (2**31, 64)])
def test_numbers_of_places_have_32_bits_if_that_is_enough(places, bits):
    offset, used, share = heads(np.array([0, 3, places]), 0, 0.5)
    assert offset.dtype == used.dtype == np.dtype(f"int{bits}")
    assert (offset.tolist(), used.tolist(), share.tolist()) == ([0, 3, places], [0, 0], [0.5, 0.5])


def test_an_entry_is_worth_its_reward_and_what_is_carried_of_what_follows():
    """0 → 1 earns 3 and 0 → 2 earns 4 and ends, γ = 0.5; what follows is worth 10."""
    steps = [(0, 0, 3.0, 1, False, True), (0, 0, 4.0, 2, True, True)]
    model = walk(bc.agent("small-backups"), 3, 1, 0.5, steps)[0].model
    assert [model.outlook(place, 10.0) for place in (0, 1)] == [3 + 0.5 * 10, 4]
