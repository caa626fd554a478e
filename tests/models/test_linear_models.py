"""Linear values and expectation models: against plain NumPy, against tables, and in the limit."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from linear_cases import MAZE, PLANNERS, kinds_of_features
from plain_linear import twin_of
from random_worlds import leveled, random_mdp, random_policy, random_world

FEATURES = st.sampled_from(sorted(kinds_of_features(6)))


def assert_equal_to_the_twin(agent, world, episodes, seed=0):
    """The weights, the model and what was counted, up to rounding."""
    runs, twin = bc.run(world, agent, episodes, [seed]), twin_of(agent, world, seed).walk(episodes)
    size = max(1, np.abs(twin.w).max())
    given = runs.weights.shape[-1]  # without what terminal states have of their own
    twins = twin.w.reshape(twin.A, -1)[:, :given].ravel()
    np.testing.assert_allclose(runs.weights[0].ravel() / size, twins / size, rtol=0, atol=1e-9)
    np.testing.assert_allclose(runs.values.reshape(twin.table.shape) / size, twin.table / size, rtol=0, atol=1e-9)
    assert [*runs.updates.learning, *runs.updates.planning] == twin.updates
    for name in ("expectation", "second_moment", "reward"):
        if hasattr(twin, name):
            expected = np.array([getattr(twin, name)(s) for s in range(world.n_states)])
            if agent.kind == "forward":
                expected = expected[..., :given]
            else:
                kept = np.flatnonzero(np.arange(len(twin.w)) % twin.d < given)
                expected = expected[..., kept][:, kept] if name == "second_moment" else expected[..., kept]
            np.testing.assert_allclose(getattr(runs.models[0], name), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.interpreted
@settings(max_examples=30)
@given(st.booleans(), FEATURES, st.integers(0, 2), st.integers(0, 10_000))
def test_learning_alone_is_as_in_plain_numpy(control, features, terminals, seed):
    chosen = kinds_of_features(6, seed)[features]
    agent = bc.agent("q" if control else "td", features=chosen, alpha=0.2, epsilon=[1.0] * 20)
    assert_equal_to_the_twin(agent, random_world(seed, control, terminals=terminals, max_steps=30), 20, seed)


@pytest.mark.interpreted
@pytest.mark.parametrize(("kind", "model"), PLANNERS)
@settings(max_examples=20)
@given(
    control=st.booleans(),
    features=FEATURES,
    condition=st.none() | FEATURES,
    terminals=st.integers(0, 2),
    frame=st.sampled_from(["previous", "current"]),
    learn=st.booleans(),
    rls=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_models_are_as_in_plain_numpy(kind, model, control, features, condition, terminals, frame, learn, rls, seed):
    """One regression of predecessors is as good as the three tensors of the paper."""
    among = {**kinds_of_features(6, seed), None: None}
    how = {"learn_by": "rls", "ridge": 0.01} if rls else {}
    agent = bc.agent(
        kind,
        frame,
        learn,
        alpha=0.1,
        alpha_model=0.7,
        epsilon=[1.0] * 12,
        features=among[features],
        model_features=among[condition],
        **model,
        **how,
    )
    assert_equal_to_the_twin(agent, random_world(seed, control, terminals=terminals, max_steps=30), 12, seed)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["td", "q", "forward", "backward"])
@settings(max_examples=10)
@given(features=FEATURES, terminals=st.integers(0, 2), learn=st.booleans(), seed=st.integers(0, 10_000))
def test_averages_are_as_in_plain_numpy(kind, features, terminals, learn, seed):
    control = kind == "q" or (kind != "td" and seed % 2 == 1)
    rates = {"alpha": 0.9, "alpha_model": 0.7, "epsilon": [1.0] * 12, "schedule": "average"}
    pure = {} if learn or kind in ("td", "q") else {"learn": False}
    agent = bc.agent(kind, features=kinds_of_features(6, seed)[features], **rates, **pure)
    assert_equal_to_the_twin(agent, random_world(seed, control, terminals=terminals, max_steps=30), 12, seed)


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"learn_by": "rls", "ridge": 0.01}], ids=["lms", "rls"])
@pytest.mark.parametrize(("kind", "model"), PLANNERS)
def test_thousands_of_steps_are_as_in_plain_numpy(kind, model, how):
    common = dict(alpha=0.1, alpha_model=0.5, **model, **how)
    agent = bc.agent(kind, features=bc.features.random_binary(d=8, active=3), **common)
    assert_equal_to_the_twin(agent, bc.worlds.chain((6, 4, 5, 3), seed=1), 700)
    agent = bc.agent(kind, features=bc.features.tiles(tilings=2, bins=2), epsilon=[1.0] * 20, **common)
    assert_equal_to_the_twin(agent, MAZE, 20)


# One-hot features are tables


def assert_equal_runs(world, one, other, episodes=40):
    a, b = (bc.run(world, agent, episodes, 2) for agent in (one, other))
    np.testing.assert_array_equal(a.steps, b.steps)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-12, atol=1e-12)
    assert np.abs(b.values).max() > 0.01


SMALL = [
    bc.worlds.chain((5, 3, 4, 2), seed=1),
    MAZE,
    random_world(3, control=False, terminals=0, max_steps=30),
    random_world(5, control=True, terminals=1, max_steps=30),
]


@pytest.mark.parametrize("world", SMALL, ids=lambda world: world.name)
def test_learning_with_onehot_features_is_learning_of_a_table(world):
    kind = "td" if world.is_prediction else "q"
    assert_equal_runs(world, bc.agent(kind, alpha=0.5), bc.agent(kind, alpha=0.5, features="onehot"))


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize(("table", "linear"), [("softmax", "likelihood"), ("counts", "counts")])
@pytest.mark.parametrize("frame", [pytest.param("previous", marks=pytest.mark.slow), "current"])
@pytest.mark.parametrize("learn", [True, False], ids=["learn", "pure"])
@pytest.mark.parametrize(
    "world",
    [pytest.param(world, marks=[pytest.mark.slow] if k < 2 else []) for k, world in enumerate(SMALL)],
    ids=["chain", "maze", "prediction", "control"],
)
def test_models_of_onehot_features_are_models_of_states(kind, table, linear, frame, learn, world):
    common = dict(frame=frame, learn=learn, alpha=0.5, alpha_model=0.8, epsilon=0.6)
    onehot = bc.agent(kind, features="onehot", model=linear, **common)
    assert_equal_runs(world, bc.agent(kind, model=table, **common), onehot)


@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize("frame", ["previous", "current"])
@pytest.mark.parametrize("learn", [True, False], ids=["learn", "pure"])
@pytest.mark.parametrize("seed", [1, 2])
def test_least_squares_of_onehot_features_are_counts(kind, frame, learn, seed):
    world = bc.worlds.from_mdp(leveled(np.random.default_rng(seed), (4, 3, 3, 2)))
    common = dict(frame=frame, learn=learn, alpha=0.5, alpha_model=[1.0] * 40)
    onehot = bc.agent(kind, features="onehot", learn_by="rls", ridge=1e-13, **common)
    assert_equal_runs(world, bc.agent(kind, model="counts", **common), onehot)


# In the limit


def stationary_world(seed):
    """A random world without ends, in which episodes begin as often in each state as the policy is there."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 2, density=0.5, discount=0.7)
    policy = random_policy(rng, mdp)
    mdp = bc.FiniteMDP(mdp.transition, mdp.reward, mdp.discount, bc.exact.stationary(mdp, policy))
    return mdp, policy, bc.worlds.from_mdp(mdp, policy, max_steps=100)


