"""Rows of outcomes: where they are kept, and what an entry is worth if a model says nothing else."""

import numpy as np
import pytest

import backcast as bc
from backcast.models.rows import connect, empty_rows, heads, likely_place
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


def test_a_row_is_likely_to_begin_where_it_would_if_all_were_as_long_as_this_one():
    """Row 2 begins at 7 and has 3 places: row 4 would begin 6 places later, and row 0 as many before."""
    rows = empty_rows(np.array([3, 4, 3, 9, 1]), 9)
    assert [likely_place(rows, row, 2) for row in (4, 2, 0)] == [7 + 2 * 3, 7, 7 - 2 * 3]


def test_rewards_of_a_row_move_by_the_step_size_given_unless_they_are_averaged():
    """Rewards 4 and 8, α = ½, weight 1: half of the way each time; as a mean, ½ and then a quarter."""
    for averages, expected in (({}, 2 + 0.5 * 6), ({"averages": True}, 2 + 0.25 * 6)):
        rows = empty_rows(np.array([1]), 3, **averages)
        connect(rows, 0, 1, 4.0, 0.5, 0.5, 1.0)
        connect(rows, 0, 1, 8.0, 0.5, 0.5, 1.0)
        assert rows.reward[0] == pytest.approx(expected)
