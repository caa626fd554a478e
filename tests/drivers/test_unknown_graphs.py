"""Training where the graph of the environment is not known: rows of models grow."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.worlds.envs import TableEnv
from environments import PlainMaze

pytestmark = pytest.mark.interpreted
MAZE = bc.worlds.maze()


def test_train_in_environments_without_a_table():
    """Rows grow where the graph is not known; the numbers are those of a run that knows it."""
    for kind, frame in (("forward", "current"), ("backward", "previous"), ("q", None)):
        agent = bc.agent(kind, frame=frame)
        blind = bc.train(PlainMaze(), agent, 15, seed=4)
        knowing = bc.run(MAZE, agent, 15, [4])
        np.testing.assert_array_equal(blind.steps, knowing.steps)
        np.testing.assert_array_equal(blind.values, knowing.values)
        assert blind.world == "PlainMaze"
    with pytest.raises(bc.InputError, match="'true-forward' plans with the true model, but this environment carries"):
        bc.train(PlainMaze(), bc.agent("true-forward"), 1, 0)


def test_a_wrapper_that_renumbers_states_does_not_meet_the_table():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    shifted = gymnasium.wrappers.TransformObservation(env, lambda s: s + 16, gymnasium.spaces.Discrete(32))
    runs = bc.train(shifted, bc.agent("backward"), 5, seed=0)
    assert (runs.values[0, :16] == runs.values[0, 0]).all()
    with pytest.raises(bc.InputError, match="this environment carries no table"):
        bc.train(shifted, bc.agent("true-forward"), 1, seed=0)


def test_states_outside_of_the_space_are_refused_before_they_reach_a_kernel():
    class Lying(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 7, 0.0, False, False, {}

    with pytest.raises(bc.InputError, match="next_state: 7 observed, but the environment's space has 0 to 2"):
        bc.train(Lying(), bc.agent("backward"), 1, 0)


def test_train_refuses():
    with pytest.raises(bc.InputError, match=r"has a table, and needs numbered states; .*features\.tiles"):
        bc.train(gymnasium.make("CartPole-v1"), bc.agent("q"), 1, 0)
    with pytest.raises(bc.InputError, match="episodes: 0 given"):
        bc.train(gymnasium.make("FrozenLake-v1"), bc.agent("q"), 0, 0)


def test_train_solves_frozen_lake():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    runs = bc.train(env, bc.agent("backward", frame="previous", epsilon=1.0), 150, seed=0)
    assert runs.reward[0, -10:].mean() >= 0.8
    assert runs.world == "FrozenLake-v1"


def assert_nothing_beyond_its_room(part):
    """All rows within a model have as many places as they use."""
    part = getattr(part, "model", part)
    if hasattr(part, "offset"):
        assert (part.used <= np.diff(part.offset)).all()
    for field in getattr(part, "_fields", vars(part) if hasattr(part, "__dict__") else ()):
        if hasattr(getattr(part, field), "_fields") or field in ("forward", "backward"):
            assert_nothing_beyond_its_room(getattr(part, field))


def test_a_wrapper_may_change_what_follows():
    """A world behind a wrapper is not trusted to know the graph: rows grow."""
    for kind, settings in (("backward", {}), ("backward", {"conditioned": True}), ("forward", {})):
        env = gymnasium.wrappers.StickyAction(TableEnv(bc.worlds.maze()), 0.3)
        runs = bc.train(env, bc.agent(kind, epsilon=1.0, **settings), 20, 0, max_steps=500)
        assert_nothing_beyond_its_room(runs.models[0])


def test_counted_starts_of_an_unknown_world_have_room():
    """Several ends lead to several starts: rows of starts grow, too, and sum to 1."""

    class Fork(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(6), gymnasium.spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            self.s = int(self.np_random.integers(2))
            return self.s, {}

        def step(self, a):
            if self.s < 2:
                self.s = 2
                return 2, 0.0, False, False, {}
            self.s = 3 + int(self.np_random.integers(3))
            return self.s, 1.0, True, False, {}

    for settings in ({"model": "counts"}, {"conditioned": True}):
        model = bc.train(Fork(), bc.agent("backward", **settings), 300, 0).models[0]
        np.testing.assert_allclose(model.states[:2].sum(axis=1), 1)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("backward", {"model": "counts"}),
        ("backward", {"conditioned": True}),
        ("forward", {"model": "counts"}),
        ("forward", {"model": "counts", "horizon": 2}),
        ("both", {}),
        ("sweeping", {}),
        ("dyna", {}),
        ("blend", {}),
    ],
)
def test_rows_that_grow_learn_what_others_do(kind, settings):
    """Behind a wrapper the graph is not known, and rows of every kind of model grow; the numbers do not change."""
    agent, world = bc.agent(kind, alpha=0.5, **settings), bc.worlds.maze(slip=0.3)
    known = bc.train(TableEnv(world), agent, 6, 3, max_steps=2000)
    unknown = bc.train(gymnasium.Wrapper(TableEnv(world)), agent, 6, 3, max_steps=2000)
    assert_nothing_beyond_its_room(unknown.models[0])
    assert known.values.any()
    np.testing.assert_array_equal(known.steps, unknown.steps)
    np.testing.assert_array_equal(known.values, unknown.values)
    assert known.updates.total[0] == unknown.updates.total[0] > 0
