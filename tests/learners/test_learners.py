"""Monte Carlo, eligibility traces and expected eligibility traces."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.kinds import Setup
from backcast.core.interaction import ALPHA, ALPHA_MODEL
from backcast.drivers.loop import begin, finish, observe
from backcast.testing import AgentConformance
from plain_learners import PlainExpectedTraces, PlainMonteCarlo, PlainTraces
from random_worlds import dense, random_mdp, random_policy

RATES = np.array([0.5, 0.25, 0.5, 0.0])


# By hand


def built(agent, n_states, n_actions=1, max_steps=None):
    return agent.build(Setup(n_states, n_actions, 0.5, max_steps=max_steps))


def walk(parts, *steps, cut=False):
    """One episode of literal steps (s, a, r, s'), which ends with the last of them or is cut off there."""
    for t, (s, a, r, s2) in enumerate(steps):
        if t == 0:
            begin(parts, RATES, s)
        observe(parts, RATES, s, a, r, s2, t == len(steps) - 1 and not cut, t == 0)
    finish(parts, RATES, s2, not cut)
    return parts.values.as_array()


def test_monte_carlo_learns_from_every_visit():
    """Returns from the last step to the first: 4, 2, 3 and 2.5, of the states 1, 0, 1 and 0."""
    parts = built(bc.agent("monte-carlo"), 3)
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 0), (0, 0, 0.0, 1), (1, 0, 4.0, 2))
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * (2.5 - 1), 2 + 0.5 * (3 - 2), 0])
    assert parts.updates.tolist() == [4, 0]


@pytest.mark.parametrize(("cut", "goes_on"), [(True, 3.0), (False, 0.0)])
def test_monte_carlo_bootstraps_where_an_episode_was_cut_off(cut, goes_on):
    parts = built(bc.agent("monte-carlo"), 4, 2)
    parts.values.fill([0, 0, 1, 3, 0, 0, 0, 0])
    q = walk(parts, (2, 1, 4.0, 0), (0, 1, 1.0, 1), cut=cut)
    g = 1 + 0.5 * goes_on
    np.testing.assert_allclose(q, [[0, 0.5 * g], [1, 3], [0, 0.5 * (4 + 0.5 * g)], [0, 0]])


def test_monte_carlo_forgets_the_oldest_visits_of_a_long_episode():
    parts = built(bc.agent("monte-carlo"), 4, max_steps=2)
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(v[:, 0], [0, 0.5 * 4, 0.5 * 4, 0])
    assert parts.updates.tolist() == [2, 0]
    v = walk(parts, (0, 0, 6.0, 3))
    np.testing.assert_allclose(v[:, 0], [3, 2, 2, 0])
    room = {limit: built(bc.agent("monte-carlo"), 4, max_steps=limit).learner.past.pairs.size for limit in (7, 10**9)}
    assert room == {7: 7, 10**9: 100_000}
    assert built(bc.agent("monte-carlo"), 4).learner.past.pairs.size == 100_000


@pytest.mark.parametrize(
    ("traces", "v0"), [("accumulating", 0.78125 + 0.5 * 3.21875 * 1.0625), ("replacing", 2.390625)]
)
def test_td_lambda(traces, v0):
    """γλ = 1/4. 0 → 1: δ = 1; 1 → 0: δ = 2.25, v(0) = 0.78125; 0 → 2 ends: δ = 3.21875 with e(0) = 17/16 or 1."""
    parts = built(bc.agent("td-lambda", lam=0.5, traces=traces), 3)
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 0), (0, 0, 4.0, 2))
    np.testing.assert_allclose(v[:, 0], [v0, 1.125 + 0.5 * 3.21875 * 0.25, 0])
    assert parts.updates.tolist() == [5, 0]


def test_td_lambda_of_1_moves_towards_the_return_where_no_state_is_visited_twice():
    """The returns are 3, 4 and 4; the traces of one episode play no part in the next."""
    parts = built(bc.agent("td-lambda", lam=1), 4)
    episode = (0, 0, 1.0, 1), (1, 0, 2.0, 2), (2, 0, 4.0, 3)
    np.testing.assert_allclose(walk(parts, *episode)[:, 0], [1.5, 2, 2, 0])
    np.testing.assert_allclose(walk(parts, *episode)[:, 0], [2.25, 3, 3, 0])
    np.testing.assert_allclose(walk(parts, *episode[2:], cut=True)[:, 0], [2.25, 3, 3.5, 0])


def test_q_lambda_cuts_traces_where_the_action_is_not_the_best_by_the_values_it_was_chosen_with():
    """γλ = 1/2. Ties are greedy. At the last step a = 0 is not greedy in state 1, though it is after the update."""
    parts = built(bc.agent("q-lambda", lam=1.0), 4, 2)
    q = walk(parts, (0, 0, 0.0, 1), (1, 1, 4.0, 2), (2, 0, 0.0, 1), (1, 0, 8.0, 3))
    np.testing.assert_allclose(q, [[1 + 0.125, 0], [4, 2 + 0.25], [0.5, 0], [0, 0]])
    assert parts.updates.tolist() == [1 + 2 + 3 + 1, 0]


def test_replacing_traces_leave_those_of_other_actions():
    parts = built(bc.agent("q-lambda", lam=1.0, traces="replacing"), 3, 2)
    q = walk(parts, (0, 0, 0.0, 0), (0, 1, 0.0, 0), (0, 1, 4.0, 2))
    np.testing.assert_allclose(q[0], [0.5 * 4 * 0.25, 0.5 * 4])


