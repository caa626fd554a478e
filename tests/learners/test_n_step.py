"""n-step methods and SARSA: what they are the same as, what they come to in the limit, and at the door."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from conforming import AgentConformance
from random_worlds import leveled, random_mdp, random_policy

CHAIN, MAZE = bc.worlds.chain((6, 4, 3, 5), seed=2), bc.worlds.maze("..G\n.X.\nS..", 0.2, 0.7)
interpreted = pytest.mark.interpreted


def both_ways(rng, levels=(3, 4, 3, 2)):
    """A leveled world of two actions: no state is visited twice in an episode."""
    one, other = leveled(rng, levels), leveled(rng, levels)
    transition = np.concatenate([one.transition, other.transition], axis=1)
    reward = np.concatenate([one.reward, other.reward], axis=1)
    return bc.worlds.from_mdp(bc.FiniteMDP(transition, reward, 0.9, one.start, one.terminal), max_steps=20)


def assert_same(runs, others):
    for name in ("values", "steps", "reward"):
        np.testing.assert_array_equal(getattr(runs, name), getattr(others, name))
    np.testing.assert_array_equal(runs.updates.total, others.updates.total)


@interpreted
@pytest.mark.parametrize(("world", "kind"), [(CHAIN, "td"), (MAZE, "q"), (MAZE, "sarsa"), (MAZE, "expected-sarsa")])
@pytest.mark.parametrize("features", [None, "given"])
def test_one_step_is_the_kind_itself(world, kind, features):
    given = {} if features is None else {"features": np.random.default_rng(1).random((world.n_states, 3))}
    one, plain = (bc.agent(kind, alpha=0.3, epsilon=0.3, **more, **given) for more in ({"horizon": 1}, {}))
    assert_same(*(bc.run(world, agent, 20, 2, max_steps=40) for agent in (one, plain)))


@interpreted
def test_expected_sarsa_without_exploration_is_q_learning():
    agents = (bc.agent(kind, alpha=0.3, epsilon=0) for kind in ("expected-sarsa", "q"))
    assert_same(*(bc.run(MAZE, agent, 20, 3, max_steps=60) for agent in agents))


@interpreted
@pytest.mark.parametrize("kind", ["td", "sarsa", "expected-sarsa"])
def test_as_many_steps_as_an_episode_has_are_monte_carlo(kind):
    """Where no pair is visited twice; if one is, it is learned from in another order."""
    world = CHAIN if kind == "td" else both_ways(np.random.default_rng(3))
    agents = bc.agent(kind, alpha=0.6, horizon=9), bc.agent("monte-carlo", alpha=0.6)
    assert_same(*(bc.run(world, agent, 60, 3) for agent in agents))


@interpreted
def test_q_learning_over_a_whole_episode_is_monte_carlo_if_it_does_not_explore():
    world = both_ways(np.random.default_rng(4))
    agents = bc.agent("q", alpha=0.6, horizon=9, epsilon=0), bc.agent("monte-carlo", alpha=0.6, epsilon=0)
    assert_same(*(bc.run(world, agent, 60, 3) for agent in agents))


# In the limit


@pytest.mark.parametrize("horizon", [None, 4])
@pytest.mark.parametrize("kind", ["sarsa", "expected-sarsa"])
def test_sarsa_evaluates_the_policy_that_acts(kind, horizon):
    """Also where episodes are cut off, for they bootstrap."""
    world, episodes = bc.worlds.maze("..G\n.X.\nS..", discount=0.9), 30_000
    random = np.full((world.n_states, world.n_actions), 1 / world.n_actions)
    agent = bc.agent(kind, horizon=horizon, alpha=0.02, epsilon=[1.0] * episodes)
    q = bc.run(world, agent, episodes, 8, max_steps=20).values.mean(axis=0)
    inner = world.mdp.reachable & ~world.mdp.terminal
    np.testing.assert_allclose(q[inner], bc.exact.action_value(world.mdp, random)[inner], atol=0.015)


def test_n_step_q_learning_becomes_optimal():
    world = bc.worlds.maze("..G\n.X.\nS..")
    agent = bc.agent("q", horizon=5, alpha=0.2, epsilon=[0.5] * 5000)
    inner = world.mdp.reachable & ~world.mdp.terminal
    q = bc.run(world, agent, 5000, 1).values[0]
    np.testing.assert_allclose(q[inner], bc.exact.optimal(world.mdp).q[inner], atol=1e-4)


def test_n_step_prediction_becomes_the_value():
    rng = np.random.default_rng(6)
    mdp = random_mdp(rng, 6, 2, terminals=1, density=0.5)
    policy = random_policy(rng, mdp)
    runs = bc.run(bc.worlds.from_mdp(mdp, policy), bc.agent("td", horizon=7, alpha=0.02), 30_000, 1)
    seen = bc.exact.stationary(mdp, policy) > 0.01
    np.testing.assert_allclose(runs.values[0][seen], bc.exact.value(mdp, policy)[seen], atol=0.1)


# At the door


@interpreted
def test_names_and_refusals():
    assert bc.agent("td", horizon=4).name == "td,horizon=4"
    for horizon in (0, 1001, 2.5):
        with pytest.raises(bc.InputError, match="horizon: "):
            bc.agent("sarsa", horizon=horizon)
    for kind in ("sarsa", "expected-sarsa"):
        with pytest.raises(bc.InputError, match=f"agent: '{kind}' works in control worlds, .*; in prediction use 'td'"):
            bc.agent(kind).build(Setup(3, 1, 0.9))


@interpreted
def test_returns_over_several_steps_are_no_model_over_them():
    assert not bc.agent("td", horizon=4).looks_far
    assert not bc.agent("sarsa", horizon=4).looks_far
    assert bc.agent("forward", horizon=4).looks_far
    assert bc.agent("true-forward", horizon=4).looks_far


@interpreted
@pytest.mark.parametrize(("kind", "n"), [("q", 5), ("sarsa", 1), ("expected-sarsa", 3)])
def test_in_a_box_what_is_forgotten_is_no_longer_learned_from(kind, n):
    chosen = bc.agent(kind, horizon=n, features=bc.features.tiles(bins=4), memory=20, alpha=0.05, epsilon=1.0)
    runs = bc.train(gymnasium.make("CartPole-v1"), chosen, 3, 0)
    assert np.isfinite(runs.weights).all()
    assert np.abs(runs.weights).max() > 0


class TestSarsa(AgentConformance):
    kind = "sarsa"
    test_without_planning_it_is_model_free = None  # it does not plan, and it is not TD or Q-learning


class TestExpectedSarsa(TestSarsa):
    kind = "expected-sarsa"


class TestThreeStepTD(TestSarsa):
    kind = "td"
    options = {"horizon": 3}  # noqa: RUF012


class TestThreeStepQ(TestSarsa):
    kind = "q"
    options = {"horizon": 3}  # noqa: RUF012


class TestThreeStepSarsa(TestSarsa):
    kind = "sarsa"
    options = {"horizon": 3}  # noqa: RUF012


class TestOneStepTD(AgentConformance):
    kind = "td"
    options = {"horizon": 1}  # noqa: RUF012
