"""Dyna, Dyna-Q+, replay and prioritized replay against plain twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, finish, observe
from plain_replaying import TWINS, PlainPrioritizedReplay
from random_worlds import random_world

pytestmark = pytest.mark.interpreted

EVERYWHERE = [kind for kind in TWINS if kind != "dyna-plus"]
SMALL = {"replay": {"buffer": 37}, "prioritized-replay": {"buffer": 37}, "dyna-plus": {"bonus": 0.05}}


def feed(world, agent, steps, seed):
    """The parts and the twin, after the same random transitions; step sizes fall.

    Prioritized replay magnifies rounding: an error of 10⁻¹⁶ in the least priority, about 10⁻⁶, is one of 10⁻¹⁰ in the
    weights of all transitions, and so on (a twin whose values begin at 10⁻¹⁵ ends elsewhere than one that begins at 0).
    So its twin is compared after each step, and goes on from the kernel's values.
    """
    setup = Setup(world.n_states, world.n_actions, world.discount, world, seed)
    parts, twin = agent.build(setup), TWINS[agent.kind](agent, setup)
    rng, s = np.random.default_rng(seed), -1
    for taken, rates in enumerate(agent.rates(steps)):
        table = world.at(taken).steps_table
        if first := s < 0:
            s = int(table.draw_start(rng.random()))
            if world.mdp.terminal[s]:
                s = -1
                continue
            begin(parts, rates, s)
        a = int(rng.integers(world.n_actions))
        outcome = table.draw_outcome(s, a, rng.random())
        s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
        ends = bool(world.mdp.terminal[s2])
        observe(parts, rates, s, a, r, s2, ends, first)
        twin.observe(rates, s, a, r, s2, ends)
        if agent.kind == "prioritized-replay":
            assert_same(parts, twin)
            twin.q[:] = parts.values.as_array()
        s = s2
        if ends or rng.random() < 0.01:  # some episodes are cut off
            finish(parts, rates, s, ends)
            s = -1
    return parts, twin


def assert_same(parts, twin):
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert parts.updates.tolist() == twin.updates
    if isinstance(twin, PlainPrioritizedReplay):
        leaves = parts.model.sums[parts.model.sums.size // 2 :]
        powers = twin.priority[: len(twin.memory)] ** twin.exponent
        np.testing.assert_allclose(leaves[: len(powers)], powers, rtol=1e-8)
        assert not leaves[len(powers) :].any()


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_twins_on_a_chain(kind, learn):
    world = bc.worlds.chain((12, 6, 3, 5), seed=1)
    assert_same(*feed(world, bc.agent(kind, learn=learn, **SMALL.get(kind, {})), 2000, seed=2))


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("kind", TWINS)
def test_twins_in_a_maze(kind, learn):
    world = bc.worlds.maze("..G.\n.X..\nS..X", slip=0.5, reward_probability=0.5)
    agent = bc.agent(kind, learn=learn, alpha=0.5, alpha_plan=0.3)
    parts, twin = feed(world, agent, 2000, seed=3)
    assert parts.values.as_array().max() > 0
    assert_same(parts, twin)


@pytest.mark.parametrize("kind", TWINS)
def test_twins_that_average(kind):
    world = bc.worlds.maze("..G.\n.X..\nS..X", slip=0.5, reward_probability=0.5)
    agent = bc.agent(kind, alpha=[0.9, 0.8] * 1000, alpha_plan=0.7, schedule="average")
    parts, twin = feed(world, agent, 2000, seed=5)
    assert parts.values.as_array().max() > 0
    assert_same(parts, twin)


@pytest.mark.slow
@pytest.mark.parametrize("forget", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("kind", ["dyna", "dyna-plus"])
def test_twins_that_forget(kind, forget):
    """In a maze whose walls move, so that a pair has led to several states; rewards are random, and forgotten, too."""
    world = bc.worlds.maze("..G.\n.X..\nS..X", 0.3, 0.5, later=(1000, "X.G.\n....\nS.X."))
    parts, twin = feed(world, bc.agent(kind, alpha=0.5, forget=forget), 2000, seed=4)
    assert parts.values.as_array().max() > 0
    assert_same(parts, twin)


@pytest.mark.parametrize(("kind", "control"), [(kind, True) for kind in TWINS] + [(kind, False) for kind in EVERYWHERE])
@settings(max_examples=6)
@given(
    seed=st.integers(0, 10_000),
    sample=st.integers(1, 6),
    terminals=st.integers(0, 2),
    buffer=st.integers(1, 70),
    exponent=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
)
def test_twins_in_random_worlds_with_cycles(kind, control, seed, sample, terminals, buffer, exponent):
    of_memories = {"replay": {"buffer": buffer}, "prioritized-replay": {"buffer": buffer, "exponent": exponent}}
    options = SMALL.get(kind, {}) | of_memories.get(kind, {})
    agent = bc.agent(kind, alpha=0.3, schedule="constant", sample=sample, **options)
    assert_same(*feed(random_world(seed, control, terminals=terminals), agent, 400, seed))
