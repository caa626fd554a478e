"""Linear values: the TD fixed point, and models of features that planning converges to it with."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

import backcast as bc
from backcast.exact import linear
from random_worlds import dense, densified, random_mdp, random_policy, worlds_and_policies

CLOSE = dict(rtol=1e-10, atol=1e-10)
exact = bc.exact

# 0 and 1 lead to 2, which leads to either; 1 → 2 earns 4; d = (1/4, 1/4, 1/2)
FORK = bc.FiniteMDP([[[0, 0, 1]], [[0, 0, 1]], [[0.5, 0.5, 0]]], [[0], [4], [0]], 0.5, [1, 0, 0])
FORK_X = [[1.0], [3.0], [1.0]]
# episodes 0 → 2 and 1 → 2, which earn 1 and 3; d = (1/4, 1/4, 1/2)
FUNNEL = bc.FiniteMDP([[[0, 0, 1]], [[0, 0, 1]], [[0, 0, 1]]], [[1], [3], [0]], 0.5, [0.5, 0.5, 0], [0, 0, 1])


@st.composite
def linear_cases(draw):
    """A world, a policy and features: fewer or more than states, some redundant, dense or sparse."""
    mdp, policy = draw(worlds_and_policies())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(mdp.n_states, draw(st.integers(1, 5))))
    if draw(st.booleans()):
        X = np.column_stack([X, X[:, 0], X.sum(axis=1)])
    return mdp, policy, sparse.csr_array(X) if draw(st.booleans()) else X


def lively(mdp, X):
    return np.where(mdp.terminal[:, None], 0, dense(X))


def average(mdp, policy, correction):
    d = exact.stationary(mdp, policy)
    return d[d > 0] @ correction[d > 0]


def plan(mdp, policy, correct, size, alpha=1.0, sweeps=100):
    w, d = np.zeros(size), exact.stationary(mdp, policy)
    for _ in range(sweeps):
        w = w + alpha * (d[d > 0] @ correct(w)[d > 0])
    return w


def test_fork_by_hand():
    # A = ¼·1·(1 − ½·1) + ¼·3·(3 − ½·1) + ½·1·(1 − ½·2) = 2 and b = ¼·3·4 = 3
    np.testing.assert_allclose(exact.lstd(FORK, None, FORK_X), [1.5])
    model = exact.linear_backward(FORK, None, FORK_X)
    np.testing.assert_allclose(model.expectation, [[1], [1], [2]])
    np.testing.assert_allclose(model.second_moment, [[[1]], [[1]], [[5]]])
    np.testing.assert_allclose(model.reward, [[0], [0], [6]])
    # at w = 2, into state 2: 6 + (½·2·1 − 5)·2 = −2; naive: (2 + ½·2 − 2·2)·2 = −2 as well, by chance; at 0: 6 and 4
    np.testing.assert_allclose(model.correction([2.0]), [[-1], [1], [-2]])
    np.testing.assert_allclose(model.correction([0.0]), [[0], [0], [6]])
    np.testing.assert_allclose(model.naive_correction([0.0]), [[0], [0], [4]])
    np.testing.assert_allclose(model.naive_correction([2.0]), [[-1], [1], [-2]])
    forward = exact.linear_forward(FORK, None, FORK_X)
    np.testing.assert_allclose(forward.expectation, [[1], [1], [2]])
    np.testing.assert_allclose(forward.reward, [0, 4, 0])
    np.testing.assert_allclose(forward.correction([2.0]), [[-1], [-3], [0]])


def test_planning_with_three_quantities_converges_to_lstd_and_the_naive_update_to_something_else():
    model = exact.linear_backward(FORK, None, FORK_X)
    np.testing.assert_allclose(plan(FORK, None, model.correction, 1, alpha=0.3), [1.5], atol=1e-8)
    # Σ_s d Δ = ¼·1·(½·1 − 1)w + ¼·1·(½·3 − 1)w + ½·2·(2 + (½ − 2)w) = 2 − 3w/2
    np.testing.assert_allclose(exact.plan_backward(FORK, None, FORK_X, naive=True), [4 / 3])
    naive = plan(FORK, None, model.naive_correction, 1, alpha=0.3)
    assert abs(naive[0] - 1.5) == pytest.approx(0.1666666667, abs=1e-8)


@pytest.mark.parametrize("terminals", [0, 2])
def test_planning_in_a_random_world_converges_to_lstd_for_redundant_features_too(terminals):
    rng = np.random.default_rng(6)
    mdp = random_mdp(rng, 8, 2, terminals=terminals, as_sparse=True)
    policy, X = random_policy(rng, mdp), rng.normal(size=(8, 2))
    X = np.column_stack([X, X @ [1.0, 2.0]])
    w = plan(mdp, policy, exact.linear_backward(mdp, policy, X).correction, 3, alpha=0.3, sweeps=1000)
    np.testing.assert_allclose(w, exact.lstd(mdp, policy, X), atol=1e-8)
    assert np.abs(w - exact.plan_backward(mdp, policy, X, naive=True)).max() > 0.05


def test_naive_planning_gives_all_predecessors_the_same_value():
    model = exact.linear_backward(FUNNEL, None, np.eye(3))
    np.testing.assert_allclose(exact.lstd(FUNNEL, None, np.eye(3)), [1, 3, 0], atol=1e-12)
    np.testing.assert_allclose(plan(FUNNEL, None, model.correction, 3), [1, 3, 0], atol=1e-8)
    naive = exact.plan_backward(FUNNEL, None, np.eye(3), naive=True)
    np.testing.assert_allclose(naive, [2, 2, 0], atol=1e-12)
    np.testing.assert_allclose(plan(FUNNEL, None, model.naive_correction, 3), naive, atol=1e-8)
    assert np.linalg.norm(naive - [1, 3, 0]) == pytest.approx(1.4142135624)


def test_naive_planning_weighs_a_state_by_the_probability_that_something_led_there():
    """Episodes begin at 0 and go 0 → 1, and on to 0 or the end 2: d = (2, 2, 1) / 5.

    Half of the visits to 0 begin an episode. x = (1, 2), so that in 0 E[x̃] = ½·2 and E[r] = ½·2, and
    Δ = (1 + ½·½·w − w) / ½. In 1 it is 1 + ½·2w − w, in the end (2 − 2w)·2. The sum with weights d is
    (10 − 7w) / 5.
    """
    mdp = bc.FiniteMDP([[[0, 1, 0]], [[0.5, 0, 0.5]], [[0, 0, 1]]], [[1], [2], [0]], 0.5, [1, 0, 0], [0, 0, 1])
    np.testing.assert_allclose(exact.plan_backward(mdp, None, [[1.0], [2.0], [3.0]], naive=True), [10 / 7])


def test_features_of_states_that_are_hardly_ever_visited_are_found_as_well():
    """State 0 stays, and leads to 1 once in 10¹⁴ steps: v(0) = 1 + v(0) / 2, up to 10⁻¹⁴, and v(1) = 2 + v(0) / 2."""
    mdp = bc.FiniteMDP([[[1 - 1e-14, 1e-14]], [[1.0, 0.0]]], [[1.0], [2.0]], 0.5, [1, 0])
    np.testing.assert_allclose(exact.lstd(mdp, None, np.eye(2)), [2, 3], rtol=1e-12)


def test_a_certain_predecessor_makes_the_naive_update_right_even_if_episodes_begin_there():
    # Episodes begin at 0 and go 0 → 1 → (0 or the end 2): half of the visits to 0 are restarts
    mdp = bc.FiniteMDP([[[0, 1, 0]], [[0.5, 0, 0.5]], [[0, 0, 1]]], [[1], [2], [0]], 0.9, [1, 0, 0], [0, 0, 1])
    model = exact.linear_backward(mdp, None, np.eye(3))
    np.testing.assert_allclose(model.past, [0.5, 1, 1])
    np.testing.assert_allclose(model.expectation, [[0, 0.5, 0], [1, 0, 0], [0, 1, 0]])
    w = [3.0, 4.0, 5.0]  # Δ(0) = ½ (2 + 0.9·3 − 4) for state 1; state 2 ends: 2 − 4
    np.testing.assert_allclose(model.correction(w), [[0, 0.35, 0], [1.6, 0, 0], [0, -2, 0]])
    np.testing.assert_allclose(model.naive_correction(w), model.correction(w), **CLOSE)


@given(linear_cases(), st.integers(0, 2**32 - 1))
def test_corrections_are_those_of_the_backward_chain(case, seed):
    mdp, policy, X = case
    w = np.random.default_rng(seed).normal(size=X.shape[1])
    model = exact.linear_backward(mdp, policy, X)
    expected = exact.backward_correction(mdp, policy, X, w)
    np.testing.assert_allclose(model.correction(w), expected, rtol=1e-12, atol=1e-12)
    alive, x = np.where(mdp.terminal, 0, mdp.discount), dense(X)
    from_moments = (
        model.reward
        + alive[:, None] * model.expectation * (x @ w)[:, None]
        - np.einsum("sij,j->si", model.second_moment, w)
    )
    np.testing.assert_allclose(model.correction(w), from_moments, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.isnan(model.past), exact.stationary(mdp, policy) == 0)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(model.second_moment[:, 0, 0])), model.undefined)


@given(worlds_and_policies())
def test_one_hot_features_are_the_table(world_and_policy):
    mdp, policy = world_and_policy
    one_hot, alive = np.eye(mdp.n_states), ~mdp.terminal
    model = exact.linear_backward(mdp, policy, one_hot)
    seen = exact.stationary(mdp, policy) > 0
    table = dense(exact.backward(mdp, policy).states)[seen] * alive
    r = dense(exact.transition_reward(mdp, policy)).T[seen]
    np.testing.assert_allclose(model.expectation[seen], table, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.second_moment[seen], table[:, :, None] * one_hot, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.reward[seen], table * r, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.expected_reward[seen], (table * r).sum(axis=1), rtol=1e-12, atol=1e-12)
    P = dense(exact.chain(mdp, policy)) * alive[:, None] * alive
    np.testing.assert_allclose(exact.linear_forward(mdp, policy, one_hot).expectation, P, rtol=1e-12, atol=1e-12)
    if (seen & alive).any():
        w = exact.lstd(mdp, policy, one_hot)
        np.testing.assert_allclose(w[seen & alive], exact.value(mdp, policy)[seen & alive], **CLOSE)
        assert (w[~(seen & alive)] == 0).all()


@given(linear_cases())
def test_forward_and_backward_corrections_vanish_on_average_at_lstd(case):
    mdp, policy, X = case
    w = exact.lstd(mdp, policy, X)
    size = 1 + np.abs(w).max() * np.abs(X).max() ** 2
    for model in (exact.linear_forward(mdp, policy, X), exact.linear_backward(mdp, policy, X)):
        assert np.abs(average(mdp, policy, model.correction(w))).max() < 1e-10 * size
    np.testing.assert_allclose(exact.plan_backward(mdp, policy, X), w, rtol=1e-8, atol=1e-8 * size)


@given(linear_cases(), st.integers(0, 2**32 - 1))
def test_lstd_does_not_depend_on_the_basis_and_is_the_smallest(case, seed):
    mdp, policy, X = case
    rng = np.random.default_rng(seed)
    T, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    w = exact.lstd(mdp, policy, X)
    visited = (exact.stationary(mdp, policy) > 0) & ~mdp.terminal
    scaled = X @ (T * rng.uniform(0.1, 10, X.shape[1]))
    other = scaled @ exact.lstd(mdp, policy, scaled)
    size = np.abs(X @ w)[visited].max()
    np.testing.assert_allclose((X @ w)[visited], other[visited], rtol=1e-7, atol=1e-7 * size)
    smallest = np.linalg.lstsq(dense(X)[visited], (X @ w)[visited], rcond=1e-12)[0]
    np.testing.assert_allclose(w, smallest, rtol=1e-6, atol=1e-6 * np.abs(w).max())


@given(linear_cases(), st.integers(0, 2**32 - 1))
def test_dense_and_sparse_worlds_agree(case, seed):
    mdp, policy, X = case
    w = np.random.default_rng(seed).normal(size=X.shape[1])
    full, x = densified(mdp), dense(X)
    pairs = [
        (exact.linear_backward(mdp, policy, X), exact.linear_backward(full, policy, x)),
        (exact.fitted_backward(mdp, policy, X), exact.fitted_backward(full, policy, x)),
    ]
    for thin, thick in pairs:
        for part in ("expectation", "second_moment", "reward", "expected_reward", "past"):
            np.testing.assert_allclose(getattr(thin, part), getattr(thick, part), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(thin.naive_correction(w), thick.naive_correction(w), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        exact.linear_forward(mdp, policy, X).correction(w), exact.linear_forward(full, policy, x).correction(w), **CLOSE
    )


@given(worlds_and_policies())
def test_the_model_fitted_to_one_hot_conditions_is_exact(world_and_policy):
    mdp, policy = world_and_policy
    one_hot = np.eye(mdp.n_states)
    model, fitted = (f(mdp, policy, one_hot) for f in (exact.linear_backward, exact.fitted_backward))
    for part in ("expectation", "second_moment", "reward", "expected_reward", "past"):
        np.testing.assert_allclose(getattr(fitted, part), getattr(model, part), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fitted.correction(one_hot[0]), model.correction(one_hot[0]), rtol=1e-9, atol=1e-9)


@given(linear_cases())
def test_a_fitted_model_is_least_squares_over_the_steps_that_are_observed(case):
    """Against regressions that are written out step by step."""
    mdp, policy, X = case
    x, Z = lively(mdp, X), np.column_stack([dense(X)[:, :2], np.arange(mdp.n_states) % 2])
    d, P, r = (
        exact.stationary(mdp, policy),
        dense(exact.chain(mdp, policy)),
        dense(exact.transition_reward(mdp, policy)),
    )
    steps = [(i, j) for i, j in np.argwhere(P > 0) if d[i] > 0 and not mdp.terminal[i]]
    root = np.sqrt([d[i] * P[i, j] for i, j in steps])
    earlier, later = np.transpose(steps)

    def regress(inputs, targets):
        return np.linalg.lstsq(root[:, None] * inputs, root[:, None] * targets, rcond=1e-12)[0]

    H = regress(Z[later], x[earlier])
    rho = regress(Z[later], r[earlier, later][:, None])
    outer = np.einsum("ni,nj->nij", x[earlier], x[earlier]).reshape(len(steps), -1)
    M = (Z @ regress(Z[later], outer)).reshape(-1, x.shape[1], x.shape[1])
    products = np.einsum("ni,nj->nij", x[earlier], Z[later]).reshape(len(steps), -1)
    theta = regress(products, r[earlier, later][:, None]).reshape(x.shape[1], -1)
    model = exact.fitted_backward(mdp, policy, X, Z)
    seen, past = d > 0, model.past[:, None]
    close = dict(rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.expectation[seen], (past * (Z @ H))[seen], **close)
    np.testing.assert_allclose(model.expected_reward[seen], (past * (Z @ rho))[seen, 0], **close)
    np.testing.assert_allclose(model.second_moment[seen], (past[:, :, None] * M)[seen], **close)
    vector_reward = past * np.einsum("sij,sj->si", M, Z @ theta.T)
    np.testing.assert_allclose(model.reward[seen], vector_reward[seen], rtol=1e-6, atol=1e-6)


@given(linear_cases())
def test_a_fitted_model_plans_to_lstd_if_conditions_span_a_constant_and_the_living_features(case):
    mdp, policy, X = case
    condition = np.column_stack([lively(mdp, X), np.full(mdp.n_states, 2.0)])
    model, w = exact.fitted_backward(mdp, policy, X, condition), exact.lstd(mdp, policy, X)
    size = 1 + np.abs(w).max() * np.abs(X).max() ** 2
    assert np.abs(average(mdp, policy, model.correction(w))).max() < 1e-8 * size


@pytest.mark.parametrize("missing", ["constant", "features"])
def test_without_either_condition_a_fitted_model_misses_lstd(missing):
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, 6, 1, terminals=1, density=0.5)
    X = rng.normal(size=(6, 2))
    condition = {"constant": lively(mdp, X), "features": np.column_stack([X, np.ones(6)])}[missing]
    model, w = exact.fitted_backward(mdp, None, X, condition), exact.lstd(mdp, None, X)
    assert np.abs(average(mdp, None, model.correction(w))).max() > 1e-3
    assert np.abs(exact.plan_backward(mdp, None, X, model) - w).max() > 1e-3


@given(linear_cases(), st.booleans())
def test_where_planning_with_a_fitted_model_stops(case, naive):
    mdp, policy, X = case
    model = exact.fitted_backward(mdp, policy, X, np.column_stack([lively(mdp, X), np.ones(mdp.n_states)]))
    try:
        w = exact.plan_backward(mdp, policy, X, model, naive)
    except bc.InputError:
        assume(False)
    correct = model.naive_correction if naive else model.correction
    size = 1 + np.abs(w).max() * np.abs(X).max() ** 2
    assert np.abs(average(mdp, policy, correct(w))).max() < 1e-8 * size


def test_reading_the_steps_in_blocks_changes_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, 7, 2, terminals=1)
    policy, X = random_policy(rng, mdp), rng.normal(size=(7, 2))
    whole = exact.fitted_backward(mdp, policy, X)
    monkeypatch.setattr(linear, "_BLOCK", 12)
    np.testing.assert_allclose(exact.fitted_backward(mdp, policy, X).reward, whole.reward, **CLOSE)


def test_large_sparse_worlds_do_without_second_moments(monkeypatch):
    n = 20_000
    P = sparse.csr_array(
        (np.full(2 * n, 0.5), (np.arange(n).repeat(2), np.add.outer(np.arange(n), [1, 2]).ravel() % n))
    )
    mdp = bc.FiniteMDP(P, sparse.csr_array(P.shape), 0.9, np.full(n, 1 / n))
    X = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n) // 100)))
    monkeypatch.setattr(linear, "_moments", None)
    model = exact.linear_backward(mdp, None, X)
    w = np.ones(200)  # v = 1 everywhere: each predecessor is corrected by 0.9 − 1
    np.testing.assert_allclose(model.correction(w), -0.1 * model.expectation, atol=1e-12)
    np.testing.assert_allclose(exact.lstd(mdp, None, X), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact.lstd(FORK, None, np.zeros((3, 2))), "features: all are zero wherever the policy goes"),
        (lambda: exact.lstd(FORK, None, np.zeros((3, 0))), "features: all are zero wherever the policy goes"),
        (lambda: exact.lstd(FUNNEL, None, [[0.0], [0.0], [1.0]]), "features: all are zero wherever"),
        (lambda: exact.lstd(FORK, None, np.eye(2)), r"features: shape \(2, 2\) given, expected \(3, d\)"),
        (lambda: exact.lstd(FORK, None, [[1.0], [np.nan], [0.0]]), r"features: entry \(1, 0\) is nan"),
        (lambda: exact.fitted_backward(FORK, None, FORK_X, np.eye(2)), r"condition: shape \(2, 2\)"),
        (lambda: exact.linear_backward(FORK, None, FORK_X).correction([1, 2]), r"weights: shape \(2,\)"),
        (lambda: exact.linear_forward(FORK, None, FORK_X).correction([1, 2]), r"weights: shape \(2,\)"),
        (
            lambda: exact.plan_backward(FORK, None, np.eye(3), exact.linear_backward(FORK, None, FORK_X)),
            "model: it is a model of other features",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(bc.InputError, match=message):
        call()


def test_discount_one_needs_episodes_that_end():
    mdp = bc.FiniteMDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[[1, 0], [0, 0]]] * 2, 1.0, [1, 0], [0, 1])
    np.testing.assert_allclose(exact.lstd(mdp, [[0.5, 0.5], [0, 0]], np.eye(2)), [1, 0], atol=1e-12)
    with pytest.raises(bc.InputError, match="with discount 1, the policy must end its episodes"):
        exact.lstd(mdp, [0, 0], np.eye(2))
