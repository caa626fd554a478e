"""Linear values and expectation models on literal steps, worked out by hand."""

import numpy as np
import pytest

import backcast as bc

pytestmark = pytest.mark.interpreted

# By hand: 0 → 1 earns 2, 1 → 2 earns 4 and ends; 2 shares a feature with 0, and gets one of its own instead, √2. The
# largest ‖x‖² is 2, so that with a step size of 1/2 an estimate comes ‖z‖²/4 of the way: 1/4 in 1, 1/2 in 0 and 2

LINE = bc.worlds.from_mdp(
    bc.FiniteMDP([[[0, 1, 0]], [[0, 0, 1]], [[0, 0, 1]]], [[2], [4], [0]], 0.25, [1, 0, 0], [0, 0, 1])
)
LINE_X = [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
# one step under either action: 0 → 1, which earns 2 and goes on
FORK = bc.worlds.from_mdp(
    bc.FiniteMDP([[[0, 1]] * 2, [[1, 0]] * 2], [[[2, 2]] * 2, [[0, 0]] * 2], 0.25, [1, 0]), max_steps=1
)


def by_hand(world, kind, features, episodes=1, **settings):
    agent = bc.agent(kind, features=features, alpha=0.5, alpha_model=0.5, schedule="constant", **settings)
    return bc.run(world, agent, episodes, 1)


def test_td_by_hand():
    """0 → 1: δ = 2, w = (1, 1). 1 → 2: δ = 4 − 1 = 3, w = (1, 2.5)."""
    runs = by_hand(LINE, "td", LINE_X)
    np.testing.assert_allclose(runs.weights, [[1, 2.5]])
    np.testing.assert_allclose(runs.values, [[3.5, 2.5, 0]])


def test_backward_planning_by_hand():
    """After 0 → 1 a quarter of x̃ = (1, 1) is expected before 1, after TD at w = (1, 1).

    Rewards come ½ ‖x̃‖² ‖z‖² / 4 of the way, as far in both steps: Θ z(1) = ¼ (1, 1) earns ½, Θ z(2) = (0, 1) earns 1.
    Δ = ¼ (½ + ¼·1 − 2) x̃ = −5/16 x̃, so that w = 27/32 (1, 1). After 1 → 2: TD to 27/32 + ½ (4 − 27/32) = 155/64, and
    Δ = ½ (1 − 155/64) = −91/128. In 0 the second feature alone tells of a past: what is expected is the same as in 1.
    """
    runs = by_hand(LINE, "backward", LINE_X)
    np.testing.assert_allclose(runs.weights, [[27 / 32, 155 / 64 - 91 / 256]])
    model = runs.models[0]
    np.testing.assert_allclose(model.expectation, [[0.25, 0.25], [0.25, 0.25], [0, 0.5]])
    np.testing.assert_allclose(model.second_moment[1], [[0.25, 0.25], [0.25, 0.25]])
    np.testing.assert_allclose(model.second_moment[2], [[0, 0], [0, 0.5]])
    # E[x̃ x̃ᵀ | z] Θ z: ¼ · ½ (1, 1), and ½ · 1 (0, 1)
    np.testing.assert_allclose(model.reward, [[0.125, 0.125], [0.125, 0.125], [0, 0.5]])


def test_naive_planning_by_hand():
    """With x̄ = ¼ (1, 1) and Θ z(1) = ¼ (1, 1): ⅛ + ¼·1 − ½ = −⅛ along x̄, w = 63/64 (1, 1).

    Then TD to 63/64 + ½ (4 − 63/64) = 319/128, and with x̄ = ½ (0, 1), Θ z(2) = (0, 1): ½ − ½·319/128 = −191/256.
    """
    runs = by_hand(LINE, "backward", LINE_X, model="naive")
    np.testing.assert_allclose(runs.weights, [[63 / 64, 319 / 128 - 191 / 1024]])


def test_gaussian_planning_by_hand():
    """One step: the mean is ¼ (1, 1), the one residual (1, 1), w = (1, 1) after TD, and Θ z(1) = ¼ (1, 1).

    The first two random numbers, 0.265302439013 and 0.101175576142, make a normal g. With c = ¼ + g, the reward
    is c (1, 1)ᵀΘ z(1) = c/2: w = 1 + ½ (c/2 + ¼·1 − 2c) c.
    """
    agent = bc.agent("backward", features=LINE_X, model="gaussian", alpha=0.5, alpha_model=0.5, schedule="constant")
    runs = bc.run(LINE, agent, 1, 1, max_steps=1)
    c = 0.25 + np.sqrt(-2 * np.log(1 - 0.265302439013)) * np.cos(2 * np.pi * 0.101175576142)
    np.testing.assert_allclose(runs.weights, [[1 + 0.5 * (0.25 - 1.5 * c) * c] * 2], rtol=1e-9)
    assert runs.weights[0, 0] == pytest.approx(0.526997085, abs=1e-9)


def test_forward_planning_by_hand():
    """After 0 → 1: E[x'] = ½ (0, 1), E[R] = 1, w = (1, 1): δ = 1 + ¼·½ − 2 = −⅞, w = 9/16 (1, 1).

    z(1) shares half of z(0)'s direction and moves by a quarter: E[x' | 1] was (0, ¼) and is (0, 3/16), E[R | 1] was ½
    and is ½ + ¼ (4 − ½) = 11/8. TD to 9/16 + ½ (4 − 9/16) = 73/32, and δ = 11/8 + ¼·3/16·73/32 − 73/32. What E[x' | 1]
    lost, E[x' | 0] lost as well: it is 7/16.
    """
    runs = by_hand(LINE, "forward", LINE_X)
    np.testing.assert_allclose(runs.weights, [[9 / 16, 73 / 32 + 0.5 * (11 / 8 + 3 / 64 * 73 / 32 - 73 / 32)]])
    np.testing.assert_allclose(runs.models[0].expectation[:2, 0], [[0, 7 / 16], [0, 3 / 16]])


def test_recursive_least_squares_by_hand():
    """With a ridge of 1, two visits count 2/3 in 1, and 4/5 in 2 where ‖z‖² = 2. LMS has left (3/4)² and (1/2)².

    Forward, after 0 → 1 → 2: (1 + Σ zzᵀ)⁻¹ = ((3, −1), (−1, 2)) / 5, which between z(0) and itself is 3/5, z(1): 1/5.
    """
    for how, in_1, in_2 in (({}, 7 / 16, 3 / 4), ({"learn_by": "rls", "ridge": 1}, 2 / 3, 4 / 5)):
        model = by_hand(LINE, "backward", LINE_X, episodes=2, **how).models[0]
        np.testing.assert_allclose(model.expectation[1:], [[in_1, in_1], [0, in_2]])
    model = by_hand(LINE, "forward", LINE_X, learn_by="rls", ridge=1).models[0]
    np.testing.assert_allclose(model.expectation[:2, 0], [[0, 0.6], [0, 0.2]])


@pytest.mark.parametrize(
    ("kind", "model", "weight"),
    [
        ("q", {}, 1),
        ("backward", {}, 1 + 0.5 * 0.5 * (1 + 0.25 * 2 - 1)),
        ("backward", {"model": "naive"}, 1 + 0.5 * 0.5 * (1 + 0.25 * 2 - 0.5)),
        ("forward", {}, 1 + 0.5 * (0.25 + 0.25 * 0.25 - 1)),
    ],
)
def test_one_step_of_control_by_hand(kind, model, weight):
    """Features 1 and 2. Q-learning: w_a = 1, so that q(1, a) = 2. The other action's weight stays 0.

    Backward, half of the features and of the reward is expected in state 1, which has the largest ‖z‖² = 4: ½ φ(0, a)
    and 1. Forward, an eighth in state 0, where ‖z‖² = 1: ⅛·2 and ⅛·2.
    """
    runs = by_hand(FORK, kind, [[1.0], [2.0]], **model)
    np.testing.assert_allclose(np.sort(runs.weights[0].ravel()), [0, weight])
