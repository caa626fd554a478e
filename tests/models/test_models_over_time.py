"""Counted, time-extended, conditioned and λ-models, and planning with parts of them.

By hand, against a plain twin, and in the limit against `backcast.exact`.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.kinds import Setup
from backcast.drivers.loop import begin, observe
from backcast.exact.time_extended import ending_model
from by_hand import walk
from plain_models import PlainBackward, PlainLambda
from random_worlds import random_mdp, random_policy, random_steps

MODELS = [
    {"model": "counts"},
    {"model": "counts", "horizon": 3},
    {"model": "softmax", "horizon": 2},
    {"model": "counts", "weights": (0.5, 0.2, 0.3)},
    {"model": "softmax", "weights": (0.0, 0.4, 0.6)},
    {"model": "counts", "lam": 0.7},
    {"model": "softmax", "lam": 0.4},
    {"model": "counts", "conditioned": True},
    {"model": "counts", "horizon": 2, "conditioned": True},
    {"model": "counts", "forget": 0.1},
    {"model": "softmax", "horizon": 2, "forget": 0.1},
    {"lam": 0.6, "lam_by": "td"},
]
PLANS = [{}, {"sample": 3}, {"top": 2}, {"depth": 2}, {"sample": 2, "depth": 3}, {"top": 2, "depth": 3}]


def twin_of(agent, setup):
    return (PlainLambda if agent.get("lam_by") == "td" else PlainBackward)(agent, setup)


def feed(world, agent, steps, seed, rates=(0.5, 0.6, 0.4, 0.3)):
    """Both, after the same random transitions; some episodes are cut off."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world, seed)
    parts, twin = agent.build(setup), twin_of(agent, setup)
    rates = np.array(rates)
    for step in random_steps(world, np.random.default_rng(seed), steps, cut=0.05):
        s, _, _, _, _, first = step
        if first:
            begin(parts, rates, s)
            twin.begin(rates, s)
        observe(parts, rates, *step)
        twin.observe(rates, *step)
    return parts, twin


def assert_the_same(parts, twin):
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-9, atol=1e-9)
    assert parts.updates.tolist() == twin.made


def random_world(seed, control):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, terminals=seed % 3, density=0.4)
    return bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp), max_steps=50)


@settings(max_examples=60)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(PLANS),
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from(["previous", "current"]),
    st.booleans(),
)
def test_kernels_agree_with_the_plain_twin(model, plan, seed, control, frame, learn):
    agent = bc.agent("backward", frame=frame, learn=learn, **model, **plan)
    assert_the_same(*feed(random_world(seed, control), agent, 300, seed))


@settings(max_examples=25)
@given(
    st.sampled_from([{"importance": True}, {"importance": True, "horizon": 2}, {"importance": True, "forget": 0.05}]),
    st.sampled_from(["softmax", "counts"]),
    st.integers(0, 10_000),
)
def test_importance_weights_agree_with_the_plain_twin(options, model, seed):
    """With α_model = 1 and ε = 0.8 a step counts up to 4 times: a softmax takes at most one whole step."""
    if model == "softmax" and "horizon" not in options:
        return  # the paper's one-step softmax, whose rewards belong to states: by hand below
    agent, rates = bc.agent("backward", model=model, **options), (0.5, 1.0, 0.4, 0.8)
    assert_the_same(*feed(random_world(seed, True), agent, 300, seed, rates))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.sampled_from(PLANS))
@example(0, True, True, {"top": 2, "depth": 3})  # it never terminates in one of the states
def test_options_agree_with_the_plain_twin(seed, control, ends, plan):
    rng = np.random.default_rng(seed)
    world = random_world(seed, control)
    policy = rng.dirichlet(np.ones(3), size=6) if control and seed % 2 else None
    option = bc.Option(rng.random(6).round(2), rng.random(6).round(2) if ends else None, policy)
    assert_the_same(*feed(world, bc.agent("backward", model="counts", option=option, **plan), 300, seed))


# ---------------------------------------------------------------------------- by hand


