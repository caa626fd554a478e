"""Kernels with linear values against the plain NumPy agent, fed with the same transitions."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS, register
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, observe
from backcast.twins.linear import LinearTwin
from random_worlds import random_steps

pytestmark = pytest.mark.interpreted
RATES = np.full(4, 0.1)


def both_after(agent, steps=300):
    """The weights of an agent and of its twin after the same random transitions."""
    world = bc.worlds.boyan()
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    parts, twin = agent.build(setup), LinearTwin(agent, setup)
    walked = random_steps(world, np.random.default_rng(0), steps, cut=0.001)
    for s, a, r, s2, ends, first in walked:
        if first:
            begin(parts, RATES, s)
        observe(parts, RATES, s, a, r, s2, ends, first)
        twin.observe(RATES, s, a, r, s2, ends, first)
    return parts.values.w, twin.w


@pytest.mark.parametrize("kind", ["td", "forward", "backward"])
@pytest.mark.parametrize("learn_by", ["lms", "rls"])
def test_weights_are_those_of_the_twin(kind, learn_by):
    settings = {} if kind == "td" else {"learn_by": learn_by}
    agent = bc.agent(kind, features=bc.features.interpolate(), alpha=0.1, alpha_model=0.1, **settings)
    mine, theirs = both_after(agent)
    assert np.abs(mine).max() > 1
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_twin_plans_as_the_kind_says_whatever_its_name_is(direction):
    its = KINDS[direction]
    register("td-like", frame=its.frame, direction=direction, settings=its.settings)(its.build)
    agent = bc.agent("td-like", features=bc.features.interpolate(), alpha=0.1, alpha_model=0.1)
    mine, theirs = both_after(agent)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert np.abs(mine - both_after(bc.agent("td", features=bc.features.interpolate(), alpha=0.1))[0]).max() > 0.1
