"""How far a backward model is from the exact one, on distances that are made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

import backcast as bc
from backcast.models.scoring import score_backward

pytestmark = pytest.mark.interpreted

# 0 leads to 1 or to the end 2, by either action half of the time; 1 leads to the end
P = np.zeros((3, 2, 3))
P[0, :, 1] = P[0, :, 2] = 0.5
P[1, :, 2] = P[2, :, 0] = 1.0
MDP = bc.FiniteMDP(P, np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]]), 0.5, [1, 0, 0], [False, False, True])
EXACT = bc.exact.backward(MDP, np.full((3, 2), 0.5))
REWARD = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]])  # [s̃, s]
VALUES = np.array([[1.0, 2.0], [4.0, 3.0], [0.0, 0.0]])

# episodes begin in 0 and go 0 → 1, and on to 0 or the end 2: of the visits to 0, half are starts; d = (2, 2, 1) / 5
LOOP = bc.FiniteMDP([[[0, 1, 0]], [[0.5, 0, 0.5]], [[0, 0, 0]]], [[1.0], [2.0], [0.0]], 0.5, [1, 0, 0], [0, 0, 1])


def model(joint, reward=REWARD, restarts=True):
    return SimpleNamespace(n_states=3, n_actions=2, joint=joint, reward=reward, contains_restarts=restarts)


def test_the_exact_model_has_no_distance_from_itself():
    score = score_backward(model(np.array(EXACT.joint)), EXACT, VALUES)
    assert (score.tv, score.kl, score.correction, score.valid) == pytest.approx((0, 0, 0, 1), abs=1e-12)


def test_a_model_of_steps_is_compared_where_steps_lead():
    """Without restarts, nothing leads to 0; 1 is reached in one arrival of three, the end in two."""
    joint = np.array(EXACT.joint)
    joint[0] = np.nan
    score = score_backward(model(joint, restarts=False), EXACT, VALUES)
    assert (score.tv, score.kl, score.correction, score.valid) == pytest.approx((0, 0, 0, 1), abs=1e-12)
    joint[1] = 0.0
    joint[1, 1, 0] = 1.0  # from 1 itself, which is wrong, in a third of all arrivals
    score = score_backward(model(joint, restarts=False), EXACT, VALUES)
    assert score.tv == pytest.approx(1 / 3)


def test_what_a_model_leaves_out_counts_as_wrong():
    """Half of the mass is missing: TV ½ (½ + ½) everywhere, KL log 2, and half of each correction."""
    score = score_backward(model(0.5 * np.array(EXACT.joint)), EXACT, VALUES)
    assert (score.tv, score.kl, score.correction, score.valid) == pytest.approx((0.5, np.log(2), 0.5, 0.5))


def test_wrong_rewards_change_corrections_alone():
    """With values 0, corrections are P← r: rewards that are twice as large are off by their own size."""
    score = score_backward(model(np.array(EXACT.joint), 2 * REWARD), EXACT, np.zeros(3))
    assert (score.tv, score.kl, score.correction, score.valid) == pytest.approx((0, 0, 1, 1), abs=1e-12)


def test_of_what_is_known_of_a_prediction_actions_are_summed_up():
    joint = np.array(EXACT.joint).sum(axis=2, keepdims=True)
    known = SimpleNamespace(n_states=3, n_actions=1, joint=joint, reward=REWARD, contains_restarts=True)
    score = score_backward(known, EXACT, VALUES.max(axis=1))
    assert (score.tv, score.correction, score.valid) == pytest.approx((0, 0, 1), abs=1e-12)


def test_over_several_steps_a_state_is_worth_its_best_action():
    """A model that gives no probability to what it should, but earns and carries what is true."""
    exact = bc.exact.n_step(MDP, np.full((3, 2), 0.5), 2)
    states, earned, discounted = (np.asarray(part) for part in (exact.states, exact.earned, exact.discounted))
    off = SimpleNamespace(
        n_states=3, n_actions=2, states=0 * states, earned=earned, discounted=discounted, contains_restarts=True
    )
    actions, best, worst = (
        score_backward(off, exact, values).correction for values in (VALUES, VALUES.max(axis=1), VALUES.min(axis=1))
    )
    assert actions == pytest.approx(best) != pytest.approx(worst)


def test_a_model_of_steps_is_compared_with_the_steps_to_a_state_that_is_also_a_start():
    """0 was reached from 1, 1 from 0 and 2 from 1; a quarter of all steps lead to 0."""
    exact = bc.exact.backward(LOOP)
    joint = np.array([[0.0, 1, 0], [1, 0, 0], [0, 1, 0]])[:, :, None]
    reward = np.array([[1.0, 1, 1], [2, 2, 2], [0, 0, 0]])
    known = SimpleNamespace(n_states=3, n_actions=1, joint=joint, reward=reward, contains_restarts=False)
    score = score_backward(known, exact, np.array([3.0, 5.0, 0.0]))
    assert tuple(score) == pytest.approx((0, 0, 0, 1), abs=1e-12)
    joint[0] = np.eye(3)[0][:, None]  # from 0 itself, which is wrong
    assert score_backward(known, exact, np.zeros(3)).tv == pytest.approx(1 / 4)


def over_two_steps(states, earned, discounted, **told):
    return SimpleNamespace(n_states=3, n_actions=2, states=states, earned=earned, discounted=discounted, **told)


def test_the_exact_model_over_several_steps_has_no_distance_from_itself():
    exact = bc.exact.n_step(MDP, np.full((3, 2), 0.5), 2)
    parts = [np.asarray(part) for part in (exact.states, exact.earned, exact.discounted)]
    score = score_backward(over_two_steps(*parts, contains_restarts=True), exact, VALUES)
    assert tuple(score) == pytest.approx((0, 0, 0, 1), abs=1e-12)


def test_over_several_steps_states_weigh_as_often_as_something_leads_to_them():
    """d = (2, 1, 2) / 5. Two steps before 0 it was 0 or 1, before 1 the end, before 2 it was 0 or the end, ½ each.

    So without restarts all arrivals in 0 count, none in 1 and half of those in 2: two thirds, nothing and a third.
    """
    exact = bc.exact.n_step(MDP, np.full((3, 2), 0.5), 2)
    right, wrong = np.array([[0.5, 0.5, 0], [0, 0, 0], [1, 0, 0]]), np.array([[0, 0, 1.0], [0, 0, 0], [1, 0, 0]])
    for states, tv in ((right, 0), (wrong, 2 / 3)):
        known = over_two_steps(states, 0 * states, 0 * states, contains_restarts=False)
        score = score_backward(known, exact, VALUES)
        assert (score.tv, score.valid) == pytest.approx((tv, 1))


def test_where_nothing_is_to_be_corrected_corrections_are_not_compared():
    """Without rewards and values all corrections are 0, whatever the model earns."""
    exact = bc.exact.backward(
        bc.FiniteMDP(P, np.zeros((3, 2)), 0.5, [1, 0, 0], [False, False, True]), np.full((3, 2), 0.5)
    )
    score = score_backward(model(np.array(exact.joint)), exact, np.zeros(3))
    assert np.isnan(score.correction)
    assert score.tv == pytest.approx(0)


def test_a_model_of_too_many_states_is_refused():
    """10,000 states have 100 million entries."""
    known, exact = SimpleNamespace(n_states=10_000, n_actions=1), SimpleNamespace(joint=None, d=np.zeros(1), mdp=None)
    exact.mdp = SimpleNamespace(n_states=10_000, n_actions=1)
    with pytest.raises(bc.InputError, match="a model of 10,000 states is too large to be compared entry by entry"):
        score_backward(known, exact, np.zeros(10_000))