# a constant, for the theorem, and two numbers: ‖x‖² from 1.0 to 3.6
UNEVEN = np.column_stack([np.ones(6), np.random.default_rng(0).normal(size=(6, 2))])
QUANTITIES = ("expectation", "second_moment", "reward")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["rls", "lms"])
@pytest.mark.parametrize("seed", [1, 2])
def test_learned_models_and_planning_with_them_in_the_limit(seed, how):
    """4 runs of 200,000 steps: both directions come within 0.03 of the TD fixed point, the naive one does not.

    Steps of LMS, and of Θ always, are relative to the largest norm of all. Each relative to its own, what is expected
    would be off by about 0.1 (LMS), and rewards and the fixed point by more than 0.2.
    """
    mdp, policy, world = stationary_world(seed)
    pure = dict(learn=False, learn_by=how, alpha=0.02, alpha_model=0.02, features=UNEVEN)
    fitted, fixed_point = bc.exact.fitted_backward(mdp, policy, UNEVEN), bc.exact.lstd(mdp, policy, UNEVEN)
    backward = bc.run(world, bc.agent("backward", **pure), 2000, 4)
    forward = bc.run(world, bc.agent("forward", **pure), 2000, 4)
    averages = [np.mean([getattr(model, name) for model in backward.models], axis=0) for name in QUANTITIES]
    for average, name in zip(averages, QUANTITIES, strict=True):
        np.testing.assert_allclose(average, getattr(fitted, name), atol=0.02)
    np.testing.assert_allclose(backward.weights.mean(axis=0), fixed_point, atol=0.03)
    np.testing.assert_allclose(forward.weights.mean(axis=0), fixed_point, atol=0.03)
    given_states = bc.agent("backward", model_features="onehot", model="naive", **pure)
    naive = bc.run(world, given_states, 2000, 4).weights.mean(axis=0)
    rest = bc.exact.plan_backward(mdp, policy, UNEVEN, naive=True)
    assert np.abs(rest - fixed_point).max() > 0.3
    np.testing.assert_allclose(naive, rest, atol=0.04)