def test_expected_traces_give_credit_to_states_of_other_episodes():
    """0 and 1 both lead to 2. γλ = 1/2; the second visit of 2 moves z(2) by 1/2, though α of the model is 1/4."""
    parts = built(bc.agent("expected-trace", lam=1.0), 4)
    v = walk(parts, (0, 0, 0.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(v[:, 0], [1, 0, 2, 0])
    v = walk(parts, (1, 0, 0.0, 2), (2, 0, 6.0, 3))
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * 4 * 0.25, 0.5 + 0.5 * 4 * 0.25, 4, 0])
    np.testing.assert_allclose(parts.model.matrix, [[1, 0, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 1, 0], [0, 0, 0, 0]])
    assert parts.updates.tolist() == [1 + 2 + 1 + 3, 0]
    for _ in range(3):
        walk(parts, (0, 0, 0.0, 2), (2, 0, 6.0, 3))
    # the third visit moves z(2) by 1/3, the fourth and the fifth by 1/4
    np.testing.assert_allclose(parts.model.matrix[2, 1], 0.25 * (2 / 3) * 0.75 * 0.75)


@pytest.mark.parametrize("kind", ["monte-carlo", "q-lambda", "expected-trace"])
def test_values_may_be_kept_scaled_and_shifted(kind):
    """As backward planning keeps them: q = u / 2 + 3."""
    episode = (0, 0, 1.0, 1), (1, 1, 2.0, 0), (0, 1, 4.0, 2), (2, 0, 1.0, 1)
    plain, shifted = (built(bc.agent(kind), 3, 2) for _ in range(2))
    shifted.values.affine[:] = 0.5, 3.0, 2.0
    shifted.values.u[:] = -6.0
    for cut in (True, False, True):
        np.testing.assert_allclose(walk(shifted, *episode, cut=cut), walk(plain, *episode, cut=cut), atol=1e-12)


# Against plain NumPy


def twin_of(agent, world):
    sizes = world.n_states, world.n_actions, world.discount
    lam = agent.get("lam", 0.9)
    if agent.kind == "monte-carlo":
        return PlainMonteCarlo(*sizes)
    if agent.kind == "expected-trace":
        return PlainExpectedTraces(*sizes, lam)
    return PlainTraces(*sizes, lam, agent.get("traces") == "replacing")


def feed(world, agent, steps, seed, twin=None, episodes=40):
    """Kernel and twin after the same transitions; actions are mostly greedy, and some episodes are cut off."""
    parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
    twin = twin or twin_of(agent, world)
    rng, table, schedule = np.random.default_rng(seed), world.steps_table, agent.rates(episodes)
    s = -1
    for step in range(steps):
        rates = schedule[step * episodes // steps]
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
    bc.agent("monte-carlo", alpha=0.5),
    bc.agent("td-lambda", alpha=0.3),
    bc.agent("td-lambda", alpha=0.3, lam=1.0, traces="replacing"),
    bc.agent("expected-trace", alpha=0.2, alpha_model=0.3),
    bc.agent("expected-trace", alpha=0.2, alpha_model=0.01, lam=0.6),
]
CONTROL = [
    bc.agent("monte-carlo", alpha=0.5),
    bc.agent("q-lambda", alpha=0.3),
    bc.agent("q-lambda", alpha=0.3, lam=0.5, traces="replacing"),
    bc.agent("expected-trace", alpha=0.1, alpha_model=0.5, lam=0.5),
    bc.agent("expected-trace", alpha=0.05, alpha_model=0.02, lam=0.3),
]


@pytest.mark.parametrize("agent", PREDICTION, ids=lambda agent: agent.name)
def test_prediction_is_that_of_the_twin(agent):
    for seed, world in enumerate((bc.worlds.chain((12, 6, 3, 5), seed=1), cyclic(0), cyclic(1))):
        assert_equal(*feed(world, agent, 4000, seed))


@pytest.mark.parametrize("agent", CONTROL, ids=lambda agent: agent.name)
def test_control_is_that_of_the_twin(agent):
    for seed, world in enumerate((bc.worlds.maze(), bc.worlds.maze(slip=0.3, reward_probability=0.5))):
        parts, twin = feed(world, agent, 5000, seed)
        assert twin.q.any()
        assert_equal(parts, twin)


@settings(max_examples=60)
@given(st.sampled_from(["prediction", "control"]), st.integers(0, 4), st.integers(0, 10_000), st.integers(0, 2))
def test_random_worlds_with_cycles(task, choice, seed, terminals):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, terminals=terminals, density=0.4)
    world = bc.worlds.from_mdp(mdp, random_policy(rng, mdp) if task == "prediction" else None, max_steps=50)
    assert_equal(*feed(world, (PREDICTION if task == "prediction" else CONTROL)[choice], 500, seed))


def test_the_traces_that_are_dropped_are_too_small_to_matter():
    world, agent = cyclic(2), bc.agent("td-lambda", alpha=0.3)
    parts, twin = feed(world, agent, 3000, 3, PlainTraces(world.n_states, 1, world.discount, 0.9, smallest=0.0))
    np.testing.assert_allclose(parts.values.as_array(), twin.q, atol=1e-6)
    assert parts.updates[0] < twin.updates
    agent = bc.agent("expected-trace", alpha=0.1, alpha_model=0.1)
    twin = PlainExpectedTraces(world.n_states, 1, world.discount, 0.9, smallest=0.0)
    parts, twin = feed(world, agent, 3000, 3, twin)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, atol=1e-6)


def cyclic(seed):
    """A prediction world with cycles and two terminal states."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 60, 2, terminals=2, density=0.05)
    return bc.worlds.from_mdp(mdp, random_policy(rng, mdp), max_steps=1000)


# Special cases


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


@pytest.mark.parametrize(("kind", "world"), [("td-lambda", cyclic(4)), ("q-lambda", bc.worlds.maze(slip=0.3))])
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
