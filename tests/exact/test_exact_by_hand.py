"""Worlds of two and three states, with every number worked out by hand."""

import numpy as np
import pytest
from scipy import sparse

import backcast as bc

# 0 stays or goes to 1 with equal chances, 1 goes back to 0 and earns 1. Balance: d(1) = d(0)/2, so d = (2/3, 1/3).
PAIR = bc.FiniteMDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[0.0], [1.0]], 0.5, [1.0, 0.0])

# An episode: 0 → 1 (1/4) or 2 (3/4), 1 → 2. Entering 2 from 1 earns 4, from 0 earns 2; 2 ends.
EPISODE = bc.FiniteMDP(
    [[[0, 0.25, 0.75]], [[0, 0, 1]], [[0, 0, 0]]],
    np.array([[0, 1.0, 2.0], [0, 0, 4.0], [0, 0, 9.0]]),
    0.5,
    [1, 0, 0],
    [False, False, True],
)

# Two actions: in 0, action 0 stays, action 1 goes to 1; in 1, action 0 goes to 0, action 1 stays.
SWITCH = bc.FiniteMDP([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], np.zeros((2, 2, 2)), 0.9, [1, 0])
PI = np.array([[0.5, 0.5], [0.25, 0.75]])  # d(0) = d(0)/2 + d(1)/4: d = (1/3, 2/3)


def test_chain_of_an_episode_restarts():
    np.testing.assert_array_equal(bc.exact.chain(EPISODE), [[0, 0.25, 0.75], [0, 0, 1], [1, 0, 0]])


def test_stationary():
    np.testing.assert_allclose(bc.exact.stationary(PAIR), [2 / 3, 1 / 3], rtol=1e-15)
    # one visit to 0, a quarter to 1 and one to 2 in each episode
    np.testing.assert_allclose(bc.exact.stationary(EPISODE), np.array([4, 1, 4]) / 9, rtol=1e-15)
    np.testing.assert_allclose(bc.exact.stationary(SWITCH, PI), [1 / 3, 2 / 3], rtol=1e-15)


def test_distribution_in_time():
    np.testing.assert_allclose(bc.exact.distribution(PAIR, t=0), [1, 0])
    np.testing.assert_allclose(bc.exact.distribution(PAIR, t=1), [0.5, 0.5])
    np.testing.assert_allclose(bc.exact.distribution(PAIR, t=2), [0.75, 0.25])


def test_backward_in_time():
    # from t=1 to t=0: everything was in 0 at the beginning
    np.testing.assert_allclose(bc.exact.backward_at(PAIR, t=0).states, [[1, 0], [1, 0]])
    # from t=2 to t=1: 0.5·0.5 of the 0.75 in 0 came from 0, 0.5 from 1
    np.testing.assert_allclose(bc.exact.backward_at(PAIR, t=1).states, [[1 / 3, 2 / 3], [1, 0]])
    unborn = bc.exact.backward_at(EPISODE, t=0)
    np.testing.assert_array_equal(unborn.undefined, [0])
    assert np.isnan(unborn.states[0]).all()


def test_values():
    # v(1) = 1 + v(0)/2, v(0) = v(0)/4 + v(1)/4  →  3 v(0) = v(1) = 1 + v(0)/2  →  v(0) = 0.4, v(1) = 1.2
    np.testing.assert_allclose(bc.exact.value(PAIR), [0.4, 1.2])
    # v(1) = 4, v(0) = 0.25 (1 + 0.5·4) + 0.75·2 = 2.25
    np.testing.assert_allclose(bc.exact.value(EPISODE), [2.25, 4, 0])
    np.testing.assert_allclose(bc.exact.action_value(EPISODE), [[2.25], [4], [0]])


def test_reward_between_states():
    np.testing.assert_allclose(bc.exact.transition_reward(EPISODE), [[0, 1, 2], [0, 0, 4], [0, 0, 0]])
    np.testing.assert_allclose(bc.exact.transition_reward(PAIR), [[0, 0], [1, 0]])