# Results


def test_weights_and_values():
    X = bc.features.random_binary(d=6, active=2)
    runs = bc.run(SMALL[0], bc.agent("backward", features=X, alpha=0.1), 5, 3)
    assert runs.weights.shape == (3, 6)  # without the feature that terminal states have of their own
    np.testing.assert_allclose(runs.values[:, :12], runs.weights @ X.bind(SMALL[0]).matrix[:12].T)
    np.testing.assert_allclose(runs.values[:, 12:], 0)
    assert bc.run(MAZE, bc.agent("q", features="onehot"), 5, 3).weights.shape == (3, 4, 12)
    assert bc.run(MAZE, bc.agent("q"), 5, 3).weights is None


def test_values_that_explode_are_reported_and_no_error_is_nan():
    X = bc.features.random_binary(d=20, active=10)
    runs = bc.run(SMALL[2], bc.agent("td", features=X, alpha=1.0, schedule="constant"), 50, 3)
    assert (runs.diverged > 0).all()
    assert (runs.diverged <= runs.steps.sum(axis=1)).all()
    for errors in (runs.rmsve, runs.rmsve_inner):
        assert not np.isnan(errors).any()
        assert np.isinf(errors[:, -1]).all()
        np.testing.assert_array_equal(np.isinf(errors), np.maximum.accumulate(np.isinf(errors), axis=1))
    assert f"3 of 3 seeds diverged, the first at step {runs.diverged.min():,}" in repr(runs)
    runs = bc.run(MAZE, bc.agent("q", features=X, alpha=1.0, schedule="constant"), 50, 3)
    assert (runs.diverged > 0).all()
    assert (bc.run(MAZE, bc.agent("q", features=X, alpha=0.05), 50, 3).diverged == 0).all()


def test_a_model_says_only_what_it_knows():
    runs = bc.run(SMALL[0], bc.agent("forward", features="onehot"), 1, 1)
    for name in ("states", "second_moment", "reward", "correction"):
        with pytest.raises(bc.InputError, match=f"{name}: a ForwardExpectation says nothing about it"):
            getattr(runs.models[0], name)


def test_one_kernel_serves_all_worlds():
    """Arrays of another type would compile every kind of agent once more."""
    of_lists = bc.worlds.from_mdp(bc.FiniteMDP([[[0, 1]], [[0, 1]]], [[2], [0]], 0.25, [1, 0], [0, 1]))
    tables = [world.steps_table for world in (*SMALL, of_lists, bc.worlds.boyan())]
    assert len({numba.typeof(table) for table in tables}) == 1


def test_every_seed_may_draw_features_whether_or_not_the_end_needs_one_of_its_own():
    features = bc.features.random_binary(d=50, active=2, seed=None)
    runs = bc.run(bc.worlds.chain((20, 5, 1)), bc.agent("td", features=features, alpha=0.05), episodes=5, seeds=20)
    assert runs.weights.shape == (20, 50)


def test_learned_models_have_the_layout_of_exact_ones():
    """Aggregation shares a feature between a live and the terminal state, which gets one of its own: left out here."""
    world, features = bc.worlds.boyan(), bc.features.aggregate(groups=4)
    runs = bc.run(world, bc.agent("backward", features=features, learn_by="rls", alpha=0.2), episodes=50, seeds=1)
    exact = bc.exact.linear_backward(world.mdp, None, features.bind(world))
    for name in ("expectation", "second_moment", "reward"):
        assert getattr(runs.models[0], name).shape == getattr(exact, name).shape
    assert runs.weights.shape == (1, 4)
    assert repr(runs.models[0]) == "LearnedLinear(BackwardExpectation of 13 states)"