def test_counts_by_hand():
    """0 → 1 (reward 2), 0 → 1 (reward 4), then 2 … here 3 states and state 2 ends.

    Row of 1: two ways from 0, so P = 1, mean reward 3, discount 0.5. Planning from 1 after the second: TD first,
    v(0) = 0.5·2 = 1, planned 1 + 0.5·(2 − 1) = 1.5; then TD 1.5 + 0.5·(4 − 1.5) = 2.75, planned 2.75 + 0.5·(3 − 2.75).
    """
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 4.0, 1, False, True)]
    parts, v = walk(bc.agent("backward", model="counts"), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [2.875, 0, 0])
    model = parts.model.readable(parts.values)
    np.testing.assert_array_equal(model.states[1], [1, 0, 0])
    assert np.isnan(model.states[0]).all()  # never arrived at: nothing is known
    assert (model.reward[0, 1], model.discounted[1, 0]) == (3.0, 0.5)
    assert parts.updates.tolist() == [2, 2]


def test_two_steps_by_hand():
    """0 → 1 → 2 (ends), rewards 1 and 4: the way from 0 to 2 earns 1 + 0.5·4 = 3 and carries no discount.

    TD: v(0) = 0.5, v(1) = 2; planning from 2 with α = 0.5 moves v(0) by 0.5·(3 − 0.5).
    Then a new episode begins in 0: the way 1 → 2 → 0 leads to it, two steps, one of them a restart; earned 4.
    """
    agent = bc.agent("backward", model="counts", horizon=2)
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    parts, v = walk(agent, 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5 + 0.5 * 2.5, 2, 0])
    model = parts.model.readable(parts.values)
    assert (model.states[2, 0], model.reward[0, 2], model.discounted[2, 0]) == (1.0, 3.0, 0.0)
    parts, _ = walk(agent, 3, 1, 0.5, [*steps, (0, 0, 1.0, 1, False, True)])
    model = parts.model.readable(parts.values)
    assert (model.states[0, 1], model.reward[1, 0], model.discounted[0, 1]) == (1.0, 4.0, 0.0)
    assert model.states[1, 2] == 1.0  # two steps before 1 was the end: part of the past, but nothing to correct
    assert parts.model.rows.used.tolist() == [1, 0, 1]


