"""n-step methods, Monte Carlo, eligibility traces and expected eligibility traces against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from backcast.core.interaction import ALPHA, ALPHA_MODEL, EPSILON
from backcast.drivers.loop import begin, finish, observe
from plain_learners import (
    PlainExpectedSarsa,
    PlainExpectedTraces,
    PlainMonteCarlo,
    PlainNStep,
    PlainSarsa,
    PlainTraces,
)
from random_worlds import cyclic_world, random_world

pytestmark = pytest.mark.interpreted


def twin_of(agent, world):
    sizes = world.n_states, world.n_actions, world.discount
    lam, n, averages = agent.get("lam", 0.9), agent.get("horizon", 1), agent.averages
    over_steps = {"td": PlainNStep, "q": PlainNStep, "sarsa": PlainSarsa, "expected-sarsa": PlainExpectedSarsa}
    if agent.kind in over_steps:
        return over_steps[agent.kind](*sizes, n, averages)
    if agent.kind == "monte-carlo":
        return PlainMonteCarlo(*sizes, averages)
    if agent.kind == "expected-trace":
        return PlainExpectedTraces(*sizes, lam, averages=averages)
    return PlainTraces(*sizes, lam, agent.get("traces") == "replacing", averages=averages)


def feed(world, agent, steps, seed, twin=None, episodes=40):
    """Kernel and twin after the same transitions; actions are mostly greedy, and some episodes are cut off."""
    parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
    twin = twin or twin_of(agent, world)
    rng, table, schedule = np.random.default_rng(seed), world.steps_table, agent.rates(episodes)
    s = -1
    for step in range(steps):
        rates = schedule[step * episodes // steps]
        twin.epsilon = rates[EPSILON]
        first = s < 0
        if first:
            s = int(table.draw_start(rng.random()))
            begin(parts, rates, s)
        greedy = np.flatnonzero(twin.q[s] == twin.q[s].max())
        a = int(rng.choice(greedy) if rng.random() < 0.7 else rng.integers(world.n_actions))
        outcome = table.draw_outcome(s, a, rng.random())
        s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
        ends = bool(world.mdp.terminal[s2])
        observe(parts, rates, s, a, r, s2, ends, first)
        twin.observe(rates[ALPHA], rates[ALPHA_MODEL], s, a, r, s2, ends, first)
        s = s2
        if ends or rng.random() < 0.01 or step == steps - 1:
            finish(parts, rates, s, ends)
            twin.finish(rates[ALPHA], s, ends)
            s = -1
    return parts, twin


def assert_equal(parts, twin):
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert parts.updates.tolist() == [twin.updates, 0]
    if isinstance(twin, PlainExpectedTraces):
        np.testing.assert_allclose(parts.model.matrix, twin.z.reshape(2 * [twin.q.size]), rtol=1e-10, atol=1e-10)


PREDICTION = [
    bc.agent("td", alpha=0.5, horizon=3),
    bc.agent("td", alpha=0.2, horizon=50),
    bc.agent("monte-carlo", alpha=0.5),
    bc.agent("td-lambda", alpha=0.3),
    bc.agent("td-lambda", alpha=0.3, lam=1.0, traces="replacing"),
    bc.agent("expected-trace", alpha=0.2, alpha_model=0.3),
    bc.agent("expected-trace", alpha=0.2, alpha_model=0.01, lam=0.6),
    bc.agent("monte-carlo", schedule="average"),
    bc.agent("td-lambda", lam=0.7, alpha=0.8, schedule="average"),
    bc.agent("expected-trace", lam=0.5, alpha_model=0.9, schedule="average"),
]
CONTROL = [
    bc.agent("q", alpha=0.5, horizon=3),
    bc.agent("q", alpha=0.5, horizon=3, schedule="average"),
    bc.agent("sarsa", schedule="average"),
    bc.agent("q", alpha=0.1, horizon=200),
    bc.agent("sarsa", alpha=0.5, epsilon=0.4),
    bc.agent("sarsa", alpha=0.2, epsilon=0.3, horizon=4),
    bc.agent("expected-sarsa", alpha=0.5, epsilon=0.4),
    bc.agent("expected-sarsa", alpha=0.2, epsilon=0.3, horizon=7),
    bc.agent("monte-carlo", alpha=0.5),
    bc.agent("q-lambda", alpha=0.3),
    bc.agent("q-lambda", alpha=0.3, lam=0.5, traces="replacing"),
    bc.agent("expected-trace", alpha=0.1, alpha_model=0.5, lam=0.5),
    bc.agent("expected-trace", alpha=0.05, alpha_model=0.02, lam=0.3),
    bc.agent("q-lambda", lam=0.7, traces="replacing", schedule="average"),
    bc.agent("expected-trace", lam=0.5, alpha=0.7, schedule="average"),
]


@pytest.mark.parametrize("agent", PREDICTION, ids=lambda agent: agent.name)
def test_prediction_is_that_of_the_twin(agent):
    for seed, world in enumerate((bc.worlds.chain((12, 6, 3, 5), seed=1), cyclic_world(0), cyclic_world(1))):
        assert_equal(*feed(world, agent, 2000, seed))


@pytest.mark.parametrize("agent", CONTROL, ids=lambda agent: agent.name)
def test_control_is_that_of_the_twin(agent):
    for seed, world in enumerate((bc.worlds.maze(), bc.worlds.maze(slip=0.3, reward_probability=0.5))):
        parts, twin = feed(world, agent, 5000, seed)
        assert twin.q.any()
        assert_equal(parts, twin)


@pytest.mark.parametrize(
    ("control", "agent"),
    [(False, agent) for agent in PREDICTION] + [(True, agent) for agent in CONTROL],
    ids=lambda given: getattr(given, "name", given),
)
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), terminals=st.integers(0, 2))
def test_random_worlds_with_cycles(control, agent, seed, terminals):
    assert_equal(*feed(random_world(seed, control, terminals=terminals), agent, 500, seed))


def test_the_traces_that_are_dropped_are_too_small_to_matter():
    world, agent = cyclic_world(2), bc.agent("td-lambda", alpha=0.3)
    parts, twin = feed(world, agent, 2000, 3, PlainTraces(world.n_states, 1, world.discount, 0.9, smallest=0.0))
    np.testing.assert_allclose(parts.values.as_array(), twin.q, atol=1e-6)
    assert parts.updates[0] < twin.updates
    agent = bc.agent("expected-trace", alpha=0.1, alpha_model=0.1)
    twin = PlainExpectedTraces(world.n_states, 1, world.discount, 0.9, smallest=0.0)
    parts, twin = feed(world, agent, 2000, 3, twin)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, atol=1e-6)
