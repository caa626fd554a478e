"""Agents with a network in Gymnasium environments, step by step."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import backcast as bc

pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX

TEXT = "S..\n.X.\n..G"
SMALL = {"network": bc.networks.mlp(8), "batch": 8, "memory": 100, "alpha": 0.01}
TABLE = {"network": bc.networks.linear(), "optimiser": "sgd", "memory": 0, "precision": "float64"}


def test_training_computes_what_running_computes():
    agent = bc.agent("backward", frame="previous", learn=False, alpha=0.5, alpha_model=0.7, **TABLE)
    world, env = bc.worlds.maze(TEXT), gymnasium.make("backcast/Maze-v0", text=TEXT)
    ours, theirs = bc.train(env, agent, steps=400, seed=2), bc.run(world, agent, steps=400, seeds=[2])
    assert np.array_equal(ours.steps, theirs.steps)
    assert np.array_equal(ours.updates.by_episode, theirs.updates.by_episode)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-12)
    with pytest.raises(bc.InputError, match=r"models: for agents with a network only backcast\.run keeps"):
        ours.models[0]


@pytest.mark.slow
def test_a_remembered_batch_is_the_same_one():
    agent = bc.agent("q", **{**SMALL, "precision": "float64"})
    world, env = bc.worlds.maze(TEXT), gymnasium.make("backcast/Maze-v0", text=TEXT)
    ours, theirs = bc.train(env, agent, episodes=4, seed=2), bc.run(world, agent, episodes=4, seeds=[2])
    assert np.array_equal(ours.steps, theirs.steps)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_errors_are_measured_in_a_prediction_world():
    agent = bc.agent("td", **SMALL)
    env = gymnasium.make("backcast/Chain-v0", levels=(4, 3), seed=0)
    runs = bc.train(env, agent, episodes=60, seed=0)
    assert runs.rmsve.shape == (1, 60)
    assert runs.rmsve_inner[0, -1] < runs.rmsve_inner[0, 0]


def test_vectors_of_a_box_are_learned_from():
    agent = bc.agent("backward", **SMALL, candidates=8)
    runs = bc.train(gymnasium.make("CartPole-v1"), agent, steps=60, seed=0)
    assert runs.steps[runs.steps >= 0].sum() == 60
    assert runs.updates.planning[0] == (60 - 7) * 8 * 16
    assert runs.values.shape == (1, 0, 2)
    assert runs.policy(observation=np.zeros(4)).sum() == 1
    with pytest.raises(bc.InputError, match="policy: states of CartPole-v1 have no numbers; give observation="):
        runs.policy()
    again = bc.train(gymnasium.make("CartPole-v1"), agent, steps=60, seed=0)
    assert np.array_equal(runs.steps, again.steps)


class Picture(gymnasium.Env):
    """One step to the right ends the episode; what is seen is of the shape and the number given."""

    observation_space, action_space = Box(0, 255, (1, 3, 3), np.uint8), Discrete(2)

    def __init__(self, seen=None):
        self.seen = np.full((1, 3, 3), 255, dtype=np.uint8) if seen is None else seen

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.seen, float(action), bool(action), False, {}


@pytest.mark.slow
def test_images_are_seen_by_convolutions():
    agent = bc.agent("q", **{**SMALL, "network": bc.networks.conv(2, kernel=2, widths=[4])})
    assert bc.train(Picture(), agent, steps=30, seed=0).updates.learning[0] == (30 - 7) * 8


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (np.zeros((3, 3)), r"observation: shape \(3, 3\) observed, expected \(1, 3, 3\), that of the space"),
        (np.full((1, 3, 3), np.nan), r"observation: not a finite number observed; expected numbers"),
    ],
)
def test_observations_that_cannot_be_learned_from_are_refused(seen, message):
    agent = bc.agent("q", **{**SMALL, "network": bc.networks.conv(2, kernel=2, widths=[4])})
    with pytest.raises(bc.InputError, match=message):
        bc.train(Picture(seen), agent, steps=30, seed=0)


def test_a_softmax_needs_numbers():
    agent = bc.agent("backward", **SMALL, model="softmax")
    with pytest.raises(bc.InputError, match="model: 'softmax' is over numbered states, and here they have none"):
        bc.train(Picture(), agent, steps=30, seed=0)