def test_states_near_the_end_are_corrected_from_the_next_beginning():
    """0 → 1 → 2 (ends, reward 4) twice, two steps back: 1 is two steps before the next 0, and planned from there.

    Pure planning, α = 1: v(1) = 4 when the third episode begins; v(0) = 0.5·4 from the end, each time.
    """
    episode = [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    for frame, episodes in (("current", 3), ("previous", 2)):
        agent = bc.agent("backward", model="counts", horizon=2, learn=False, frame=frame)
        _, v = walk(agent, 3, 1, 0.5, episode * episodes, rates=(1.0, 1.0, 1.0, 0.0))
        np.testing.assert_allclose(v[:, 0], [2, 4, 0])


def test_an_episode_that_was_cut_off_leads_to_nothing():
    steps = [(0, 0, 1.0, 1, False, True), (0, 0, 1.0, 1, False, True)]
    parts, _ = walk(bc.agent("backward", model="counts", horizon=2), 3, 1, 0.5, steps)
    assert parts.model.rows.used.sum() == 0


def test_lambda_by_td_by_hand():
    """λ = 0.5, steps 0 → 1 → 2 with α = 1 of the model.

    Row of 1: nothing to bootstrap from before 0, so P(0|1) = 1. Row of 2: 0.5 from 1 itself, and 0.5 of the row of 1.
    """
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    parts, _ = walk(bc.agent("backward", lam=0.5, lam_by="td"), 3, 1, 0.5, steps)
    model = parts.model.readable(parts.values)
    np.testing.assert_allclose(model.states[2], [0.5, 0.5, 0])
    np.testing.assert_allclose(model.earned[2], [0.5 * (1 + 0.5 * 4), 0.5 * 4, 0])
    np.testing.assert_allclose(model.discounted[1], [0.5, 0, 0])
    np.testing.assert_allclose(model.discounted[2], [0, 0, 0])


def test_lambda_by_td_follows_its_rule_once_its_rows_are_means():
    """The step size is α or, at first, 1 / visits: against a constant α the difference fades as (1 − α)ⁿ."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 3, 1, density=1.0)
    world, alpha = bc.worlds.from_mdp(mdp, max_steps=10**6), 0.02
    setup = Setup(3, 1, world.discount, world)
    agent = bc.agent("backward", lam=0.6, lam_by="td", learn=False)
    parts, constant = agent.build(setup), np.zeros((3, 3))
    visits, gaps = np.zeros(3), []
    for s, a, r, s2, ends, first in random_steps(world, rng, 4000, cut=0.0):
        observe(parts, np.array([0.0, alpha, 0.0, 0.0]), s, a, r, s2, ends, first)
        lam = 0.6 if constant[s].any() else 0.0
        constant[s2] += alpha * ((1 - lam) * np.eye(3)[s] + lam * constant[s] - constant[s2])
        visits[s2] += 1
        if visits.min() > 50:
            gap = np.abs(np.nan_to_num(parts.model.readable(parts.values).states) - constant).max()
            gaps.append((visits.sum() / 3, gap))
    n, gap = np.array(gaps[:: len(gaps) // 20]).T
    rate = np.polyfit(n, np.log(gap), 1)[
        0
    ]  # rows bootstrap from each other: slower than (1 − α)ⁿ, not than (1 − α(1 − λ))ⁿ
    assert np.log(1 - alpha) - 0.002 < rate < np.log(1 - alpha * (1 - 0.6)) + 0.002


def test_sampled_planning_by_hand():
    """One predecessor is certain: each of three samples moves v(0) half of the way to 2: 1 → 1.5 → 1.75 → 1.875."""
    agent = bc.agent("backward", model="counts", sample=3)
    parts, v = walk(agent, 3, 1, 0.5, [(0, 0, 2.0, 1, False, True)])
    np.testing.assert_allclose(v[0], 1.875)
    assert parts.updates.tolist() == [1, 3]


def test_top_and_depth_by_hand():
    """0 → 1 once, 2 → 1 twice, 3 → 2 once, rewards 0; then v(1) becomes 8 and planning is from 1 with γ = 0.5, α = 1.

    P(2|1) = 2/3, P(0|1) = 1/3. top=1 corrects 2 alone: v(2) = 2/3·4; depth 2 goes on to 3: v(3) = 0.5·v(2).
    """
    steps = [(0, 0, 0.0, 1, False, True), (3, 0, 0.0, 2, False, True), (2, 0, 0.0, 1, False, False)]
    steps += [(2, 0, 0.0, 1, False, True), (1, 0, 8.0, 5, True, True)]
    rates = (1.0, 1.0, 1.0, 0.0)
    from backcast.core.interaction import Step

    for options, expected, updates in (
        ({}, [4 / 3, 8, 8 / 3, 0], 2),
        ({"top": 1}, [0, 8, 8 / 3, 0], 1),
        ({"depth": 2}, [4 / 3, 8, 8 / 3, 4 / 3], 3),
        ({"top": 1, "depth": 2}, [0, 8, 8 / 3, 4 / 3], 2),
    ):
        agent = bc.agent("backward", model="counts", **options)
        parts, _ = walk(agent, 6, 1, 0.5, steps, rates)
        parts.values.fill([0, 8, 0, 0, 0, 0])
        step = Step(0, 0, 0.0, 1, False, False)
        assert parts.planner.plan(parts.model, parts.values, step, 0.5, np.array(rates)) == updates
        np.testing.assert_allclose(parts.values.as_array()[:4, 0], expected)


def test_conditioned_by_hand():
    """Into 1: from 0 by action 0 twice and by action 1 once, from 2 by action 1 once."""
    steps = [(0, 0, 0.0, 1, False, True), (0, 0, 0.0, 1, False, True), (0, 1, 0.0, 1, False, True)]
    steps += [(2, 1, 0.0, 1, False, True)]
    parts, _ = walk(bc.agent("backward", conditioned=True), 4, 2, 0.5, steps)
    model = parts.model.readable(parts.values)
    np.testing.assert_allclose(model.action[1], [0.5, 0.5])
    np.testing.assert_allclose(model.given_action[1], [[1, 0, 0, 0], [0.5, 0, 0.5, 0]])
    np.testing.assert_allclose(model.joint[1, 0], [0.5, 0.25])
    assert [(s, a) for s, a, _ in model.predict(1)] == [(0, 0), (0, 1), (2, 1)]


def test_importance_weights_by_hand():
    """Two states, two actions, q(0, 1) > q(0, 0), ε = 0.5: b(1 | 0) = 0.75, and ρ is 0 for action 0, 4/3 for action 1.

    With α_model = 0.6 the step towards (0, 1) has size 0.8: weights e^0.8 : 1 : 1 : 1. With α_model = 1 it would have
    size 4/3; it has 1.
    """
    agent = bc.agent("backward", importance=True, learn=False)
    for a, alpha, size in ((0, 0.6, 0.0), (1, 0.6, 0.8), (1, 1.0, 1.0)):
        parts = agent.build(Setup(2, 2, 0.9, _two_by_two()))
        parts.values.fill([0, 1, 0, 0])
        observe(parts, np.array([0.5, alpha, 0.0, 0.5]), 0, a, 0.0, 1, False, True)
        expected = np.exp(size) / (np.exp(size) + 3)
        np.testing.assert_allclose(parts.model.readable(parts.values).joint[1, 0, a], expected)


def _two_by_two():
    return bc.worlds.from_mdp(bc.FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.9, [1, 0]), max_steps=9)


def test_both_by_hand():
    """0 → 1 with reward 2, α = 0.5: TD makes v(0) = 1, forward planning from 0 1.5, backward planning from 1 1.75."""
    parts, v = walk(bc.agent("both"), 3, 1, 0.5, [(0, 0, 2.0, 1, False, True)])
    np.testing.assert_allclose(v[:, 0], [1.75, 0, 0])
    assert parts.updates.tolist() == [1, 2]
    both = parts.model.readable(parts.values)
    assert both.forward.transition[0, 0, 1] == both.backward.states[1, 0] == 1.0


def test_forgetting_by_hand():
    """Twice 0 → 1 with α = 1 and forget = 0.5. Softmax: the first step makes the row (2/3, −1/3, −1/3), which is halved
    before the second. Counts: 1, then 0.5 + 1 and, after 2 → 1, 0.75 against 1.
    """
    steps = [(0, 0, 0.0, 1, False, True), (0, 0, 0.0, 1, False, True)]
    parts, _ = walk(bc.agent("backward", forget=0.5), 3, 1, 0.5, steps)
    logits = np.array([2 / 3, -1 / 3, -1 / 3]) / 2
    logits += np.array([1, 0, 0]) - np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(parts.model.readable(parts.values).states[1], np.exp(logits) / np.exp(logits).sum())
    parts, _ = walk(bc.agent("forward", forget=0.5), 3, 1, 0.5, steps)
    np.testing.assert_allclose(
        parts.model.readable(parts.values).transition[0, 0, 1], np.exp(logits[0]) / np.exp(logits).sum()
    )
    counted = bc.agent("backward", model="counts", forget=0.5)
    parts, _ = walk(counted, 4, 1, 0.5, [*steps, (2, 0, 0.0, 1, False, True)])
    np.testing.assert_allclose(parts.model.readable(parts.values).states[1], [0.75 / 1.75, 0, 1 / 1.75, 0])


def test_forward_counts_by_hand():
    """0 → 1 twice with rewards 2 and 4, and 0 → 2 once with reward 0 (2 ends): P = 2/3, 1/3; mean reward 3, 0."""
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 4.0, 1, False, True), (0, 0, 0.0, 2, True, True)]
    parts, _ = walk(bc.agent("forward", model="counts", learn=False), 3, 1, 0.5, steps)
    model = parts.model.readable(parts.values)
    np.testing.assert_allclose(model.transition[0, 0], [0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(model.reward[0, 0], [0, 3, 0])
    parts.values.fill([0, 6, 0])
    parts.planner.how.reevaluate(parts.model, parts.values, 0, 0.5, 1.0)
    np.testing.assert_allclose(parts.values.u[0], 2 / 3 * (3 + 0.5 * 6))
    top = bc.agent("forward", model="counts", top=1)
    parts, _ = walk(top, 3, 1, 0.5, steps)
    parts.values.fill([0, 6, 0])
    parts.planner.how.reevaluate(parts.model, parts.values, 0, 0.5, 1.0)
    np.testing.assert_allclose(parts.values.u[0], 3 + 0.5 * 6)


# ---------------------------------------------------------------------------- in the limit

EPISODES = 20_000


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, 6, 2, terminals=1, density=0.6)
    return bc.worlds.from_mdp(mdp, random_policy(rng, mdp), max_steps=10**6)


def model_of(world, kind="backward", **options):
    return bc.run(world, bc.agent(kind, **options), EPISODES, 1).models[0]


MIXED = (0.2, 0.3, 0.5)
LAMBDAS = (0.1, 0.3, 0.9, 0.5, 0.8, 0.0)
LIMITS = {
    "counts": ({"model": "counts"}, lambda mdp, pi: bc.exact.n_step(mdp, pi, 1)),
    "3 steps": ({"model": "counts", "horizon": 3}, lambda mdp, pi: bc.exact.n_step(mdp, pi, 3)),
    "mixture": (
        {"model": "counts", "weights": (0.2, 0.3, 0.5)},
        lambda m, pi: bc.exact.multi_time(m, pi, (0.2, 0.3, 0.5)),
    ),
    "lambda": ({"model": "counts", "lam": 0.8}, lambda mdp, pi: bc.exact.lambda_model(mdp, pi, 0.8)),
    "lambdas": ({"model": "counts", "lam": LAMBDAS}, lambda mdp, pi: bc.exact.lambda_model(mdp, pi, LAMBDAS)),
    "lambda by TD": ({"lam": 0.8, "lam_by": "td"}, lambda mdp, pi: bc.exact.lambda_model(mdp, pi, 0.8)),
    "lambdas by TD": ({"lam": LAMBDAS, "lam_by": "td"}, lambda mdp, pi: bc.exact.lambda_model(mdp, pi, LAMBDAS)),
}


@pytest.mark.parametrize("case", LIMITS)
def test_learned_models_become_the_exact_ones(world, case):
    options, exact = LIMITS[case]
    if "td" in options.values():
        options = {**options, "alpha_model": 0.02}
    model, true = model_of(world, **options), exact(world.mdp, world.policy)
    size = np.abs(true.reward).max()
    np.testing.assert_allclose(model.states, true.states, atol=0.02)
    np.testing.assert_allclose(model.discounted, true.discounted, atol=0.02)
    np.testing.assert_allclose(model.earned, true.earned, atol=0.02 * size)
    likely = np.asarray(true.states).T > 0.1
    np.testing.assert_allclose(model.reward[likely], np.asarray(true.reward)[likely], atol=0.15 * size)


@pytest.mark.parametrize("termination", [None, (0.1, 0.2, 0.3, 0.0, 1.0, 0.5)])
def test_learned_option_models_become_the_exact_ones(world, termination):
    initiation = (0.5, 1, 0, 0.2, 0, 0)
    model = model_of(world, model="counts", option=bc.Option(initiation, termination))
    true = bc.exact.option_model(world.mdp, world.policy, initiation, termination)
    np.testing.assert_allclose(model.states, true, atol=0.02)
    np.testing.assert_array_equal(np.asarray(model), model.states)
    conditioned = model_of(world, conditioned=True, option=bc.Option(initiation, termination))
    np.testing.assert_allclose(conditioned.states, true, atol=0.02)


def test_learned_forward_option_models_become_the_exact_ones(world):
    termination = (0.1, 0.2, 0.3, 0.6, 1.0, 0.5)
    model = model_of(world, "forward", model="counts", option=bc.Option(1.0, termination))
    true, lives = ending_model(world.mdp, world.policy, termination), ~world.mdp.terminal
    np.testing.assert_allclose(true.states[lives].sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(model.transition[lives, 0], true.states[lives], atol=0.02)
    np.testing.assert_allclose(model.discounted[lives, 0], true.discounted[lives], atol=0.02)
    earned = model.reward[:, 0] * model.transition[:, 0]
    np.testing.assert_allclose(earned[lives], true.earned[lives], atol=0.02 * np.abs(true.reward).max())
    # v_π solves the option's Bellman equation, for the policy is the one that is evaluated
    v = bc.exact.value(world.mdp, world.policy)
    np.testing.assert_allclose((true.earned.sum(axis=1) + true.discounted @ v)[lives], v[lives], atol=1e-10)


@pytest.mark.parametrize(
    ("options", "exact"),
    [
        ({"model": "counts"}, lambda mdp, pi: bc.exact.n_step(mdp, pi, 1, "forward")),
        ({"model": "counts", "horizon": 3}, lambda mdp, pi: bc.exact.n_step(mdp, pi, 3, "forward")),
        ({"model": "counts", "weights": (0.4, 0.6)}, lambda m, pi: bc.exact.multi_time(m, pi, (0.4, 0.6), "forward")),
        ({"model": "counts", "lam": 0.7}, lambda mdp, pi: bc.exact.lambda_model(mdp, pi, 0.7, "forward")),
        ({"lam": 0.7, "lam_by": "td", "alpha_model": 0.05}, lambda m, pi: bc.exact.lambda_model(m, pi, 0.7, "forward")),
    ],
)
def test_forward_models_become_the_exact_ones(world, options, exact):
    model, true, lives = model_of(world, "forward", **options), exact(world.mdp, world.policy), ~world.mdp.terminal
    np.testing.assert_allclose(model.transition[lives, 0], true.states[lives], atol=0.02)
    if len(options) > 1:
        np.testing.assert_allclose(model.discounted[lives, 0], true.discounted[lives], atol=0.02)


def test_softmax_rows_over_several_steps_come_near():
    """Without an end there are no restarts, and a slow softmax comes near to the n-step model."""
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, 5, 1, terminals=0, density=0.9)
    world = bc.worlds.from_mdp(mdp, max_steps=60_000)
    for options, true in (
        ({"horizon": 2}, bc.exact.n_step(mdp, None, 2)),
        ({"lam": 0.5}, bc.exact.lambda_model(mdp, None, 0.5)),
    ):
        model = bc.run(world, bc.agent("backward", alpha_model=0.02, **options), 1, 1).models[0]
        np.testing.assert_allclose(model.states, true.states, atol=0.15)


def test_conditioned_models_equal_the_joint_ones_and_the_exact_ones():
    """P←(s̃ | s, ã) π←(ã | s) = P←(s̃, ã | s), while learning, in the plans made with it, and in the limit."""
    world = bc.worlds.maze("..G\n.X.\nS..", slip=0.3)
    joint, conditioned = (
        bc.run(world, bc.agent("backward", model="counts", conditioned=c, epsilon=0.7), 200, 2) for c in (None, True)
    )
    np.testing.assert_allclose(conditioned.values, joint.values, atol=1e-12)
    np.testing.assert_allclose(conditioned.models[0].joint, joint.models[0].joint, atol=1e-12)
    wandering = bc.agent("backward", conditioned=True, epsilon=1.0, schedule="constant")
    model = bc.run(world, wandering, 20_000, 1, max_steps=10**6).models[0]
    true = bc.exact.backward(world.mdp, np.full((world.n_states, 4), 0.25))
    inner = ~world.mdp.terminal
    np.testing.assert_allclose(model.joint[:, inner], np.asarray(true.joint)[:, inner], atol=0.01)
    seen = np.asarray(true.action)[:, :, None] > 0.02
    seen = np.broadcast_to(seen, (*seen.shape[:2], world.n_states))[:, :, inner]
    np.testing.assert_allclose(
        model.given_action[:, :, inner][seen], np.asarray(true.given_action)[:, :, inner][seen], atol=0.05
    )


def test_importance_weights_tie_the_model_to_another_policy():
    """P←(s̃, ã | s) ∝ d_b(s̃) π_o(ã | s̃) P(s | s̃, ã): the option's policy, from where the agent's own has led."""
    rng = np.random.default_rng(8)
    mdp = random_mdp(rng, 5, 3, terminals=0, density=0.8)
    world, target = bc.worlds.from_mdp(mdp, max_steps=200_000), rng.dirichlet(np.ones(3), size=5)
    option = bc.Option(initiation=1.0, policy=target)
    agent = bc.agent("backward", model="counts", option=option, epsilon=1.0, schedule="constant")
    model = bc.run(world, agent, 1, 1).models[0]
    d = bc.exact.stationary(mdp, np.full((5, 3), 1 / 3))
    joint = (d[:, None, None] * target[:, :, None] * mdp.transition).transpose(2, 0, 1)
    np.testing.assert_allclose(model.joint, joint / joint.sum(axis=(1, 2), keepdims=True), atol=0.02)


def test_sampled_and_expected_planning_agree_in_the_mean():
    """The mean change of one sampled correction is the expected correction, whatever the model leaves to the unseen."""
    for options in ({"model": "softmax"}, {"model": "counts"}, {"lam": 0.5, "lam_by": "td"}):
        world = bc.worlds.chain((6, 4, 3), seed=0)
        agents = [bc.agent("backward", **options, **plan) for plan in ({}, {"sample": 20_000})]
        setup = Setup(world.n_states, 1, world.discount, world)
        changes = []
        for agent in agents:
            parts = agent.build(setup)
            rng, table = np.random.default_rng(1), world.steps_table
            for _ in range(30):
                s = int(table.draw_start(rng.random()))
                for first in (True, False):
                    outcome = table.draw_outcome(s, 0, rng.random())
                    s2 = int(table.next_state[outcome])
                    observe(parts, np.array([0.5, 0.5, 0, 0]), s, 0, float(table.reward[outcome]), s2, s2 > 9, first)
                    s = s2
            parts.values.u[:], parts.values.affine[:] = np.cos(np.arange(13.0)), (1, 0, 1)
            samples = agent.get("sample", 1)
            alpha = 1e-6 if samples > 1 else 1.0  # so small that all samples see the same values
            before = parts.values.as_array()
            parts.planner.how.correct(parts.model, parts.values, 8, 0.9, 0.9, alpha)
            changes.append((parts.values.as_array() - before)[:, 0] / (alpha * samples))
        np.testing.assert_allclose(changes[1], changes[0], atol=0.03)


def test_conditioned_rows_forget_as_joint_ones_do():
    joint, conditioned = (
        bc.run(bc.worlds.maze(), bc.agent("backward", model="counts", conditioned=c, forget=0.1), 30, 1)
        for c in (False, True)
    )
    np.testing.assert_allclose(conditioned.values, joint.values, atol=1e-10)
    np.testing.assert_allclose(conditioned.models[0].joint, joint.models[0].joint, atol=1e-10)


@pytest.mark.parametrize("options", [{"horizon": 2}, {"option": bc.Option(1.0, 0.5)}, {"lam": 0.5}, {}])
def test_forward_models_forget(options):
    world = bc.worlds.maze(slip=0.3)
    kept, forgetful = (
        bc.run(world, bc.agent("forward", model="counts", forget=f, **options), 30, 1).values for f in (None, 0.5)
    )
    assert np.abs(kept - forgetful).max() > 1e-3


def test_planning_in_depth_does_not_go_on_from_what_was_never_seen():
    """0 → 1 → 2 (ends, reward 1), and 3, never visited, ends too: a softmax may draw it, and must stop there."""
    line = np.zeros((4, 1, 4))
    line[0, 0, 1] = line[1, 0, 2] = line[2, 0, 2] = line[3, 0, 3] = 1
    reward = np.zeros((4, 4))
    reward[1, 2] = 1.0
    world = bc.worlds.from_mdp(bc.FiniteMDP(line, reward, 1.0, [1, 0, 0, 0], [0, 0, 1, 1]))
    values = bc.run(world, bc.agent("backward", sample=4, depth=4, alpha=0.3), 3000, 20).values
    np.testing.assert_allclose(values[:, :2].mean(axis=0), [1, 1], atol=0.05)


def test_one_number_of_steps_is_a_mixture_of_one():
    for world in (bc.worlds.chain((6, 5, 4, 3), seed=0), bc.worlds.maze()):
        for model in ("softmax", "counts"):
            one, mixed = (
                bc.run(world, bc.agent("backward", model=model, **span), 30, 2).values
                for span in ({"horizon": 3}, {"weights": (0.0, 0.0, 1.0)})
            )
            np.testing.assert_array_equal(one, mixed)


def test_lambda_zero_is_the_model_over_one_step():
    """Learned by TD or along the way, with no place for what has no weight."""
    world = bc.worlds.maze()
    by_td, by_mc = (
        bc.run(world, bc.agent("backward", lam=0.0, lam_by=by, model=model, alpha_model=0.01), 50, 1)
        for by, model in (("td", None), ("mc", "counts"))
    )
    ends = int(world.mdp.terminal.sum()) * 4
    assert (by_td.models[0].model.rows.used <= by_mc.models[0].model.rows.used + ends).all()


def test_unlikely_ways_do_not_break_the_arithmetic():
    """Importance weights of long ways are products of many small numbers."""
    transition = np.zeros((12, 2, 12))
    for s in range(10):
        transition[s, 0, (s + 1) % 10] = transition[s, 1, 10] = 1
    transition[10, :, 11] = transition[11, :, 0] = 1
    reward = np.zeros_like(transition)
    reward[:10, 0] = 0.1
    world = bc.worlds.from_mdp(bc.FiniteMDP(transition, reward, 0.9, np.eye(12)[0]), max_steps=5000)
    option = bc.Option([0.0005] * 12, policy=np.full((12, 2), 0.5))
    agent = bc.agent("backward", model="counts", option=option, epsilon=0.002, schedule="constant")
    assert np.isfinite(bc.run(world, agent, 2, 6).values).all()


def test_models_without_enough_room_are_refused():
    with pytest.raises(bc.InputError, match=r"would connect up to .* pairs of states.*smaller horizon"):
        bc.run(bc.worlds.chain((4000, 1500)), bc.agent("backward", lam=0.5), 1, 1)


REFUSALS = [
    ({"horizon": 2, "lam": 0.5}, "horizon and lam: each of them says how far"),
    ({"lam_by": "td"}, "lam_by: .* give lam as well"),
    ({"lam": 0.5, "lam_by": "td", "model": "softmax"}, "lam_by: 'td' moves probabilities"),
    ({"conditioned": True, "model": "softmax"}, "conditioned: a softmax for each action"),
    ({"sample": 2, "top": 3}, "sample and top"),
    ({"model": "true", "forget": 0.1}, "forget: a true model"),
    ({"importance": True, "option": bc.Option(1.0)}, "importance and option"),
    ({"lam": 1.0}, "lam: 1 everywhere"),
    ({"lam": -0.1}, r"lam: -0.1 given, expected a number in \[0, 1\]"),
    ({"weights": (0.5, 0.2)}, "weights: .* which sum to 1"),
    ({"horizon": 0}, "horizon: 0 given"),
    ({"forget": 1.0}, r"forget: 1.0 given, expected a rate in \[0, 1\)"),
    ({"model": "count"}, "model: .count. given, expected one of softmax, counts, true, .*; did you mean 'counts'"),
    ({"horizn": 2}, "no setting 'horizn'; 'backward' takes .*did you mean 'horizon'"),
    ({"variant": "moore-atkeson"}, "variant: 'moore-atkeson' given, but 'backward' takes"),
    ({"option": 3}, r"option: 3 given, expected backcast.Option"),
    ({"option": {"init": 1}}, r"option: .* given, expected backcast.Option"),
    ({"option": bc.Option(1.0, 0.5), "model": "softmax"}, "option: with a termination some ways lead to no initiation"),
    ({"model": np.arange(2)}, r"model: .* given, expected one of softmax"),
    ({"depth": 6}, "depth: 6 levels of all predecessors are exponentially many"),
    ({"horizon": 2000}, "horizon: 2000 given, expected at most 1,000"),
]


@pytest.mark.parametrize(("options", "message"), REFUSALS)
def test_settings_that_make_no_sense_are_refused_with_the_reason(options, message):
    with pytest.raises(bc.InputError, match=message):
        bc.agent("backward", **options)


def test_more_refusals():
    with pytest.raises(bc.InputError, match="'forward' takes"):
        bc.agent("forward", depth=2)
    with pytest.raises(bc.InputError, match="lam: one for each state"):
        bc.agent("forward", lam=(0.1, 0.2))
    with pytest.raises(bc.InputError, match=r"option\.initiation: it is 0 everywhere"):
        bc.Option(0.0)
    with pytest.raises(bc.InputError, match=r"option\.termination: none given, but looking forward"):
        bc.run(bc.worlds.chain((2, 1)), bc.agent("forward", model="counts", option=bc.Option(1.0)), 1, 1)
    with pytest.raises(bc.InputError, match="lam: 2 numbers given, but this world has 3 states"):
        bc.run(bc.worlds.chain((2, 1)), bc.agent("backward", model="counts", lam=(0.1, 0.2)), 1, 1)
    with pytest.raises(bc.InputError, match="importance: in a prediction world"):
        bc.run(bc.worlds.chain((2, 1)), bc.agent("backward", importance=True), 1, 1)
    with pytest.raises(bc.InputError, match="the model is tied to a policy"):
        bc.run(bc.worlds.maze(), bc.agent("true-forward", horizon=2), 1, 1)
    with pytest.raises(bc.InputError, match="model: a softmax backward step moves every state"):
        bc.agent("both", model="softmax")
