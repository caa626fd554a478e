"""Exponential families and abstract models: gradients, kernels against the dense twin, numbers by hand, and theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.drivers.loop import begin, observe
from backcast.models.linear.sparse_rows import BLOCK, as_dense
from exponential_cases import KINDS, copied, made, pasts, psi_of, random_world, setup_of
from plain_exponential import GRADIENTS, LOSSES, PlainExponential
from random_worlds import dense, random_steps

pytestmark = pytest.mark.interpreted

OBJECTIVES = tuple(GRADIENTS)


def possible_steps(world):
    """Every step s → s' of the chain that is no restart: its share of all steps, and what `observe` is told of it."""
    mdp, policy = world.mdp, world.policy
    share = bc.exact.stationary(mdp, policy)[:, None] * dense(bc.exact.chain(mdp, policy))
    reward = dense(bc.exact.transition_reward(mdp, policy))
    for s, s2 in np.argwhere(share * ~mdp.terminal[:, None] > 0):
        yield share[s, s2], (int(s), 0, float(reward[s, s2]), int(s2), bool(mdp.terminal[s2]))


# Gradients against finite differences of the losses


def central_differences(loss, psi, h=1e-5):
    slope = np.zeros_like(psi)
    for place in np.ndindex(psi.shape):
        step = np.zeros_like(psi)
        step[place] = h
        slope[place] = (loss(psi + step) - loss(psi - step)) / (2 * h)
    return slope


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), control=st.booleans(), terminals=st.integers(0, 2))
def test_gradients_are_those_of_the_losses(kind, objective, seed, control, terminals):
    rng = np.random.default_rng(seed)
    world = random_world(rng, control, terminals)
    X, Z = rng.normal(size=(2, 6, 3))
    twin = PlainExponential(bc.agent(kind, model=objective, features=X, model_features=Z), setup_of(world))
    twin.w, twin.psi, twin.theta = (0.5 * rng.normal(size=x.shape) for x in (twin.w, twin.psi, twin.theta))
    twin.goes_on = 1.0 - world.mdp.terminal
    for step in random_steps(world, rng, 3, cut=0.0):
        case = twin.case(np.array([0, 0, rng.random(), 0]), *step[:5])
        slope = central_differences(lambda psi, case=case: LOSSES[objective](psi, case), twin.psi)
        gradient = GRADIENTS[objective](twin.psi, case)
        rounding = 1e-10 * (1 + LOSSES[objective](twin.psi, case))
        np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-6 * np.abs(gradient).max() + rounding)


