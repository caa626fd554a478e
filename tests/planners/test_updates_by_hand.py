"""Which updates planners make, and how many they say they made, on literal steps."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.planners import dyna
from by_hand import line, walk

pytestmark = pytest.mark.interpreted

WHOLE = (1.0, 1.0, 1.0, 0.0)


def built(agent, n_actions=1):
    return agent.build(Setup(3, n_actions, 0.5, line(3, n_actions, 0.5)))


def test_of_a_pair_never_tried_counts_know_nothing_to_expect():
    """(0, 1) was tried and earned 4; q(0, 0) is left as it is, and is no update."""
    agent = bc.agent("forward", model="counts", learn=False)
    parts, _ = walk(agent, 3, 2, 0.5, [(0, 1, 4.0, 1, False, True)], rates=(0.0, 1.0, 0.0, 0.0))
    parts.values.put(0, 0, 7.0)
    assert parts.planner.how.reevaluate(parts.model, parts.values, 0, 0.5, 1.0) == 1
    assert parts.values.as_array()[0].tolist() == [7, 4]


def test_planning_with_features_draws_as_many_outcomes_as_it_says_for_each_action():
    parts = built(bc.agent("forward", model="likelihood", features=np.eye(3), sample=2), n_actions=3)
    assert parts.planner.how.reevaluate(parts.model, parts.values, 0, 0.5, 0.5) == 3 * 2


def test_planning_both_ways_begins_an_episode_both_ways():
    """(0, 1) led to 1 and (1, 0) to 0: the first state 0 is re-evaluated, and what led there is corrected."""
    agent = bc.agent("both", "current", False)
    steps = [(0, 1, 4.0, 1, False, True), (1, 0, 2.0, 0, False, False)]
    parts, _ = walk(agent, 3, 2, 0.5, steps, WHOLE)
    found = [
        planner.begin(model, parts.values, 0, 0.5, np.array(WHOLE))
        for planner, model in [*zip(parts.planner, parts.model, strict=True), (parts.planner, parts.model)]
    ]
    assert found == [1, 1, 2]


def test_planning_with_one_feature_for_each_state_counts_updates_as_planning_with_a_table():
    """0 → 2 → 3, then 0 → 1 → 2 → 3. At last 0 led to 2 in one of two arrivals: 0 counts 1 + 1 + ½, and 1 counts ½."""
    steps = [(0, 0, 2.0, 2, False, True), (2, 0, 8.0, 3, True, False)]
    steps += [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, False, False), (2, 0, 2.0, 3, True, False)]
    agent = bc.agent("backward", model="counts", learn=False, features=np.eye(4), schedule="average")
    parts, v = walk(agent, 4, 1, 0.5, steps, WHOLE)
    assert parts.planner.how.step_size.n.tolist() == [2.5, 0.5, 2, 0]
    np.testing.assert_allclose(v[:3, 0], [1 + 0.2 * 5, 8, 8 - 1.5])


@pytest.mark.parametrize("n_actions", [1, 2])
def test_in_a_large_world_dyna_draws_the_same(monkeypatch, n_actions):
    """Where many pairs are known, memory is asked for what comes next. That changes no number."""
    last = n_actions - 1
    steps = [(0, last, 1.0, 1, False, True), (1, 0, 2.0, 0, False, False), (0, 0, 3.0, 2, True, False)] * 3
    found = []
    for many in (dyna.MANY, 0):
        monkeypatch.setattr(dyna, "MANY", many)
        found.append(walk(bc.agent("dyna", sample=4), 3, n_actions, 0.5, steps)[1])
    np.testing.assert_array_equal(*found)
    assert found[0].any()
