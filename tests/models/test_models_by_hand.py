"""Counted, time-extended, conditioned and λ-models on literal steps, worked out by hand."""

import math

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.core.interaction import Step
from backcast.drivers.loop import observe
from by_hand import walk
from random_worlds import random_mdp, random_steps

pytestmark = pytest.mark.interpreted


def test_counts_by_hand():
    """0 → 1 (reward 2), 0 → 1 (reward 4), then 2 … here 3 states and state 2 ends.

    Row of 1: two ways from 0, so P = 1, mean reward 3, discount 0.5. Planning from 1 after the second: TD first,
    v(0) = 0.5·2 = 1, planned 1 + 0.5·(2 − 1) = 1.5; then TD 1.5 + 0.5·(4 − 1.5) = 2.75, planned 2.75 + 0.5·(3 − 2.75).
    """
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 4.0, 1, False, True)]
    parts, v = walk(bc.agent("backward", model="counts"), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [2.875, 0, 0])
    model = parts.model.readable(parts.values)
    np.testing.assert_array_equal(model.states[1], [1, 0, 0])
    assert np.isnan(model.states[0]).all()  # never arrived at: nothing is known
    assert (model.reward[0, 1], model.discounted[1, 0]) == (3.0, 0.5)
    assert parts.updates.tolist() == [2, 2]


def test_two_steps_by_hand():
    """0 → 1 → 2 (ends), rewards 1 and 4: the way from 0 to 2 earns 1 + 0.5·4 = 3 and carries no discount.

    TD: v(0) = 0.5, v(1) = 2; planning from 2 with α = 0.5 moves v(0) by 0.5·(3 − 0.5).
    Then a new episode begins in 0: the way 1 → 2 → 0 leads to it, two steps, one of them a restart; earned 4.
    """
    agent = bc.agent("backward", model="counts", horizon=2)
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    parts, v = walk(agent, 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5 + 0.5 * 2.5, 2, 0])
    model = parts.model.readable(parts.values)
    assert (model.states[2, 0], model.reward[0, 2], model.discounted[2, 0]) == (1.0, 3.0, 0.0)
    parts, _ = walk(agent, 3, 1, 0.5, [*steps, (0, 0, 1.0, 1, False, True)])
    model = parts.model.readable(parts.values)
    assert (model.states[0, 1], model.reward[1, 0], model.discounted[0, 1]) == (1.0, 4.0, 0.0)
    assert model.states[1, 2] == 1.0  # two steps before 1 was the end: part of the past, but nothing to correct
    assert parts.model.rows.used.tolist() == [1, 0, 1]


