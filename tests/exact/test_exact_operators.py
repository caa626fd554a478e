"""Models as operators: the same as matrices, without a matrix; reversed chains; what is too large is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

import backcast as bc
from backcast.exact import composition
from backcast.exact import solve as solving
from backcast.exact.chains import OneStep
from random_worlds import dense, random_mdp, random_policy, worlds_and_policies

exact = bc.exact
PARTS = ("states", "earned", "discounted")


def thin_world(n, seed=0, discount=0.9):
    """A large sparse world of one action, some of whose states are never visited."""
    rng = np.random.default_rng(seed)
    rows, rates = np.arange(0, 3 * n + 1, 3), rng.dirichlet(np.ones(3), n)
    P = sparse.csr_array((rates.ravel(), rng.integers(0, n, 3 * n), rows), shape=(n, n))
    return bc.FiniteMDP(P, rng.random((n, 1)), discount, np.eye(1, n)[0])


def models(mdp, policy, lam, initiation, looking="backward", **how):
    found = [
        exact.n_step(mdp, policy, 3, looking, **how),
        exact.multi_time(mdp, policy, [0.2, 0.0, 0.5, 0.3], looking, **how),
        exact.lambda_model(mdp, policy, lam, looking, **how),
    ]
    return found if looking == "forward" else [*found, exact.option_model(mdp, policy, initiation, 0.25, **how)]


@given(worlds_and_policies(), st.sampled_from(["backward", "forward"]))
def test_operators_are_the_matrices(world_and_policy, looking):
    mdp, policy = world_and_policy
    rng = np.random.default_rng(1)
    n = mdp.n_states
    x, initiation = rng.normal(size=n), rng.uniform(0.1, 1, n)
    lam = 0.7 if looking == "forward" else rng.uniform(0, 1, n)
    operators = models(mdp, policy, lam, initiation, looking, as_operator=True)
    for matrices, operator in zip(models(mdp, policy, lam, initiation, looking), operators, strict=True):
        assert operator.reward is None
        seen = np.setdiff1d(np.arange(n), operator.undefined)
        # option_model gives back its states alone
        for part in PARTS if hasattr(matrices, "earned") else PARTS[:1]:
            applied = getattr(operator, part)
            assert isinstance(applied, LinearOperator)
            assert applied.shape == (n, n)
            matrix = np.nan_to_num(dense(getattr(matrices, part, matrices)))
            np.testing.assert_allclose((applied @ x)[seen], (matrix @ x)[seen], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(applied.rmatvec(x)[seen], (x @ matrix)[seen], rtol=1e-9, atol=1e-10)
            for undefined in (applied @ x, applied.rmatvec(x)):
                np.testing.assert_array_equal(np.flatnonzero(np.isnan(undefined)), operator.undefined)


def test_option_operators_have_rewards_and_discounts_of_the_lambda_model():
    mdp = random_mdp(np.random.default_rng(2), 6, 2, terminals=1)
    policy, initiation = random_policy(np.random.default_rng(3), mdp), np.linspace(0.1, 1, 6)
    option = exact.option_model(mdp, policy, initiation, as_operator=True)
    model = exact.lambda_model(mdp, policy, 1 - initiation)
    seen = np.setdiff1d(np.arange(6), model.undefined)
    x = np.arange(6.0)
    for part in PARTS:
        np.testing.assert_allclose(
            (getattr(option, part) @ x)[seen], (dense(getattr(model, part)) @ x)[seen], atol=1e-12
        )


def test_operators_of_many_states():
    mdp = thin_world(20_000)
    ones, y = np.ones(mdp.n_states), np.random.default_rng(4).random(mdp.n_states)
    back = exact.backward(mdp).states
    lam = exact.lambda_model(mdp, None, 0.8, as_operator=True)
    undefined = np.isnan(lam.states @ ones)
    assert 0 < undefined.sum() == len(lam.undefined)
    y[undefined] = 0.0
    np.testing.assert_allclose((lam.states @ ones)[~undefined], 1, rtol=1e-9)
    # P←_λ = (1 − λ) P← + λ P← P←_λ
    applied = np.nan_to_num(lam.states @ y)
    recursion = sparse.csr_array(back) @ (0.2 * y + 0.8 * applied)
    np.testing.assert_allclose(applied[~undefined], recursion[~undefined], rtol=1e-8)
    for part in PARTS:
        operator = getattr(lam, part)
        left, right = np.nansum(y * (operator @ y)), np.nansum(operator.rmatvec(y) * y)
        assert left == pytest.approx(right, rel=1e-8)


def test_operators_where_the_model_hardly_ever_stops_are_certified_or_eliminated():
    """A ring of 3,000 states, in one of which the model stops: iterating does not find a certificate."""
    n = 3_000
    table = 0.5 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    mdp = bc.FiniteMDP(sparse.csr_array(table), np.ones((n, 1)), 0.9, np.eye(1, n)[0])
    lam = np.where(np.arange(n) == 7, 0.0, 1.0)
    model = exact.lambda_model(mdp, None, lam, as_operator=True)
    np.testing.assert_allclose(model.states @ np.eye(1, n, 7)[0], 1, rtol=1e-10)


@pytest.mark.parametrize("n", [20_000, 100_000])
def test_models_that_no_memory_holds_are_refused_before_they_are_made(n):
    mdp = bc.FiniteMDP(sparse.eye_array(n, k=1, format="csr") + _corner(n), np.zeros((n, 1)), 0.9, np.eye(1, n)[0])
    for make in (
        lambda: exact.lambda_model(mdp, None, 0.5),
        lambda: exact.option_model(mdp, None, 0.5),
        lambda: exact.option_model(mdp, None, 0.5, 0.5),
        lambda: exact.time_extended.ending_model(mdp, None, 0.5),
    ):
        with pytest.raises(bc.InputError, match=rf"{n:,} states would need about [\d,.]+ GiB .* as_operator=True"):
            make()
    assert exact.n_step(mdp, None, 5).states.nnz == n


def test_ten_dense_matrices_of_eight_bytes_a_number_may_take_eight_gigabytes():
    """10 · 8 · 10,362² = 8.5897 · 10⁹ is just below 8 · 2³⁰ = 8.5899 · 10⁹."""
    composition.refuse_large_model(10_362)
    with pytest.raises(bc.InputError, match=r"10,363 states would need about 8\.0 GiB as matrices, more than the 8"):
        composition.refuse_large_model(10_363)


def _corner(n):
    return sparse.csr_array(([1.0], ([n - 1], [0])), shape=(n, n))


class Watched(sparse.csr_array):
    """A matrix that is not multiplied as a whole."""

    def __matmul__(self, other):
        assert self.shape[0] < 5_000
        return super().__matmul__(other)


def test_sparse_products_that_no_memory_holds_are_refused_before_the_first_is_made(monkeypatch):
    monkeypatch.setattr(composition, "_LARGEST", 10**7)
    mdp = thin_world(5_000)
    exact.n_step(mdp, None, 1)
    for looking in ("backward", "forward"):
        with pytest.raises(bc.InputError, match=r"5,000 states would need at least .* as_operator=True"):
            exact.n_step(mdp, None, 9, looking)
    step = composition.StepMatrices.forward(mdp, OneStep(mdp, None)).each(Watched)
    for weights in (np.eye(1, 9, 8)[0], np.full(9, 1 / 9)):
        with pytest.raises(bc.InputError, match="at least"):
            composition.mixture(step, weights)
    assert exact.n_step(mdp, None, 9, as_operator=True).states.shape == (5_000, 5_000)


def test_what_paths_of_all_lengths_fill_counts_together(monkeypatch):
    """On a ring of 100 paths of n steps lead to one state, and those of 1 to 50 steps to 50.

    12 bytes for each of 100 · (2 · 4 + 3 · 50) numbers are 189,600; for 50 steps alone, 100 · (2 · 4 + 3) take 13,200.
    """
    monkeypatch.setattr(composition, "_LARGEST", 100_000)
    ring = sparse.csr_array(np.roll(np.eye(100), 1, axis=1))
    mdp = bc.FiniteMDP(ring, ring, 0.9, np.full(100, 0.01))
    assert exact.n_step(mdp, None, 50).states.nnz == 100
    with pytest.raises(bc.InputError, match="100 states would need at least"):
        exact.multi_time(mdp, None, np.full(50, 1 / 50))


def test_a_state_that_hardly_ever_stops_does_not_spoil_the_bound():
    """λ(s) is near 1 in one state of many: the model stops soon all the same."""
    rng = np.random.default_rng(0)
    chain = sparse.csr_array(rng.permutation(np.eye(300))) * 0.5 + sparse.csr_array(rng.permutation(np.eye(300))) * 0.5
    lam = rng.random(300)
    lam[7] = 1 - 2e-5
    system = sparse.csr_array(sparse.eye_array(300) - sparse.diags_array(lam) @ chain)
    norm = np.abs(np.linalg.inv(system.toarray())).sum(axis=1).max()
    assert norm <= solving.inverse_norm(system) < 2 * norm


def test_operators_are_no_matrices():
    mdp = random_mdp(np.random.default_rng(5), 4, 1)
    model = exact.n_step(mdp, None, 2, as_operator=True)
    with pytest.raises(bc.InputError, match="model: it consists of operators"):
        np.asarray(model)
    with pytest.raises(bc.InputError, match="model: it consists of operators"):
        exact.tabular_correction(mdp, model, np.zeros(4))


@given(worlds_and_policies())
def test_reverse_is_the_backward_chain(world_and_policy):
    mdp, policy = world_and_policy
    everywhere = bc.FiniteMDP(mdp.table, mdp.table_reward, 0.9, np.full(mdp.n_states, 1 / mdp.n_states), mdp.terminal)
    for world in (mdp, everywhere):
        P = exact.chain(world, policy)
        try:
            back = exact.reverse(P)
        except bc.InputError:  # states that the start does not reach may be a class of their own
            assert world is mdp or not world.terminal.any()
            continue
        model = exact.backward(world, policy)
        assert sparse.issparse(back) == sparse.issparse(P)
        np.testing.assert_allclose(dense(back), dense(model.states), rtol=1e-10, atol=1e-12)


def test_reverse_by_hand():
    P = np.array([[0.0, 0.5, 0.5, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    expected = np.array([[0.5, 0.5], [1.0, 0.0]])  # d = (2/3, 1/3) of states 1 and 2; 0 and 3 are left for good
    back = exact.reverse(P)
    np.testing.assert_allclose(back[1:3, 1:3], expected)
    assert np.isnan(back[[0, 3]]).all()
    np.testing.assert_array_equal(back[1:3, [0, 3]], 0)
    thin = exact.reverse(sparse.csr_matrix(P))
    np.testing.assert_allclose(thin.toarray()[1:3, 1:3], expected)
    assert np.isnan(thin[[0, 3], [0, 3]]).all()
    assert np.isnan(thin.sum(axis=1)[[0, 3]]).all()
    np.testing.assert_array_equal(exact.reverse([[0, 1], [1, 0]]), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("P", "message"),
    [
        (np.eye(3), r"P: the chain has 3 recurrent classes .* states 0 and 1 never reach each other"),
        (sparse.eye_array(3), r"P: the chain has 3 recurrent classes"),
        ([[0.5, 0.4], [1, 0]], r"P: the row of state 0 sums to 0\.9; it must sum to 1"),
        (sparse.csr_array([[1.0, 0.0], [0.5, 0.6]]), r"P: the row of state 1 sums to 1\.1"),
        ([[1.5, -0.5], [1, 0]], r"P: P\(s'=1 \| s=0\) is -0\.5; probabilities must be finite and not negative"),
        ([[np.nan, 1], [1, 0]], r"P: P\(s'=0 \| s=0\) is nan"),
        (np.ones((2, 3)), r"P: shape \(2, 3\) given, expected \(S, S\)"),
        (np.ones(3), r"P: shape \(3,\) given, expected \(S, S\)"),
        ("chain", r"P: expected an array of numbers"),
    ],
)
def test_chains_that_cannot_be_reversed_are_refused(P, message):
    with pytest.raises(bc.InputError, match=message):
        exact.reverse(P)


def test_a_matrix_of_many_columns_is_not_summed_term_by_term():
    """Whether episodes are short is found out with a vector: 16 products of matrices took most of the time."""
    products = []

    class Counted(np.ndarray):
        def __matmul__(self, other):
            products.append(np.ndim(other))
            return np.asarray(self) @ other

    Q = np.full((3, 3), 0.3).view(Counted)
    assert solving.bounded_sum(Q, np.eye(3)) is None
    assert set(products) == {1}
