"""Which runs have diverged, and which only have large values."""

import numpy as np
import pytest

import backcast as bc


def test_a_value_far_from_zero_has_not_diverged():
    """The reward of 10⁹ comes once in a hundred episodes: until then true values are far beyond what was earned."""
    P, R = np.zeros((3, 1, 3)), np.zeros((3, 1, 3))
    P[0, 0] = [0, 0.99, 0.01]
    P[1:, 0, 0] = 1.0
    R[0, 0, 2] = 1e9
    world = bc.worlds.from_mdp(bc.FiniteMDP(P, R, 0.9, [1, 0, 0], [False, True, True]))
    runs = bc.run(world, bc.agent("td", alpha=0.1), episodes=50, seeds=3)
    assert not runs.diverged.any()
    assert np.isfinite(runs.rmsve).all()


def one_state(discount, reward):
    """Stays where it is and earns; truncated after 50 steps."""
    mdp = bc.FiniteMDP(np.ones((1, 1, 1)), [[reward]], discount, [1.0])
    return bc.worlds.from_mdp(mdp, max_steps=50)


def test_a_value_as_large_as_a_return_may_be_has_not_diverged():
    """q → 1 / (1 − γ) = 10⁷ (1 − e⁻²) after 2 · 10⁷ steps with α = 1."""
    mdp = bc.FiniteMDP(np.ones((1, 2, 1)), [[1.0, 1.0]], 1 - 1e-7, [1.0])
    world = bc.worlds.from_mdp(mdp, max_steps=20_000_000)
    runs = bc.run(world, bc.agent("q", schedule="constant"), episodes=1, seeds=1)
    assert not runs.diverged.any()
    assert runs.values.max() == pytest.approx(1e7 * (1 - np.exp(-2)), rel=1e-3)


def test_with_discount_1_values_grow_with_the_length_of_episodes():
    """A line of one state that is left with probability 10⁻⁹: v = 10⁹ rewards."""
    P = np.zeros((2, 1, 2))
    P[0, 0] = [1 - 1e-9, 1e-9]
    P[1, 0, 1] = 1.0
    world = bc.worlds.from_mdp(bc.FiniteMDP(P, [[1.0], [0.0]], 1.0, [1.0, 0.0], [False, True]), max_steps=2_000_000)
    runs = bc.run(world, bc.agent("td", schedule="constant"), episodes=1, seeds=1)
    assert not runs.diverged.any()
    assert runs.values[0, 0] == pytest.approx(2_000_000, rel=0.01)


def test_errors_of_huge_rewards_do_not_overflow():
    for reward in (1e155, 1e300):
        runs = bc.run(one_state(0.5, reward), bc.agent("td", alpha=0.5, schedule="constant"), episodes=3, seeds=1)
        assert not runs.diverged.any()
        assert np.isfinite(runs.rmsve).all()
        assert runs.values[0, 0] == pytest.approx(2 * reward, rel=1e-3)
        assert runs.rmsve[0, -1] < 1e-3 * reward


def test_after_a_control_agent_diverged_its_episodes_are_as_long_as_they_may_be():
    features = 10 * np.random.default_rng(0).normal(size=(48, 10))
    wild = bc.agent("q", features=features, alpha=1.0, schedule="constant")
    runs = bc.run(bc.worlds.maze(), wild, episodes=20, seeds=2, max_steps=150)
    assert runs.diverged.all()
    assert (runs.steps[:, -1] == 150).all()
    assert "2 of 2 seeds diverged" in repr(runs)