def test_states_near_the_end_are_corrected_from_the_next_beginning():
    """0 → 1 → 2 (ends, reward 4) twice, two steps back: 1 is two steps before the next 0, and planned from there.

    Pure planning, α = 1: v(1) = 4 when the third episode begins; v(0) = 0.5·4 from the end, each time.
    """
    episode = [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    for frame, episodes in (("current", 3), ("previous", 2)):
        agent = bc.agent("backward", model="counts", horizon=2, learn=False, frame=frame)
        _, v = walk(agent, 3, 1, 0.5, episode * episodes, rates=(1.0, 1.0, 1.0, 0.0))
        np.testing.assert_allclose(v[:, 0], [2, 4, 0])


def test_an_episode_that_was_cut_off_leads_to_nothing():
    steps = [(0, 0, 1.0, 1, False, True), (0, 0, 1.0, 1, False, True)]
    parts, _ = walk(bc.agent("backward", model="counts", horizon=2), 3, 1, 0.5, steps)
    assert parts.model.rows.used.sum() == 0


def test_lambda_by_td_by_hand():
    """λ = 0.5, steps 0 → 1 → 2 with α = 1 of the model.

    Row of 1: nothing to bootstrap from before 0, so P(0|1) = 1. Row of 2: 0.5 from 1 itself, and 0.5 of the row of 1.
    """
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    parts, _ = walk(bc.agent("backward", lam=0.5, lam_by="td"), 3, 1, 0.5, steps)
    model = parts.model.readable(parts.values)
    np.testing.assert_allclose(model.states[2], [0.5, 0.5, 0])
    np.testing.assert_allclose(model.earned[2], [0.5 * (1 + 0.5 * 4), 0.5 * 4, 0])
    np.testing.assert_allclose(model.discounted[1], [0.5, 0, 0])
    np.testing.assert_allclose(model.discounted[2], [0, 0, 0])


def test_lambda_by_td_follows_its_rule_once_its_rows_are_means():
    """The step size is α or, at first, 1 / visits: against a constant α the difference fades as (1 − α)ⁿ."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 3, 1, density=1.0)
    world, alpha = bc.worlds.from_mdp(mdp, max_steps=10**6), 0.02
    setup = Setup(3, 1, world.discount, world)
    agent = bc.agent("backward", lam=0.6, lam_by="td", learn=False)
    parts, constant = agent.build(setup), np.zeros((3, 3))
    visits, gaps = np.zeros(3), []
    for s, a, r, s2, ends, first in random_steps(world, rng, 4000, cut=0.0):
        observe(parts, np.array([0.0, alpha, 0.0, 0.0]), s, a, r, s2, ends, first)
        lam = 0.6 if constant[s].any() else 0.0
        constant[s2] += alpha * ((1 - lam) * np.eye(3)[s] + lam * constant[s] - constant[s2])
        visits[s2] += 1
        if visits.min() > 50:
            gap = np.abs(np.nan_to_num(parts.model.readable(parts.values).states) - constant).max()
            gaps.append((visits.sum() / 3, gap))
    n, gap = np.array(gaps[:: len(gaps) // 20]).T
    rate, _ = np.polyfit(n, np.log(gap), 1)
    # rows bootstrap from each other: slower than (1 − α)ⁿ, not than (1 − α(1 − λ))ⁿ
    assert np.log(1 - alpha) - 0.002 < rate < np.log(1 - alpha * (1 - 0.6)) + 0.002


def test_sampled_planning_by_hand():
    """One predecessor is certain: each of three samples moves v(0) half of the way to 2: 1 → 1.5 → 1.75 → 1.875."""
    agent = bc.agent("backward", model="counts", sample=3)
    parts, v = walk(agent, 3, 1, 0.5, [(0, 0, 2.0, 1, False, True)])
    np.testing.assert_allclose(v[0], 1.875)
    assert parts.updates.tolist() == [1, 3]


def test_whether_a_state_ends_episodes_is_a_two_way_softmax():
    """1 ends an episode, then does not, with step size 0.5: the logits differ by −0.5, then by 1 / (1 + e^−0.5) − 0.5.

    In between it is worth its reward only, and then γ max q as well.
    """
    rates = (0.0, 0.5, 0.0, 0.0)
    agent = bc.agent("forward", model="counts")
    parts, _ = walk(agent, 3, 2, 0.5, [(0, 0, 0.0, 1, True, True)], rates)
    np.testing.assert_allclose(parts.model.goes_on, [0, -0.5, 0])
    parts, _ = walk(agent, 3, 2, 0.5, [(0, 0, 0.0, 1, True, True), (0, 0, 0.0, 1, False, True)], rates)
    np.testing.assert_allclose(parts.model.goes_on, [0, 1 / (1 + math.exp(-0.5)) - 0.5, 0])


def test_top_and_depth_by_hand():
    """0 → 1 once, 2 → 1 twice, 3 → 2 once, rewards 0; then v(1) becomes 8 and planning is from 1 with γ = 0.5, α = 1.

    P(2|1) = 2/3, P(0|1) = 1/3. top=1 corrects 2 alone: v(2) = 2/3·4; depth 2 goes on to 3: v(3) = 0.5·v(2).
    """
    steps = [(0, 0, 0.0, 1, False, True), (3, 0, 0.0, 2, False, True), (2, 0, 0.0, 1, False, False)]
    steps += [(2, 0, 0.0, 1, False, True), (1, 0, 8.0, 5, True, True)]
    rates = (1.0, 1.0, 1.0, 0.0)
    for options, expected, updates in (
        ({}, [4 / 3, 8, 8 / 3, 0], 2),
        ({"top": 1}, [0, 8, 8 / 3, 0], 1),
        ({"depth": 2}, [4 / 3, 8, 8 / 3, 4 / 3], 3),
        ({"top": 1, "depth": 2}, [0, 8, 8 / 3, 4 / 3], 2),
    ):
        agent = bc.agent("backward", model="counts", **options)
        parts, _ = walk(agent, 6, 1, 0.5, steps, rates)
        parts.values.fill([0, 8, 0, 0, 0, 0])
        step = Step(0, 0, 0.0, 1, False, False)
        assert parts.planner.plan(parts.model, parts.values, step, 0.5, np.array(rates)) == updates
        np.testing.assert_allclose(parts.values.as_array()[:4, 0], expected)


def test_one_branch_at_each_level():
    """0 → 1 once, 2 → 1 twice, 3 → 2 twice, 4 → 2 once, 5 → 0 once; planning is from v(1) = 8 with γ = 0.5, α = 1.

    With top=1 and depth=3, v(2) = 2/3·4, v(3) = 2/3·0.5·v(2) and nothing before 3: neither 4 nor 5 is corrected.
    """
    steps = [(s, 0, 0.0, s2, False, True) for s, s2 in ((0, 1), (2, 1), (2, 1), (3, 2), (3, 2), (4, 2), (5, 0))]
    agent = bc.agent("backward", model="counts", top=1, depth=3, learn=False)
    parts, _ = walk(agent, 7, 1, 0.5, steps, (0.0, 1.0, 0.0, 0.0))
    parts.values.fill([0, 8, 0, 0, 0, 0, 0])
    assert parts.planner.how.correct(parts.model, parts.values, 1, 0.5, 0.5, 1.0) == 2
    np.testing.assert_allclose(parts.values.as_array()[:, 0], [0, 8, 8 / 3, 8 / 9, 0, 0, 0])


def test_two_branches_at_each_level():
    """0 → 1 once, 2 → 1 twice, 3 → 2 twice, 4 → 2 once, 5 → 4 once; planning is from v(1) = 8 with γ = 0.5, α = 1.

    With top=2 and depth=3, v(2) = 2/3·4 and v(0) = 1/3·4; v(3) = 2/3·0.5·v(2) and v(4) = 1/3·0.5·v(2); v(5) = 0.5·v(4).
    """
    steps = [(s, 0, 0.0, s2, False, True) for s, s2 in ((0, 1), (2, 1), (2, 1), (3, 2), (3, 2), (4, 2), (5, 4))]
    agent = bc.agent("backward", model="counts", top=2, depth=3, learn=False)
    parts, _ = walk(agent, 7, 1, 0.5, steps, (0.0, 1.0, 0.0, 0.0))
    parts.values.fill([0, 8, 0, 0, 0, 0, 0])
    assert parts.planner.how.correct(parts.model, parts.values, 1, 0.5, 0.5, 1.0) == 5
    np.testing.assert_allclose(parts.values.as_array()[:, 0], [4 / 3, 8, 8 / 3, 8 / 9, 4 / 9, 2 / 9, 0])


def test_conditioned_by_hand():
    """Into 1: from 0 by action 0 twice and by action 1 once, from 2 by action 1 once."""
    steps = [(0, 0, 0.0, 1, False, True), (0, 0, 0.0, 1, False, True), (0, 1, 0.0, 1, False, True)]
    steps += [(2, 1, 0.0, 1, False, True)]
    parts, _ = walk(bc.agent("backward", conditioned=True), 4, 2, 0.5, steps)
    model = parts.model.readable(parts.values)
    np.testing.assert_allclose(model.action[1], [0.5, 0.5])
    np.testing.assert_allclose(model.given_action[1], [[1, 0, 0, 0], [0.5, 0, 0.5, 0]])
    np.testing.assert_allclose(model.joint[1, 0], [0.5, 0.25])
    assert [(s, a) for s, a, _ in model.predict(1)] == [(0, 0), (0, 1), (2, 1)]


def test_importance_weights_by_hand():
    """Two states, two actions, q(0, 1) > q(0, 0), ε = 0.5: b(1 | 0) = 0.75, and ρ is 0 for action 0, 4/3 for action 1.

    With α_model = 0.6 the step towards (0, 1) has size 0.8: weights e^0.8 : 1 : 1 : 1. With α_model = 1 it would have
    size 4/3; it has 1.
    """
    agent = bc.agent("backward", importance=True, learn=False)
    for a, alpha, size in ((0, 0.6, 0.0), (1, 0.6, 0.8), (1, 1.0, 1.0)):
        parts = agent.build(Setup(2, 2, 0.9, _two_by_two()))
        parts.values.fill([0, 1, 0, 0])
        observe(parts, np.array([0.5, alpha, 0.0, 0.5]), 0, a, 0.0, 1, False, True)
        expected = np.exp(size) / (np.exp(size) + 3)
        np.testing.assert_allclose(parts.model.readable(parts.values).joint[1, 0, a], expected)


def _two_by_two():
    return bc.worlds.from_mdp(bc.FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.9, [1, 0]), max_steps=9)


def test_both_by_hand():
    """0 → 1 with reward 2, α = 0.5: TD makes v(0) = 1, forward planning from 0 1.5, backward planning from 1 1.75."""
    parts, v = walk(bc.agent("both"), 3, 1, 0.5, [(0, 0, 2.0, 1, False, True)])
    np.testing.assert_allclose(v[:, 0], [1.75, 0, 0])
    assert parts.updates.tolist() == [1, 2]
    both = parts.model.readable(parts.values)
    assert both.forward.transition[0, 0, 1] == both.backward.states[1, 0] == 1.0


def test_forgetting_by_hand():
    """Twice 0 → 1 with α = 1 and forget = 0.5. Softmax: the first step makes the row (2/3, −1/3, −1/3), which is halved
    before the second. Counts: 1, then 0.5 + 1 and, after 2 → 1, 0.75 against 1.
    """
    steps = [(0, 0, 0.0, 1, False, True), (0, 0, 0.0, 1, False, True)]
    parts, _ = walk(bc.agent("backward", forget=0.5), 3, 1, 0.5, steps)
    logits = np.array([2 / 3, -1 / 3, -1 / 3]) / 2
    logits += np.array([1, 0, 0]) - np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(parts.model.readable(parts.values).states[1], np.exp(logits) / np.exp(logits).sum())
    parts, _ = walk(bc.agent("forward", forget=0.5), 3, 1, 0.5, steps)
    np.testing.assert_allclose(
        parts.model.readable(parts.values).transition[0, 0, 1], np.exp(logits[0]) / np.exp(logits).sum()
    )
    counted = bc.agent("backward", model="counts", forget=0.5)
    parts, _ = walk(counted, 4, 1, 0.5, [*steps, (2, 0, 0.0, 1, False, True)])
    np.testing.assert_allclose(parts.model.readable(parts.values).states[1], [0.75 / 1.75, 0, 1 / 1.75, 0])


def test_forward_counts_by_hand():
    """0 → 1 twice with rewards 2 and 4, and 0 → 2 once with reward 0 (2 ends): P = 2/3, 1/3; mean reward 3, 0."""
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 4.0, 1, False, True), (0, 0, 0.0, 2, True, True)]
    parts, _ = walk(bc.agent("forward", model="counts", learn=False), 3, 1, 0.5, steps)
    model = parts.model.readable(parts.values)
    np.testing.assert_allclose(model.transition[0, 0], [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(model.reward[0, 0], [0, 3, 0])
    parts.values.fill([0, 6, 0])
    parts.planner.how.reevaluate(parts.model, parts.values, 0, 0.5, 1.0)
    np.testing.assert_allclose(parts.values.u[0], 2 / 3 * (3 + 0.5 * 6))
    top = bc.agent("forward", model="counts", top=1)
    parts, _ = walk(top, 3, 1, 0.5, steps)
    parts.values.fill([0, 6, 0])
    parts.planner.how.reevaluate(parts.model, parts.values, 0, 0.5, 1.0)
    np.testing.assert_allclose(parts.values.u[0], 3 + 0.5 * 6)
