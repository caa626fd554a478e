"""Learned models with much experience: against `backcast.exact` and against each other."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import observe
from backcast.exact.time_extended import ending_model
from random_worlds import random_mdp, random_policy

EPISODES = 20_000


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


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
        {"model": "counts", "weights": MIXED},
        lambda mdp, pi: bc.exact.multi_time(mdp, pi, MIXED),
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


@pytest.mark.slow
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
        slow({"model": "counts", "horizon": 3}, lambda mdp, pi: bc.exact.n_step(mdp, pi, 3, "forward")),
        slow({"model": "counts", "weights": MIXED}, lambda mdp, pi: bc.exact.multi_time(mdp, pi, MIXED, "forward")),
        slow({"model": "counts", "lam": 0.7}, lambda mdp, pi: bc.exact.lambda_model(mdp, pi, 0.7, "forward")),
        slow(
            {"lam": 0.7, "lam_by": "td", "alpha_model": 0.05},
            lambda mdp, pi: bc.exact.lambda_model(mdp, pi, 0.7, "forward"),
        ),
    ],
)
def test_forward_models_become_the_exact_ones(world, options, exact):
    model, true, lives = model_of(world, "forward", **options), exact(world.mdp, world.policy), ~world.mdp.terminal
    np.testing.assert_allclose(model.transition[lives, 0], true.states[lives], atol=0.02)
    if len(options) > 1:
        np.testing.assert_allclose(model.discounted[lives, 0], true.discounted[lives], atol=0.02)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
