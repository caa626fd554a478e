"""Kernels against the dense NumPy twin, fed with the same transitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from backcast.twins.dense import DenseTwin, softmax
from random_worlds import random_steps, random_world
from twinned import feed_both

pytestmark = pytest.mark.interpreted

PREDICTION = [
    (kind, frame, learn)
    for kind in ("forward", "backward", "true-forward", "true-backward")
    for frame in ("previous", "current")
    for learn in (True, False)
] + [("td", None, True)]
CONTROL = [(kind, frame, learn) for kind, frame, learn in PREDICTION if kind not in ("td", "true-backward")]
CONTROL += [("q", None, True)]
CHAIN, MAZE, NOISY = bc.worlds.chain((12, 6, 3, 5), seed=1), bc.worlds.maze(), bc.worlds.maze(None, 0.5, 0.5)

seeds = st.integers(0, 10_000)
step_sizes = st.sampled_from([0.1, 1.0])


def assert_equal_to_the_twin(world, agent, steps, seed, episodes=40):
    """Values and learned models, after the same random transitions; step sizes fall as in a run."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    parts, twin, schedule = agent.build(setup), DenseTwin(agent, setup), agent.rates(episodes)
    walked = random_steps(world, np.random.default_rng(seed), steps, cut=0.001)
    feed_both(parts, twin, walked, lambda number: schedule[max(0, number - 1) * episodes // steps])
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    model = parts.model.readable(parts.values)
    if agent.kind == "backward":
        S, A = world.n_states, world.n_actions
        dense = softmax(twin.backward_logits.reshape(S, S * A)).reshape(S, S, A)
        np.testing.assert_allclose(model.joint, dense, atol=1e-10)
    if agent.kind == "forward":
        np.testing.assert_allclose(model.transition, softmax(twin.forward_logits), atol=1e-10)


@pytest.mark.parametrize(("kind", "frame", "learn"), PREDICTION)
def test_prediction_on_a_chain(kind, frame, learn):
    assert_equal_to_the_twin(CHAIN, bc.agent(kind, frame=frame, learn=learn), 2_000, seed=2)


@pytest.mark.parametrize(("kind", "frame", "learn"), CONTROL)
@pytest.mark.parametrize("world", [pytest.param(MAZE, marks=pytest.mark.slow), NOISY], ids=lambda w: w.name)
def test_control_in_the_papers_maze(world, kind, frame, learn):
    assert_equal_to_the_twin(world, bc.agent(kind, frame=frame, learn=learn), 2_000, seed=3)


@pytest.mark.parametrize(("kind", "frame", "learn"), [each for each in PREDICTION if each[0] != "backward"])
def test_prediction_in_averages(kind, frame, learn):
    agent = bc.agent(kind, frame=frame, learn=learn, alpha=0.9, alpha_model=0.8, schedule="average")
    assert_equal_to_the_twin(CHAIN, agent, 2_000, seed=2)


@pytest.mark.parametrize(("kind", "frame", "learn"), [each for each in CONTROL if each[0] != "backward"])
def test_control_in_averages(kind, frame, learn):
    agent = bc.agent(kind, frame=frame, learn=learn, alpha=0.9, alpha_model=0.8, schedule="average")
    assert_equal_to_the_twin(bc.worlds.maze("..G.\n.X..\nS..X", slip=0.5, reward_probability=0.5), agent, 2_000, seed=3)


@pytest.mark.parametrize(("world", "kind"), [(CHAIN, "backward"), (NOISY, "forward")], ids=["prediction", "control"])
def test_ten_thousand_steps(world, kind):
    assert_equal_to_the_twin(world, bc.agent(kind), 10_000, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "frame", "learn"), PREDICTION)
@settings(max_examples=4)
@given(levels=st.lists(st.integers(1, 6), min_size=2, max_size=4), seed=seeds, alpha=step_sizes)
def test_prediction_on_random_chains(kind, frame, learn, levels, seed, alpha):
    agent = bc.agent(kind, frame=frame, learn=learn, alpha=alpha, alpha_model=0.7)
    assert_equal_to_the_twin(bc.worlds.chain(levels, seed=seed), agent, 600, seed)


@pytest.mark.parametrize(
    ("control", "kind", "frame", "learn"), [(False, *each) for each in PREDICTION] + [(True, *each) for each in CONTROL]
)
@settings(max_examples=3)
@given(seed=seeds, terminals=st.integers(0, 2), alpha=step_sizes)
def test_random_worlds_with_cycles(control, kind, frame, learn, seed, terminals, alpha):
    agent = bc.agent(kind, frame=frame, learn=learn, alpha=alpha, schedule="constant")
    assert_equal_to_the_twin(random_world(seed, control, terminals=terminals), agent, 600, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "frame", "learn"), CONTROL)
@settings(max_examples=3)
@given(seed=seeds, slip=st.floats(0, 1), reward_probability=st.sampled_from([0.1, 0.5, 1.0]))
def test_control_in_random_mazes(kind, frame, learn, seed, slip, reward_probability):
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((5, 6)) < 0.25, "X", ".")
    cells[2, :], cells[2, 0], cells[2, 5] = ".", "S", "G"
    world = bc.worlds.maze("\n".join("".join(row) for row in cells), slip, reward_probability)
    assert_equal_to_the_twin(world, bc.agent(kind, frame=frame, learn=learn, alpha=0.8), 500, seed)
