"""Forward planning with the most probable successors, worked out by hand."""

import pytest

import backcast as bc
from by_hand import walk

REWARD = {1: 3.0, 2: 6.0, 3: 30.0}


def planned(seen, top):
    """The value of 0, planned with step size 1, after steps 0 → s' with the reward of s', each in its own episode."""
    agent = bc.agent("forward", model="counts", learn=False, top=top)
    steps = [(0, 0, REWARD[s], s, False, True) for s in seen]
    return walk(agent, 5, 1, 0.5, steps, rates=(0.5, 1.0, 1.0, 0.0))[1][0, 0]


@pytest.mark.parametrize(
    ("seen", "top", "value"),
    [
        ([1, 2], 1, 3.0),
        ([1, 2, 3, 1, 2], 1, 3.0),  # 1 and 2 are equally probable: the first one seen
        ([3, 2, 1, 2, 1], 1, 6.0),
        ([1, 2, 3, 1, 2], 2, (3 + 6) / 2),
        ([3, 2, 1, 2, 1], 2, (3 + 6) / 2),
        ([3, 1, 2, 3], 2, (2 * 30 + 3) / 3),
        ([3, 2, 1, 3], 2, (2 * 30 + 6) / 3),
        ([1, 2, 3, 1, 2], 3, (2 * 3 + 2 * 6 + 30) / 5),
        ([1, 2, 3, 1, 2], 9, (2 * 3 + 2 * 6 + 30) / 5),  # there are no more than three
    ],
)
def test_the_mean_over_the_most_probable_as_if_there_were_no_others(seen, top, value):
    assert planned(seen, top) == pytest.approx(value)