def test_backward_joint_action_conditioned_and_backward_policy():
    model = bc.exact.backward(SWITCH, PI)
    # into 0: d(0)π(0|0)=1/6 from (0, a=0) and d(1)π(0|1)=1/6 from (1, a=0), of d(0)=1/3
    np.testing.assert_allclose(model.joint[0], [[0.5, 0], [0.5, 0]], atol=1e-15)
    # into 1: d(0)π(1|0)=1/6 and d(1)π(1|1)=1/2, of 2/3
    np.testing.assert_allclose(model.joint[1], [[0, 0.25], [0, 0.75]], atol=1e-15)
    np.testing.assert_allclose(model.states, [[0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(model.action, [[1, 0], [0, 1]])
    np.testing.assert_allclose(model.given_action[0, 0], [0.5, 0.5])
    np.testing.assert_allclose(model.given_action[1, 1], [0.25, 0.75])
    assert np.isnan(model.given_action[0, 1]).all()
    assert np.isnan(model.given_action[1, 0]).all()
    assert model.undefined.size == 0


def test_backward_of_an_episode_leads_from_the_start_to_the_end():
    np.testing.assert_allclose(bc.exact.backward(EPISODE).states, [[0, 0, 1], [1, 0, 0], [0.75, 0.25, 0]])


def test_two_steps():
    model = bc.exact.n_step(EPISODE, None, 2)
    # two steps before 2: in 0 by way of 1 (weight d(0)/4 = 1/9) or in 2 by way of 0 (weight d(2)·3/4 = 1/3)
    np.testing.assert_allclose(model.states[2], [0.25, 0, 0.75])
    # 0→1→2 earns 1 + 0.5·4; 0→2→0 and 1→2→0 earn 2 and 4 before their episodes end; 2→0→1 and 2→0→2 nothing after
    np.testing.assert_allclose(model.reward, [[2, 0, 3], [4, 0, 0], [0, 0, 0]])
    model = bc.exact.n_step(PAIR, None, 2)
    np.testing.assert_allclose(model.states, [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(model.discounted, 0.25 * model.states)
    # 0→0→0 earns 0, 0→1→0 earns 0.5·1; they are equally likely after weighting 1/4 : 1/2, so 1/3 · 0 + 2/3 · 0.5
    np.testing.assert_allclose(model.reward, [[1 / 3, 0], [1, 1]])


def test_no_value_is_discounted_across_the_end_of_an_episode():
    model = bc.exact.n_step(EPISODE, None, 2)
    assert model.states[0, 1] == pytest.approx(0.25)  # 1→2→0: a quarter of the episodes passed 1
    assert model.earned[0, 1] == pytest.approx(0.25 * 4)
    assert model.discounted[0, 1] == 0


def test_mixture_weighs_rewards_by_the_probability_of_their_horizon():
    model = bc.exact.multi_time(PAIR, None, [0.5, 0.5])
    np.testing.assert_allclose(model.states, [[0.625, 0.375], [0.75, 0.25]])
    # 0 before 0: one step (weight 0.5·0.5, earns 0) or two (weight 0.5·0.75, earns 1/3): 0.125 / 0.625
    assert model.reward[0, 0] == pytest.approx(0.2)


def test_lambda_model():
    model = bc.exact.lambda_model(PAIR, None, 0.5)
    # M = (I − B/2)⁻¹ B/2 with B = [[.5, .5], [1, 0]]: I − B/2 = [[.75, −.25], [−.5, 1]], determinant 0.625
    np.testing.assert_allclose(model.states, [[0.6, 0.4], [0.8, 0.2]])
    np.testing.assert_allclose(bc.exact.lambda_model(PAIR, None, 0.0).states, bc.exact.backward(PAIR).states)
    # stop only in 1: from 0 one always comes to 1, at last
    np.testing.assert_allclose(bc.exact.lambda_model(PAIR, None, [1.0, 0.0]).states, [[0, 1], [0, 1]])


def test_option_that_begins_in_one_state():
    model = bc.exact.option_model(EPISODE, None, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(model, [[1, 0, 0], [1, 0, 0], [1, 0, 0]])
    both = bc.exact.lambda_model(EPISODE, None, [0.0, 1.0, 1.0])
    # into 2 from 0: directly (3/4, earns 2) or by 1 (1/4, earns 1 + 0.5·4)
    assert both.reward[0, 2] == pytest.approx(0.75 * 2 + 0.25 * 3)


def test_what_an_option_leads_to_until_it_terminates():
    """It terminates in 1 with probability 1/2, and where the episode ends: from 0 in 1 (1/8), or in 2.

    By way of 1 (1/8), 2 earns 1 + 0.5·4; directly (3/4) it earns 2. Nothing is carried beyond the end.
    """
    model = bc.exact.time_extended.ending_model(EPISODE, None, [0.0, 0.5, 0.0])
    np.testing.assert_allclose(model.states, [[0, 1 / 8, 7 / 8], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_allclose(model.earned, [[0, 1 / 8, 3 / 8 + 3 / 2], [0, 0, 4], [0, 0, 0]])
    np.testing.assert_allclose(model.discounted, [[0, 1 / 16, 0], [0, 0, 0], [0, 0, 0]])


def test_corrections():
    v = [1.0, 2.0]
    # from 0: the predecessors 0 (0 + 0.5·1 − 1) and 1 (1 + 0.5·1 − 2), each with 1/2; from 1: 0 (0 + 0.5·2 − 1)
    expected = [[-0.25, -0.25], [0.0, 0.0]]
    np.testing.assert_allclose(bc.exact.tabular_correction(PAIR, bc.exact.n_step(PAIR), v), expected)
    X = np.array([[1.0, 0.0], [1.0, 1.0]])
    linear = bc.exact.backward_correction(PAIR, None, X, [1.0, 1.0])  # v = (1, 2) again
    np.testing.assert_allclose(linear, [[-0.5, -0.25], [0, 0]])


def test_optimal():
    # Leave 0 for 1 (earns 0), where staying earns 1 for ever: v(1) = 1/(1 − 0.9), v(0) = 0.9 · 10
    transition = [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]
    mdp = bc.FiniteMDP(transition, [[[0, 0], [0, 0]], [[0, 0], [0, 1]]], 0.9, [1, 0])
    for method in ("policy-iteration", "value-iteration"):
        best = bc.exact.optimal(mdp, method)
        np.testing.assert_allclose(best.v, [9, 10], atol=1e-9)
        np.testing.assert_allclose(best.q, [[8.1, 9], [8.1, 10]], atol=1e-9)
        np.testing.assert_array_equal(best.policy, [[0, 1], [0, 1]])
        assert best.residual < 1e-9
        assert best.method == method
        assert repr(best).startswith("Optimal(iterations=")


def test_offline_td():
    # 0 → 1 → end with rewards 1 and 2, γ = 0.5, v = (3, 5): G = (2, 2), so −1 for state 0 and −3 for state 1
    views = bc.exact.offline_td([0, 1], [1.0, 2.0], [3.0, 5.0], 0.5)
    np.testing.assert_allclose(views.left, [-1, -3])
    np.testing.assert_allclose(views.right, [-1, -3])


def test_nothing_is_earned_in_a_terminal_state_whatever_its_rows_say():
    reward = np.repeat([[[1.0], [2.0]], [[5.0], [7.0]]], 2, axis=2)
    mdp = bc.FiniteMDP([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], reward, 0.5, [1, 0], [False, True])
    np.testing.assert_allclose(bc.exact.action_value(mdp, [0, 0]), [[1, 2 + 0.5 * 1], [0, 0]])
    np.testing.assert_allclose(bc.exact.optimal(mdp).q, [[1, 2 + 0.5 * 4], [0, 0]])  # to stay is worth 2 / (1 − 0.5)


@pytest.mark.parametrize(("discount", "action"), [(0.5, 0), (1.0, 1)])
def test_to_stay_is_as_good_as_to_end_where_nothing_is_earned(discount, action):
    """In 0, action 0 stays and action 1 ends the episode. Without a discount the way to the end is taken."""
    mdp = bc.FiniteMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], np.zeros((2, 2)), discount, [1, 0], [False, True])
    for method in ("policy-iteration", "value-iteration"):
        np.testing.assert_array_equal(bc.exact.optimal(mdp, method).policy[0], np.eye(2)[action])


@pytest.mark.parametrize("discount", [0.5, 1.0])
def test_of_equally_good_actions_the_first_is_taken(discount):
    """Both actions of 0 and of 1 lead on, to the same state with the same reward."""
    ahead = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    mdp = bc.FiniteMDP([[row, row] for row in ahead], np.full((3, 2), -1.0), discount, [1, 0, 0], [0, 0, 1])
    for method in ("policy-iteration", "value-iteration"):
        np.testing.assert_array_equal(bc.exact.optimal(mdp, method).policy[:2], [[1, 0], [1, 0]])


def test_a_sparse_chain_may_have_entries_that_are_zero():
    """0 and 1 alternate; that 0 does not stay is written down."""
    chain = sparse.csr_array((np.array([0.0, 1.0, 1.0]), (np.array([0, 0, 1]), np.array([0, 1, 0]))))
    assert chain.nnz == 3
    np.testing.assert_array_equal(bc.exact.reverse(chain).toarray(), [[0, 1], [1, 0]])


def test_a_state_that_is_never_visited_has_one_mark_in_sparse_models_at_the_state_itself():
    """Nothing leads to 2. Its first pair is (2, 0), in column 4."""
    mdp = bc.FiniteMDP(
        sparse.csr_array(([1.0] * 6, (range(6), [0, 1, 0, 1, 0, 1])), shape=(6, 3)),
        sparse.csr_array((6, 3)),
        0.9,
        [1, 0, 0],
    )
    model = bc.exact.backward(mdp, np.full((3, 2), 0.5))
    assert model.undefined.tolist() == [2]
    assert np.argwhere(np.isnan(model.joint.toarray())).tolist() == [[2, 4]]
    assert np.argwhere(np.isnan(model.states.toarray())).tolist() == [[2, 2]]


def test_a_lambda_model_that_is_told_no_lambda_looks_back_one_step():
    one_step = bc.exact.backward(SWITCH, PI)
    np.testing.assert_allclose(bc.exact.lambda_model(SWITCH, PI).states, one_step.states, rtol=1e-15)
