"""Sampled planning where little is known, and at the edge of what a random number can be."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.core.interaction import Step
from backcast.core.randomness import imagination
from backcast.models.rows import draw_unobserved, empty_rows
from backcast.planners.forward import SampledSuccessors, draw_outlook, draw_place
from backcast.planners.replay import empty_memory, empty_prioritized_memory
from by_hand import line, walk

pytestmark = pytest.mark.interpreted


def built(agent, n_actions=1):
    return agent.build(Setup(4, n_actions, 0.5, line(4, n_actions, 0.5)))


def largest():
    """A stream whose next number is 1 − 2⁻⁵³: its next state has complementary halves."""
    multiplier = 2549297995355413924 << 64 | 4865540595714422341
    before = (2**64 - 1 - 1) * pow(multiplier, -1, 2**128) % 2**128
    return np.array([before >> 64, before % 2**64, 0, 1], dtype=np.uint64)


def test_nobody_plans_on_from_a_predecessor_that_was_never_observed():
    """The row of 2 is uniform: each of five samples corrects one pair and ends there, whatever the depth."""
    parts = built(bc.agent("backward", sample=5, depth=3))
    assert parts.planner.how.correct(parts.model, parts.values, 2, 0.5, 0.5, 0.5) == 5


def test_a_sample_goes_on_from_any_state_that_was_observed():
    """2 → 0 → 1 with rewards 4 and 2: from 1 it corrects 0, and from 0 then 2, with γ = 0.5 and step size 1."""
    agent = bc.agent("backward", model="counts", sample=1, depth=2, learn=False)
    steps = [(2, 0, 4.0, 0, False, True), (0, 0, 2.0, 1, False, False)]
    parts, _ = walk(agent, 4, 1, 0.5, steps, rates=(0.0, 1.0, 0.0, 0.0))
    assert parts.planner.how.correct(parts.model, parts.values, 1, 0.5, 0.5, 1.0) == 2
    np.testing.assert_allclose(parts.values.as_array()[:, 0], [2, 0, 4 + 0.5 * 2, 0])


def test_what_was_observed_is_never_drawn_from_the_unobserved():
    """2, 0 and 3 led to 1: only 1 itself is left."""
    parts, _ = walk(bc.agent("backward"), 4, 1, 0.5, [(s, 0, 0.0, 1, False, True) for s in (2, 0, 3)])
    rows, stream = parts.model.rows, imagination(0, 1)
    first = rows.offset[1]
    assert {draw_unobserved(rows, first, first + rows.used[1], stream) for _ in range(20)} == {1}
    assert {draw_unobserved(rows, first, first + 1, stream) for _ in range(100)} == {0, 1, 3}


@pytest.mark.parametrize(("model", "updates"), [("softmax", 3), ("counts", 0)])
def test_a_softmax_imagines_what_it_never_saw_and_counts_do_not(model, updates):
    parts = built(bc.agent("forward", model=model, sample=3))
    assert parts.planner.how.reevaluate(parts.model, parts.values, 1, 0.5, 0.5) == updates
    parts, _ = walk(bc.agent("forward", model=model, sample=3), 4, 1, 0.5, [(1, 0, 1.0, 2, False, True)])
    assert parts.updates.tolist() == [1, 3]


def test_looking_forward_every_action_of_the_state_is_drawn():
    """From 1, action 0 earned 3 and action 1 earned 5; 40 samples with step size 1 find both, and correct only 1."""
    steps = [(1, 0, 3.0, 2, False, True), (1, 1, 5.0, 2, False, True), (2, 0, 7.0, 3, False, True)]
    agent = bc.agent("forward", model="counts", sample=40, learn=False)
    parts, _ = walk(agent, 4, 2, 0.5, steps, rates=(0.0, 1.0, 0.0, 0.0))
    assert parts.planner.how.reevaluate(parts.model, parts.values, 1, 0.5, 1.0) == 40
    np.testing.assert_array_equal(parts.values.as_array(), [[0, 0], [3, 5], [0, 0], [0, 0]])


@pytest.mark.parametrize("n", range(1, 20))
def test_the_largest_random_number_draws_the_last_successor(n):
    """n successors, each seen once, with rewards 0 … n − 1: 1 − 2⁻⁵³ less n times 1/n may leave something."""
    agent = bc.agent("forward", model="counts", learn=False)
    steps = [(0, 0, float(k), k + 1, False, True) for k in range(n)]
    parts, _ = walk(agent, n + 2, 1, 0.5, steps, rates=(0.0, 1.0, 0.0, 0.0))
    assert SampledSuccessors(1, largest()).reevaluate(parts.model, parts.values, 0, 0.5, 1.0) == 1
    assert parts.values.get(0, 0) == n - 1


@pytest.mark.parametrize("memory", [empty_memory(4), empty_prioritized_memory(4, 1.0)], ids=["uniform", "prioritized"])
def test_what_a_memory_knows_to_follow(memory):
    """Of five transitions the first was overwritten; (0, 1) led twice to 2, rewards 1 and 4, and once to 3, the end."""
    seen = [(0, 1, 9.0, 1, False), (0, 1, 1.0, 2, False), (0, 1, 4.0, 2, False), (0, 1, 6.0, 3, True)]
    for s, a, r, s2, ends in [*seen, (1, 0, 7.0, 2, False)]:
        memory.learn(None, Step(s, a, r, s2, ends, False), 0.5, np.zeros(4))
    known = memory.successors(0, 1)
    assert known.keys.tolist() == [2, 3]
    np.testing.assert_allclose(known.probability, [2 / 3, 1 / 3])
    assert known.reward.tolist() == [2.5, 6.0]
    assert known.ends.tolist() == [False, True]
    other = memory.successors(1, 0)
    assert (other.keys.tolist(), other.probability.tolist(), other.reward.tolist()) == ([2], [1.0], [7.0])
    assert memory.successors(0, 0).keys.size == 0


OPTION = bc.Option(1.0, termination=[0.5, 0.25, 1.0, 0.5])


@pytest.mark.parametrize("settings", [{}, {"conditioned": True}, {"option": OPTION}, {"horizon": 2}], ids=str)
def test_one_feature_for_each_state_is_planned_with_as_a_table(settings):
    """Rows that count for less, by π←(ã | s) or by β(s), do so with features too."""
    steps = [(0, 1, 1.0, 1, False, True), (1, 0, 2.0, 2, False, False), (2, 1, 4.0, 1, False, False)]
    steps += [(1, 1, 3.0, 2, False, False), (2, 0, 1.0, 1, False, False), (1, 0, 5.0, 3, True, False)]
    found = []
    for features in ({}, {"features": np.eye(4)}):
        agent = bc.agent("backward", model="counts", **settings, **features)
        _, q = walk(agent, 4, 2, 0.5, steps * 2)
        found.append(q[:3])
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert np.abs(found[0]).max() > 0.1


@pytest.mark.parametrize("settings", [{"top": 1}, {"top": 2}, {"top": 3}, {"top": 2, "depth": 2}], ids=str)
def test_rows_conditioned_on_actions_are_ranked_as_joint_ones(settings):
    """(2, 1) led to 1 three times, (0, 0) twice and (0, 1) once; (1, 1) led to 2 twice, to 0 once."""
    led = [(2, 1, 1, 1.0), (0, 0, 1, 2.0), (2, 1, 1, 3.0), (0, 1, 1, 4.0), (2, 1, 1, 5.0), (0, 0, 1, 6.0)]
    led += [(1, 1, 2, 2.0), (1, 1, 2, 1.0), (1, 1, 0, 3.0)]
    steps = [(s, a, r, s2, False, True) for s, a, s2, r in led]
    found = []
    for conditioned in (True, False):
        agent = bc.agent("backward", model="counts", conditioned=conditioned, learn=False, **settings)
        parts, _ = walk(agent, 4, 2, 0.5, steps, rates=(0.0, 1.0, 0.0, 0.0))
        updates = parts.planner.how.correct(parts.model, parts.values, 1, 0.5, 0.5, 1.0)
        found.append((parts.values.as_array(), updates))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1] == found[1][1] > 0
    assert found[0][0][2, 1] == pytest.approx(3 / 6 * (1 + 3 + 5) / 3)  # the most probable one, by its share


def test_the_last_outcome_that_was_observed_is_drawn_up_to_its_share():
    """Two of four outcomes were seen, with equal shares: they have w / Z each, and the unseen the rest."""
    rows = empty_rows(np.array([2, 2]), 4)
    for key in (3, 1):
        rows.observe(1, key, 0.5, 1.0)
    first, second = rows.weight[2:4] * rows.share[1]
    assert draw_place(rows, 1, first - 1e-9) == 2
    assert draw_place(rows, 1, first + 1e-9) == 3
    assert draw_place(rows, 1, first + second - 1e-9) == 3
    assert draw_place(rows, 1, first + second + 1e-9) == -1


def test_what_was_never_seen_is_drawn_from_any_row():
    """From (1, 0) state 2 followed; what a softmax has not seen there is worth 7 by itself, the seen one nothing."""
    parts, _ = walk(bc.agent("forward", sample=1), 4, 1, 0.5, [(1, 0, 0.0, 2, False, True)], rates=(0, 1, 0, 0))
    parts.model.ahead[:] = [7.0, 7.0, 0.0, 7.0]
    stream = imagination(0, 0)
    rows, place = parts.model.rows, parts.model.rows.offset[1]
    assert [draw_place(rows, 1, u) for u in (0.0, 1 - 1e-9)] == [place, -1]
    assert {draw_unobserved(rows, place, place + 1, stream) for _ in range(200)} == {0, 1, 3}
    drawn = {draw_outlook(parts.model, parts.values, 1, 0.5, stream) for _ in range(200)}
    assert drawn == {0.0, 7.0}
