"""Agents with features where observations are no numbers: MountainCar and CartPole, and a memory that forgets."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.extending import choice, register
from backcast.models.linear.readable import LearnedLinear
from backcast.values.observations import Observations

BOX = gymnasium.spaces.Box(0.0, 1.0, (1,))
TILES = bc.features.tiles(tilings=2, bins=4)


def test_equal_features_are_one_state_and_others_are_not():
    memory = Observations(BOX, 10, seed=0)
    features, d, given = memory.features(TILES)
    assert memory.number([0.01]) == memory.number([0.02]) == 0
    assert memory.number([0.9]) == 1
    assert memory.known == [2]
    which, size = TILES.bind(BOX).of([0.9])
    np.testing.assert_array_equal(features.which[features.offset[1] : features.offset[2]], which)
    np.testing.assert_array_equal(features.size[features.offset[1] : features.offset[2]], size)
    assert d == given == 10


def test_a_full_memory_forgets_the_quarter_not_seen_for_longest():
    memory = Observations(BOX, 4, seed=0)
    memory.features(bc.features.fourier(order=2))
    assert [memory.number([x]) for x in (0.1, 0.2, 0.3, 0.4, 0.1)] == [0, 1, 2, 3, 0]
    assert memory.number([0.5]) == 1  # 0.2 was not seen for longest
    assert memory.forgotten.tolist() == [1]
    assert memory.number([0.1]) == 0
    assert memory.forgotten.size == 0


@pytest.mark.interpreted
def test_what_is_forgotten_is_no_longer_corrected():
    """With room for 40 observations, no weight belongs to a number that was taken back and not given again."""
    env = gymnasium.make("MountainCar-v0")
    agent = bc.agent("backward", features=bc.features.fourier(order=1), alpha=0.01, alpha_model=0.3, memory=40)
    runs = bc.train(env, agent, 2, seed=0, discount=1.0)
    model, values = runs.models[0].model, runs.models[0].values
    assert values.n_states == 40
    pairs = runs.models[0].states.sum(axis=0).reshape(40, 3)
    seen = values.features.size.reshape(40, -1).any(axis=1)
    assert np.isfinite(pairs).all()
    assert not pairs[~seen].any()
    assert model.measure.rows.taken[0] <= len(model.measure.rows.link)


@pytest.mark.parametrize("features", [bc.features.tiles(tilings=8, bins=8), bc.features.fourier(order=5)], ids=str)
def test_q_learning_climbs_the_mountain(features):
    """Sutton and Barto's example 10.1: optimistic zeros explore by themselves; 200 steps are the limit."""
    alpha = 0.1 if features.kind == "tiles" else 0.005
    agent = bc.agent("q", features=features, alpha=alpha, epsilon=0.0, schedule="constant")
    runs = bc.train(gymnasium.make("MountainCar-v0"), agent, 80, seed=0, discount=1.0)
    assert runs.steps[0, -20:].mean() < 175
    assert runs.values.size == 0
    assert runs.weights.shape[1:] == (3, features.bind(gymnasium.make("MountainCar-v0")).n_features)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("forward", "expectation"),
        ("backward", "expectation"),
        ("backward", "naive"),
        ("backward", "gaussian"),
        ("backward", "abstract"),
        ("backward", "likelihood"),
        ("forward", "planner-aware"),
        ("backward", "meta"),
    ],
)
def test_every_model_plans_in_cartpole(kind, model):
    features = bc.features.tiles(tilings=4, bins=2)
    agent = bc.agent(kind, features=features, model=model, alpha=0.05, alpha_model=0.3, epsilon=0.2, memory=200)
    runs = bc.train(gymnasium.make("CartPole-v1"), agent, 8, seed=1)
    assert runs.updates.planning[0] > 0
    assert np.isfinite(runs.weights).all()
    assert isinstance(runs.models[0], LearnedLinear)
    again = bc.train(gymnasium.make("CartPole-v1"), agent, 8, seed=1)
    np.testing.assert_array_equal(runs.weights, again.weights)


@pytest.mark.slow
def test_stepwise_is_compiled_with_features_too():
    """In Backcast's own environments both drivers give the same numbers."""
    features = bc.features.tiles(tilings=4, bins=3)
    agent = bc.agent("backward", features=features, alpha=0.1, alpha_model=0.5)
    runs = bc.run(bc.worlds.maze(), agent, 20, [3])
    steps = bc.train(gymnasium.make("backcast/Maze-v0"), agent, 20, seed=3)
    np.testing.assert_allclose(steps.weights, runs.weights, rtol=0, atol=1e-12)


@pytest.mark.interpreted
def test_an_unknown_graph_has_room_that_grows():
    """A wrapper hides the table of the maze: rows grow, and the numbers are the same."""
    features = bc.features.tiles(tilings=4, bins=3)
    agent = bc.agent("backward", features=features, learn_by="rls", alpha=0.1)
    hidden = gymnasium.wrappers.TransformObservation(gymnasium.make("backcast/Maze-v0"), lambda s: s, None)
    known = bc.train(gymnasium.make("backcast/Maze-v0"), bc.agent("q"), 2, seed=0)
    assert known.values.size
    runs = bc.train(hidden, agent, 4, seed=3)
    assert np.isfinite(runs.weights).all()


@pytest.mark.parametrize(
    ("env", "agent", "message"),
    [
        ("CartPole-v1", bc.agent("q"), r"'q' has a table, and needs numbered states; .*features\.tiles"),
        ("Pendulum-v1", bc.agent("q", features=TILES), "its action space is .*, expected Discrete"),
        ("CartPole-v1", bc.agent("backward", features=TILES, model="counts"), "has a model of numbered states"),
        ("CartPole-v1", bc.agent("q", features=bc.features.onehot()), "onehot: it needs numbered states"),
    ],
)
def test_train_refuses(env, agent, message):
    with pytest.raises(bc.InputError, match=message):
        bc.train(gymnasium.make(env), agent, 1, 0)


@pytest.mark.interpreted
def test_a_setting_of_ones_own_may_have_any_value():
    """`model` and "counts" mean what a kind says that they mean: here there is no model of numbered states."""
    register("mine", settings=("features", choice("model", "anything", "counts", "true")))(KINDS["q"].build)
    runs = bc.train(gymnasium.make("CartPole-v1"), bc.agent("mine", features=TILES, model="counts"), 1, 0)
    assert runs.steps[0, 0] > 0
    register("numbered", numbered=True, settings=("features",))(KINDS["q"].build)
    with pytest.raises(bc.InputError, match=r"'numbered,features=.*' has a model of numbered states; .* space is Box"):
        bc.train(gymnasium.make("CartPole-v1"), bc.agent("numbered", features=TILES), 1, 0)


@pytest.mark.interpreted
def test_true_kinds_plan_with_the_truth_also_with_features():
    world, features = bc.worlds.boyan(), bc.features.interpolate()
    for kind in ("forward", "backward"):
        short = bc.run(world, bc.agent(f"true-{kind}", features=features, alpha=0.2), 50, 2)
        long = bc.run(world, bc.agent(kind, model="true", features=features, alpha=0.2), 50, 2)
        learned = bc.run(world, bc.agent(kind, features=features, alpha=0.2), 50, 2)
        np.testing.assert_array_equal(short.weights, long.weights)
        assert np.abs(short.weights - learned.weights).max() > 1e-3
