"""Exponential families after very many steps, and sampled planning with them on average: compiled."""

import numpy as np
import pytest

import backcast as bc
from backcast.core.interaction import Step
from backcast.drivers.loop import plan_after
from driving import drive
from exponential_cases import KINDS, copied, made, pasts, random_world, setup_of
from plain_exponential import PlainExponential
from random_worlds import dense, random_steps

pytestmark = pytest.mark.slow  # to compile


def planned(parts, w, step, alpha):
    """What planning makes of the weights."""
    parts.values.w[:] = w
    plan_after(parts, np.array([0, 0, alpha, 0]), step)
    return parts.values.w.copy()


@pytest.mark.parametrize(("control", "sample", "alpha"), [(False, 1, 0.3), (True, 1, 0.01), (False, 3, 0.3)])
@pytest.mark.parametrize("kind", KINDS)
def test_sampled_updates_are_right_on_average(kind, control, sample, alpha):
    """Updates of linear values are affine in the weights, so that N sampled ones are on average N expected ones.

    Not so in control, where the largest value counts; there steps are small.
    """
    rng = np.random.default_rng(5)
    world = random_world(rng, control, terminals=1)
    X = bc.features.given(rng.normal(size=(6, 3)) / 2)
    of_likelihood = dict(model="likelihood", features=X, model_features="onehot", learn=False)
    expecting = bc.agent(kind, **of_likelihood).build(setup_of(world))
    drive(world, expecting, np.tile([0, 0.3, 1e-3, 1.0], (50, 1)), max_steps=20)
    parts, twin = made(world, bc.agent(kind, sample=sample, **of_likelihood))
    parts = parts._replace(model=expecting.model)
    copied(parts, twin)
    w = twin.w = rng.normal(size=twin.w.size)
    step = Step(*next(step for step in random_steps(world, rng, 200, cut=0.0) if not step[4]))
    changes = np.array([planned(parts, w, step, alpha) - w for _ in range(4000)])
    for _ in range(sample):
        for a in range(world.n_actions if kind == "forward" else 1):
            s = step.s if kind == "forward" else step.s2
            twin.w = twin.w + alpha * twin.expected_correction(s, world.discount, a)
    error = changes.std(axis=0) / np.sqrt(len(changes))
    assert (error > 0.005 * np.abs(twin.w - w)).any()
    np.testing.assert_array_less(np.abs(changes.mean(axis=0) - (twin.w - w)), 4 * error + 1e-12)
    assert parts.updates[1] % (sample * (world.n_actions if kind == "forward" else 1)) == 0


def trained(world, agent, w, steps, alpha):
    """The parts after at least so many steps, in which the weights stayed as they were and step sizes fell to 0."""
    parts = agent.build(setup_of(world))
    parts.values.w[:] = w
    episodes = 40 + steps // 2 if world.mdp.terminal.any() else steps // 1000
    falling = alpha * (1 - np.arange(episodes) / episodes)
    record = drive(world, parts, np.outer(falling, [0.0, 1.0, 0.0, 0.0]), max_steps=1000)
    assert record.steps.sum() >= steps
    np.testing.assert_array_equal(parts.values.w, w)
    return parts


@pytest.mark.parametrize("terminals", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_finds_the_true_model(kind, terminals):
    """What steps can tell: a restart is none, so that the past of a state is that of its visits in mid-episode."""
    world = random_world(np.random.default_rng(3), control=False, terminals=terminals, n_states=4)
    agent = bc.agent(kind, model="likelihood", features="onehot", learn=False)
    parts = trained(world, agent, np.zeros(4), 30_000, alpha=0.05)
    states, alive = parts.model.readable(parts.values).states, ~world.mdp.terminal
    if kind == "forward":
        np.testing.assert_allclose(states[alive, 0], dense(bc.exact.chain(world.mdp, world.policy))[alive], atol=0.06)
        return
    truth = dense(bc.exact.backward(world.mdp, world.policy).states) * alive / pasts(world)[:, None]
    known = ~np.isnan(truth[:, 0])
    assert known.sum() >= 3
    np.testing.assert_allclose(states[known], truth[known], atol=0.06)


def distance_from_true_corrections(parts, twin, world):
    """The root of the mean of |E Δ(s) − Δ*(s)|², over the states that are planned from."""
    mdp, policy, w = world.mdp, world.policy, copied(parts, twin).w
    share = bc.exact.stationary(mdp, policy)
    if twin.forward:
        truth, share = bc.exact.linear_forward(mdp, policy, twin.X).correction(w), share * ~mdp.terminal
    else:
        truth = bc.exact.backward_correction(mdp, policy, twin.X, w) / pasts(world)[:, None]
        share = share * np.nan_to_num(pasts(world))
    discount = np.where(mdp.terminal & (not twin.forward), 0.0, mdp.discount)
    own = np.array([twin.expected_correction(s, discount[s]) for s in range(mdp.n_states)])
    return np.sqrt(share[share > 0] @ ((own - truth)[share > 0] ** 2).sum(axis=1) / share.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_planner_aware_model_plans_better_than_a_likely_one(kind):
    """A noisy TV, in four features that tell neither the signal nor the channel well: likelihood has to watch TV."""
    distance = {"likelihood": [], "planner-aware": []}
    for seed in range(5):
        world, rng = bc.worlds.noisy_tv(signals=4, channels=4, seed=seed), np.random.default_rng(seed)
        X, Z, w = np.repeat(np.eye(4), 4, axis=0), rng.normal(size=(16, 4)), rng.normal(size=4)
        for objective, found in distance.items():
            agent = bc.agent(kind, model=objective, features=X, model_features=Z, learn=False)
            parts = trained(world, agent, w, 10_000, alpha=0.1)
            found.append(distance_from_true_corrections(parts, PlainExponential(agent, setup_of(world)), world))
    likely, aware = distance.values()
    assert np.mean(aware) < 0.9 * np.mean(likely)
