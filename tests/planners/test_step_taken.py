"""How far planners go: by the step sizes that they keep for each pair, or as far as they are told."""

import pytest

import backcast as bc
from backcast.agents.setup import Setup

pytestmark = pytest.mark.interpreted


def test_a_planner_that_counts_updates_goes_less_far_each_time_and_others_as_far_as_they_are_told():
    counting = bc.agent("dyna", schedule="average").build(Setup(3, 2, 0.5)).planner
    for _ in range(4):
        counting.step_size.of(1, 0.5, 1.0)
    assert counting.step_taken(1, 0.5) == 0.5 / 4
    assert bc.agent("sweeping").build(Setup(3, 2, 0.5)).planner.step_taken(1, 0.5) == 0.5
