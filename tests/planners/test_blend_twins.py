"""The planner that chooses, against a plain twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import PLANNING, begin, finish, observe
from plain_blend import PlainBlend
from random_worlds import random_steps, random_world

pytestmark = pytest.mark.interpreted

PRIORS = (False, True, ["shrinkage"], ["unseen"], ["untried"])
RATES = np.full(4, 0.5)


def feed(world, agent, steps, seed):
    """Both, after the same random transitions; and the twin's largest deviation."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    parts, plain, deviation = agent.build(setup), PlainBlend(agent, setup), 0.0
    for number, step in enumerate(random_steps(world, np.random.default_rng(seed), steps, cut=0.01)):
        if step[5]:
            begin(parts, RATES, step[0])
            plain.begin(RATES, step[0])
        observe(parts, RATES, *step)
        plain.observe(RATES, *step)
        if step[4]:
            finish(parts, RATES, step[3], True)
            plain.finish(RATES, step[3], True)
        if number % 25 == 0:
            deviation = max(deviation, plain.deviation())
    return parts, plain, deviation


def assert_same(parts, plain, deviation):
    assert plain.q.any()
    np.testing.assert_allclose(parts.values.as_array(), plain.q, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts.planner.value, plain.v, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(parts.planner.policy, plain.policy)
    assert parts.updates[PLANNING] == plain.updates
    assert parts.planner.gate.brings[0] == pytest.approx(plain.brings, rel=1e-9)
    assert deviation < 1e-10


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize(
    "world",
    [bc.worlds.chain((12, 6, 3, 5), seed=1), bc.worlds.maze("..G.\n.X..\nS..X", slip=0.5, reward_probability=0.5)],
    ids=lambda world: world.name,
)
def test_twins_over_two_thousand_steps(prior, world):
    assert_same(*feed(world, bc.agent("blend", prior=prior, sample=3), 2_000, seed=3))


@pytest.mark.parametrize("prior", [True, False], ids=["prior", "none"])
@pytest.mark.parametrize("control", [True, False], ids=["control", "prediction"])
@settings(max_examples=8)
@given(
    seed=st.integers(0, 10_000),
    terminals=st.integers(0, 2),
    sample=st.integers(0, 20),
    gate=st.sampled_from([0.0, 0.1, 1.0, 3.0]),
)
def test_twins_in_random_worlds_with_cycles(prior, control, seed, terminals, sample, gate):
    world = random_world(seed, control, terminals=terminals)
    assert_same(*feed(world, bc.agent("blend", prior=prior, sample=sample, gate=gate), 300, seed))
