"""Monte Carlo, eligibility traces and expected eligibility traces: special cases, and in the limit."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from conforming import AgentConformance
from random_worlds import cyclic_world, dense, random_mdp, random_policy


@pytest.mark.parametrize("kind", ["td-lambda", "q-lambda", "expected-trace"])
def test_lam_0_is_td_or_q_learning(kind):
    world = bc.worlds.maze(slip=0.2) if kind == "q-lambda" else bc.worlds.chain((6, 4, 3), seed=0)
    for traces in ("accumulating", "replacing") if kind != "expected-trace" else (None,):
        runs = bc.run(world, bc.agent(kind, lam=0, traces=traces, alpha=0.7), 200, 3)
        plain = bc.run(world, bc.agent("td" if world.is_prediction else "q", alpha=0.7), 200, 3)
        np.testing.assert_allclose(runs.values, plain.values, rtol=1e-12, atol=1e-12)
        assert np.array_equal(runs.steps, plain.steps)
        assert np.array_equal(runs.updates.total, plain.updates.total)


def test_lam_1_is_monte_carlo_where_no_state_is_visited_twice():
    world = bc.worlds.chain((6, 4, 3, 5), seed=2)
    returns = bc.run(world, bc.agent("monte-carlo", alpha=0.6), 300, 4)
    traces = bc.run(world, bc.agent("td-lambda", lam=1.0, alpha=0.6), 300, 4)
    np.testing.assert_allclose(traces.values, returns.values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kind", "world"), [("td-lambda", cyclic_world(4)), ("q-lambda", bc.worlds.maze(slip=0.3))])
def test_expected_traces_that_forget_at_once_are_traces(kind, world):
    plain = bc.run(world, bc.agent(kind, alpha=0.2), 60, 3)
    expected = bc.run(world, bc.agent("expected-trace", alpha=0.2, alpha_model=[1.0] * 60), 60, 3)
    assert np.array_equal(plain.values, expected.values)
    assert np.array_equal(plain.updates.total, expected.updates.total)


# In the limit


def test_expected_traces_become_a_discounted_backward_model():
    """Z = D⁻¹ (I − γλ Pᵀ)⁻¹ D with the chain P of an episode, that does not restart, and D = diag(d_π)."""
    rng, episodes = np.random.default_rng(5), 60_000
    mdp = random_mdp(rng, 6, 2, terminals=1, density=0.5)
    policy = random_policy(rng, mdp)
    agent = bc.agent("expected-trace", lam=0.8, alpha=0.01, alpha_model=[0.0] * episodes)  # a mean over all visits
    (model,) = bc.run(bc.worlds.from_mdp(mdp, policy), agent, episodes, 1).models
    d, inner = bc.exact.stationary(mdp, policy), ~mdp.terminal
    P = dense(bc.exact.chain(mdp, policy)) * inner[:, None]
    ways = np.linalg.inv(np.eye(mdp.n_states) - mdp.discount * 0.8 * P)
    expected = (d[:, None] * ways).T / d[:, None]
    seen = inner & (d > 0.01)
    assert seen.sum() >= 4
    np.testing.assert_allclose(model.matrix[seen], expected[seen] * inner, atol=0.02)


@pytest.mark.parametrize("kind", ["monte-carlo", "td-lambda", "expected-trace"])
def test_prediction_becomes_the_value(kind):
    rng = np.random.default_rng(6)
    mdp = random_mdp(rng, 6, 2, terminals=1, density=0.5)
    policy = random_policy(rng, mdp)
    runs = bc.run(bc.worlds.from_mdp(mdp, policy), bc.agent(kind, alpha=0.02, alpha_model=0.02), 30_000, 1)
    seen = bc.exact.stationary(mdp, policy) > 0.01
    np.testing.assert_allclose(runs.values[0][seen], bc.exact.value(mdp, policy)[seen], atol=0.1)


@pytest.mark.parametrize("kind", ["q-lambda", "expected-trace"])
def test_control_becomes_optimal(kind):
    world = bc.worlds.maze("..G\n.X.\nS..")
    agent = bc.agent(kind, alpha=0.2, alpha_model=[0.1] * 3000, epsilon=[0.9] * 3000, lam=0.8)
    inner = ~world.mdp.terminal
    q = bc.run(world, agent, 3000, 1).values[0]
    np.testing.assert_allclose(q[inner], bc.exact.optimal(world.mdp).q[inner], atol=1e-6)


def test_monte_carlo_control_evaluates_the_policy_that_acts():
    world, episodes = bc.worlds.maze("..G\n.X.\nS.."), 100_000
    random = np.full((world.n_states, world.n_actions), 1 / world.n_actions)
    agent = bc.agent("monte-carlo", alpha=0.005, epsilon=[1.0] * episodes)
    q = bc.run(world, agent, episodes, 1, max_steps=100_000).values[0]
    inner = ~world.mdp.terminal
    np.testing.assert_allclose(q[inner], bc.exact.action_value(world.mdp, random)[inner], atol=0.01)


# At the door


@pytest.mark.parametrize("kind", ["td-lambda", "q-lambda", "expected-trace"])
def test_one_lam_for_all_states(kind):
    agent = bc.agent(kind, lam=[0.5, 0.5, 0.5])
    with pytest.raises(bc.InputError, match=f"lam: one for each state given, but '{kind}' .* a number in"):
        agent.build(Setup(3, 2 if kind == "q-lambda" else 1, 0.9))


def test_expected_traces_need_a_world_that_fits_into_memory():
    agent = bc.agent("expected-trace")
    agent.build(Setup(2236, 2, 0.9))
    with pytest.raises(bc.InputError, match=r"agent: 'expected-trace' .* 4,474 × 4,474 .* at most 20,000,000"):
        agent.build(Setup(2237, 2, 0.9))


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["monte-carlo", "q-lambda", "expected-trace"])
def test_any_gymnasium_environment(kind):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=30)
    runs = bc.train(env, bc.agent(kind, alpha=0.5, epsilon=[1.0] * 200), 200, seed=0)
    assert runs.values.max() > 0.5
    assert runs.updates.total[0] >= runs.steps.sum()


class TestMonteCarlo(AgentConformance):
    kind = "monte-carlo"
    test_without_planning_it_is_model_free = None  # it does not plan, and it is not TD or Q-learning


class TestTDLambda(AgentConformance):
    kind = "td-lambda"
    test_without_planning_it_is_model_free = None  # as above
    test_value_updates_are_counted = None  # one for each trace instead of one a step, as the twin counts


class TestQLambda(TestTDLambda):
    kind = "q-lambda"


class TestExpectedTrace(TestTDLambda):
    kind = "expected-trace"


class TestTDLambda0(AgentConformance):
    kind = "td-lambda"
    options = {"lam": 0.0}  # noqa: RUF012


class TestQLambda0(AgentConformance):
    kind = "q-lambda"
    options = {"lam": 0.0, "traces": "replacing"}  # noqa: RUF012


class TestExpectedTrace0(AgentConformance):
    kind = "expected-trace"
    options = {"lam": 0.0, "alpha_model": 0.1}  # noqa: RUF012
