"""A witness notes where the agent went, and changes nothing."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.planners.witness import way, witnessed
from by_hand import follow, line

RATES = (0.5, 1.0, 0.5, 0.0)
EPISODE = [(0, 0, 1.0, 1, False, True), (1, 0, 0.0, 2, False, False), (2, 0, 2.0, 1, False, False)]
END = (1, 0, 4.0, 3, True, False)


def built(agent):
    return agent.build(Setup(4, 1, 0.5, line(4, 1, 0.5)))


def watched(agent, places):
    parts = built(agent)
    return parts._replace(planner=witnessed(parts.planner, places))


def test_the_last_states_of_an_episode_oldest_first():
    parts = watched(bc.agent("td"), 3)
    follow(parts, EPISODE[:1], RATES)
    assert way(parts.planner) == [0, 1]
    follow(parts, EPISODE[1:2], RATES)
    assert way(parts.planner) == [0, 1, 2]
    follow(parts, [EPISODE[2], END], RATES)
    assert way(parts.planner) == [2, 1, 3]
    follow(parts, [(2, 0, 0.0, 0, False, True)], RATES)  # another episode
    assert way(parts.planner) == [2, 0]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "agent",
    [
        bc.agent("forward", frame="current", learn=False),  # plans when an episode begins
        bc.agent("backward", model="counts"),
        bc.agent("certainty-equivalence"),  # plans when it is over
    ],
    ids=lambda agent: agent.name,
)
def test_it_plans_as_the_planner_that_is_observed(agent):
    alone, observed = built(agent), watched(agent, 2)
    for parts in (alone, observed):
        follow(parts, [*EPISODE, END] * 2, RATES)
    np.testing.assert_array_equal(observed.values.as_array(), alone.values.as_array())
    assert observed.updates.tolist() == alone.updates.tolist()
    assert alone.updates[1] > 0
    assert list(observed.planner.stages(alone.model)) == [(observed.planner.observed, alone.model)]
