"""Kernels against the dense NumPy twin, fed with the same transitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.kinds import Setup
from backcast.drivers.loop import begin, observe
from backcast.twins.dense import DenseTwin
from random_worlds import random_mdp, random_policy, random_steps

PREDICTION = [
    (kind, frame, learn)
    for kind in ("forward", "backward", "true-forward", "true-backward")
    for frame in ("previous", "current")
    for learn in (True, False)
] + [("td", None, True)]
CONTROL = [(kind, frame, learn) for kind, frame, learn in PREDICTION if kind not in ("td", "true-backward")]
CONTROL += [("q", None, True)]


def feed(world, agent, steps, seed, episodes=40):
    """Both, after the same random transitions; step sizes fall as in a run."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    parts, twin = agent.build(setup), DenseTwin(agent, setup)
    schedule = agent.rates(episodes)
    for number, step in enumerate(random_steps(world, np.random.default_rng(seed), steps, cut=0.001)):
        s, _, _, _, _, first = step
        rates = schedule[max(0, number - 1) * episodes // steps if steps > episodes else 0]
        if first:
            begin(parts, rates, s)
            twin.begin(rates, s)
        observe(parts, rates, *step)
        twin.observe(rates, *step)
    return parts, twin


def assert_equal_models(parts, twin, world):
    from backcast.twins.dense import softmax

    model = parts.model.readable(parts.values)
    if twin.agent.kind == "backward":
        S, A = world.n_states, world.n_actions
        dense = softmax(twin.backward_logits.reshape(S, S * A)).reshape(S, S, A)
        np.testing.assert_allclose(model.joint, dense, atol=1e-10)
    if twin.agent.kind == "forward":
        np.testing.assert_allclose(model.transition, softmax(twin.forward_logits), atol=1e-10)


@pytest.mark.parametrize(("kind", "frame", "learn"), PREDICTION)
def test_prediction_on_a_chain_for_ten_thousand_steps(kind, frame, learn):
    world = bc.worlds.chain((12, 6, 3, 5), seed=1)
    parts, twin = feed(world, bc.agent(kind, frame=frame, learn=learn), 10_000, seed=2)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert_equal_models(parts, twin, world)


@pytest.mark.parametrize(("kind", "frame", "learn"), CONTROL)
@pytest.mark.parametrize(
    "world", [bc.worlds.maze(), bc.worlds.maze(slip=0.5, reward_probability=0.5)], ids=lambda w: w.name
)
def test_control_in_the_papers_maze_for_ten_thousand_steps(world, kind, frame, learn):
    parts, twin = feed(world, bc.agent(kind, frame=frame, learn=learn), 10_000, seed=3)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert_equal_models(parts, twin, world)


@settings(max_examples=60)
@given(
    st.sampled_from(PREDICTION),
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.integers(0, 10_000),
    st.sampled_from([0.1, 1.0]),
)
def test_prediction_on_random_chains(choice, levels, seed, alpha):
    kind, frame, learn = choice
    agent = bc.agent(kind, frame=frame, learn=learn, alpha=alpha, alpha_model=0.7)
    world = bc.worlds.chain(levels, seed=seed)
    parts, twin = feed(world, agent, 600, seed)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert_equal_models(parts, twin, world)


@settings(max_examples=60)
@given(st.sampled_from(CONTROL + PREDICTION), st.integers(0, 10_000), st.integers(0, 2), st.sampled_from([0.1, 1.0]))
def test_random_worlds_with_cycles(choice, seed, terminals, alpha):
    kind, frame, learn = choice
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, terminals=terminals, density=0.4)
    world = bc.worlds.from_mdp(mdp, random_policy(rng, mdp) if choice in PREDICTION else None, max_steps=50)
    agent = bc.agent(kind, frame=frame, learn=learn, alpha=alpha, schedule="constant")
    parts, twin = feed(world, agent, 600, seed)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert_equal_models(parts, twin, world)


@settings(max_examples=30)
@given(st.sampled_from(CONTROL), st.integers(0, 10_000), st.floats(0, 1), st.sampled_from([0.1, 0.5, 1.0]))
def test_control_in_random_mazes(choice, seed, slip, reward_probability):
    kind, frame, learn = choice
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((5, 6)) < 0.25, "X", ".")
    cells[2, :], cells[2, 0], cells[2, 5] = ".", "S", "G"
    world = bc.worlds.maze("\n".join("".join(row) for row in cells), slip, reward_probability)
    parts, twin = feed(world, bc.agent(kind, frame=frame, learn=learn, alpha=0.8), 500, seed)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert_equal_models(parts, twin, world)
