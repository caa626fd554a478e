"""Cart and pole, mountain car and acrobot are Gymnasium's, transition by transition."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.studies.worldspec import WorldSpec
from backcast.worlds.kinds import WORLDS

pytestmark = pytest.mark.interpreted
THEIRS = {"cartpole": "CartPole-v1", "mountain-car": "MountainCar-v0", "acrobot": "Acrobot-v1"}
EDGES = {
    "cartpole": [[2.39, 1.0, 0, 0], [-2.399, -0.06, 0, 0], [0, 0, 0.209, 0.02], [0, 0, -0.2, -3], [2.4, 0, 0.2094, 0]],
    "mountain-car": [[-1.2, -0.07], [-1.19, -0.07], [-1.2, 0.0], [0.49, 0.07], [0.5, -0.07], [0.59, 0.07], [0.49, 0.0]],
    "acrobot": [
        [3.14, 0, 4 * np.pi, 0], [-3.14, 0, -4 * np.pi, 9 * np.pi], [np.pi, -np.pi, 1, -1], [0, 3.1, 0, 9 * np.pi],
        [2.0, 0.1, 1, 0], [np.pi / 2 + 0.524, 0, 0, 0], [0.1, -3.13, -4 * np.pi, -9 * np.pi],
    ],
}  # fmt: skip
worlds = pytest.mark.parametrize("kind", THEIRS)


def started(kind, seed=0):
    """Theirs after a reset, ours, and the state of both."""
    env = gymnasium.make(THEIRS[kind])
    env.reset(seed=seed)
    return env.unwrapped, WORLDS[kind].make()


def same(env, motion, state, a):
    """The state after a step, which is the same in both."""
    env.state = tuple(state) if motion.shape == (2,) else np.array(state, dtype=np.float64)
    if hasattr(env, "steps_beyond_terminated"):
        env.steps_beyond_terminated = None
    seen, reward, terminated, _, _ = env.step(a)
    moved = motion.step(np, np.asarray(state, dtype=np.float64), a)
    np.testing.assert_allclose(moved.state, np.asarray(env.state, dtype=np.float64), rtol=0, atol=1e-12)
    assert np.array_equal(motion.observe(np, moved.state), seen)
    assert (float(moved.reward), bool(moved.ends)) == (reward, terminated)
    return moved.state


@worlds
def test_a_step_is_theirs_along_trajectories_and_near_the_edges(kind):
    env, world = started(kind)
    motion, rng = world.motion, np.random.default_rng(1)
    ended = 0
    for seed in range(5):
        seen, _ = env.reset(seed=seed)
        state = motion.start(np, np.random.default_rng(seed).random(motion.draws))
        assert np.array_equal(motion.observe(np, state), seen)
        for _ in range(400):
            state = same(env, motion, state, int(rng.integers(motion.n_actions)))
    for edge in EDGES[kind]:
        for _ in range(20):
            near = np.array(edge) + rng.normal(scale=0.003, size=len(edge))
            for state in (edge, np.clip(near, -1.2, 0.6) if kind == "mountain-car" else near):
                for a in range(motion.n_actions):
                    same(env, motion, state, a)
                    ended += bool(motion.step(np, np.asarray(state), a).ends)
    assert ended


@worlds
def test_compiled_by_jax_a_step_is_the_same(kind):
    jax = pytest.importorskip("jax")
    _, world = started(kind)
    motion, rng = world.motion, np.random.default_rng(2)
    low, high = {"cartpole": (-2, 2), "mountain-car": (-0.6, 0.5), "acrobot": (-3, 3)}[kind]
    states = rng.uniform(low, high, (300, len(EDGES[kind][0])))
    states[: len(EDGES[kind])] = EDGES[kind]
    actions = rng.integers(motion.n_actions, size=300)
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(lambda s, a: motion.step(jax.numpy, s, a)))(states, actions)
        ours = [motion.step(np, s, a) for s, a in zip(states, actions, strict=True)]
        for here, there in zip(zip(*ours, strict=True), found, strict=True):
            np.testing.assert_allclose(np.array(there), np.array(here, dtype=np.float64), rtol=0, atol=1e-12)


SMALL = {"network": bc.networks.mlp(4), "batch": 4, "memory": 50, "alpha": 0.01, "precision": "float64"}


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("cartpole", "mountain-car", "acrobot")]


@pytest.mark.parametrize("kind", SLOW)
def test_a_run_is_what_training_in_theirs_is(kind):
    pytest.importorskip("jax")
    agent, world = bc.agent("q", **SMALL), WORLDS[kind].make()
    ours = bc.run(world, agent, steps=1100, seeds=[3])
    theirs = bc.train(gymnasium.make(THEIRS[kind]), agent, steps=1100, seed=3)
    assert np.array_equal(ours.steps, theirs.steps)
    assert np.array_equal(ours.reward, theirs.reward)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=0, atol=1e-9)
    assert ours.values.shape == (1, 0, world.n_actions)
    with pytest.raises(bc.InputError, match="models: not available, because states are vectors and have no numbers"):
        ours.models[0]


def test_a_table_is_refused_with_what_to_do():
    world = bc.worlds.cartpole()
    for agent in (bc.agent("q"), bc.agent("backward", frame="previous"), bc.agent("q", features="onehot")):
        for length in ({"steps": 10}, {"episodes": 2}):
            with pytest.raises(bc.InputError, match="those of cartpole are vectors; give it network"):
                bc.run(world, agent, seeds=1, **length)
    with pytest.raises(bc.InputError, match=r"cartpole: states are vectors, .* agents need a network"):
        bc.exact.optimal(world.mdp)
    with pytest.raises(bc.InputError, match="view: 'pixels' given, but states of cartpole are vectors"):
        world.view("pixels")


def test_they_are_kinds_of_worlds():
    assert repr(bc.worlds.mountain_car()) == "World('mountain-car', vectors (2,), max_steps=200)"
    limits = {kind: WORLDS[kind].make().max_steps for kind in THEIRS}
    assert limits == {"cartpole": 500, "mountain-car": 200, "acrobot": 500}
    short = WorldSpec(kind="cartpole", max_steps=50, discount=0.9)
    assert (short.name, short.purpose, short.judged_by) == ("cartpole", "control", "reward")
    assert (short.build().max_steps, short.build().discount) == (50, 0.9)