# The kernel's steps


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), control=st.booleans(), terminals=st.integers(0, 2), alone=st.booleans())
def test_a_step_goes_down_the_gradient(kind, objective, seed, control, terminals, alone):
    """By α_model / max_s ‖z(s)‖⁴, and but for likelihood relative to a quarter of the scale (meta: times α)."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, control, terminals)
    X, Z = rng.normal(size=(2, 6, 3))
    agent = bc.agent(kind, model=objective, features=X, model_features=None if alone else Z, learn=False)
    parts, twin = made(world, agent)
    *walk, last = random_steps(world, rng, 25, cut=0.1)
    for step in walk:
        observe(parts, np.array([0, 0.1, 1e-9, 0]), *step)
    parts.values.w[:] = rng.normal(size=parts.values.w.size)
    rates = rng.random(4)
    copied(parts, twin)
    case = twin.case(rates, *last[:5])
    mean, count = twin.mean_square, twin.steps
    observe(parts, rates, *last)
    size = (twin.Z**2).sum(axis=1).max() ** 2
    if objective != "likelihood":
        assert count == len(walk)
        size *= 0.25 * (mean + ((case.real_correction**2).sum() - mean) / (count + 1))
        size *= rates[2] if objective == "meta" else 1.0
    moved = -rates[1] / size * GRADIENTS[objective](twin.psi, case)
    np.testing.assert_allclose(psi_of(parts) - twin.psi, moved, rtol=1e-10, atol=1e-10 * max(1, np.abs(moved).max()))


def feature_choices(rng):
    return st.sampled_from(
        [bc.features.onehot(), bc.features.random_binary(d=5, active=2), bc.features.given(rng.normal(size=(6, 4)) / 2)]
    )


@pytest.mark.parametrize("model", [*OBJECTIVES, "abstract"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    features=feature_choices(np.random.default_rng(0)),
    model_features=st.none() | st.just(bc.features.aggregate(groups=3)) | feature_choices(np.random.default_rng(1)),
    control=st.booleans(),
    terminals=st.integers(0, 2),
    learn=st.booleans(),
    frame=st.sampled_from(["previous", "current"]),
    sample=st.sampled_from([None, None, 1, 3]),
)
def test_kernel_and_twin_walk_together(kind, model, seed, control, terminals, features, model_features, **choices):
    """With values of learning and planning, or of planning alone: the paper's two estimates."""
    if model == "abstract":
        choices["sample"] = None
    rng = np.random.default_rng(seed)
    world = random_world(rng, control, terminals)
    sizes = dict(alpha=0.3, alpha_plan=0.1, alpha_model=0.05)
    agent = bc.agent(kind, model=model, features=features, model_features=model_features, **sizes, **choices)
    parts, twin = made(world, agent)
    schedule = agent.rates(10)
    for number, step in enumerate(random_steps(world, rng, 300, cut=0.02)):
        rates = schedule[number // 30]
        if step[-1]:
            begin(parts, rates, step[0])
            twin.begin(rates, step[0])
        observe(parts, rates, *step)
        twin.observe(rates, *step)
    assert_close = np.testing.assert_allclose
    assert np.abs(twin.w).max() > 1e-4
    assert_close(parts.values.w, twin.w, rtol=1e-9, atol=1e-9)
    if model == "abstract":
        learned = as_dense(parts.model.correction.rows, len(twin.w)).T
        assert_close(learned, twin.D, rtol=1e-9, atol=1e-9)
        corrections = (twin.Z @ twin.D.T).reshape(twin.S, twin.A, -1)[:, :, : parts.values.n_given]
        learned = parts.model.readable(parts.values).correction.reshape(corrections.shape)
        assert_close(learned, corrections, rtol=1e-9, atol=1e-9)
    else:
        assert_close(psi_of(parts), twin.psi, rtol=1e-9, atol=1e-9)
        assert_close(copied(parts, PlainExponential(agent, setup_of(world))).theta, twin.theta, rtol=1e-9, atol=1e-9)


# By hand: three states, one-hot, γ = 1/2; from nothing, the step 0 → 1 earns 2


def step_by_hand(kind, model, w, **settings):
    """Where the first step leads, with step sizes 1 of the model and 1/2 of planning; pure planning."""
    world = bc.worlds.from_mdp(bc.FiniteMDP(np.full((3, 1, 3), 1 / 3), np.zeros((3, 1, 3)), 0.5, [1, 0, 0]))
    parts = bc.agent(kind, model=model, features="onehot", learn=False, **settings).build(setup_of(world))
    parts.values.w[:] = w
    observe(parts, np.array([1.0, 1.0, 0.5, 0.0]), 0, 0, 2.0, 1, False, True)
    return parts


@pytest.mark.parametrize(
    ("objective", "logits"),
    [
        # E[z] − z(0) = (1/3 − 1, 1/3, 1/3)
        ("likelihood", [2 / 3, -1 / 3, -1 / 3]),
        # Δ(0) = 3, Δ(o) = (1, −2, 1), e = (1/3 − 3, −2/3, 1/3), e·Δ(o) = (−8/3, 4/3, 1/3) of mean −1/3; relative to 9/4
        ("planner-aware", [28 / 81, -20 / 81, -8 / 81]),
        # δ⁺ = 3 − 1/2 · 1/3 = 17/6, e/α = (−17/6, 0, 0), e·Δ(o)/α = (−17/6, 0, 0) of mean −17/18
        ("meta", [68 / 243, -34 / 243, -34 / 243]),
    ],
)
def test_one_step_of_each_objective_looking_backward(objective, logits):
    """With v = (1, 4, 1): δ(o) = 0 + 2 − v(o) before the reward is known, and 3 of the real step."""
    parts = step_by_hand("backward", objective, [1.0, 4.0, 1.0])
    expected = np.zeros((3, 3))
    expected[:, 1] = logits
    np.testing.assert_allclose(psi_of(parts), expected, atol=1e-15)
    chance = np.exp(logits) / np.exp(logits).sum()
    # planning knows that 0 → 1 earns 2
    np.testing.assert_allclose(parts.values.w, [1, 4, 1] + 0.5 * chance * [2 + 2 - 1, 2 - 4, 2 - 1], atol=1e-15)


@pytest.mark.parametrize(
    ("objective", "logits"),
    [
        ("likelihood", [-1 / 3, 2 / 3, -1 / 3]),
        # E[δ] − δ = 1/6 − 3 = −17/6; times δ(o): (17/12, −17/6, 0) of mean −17/36; relative to 9/4
        ("planner-aware", [-68 / 243, 85 / 243, -17 / 243]),
        # −δ⁺ = 1/2 · 1/6 − 3 = −35/12; times δ(o): (35/24, −35/12, 0) of mean −35/72
        ("meta", [-70 / 243, 87.5 / 243, -17.5 / 243]),
    ],
)
def test_one_step_of_each_objective_looking_forward(objective, logits):
    """With v = (1, 4, 2): δ(o) = 0 + v(o)/2 − 1 = (−1/2, 1, 0) before the reward is known, and 3 of the real step."""
    parts = step_by_hand("forward", objective, [1.0, 4.0, 2.0])
    expected = np.zeros((3, 3))
    expected[:, 0] = logits
    np.testing.assert_allclose(psi_of(parts), expected, atol=1e-15)
    chance = np.exp(logits) / np.exp(logits).sum()
    planned = 1 + 0.5 * (chance @ [0.5, 2 + 2, 1] - 1)
    np.testing.assert_allclose(parts.values.w, [planned, 4, 2], atol=1e-15)


@pytest.mark.parametrize("objective", ["planner-aware", "meta"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_of_reward_does_not_matter(kind, objective):
    """The same model, and values in the other unit, when rewards are measured in billionths or in billions."""
    rng = np.random.default_rng(0)
    steps = list(random_steps(random_world(rng, False, terminals=1), rng, 200, cut=0.0))
    agent = bc.agent(kind, model=objective, features="onehot", alpha=0.3, alpha_plan=0.1)
    usual = None
    for unit in (1.0, 2.0**-30, 2.0**30):
        parts = agent.build(setup_of(random_world(np.random.default_rng(0), False, terminals=1)))
        for s, a, r, s2, ends, first in steps:
            observe(parts, np.array([0.3, 0.5, 0.1, 0.0]), s, a, unit * r, s2, ends, first)
        usual = usual or parts
        assert np.abs(psi_of(parts)).max() > 0.1
        np.testing.assert_allclose(psi_of(parts), psi_of(usual), rtol=1e-9)
        np.testing.assert_allclose(parts.values.w, unit * usual.values.w, rtol=1e-9)


@pytest.mark.parametrize(("kind", "given"), [("backward", 1), ("forward", 0)])
def test_one_step_of_an_abstract_model(kind, given):
    """δ = 2 + 4/2 − 1 = 3 along x(0), expected in state 1 looking backward and in state 0 looking forward."""
    parts = step_by_hand(kind, "abstract", [1.0, 4.0, 0.0])
    expected = np.zeros((3, 3))
    expected[given] = [3, 0, 0]
    np.testing.assert_array_equal(parts.model.readable(parts.values).correction, expected)
    np.testing.assert_array_equal(parts.values.w, [1 + 0.5 * 3, 4, 0])


# Theory


def true_family(kind, objective, world, rng):
    """A twin with one-hot features whose Ψ and Θ are the truth, with random values."""
    twin = PlainExponential(bc.agent(kind, model=objective, features="onehot"), setup_of(world))
    share, reward = np.zeros((2, world.n_states, world.n_states))
    for weight, (s, _, r, s2, _) in possible_steps(world):
        share[s, s2], reward[s, s2] = weight, r
    logits = np.log(np.maximum(share, 1e-300))  # softmax divides by the sum
    twin.psi, twin.theta = (logits, reward) if kind == "backward" else (logits.T, reward.T)
    twin.goes_on, twin.w = 1.0 - world.mdp.terminal, rng.normal(size=world.n_states)
    return twin


def mean_gradient(twin, objective, world):
    """The gradient of the loss, expected over the steps of the chain."""
    rates = np.array([0, 0, 0.5, 0])
    cases = [(weight, twin.case(rates, *step)) for weight, step in possible_steps(world)]
    return sum(weight * GRADIENTS[objective](twin.psi, case) for weight, case in cases)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), terminals=st.integers(0, 2))
def test_gradients_vanish_at_the_truth(kind, seed, terminals):
    """Of likelihood and of planner-aware models, that is. A meta-learned one makes more of a step than it deserves."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, control=False, terminals=terminals, density=1.0, n_states=4)
    for objective in ("likelihood", "planner-aware"):
        twin = true_family(kind, objective, world, rng)
        np.testing.assert_allclose(mean_gradient(twin, objective, world), 0, atol=1e-12)
        twin.psi = twin.psi + 0.1 * rng.normal(size=twin.psi.shape)
        assert np.abs(mean_gradient(twin, objective, world)).max() > 1e-6
    assert np.abs(mean_gradient(true_family(kind, "meta", world, rng), "meta", world)).max() > 1e-6


# Abstract models


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), terminals=st.integers(0, 2))
def test_abstract_corrections_are_the_expected_ones(kind, seed, terminals):
    """With one-hot conditions and step sizes that make a mean, every possible step weighed by its share."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, control=False, terminals=terminals)
    X, w = rng.normal(size=(2, 6, 3))
    X, w = X * ~world.mdp.terminal[:, None], w[0]
    agent = bc.agent(kind, model="abstract", features=X, model_features="onehot", learn=False)
    parts = agent.build(setup_of(world))
    parts.values.w[:3] = w
    total = np.zeros(6)
    for weight, step in possible_steps(world):
        given = step[0] if kind == "forward" else step[3]
        total[given] += weight
        observe(parts, np.array([0, weight / total[given], 0, 0]), *step, False)
    if kind == "forward":
        truth = bc.exact.linear_forward(world.mdp, world.policy, X).correction(w)
    else:
        truth = bc.exact.backward_correction(world.mdp, world.policy, X, w) / pasts(world)[:, None]
    learned = parts.model.readable(parts.values).correction
    np.testing.assert_allclose(learned[total > 0, :3], truth[total > 0], atol=1e-12)
    assert not learned[total == 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_abstract_corrections_learned_on_a_walk_approach_the_expected_ones(kind):
    """With planning so small that the weights stay where they are: means over some 5,000 visits of each state."""
    rng = np.random.default_rng(1)
    world = random_world(rng, control=False, density=1.0, n_states=4)
    parts = bc.agent(kind, model="abstract", features="onehot", learn=False).build(setup_of(world))
    w, visits = rng.normal(size=4), np.zeros(4)
    parts.values.w[:] = w
    for step in random_steps(world, rng, 20_000, cut=0.0):
        given = step[0 if kind == "forward" else 3]
        visits[given] += 1
        observe(parts, np.array([0, 1 / visits[given], 1e-9, 0]), *step)
    learned = parts.model.readable(parts.values).correction
    forward = bc.exact.linear_forward(world.mdp, world.policy, np.eye(4)).correction(w)
    backward = bc.exact.backward_correction(world.mdp, world.policy, np.eye(4), w)
    np.testing.assert_allclose(learned, forward if kind == "forward" else backward, atol=0.08)


@pytest.mark.parametrize("kind", KINDS)
def test_an_abstract_model_has_room_for_the_corrections_of_all_actions(kind):
    """Every action of the one state that a condition tells of has its own weights, wherever it leads."""
    A, width = 5, 8
    mdp = bc.FiniteMDP(np.tile([[0.0, 1.0], [1.0, 0.0]], (A, 1, 1)).transpose(1, 0, 2), np.ones((2, A, 2)), 0.9, [1, 0])
    X = np.random.default_rng(0).normal(size=(2, width))
    parts, _ = made(bc.worlds.from_mdp(mdp), bc.agent(kind, model="abstract", features=X, model_features="onehot"))
    assert len(parts.model.correction.rows.link) * BLOCK >= 2 * A * width
