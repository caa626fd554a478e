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
