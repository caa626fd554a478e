"""Chains that hardly hold together and episodes that hardly end: every entry against exact arithmetic or plain GTH."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import backcast as bc
from backcast.core.arrays import ratio
from backcast.exact import solve as solving
from backcast.exact.stationary import stationary_of
from random_worlds import dense

exact = bc.exact


def gth(P):
    """Grassmann, Taksar and Heyman, state by state."""
    A = np.array(P)
    for k in range(len(A) - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += A[:k, k, None] * A[k, :k]
    x = np.ones(len(A))
    for k in range(1, len(A)):
        x[k] = x[:k] @ A[:k, k]
    return x / x.sum()


def exactly(P, leak, b):
    """Solve (I − P) x = b in fractions, the diagonal being leak plus the other entries of the row."""
    n = len(b)
    A = [[-Fraction(P[i, j]) for j in range(n)] + [Fraction(b[i])] for i in range(n)]
    for i in range(n):
        A[i][i] = Fraction(leak[i]) + sum(Fraction(P[i, j]) for j in range(n) if j != i)
    for k in range(n):
        for i in range(k + 1, n):
            if A[i][k]:
                factor = A[i][k] / A[k][k]
                A[i] = [x - factor * y for x, y in zip(A[i], A[k], strict=True)]
    x = [Fraction(0)] * n
    for i in reversed(range(n)):
        x[i] = (A[i][n] - sum(A[i][j] * x[j] for j in range(i + 1, n))) / A[i][i]
    return np.array([float(value) for value in x])


def exact_values(mdp):
    """The values of a world of one action whose last state is the terminal one, solved in fractions."""
    P = [[Fraction(mdp.discount) * Fraction(p) for p in row] for row in dense(mdp.table)[:-1]]
    leak = [1 - Fraction(mdp.discount) + row[-1] for row in P]
    return exactly(np.array(P, dtype=object)[:, :-1], leak, mdp.expected_reward[:-1, 0])


def blocks(rng, sizes, coupling, successors=None):
    """Random blocks, each connected, in a ring whose links have the probability `coupling`, or a multiple of it."""
    n, first = sum(sizes), np.cumsum([0, *sizes])
    P = np.zeros((n, n))
    for begin, size in zip(first, sizes, strict=False):
        inner = rng.dirichlet(np.ones(size), size)
        if successors is not None:
            inner = np.where(rng.random((size, size)) < successors / size, inner, 0) + 0.1 * np.roll(np.eye(size), 1, 1)
        P[begin : begin + size, begin : begin + size] = inner / inner.sum(axis=1, keepdims=True)
    for k, begin in enumerate(first[:-1]):
        P[begin, first[(k + 1) % len(sizes)]] += coupling * (1 + 8 * k)
    return P / P.sum(axis=1, keepdims=True)


def line(length, forward, discount=1.0, as_sparse=False, reward=-1.0):
    """Cells in a row that ends at the last one; every step earns `reward`."""
    cells = np.arange(length - 1)
    rows, to = np.repeat(cells, 2), np.stack([cells + 1, np.maximum(cells - 1, 0)], axis=1).ravel()
    table = sparse.coo_array((np.tile([forward, 1 - forward], length - 1), (rows, to)), shape=(length, length)).tocsr()
    last = np.arange(length) == length - 1
    transition = table if as_sparse else table.toarray()[:, None, :]
    return bc.FiniteMDP(transition, np.full((length, 1), reward), discount, np.eye(1, length)[0], last)


@pytest.mark.parametrize("coupling", [1e-9, pytest.param(1e-12, marks=pytest.mark.slow), 1e-14])
@pytest.mark.parametrize("successors", [None, 4])
def test_nearly_decomposable_chains_are_exact_in_every_entry(coupling, successors):
    P = blocks(np.random.default_rng(1), (510, 510), coupling, successors)
    expected = gth(P)
    np.testing.assert_allclose(stationary_of(P).d, expected, rtol=1e-12)
    np.testing.assert_allclose(stationary_of(sparse.csr_array(P)).d, expected, rtol=1e-12)
    mdp = bc.FiniteMDP(sparse.csr_array(P), np.zeros((1020, 1)), 0.9, np.full(1020, 1 / 1020))
    np.testing.assert_allclose(exact.stationary(mdp), expected, rtol=1e-12)


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 40), min_size=2, max_size=5),
    st.floats(-14, -1),
    st.sampled_from([None, 2]),
)
def test_random_nearly_decomposable_chains(seed, sizes, exponent, successors):
    P = blocks(np.random.default_rng(seed), sizes, 10.0**exponent, successors)
    np.testing.assert_allclose(stationary_of(P).d, gth(P), rtol=1e-12)


@pytest.mark.parametrize("coupling", [1e-3, 1e-6, pytest.param(1e-9, marks=pytest.mark.slow), 1e-14])
def test_a_walk_that_has_settled_is_no_certificate(coupling):
    """Blocks that mix at once: the walk comes to rest in each of them with the weights it began with."""
    P = sparse.csr_array(blocks(np.random.default_rng(2), (630, 420), coupling, 5))
    expected = gth(P.toarray())
    from backcast.exact.stationary import _by_mixing

    walked = _by_mixing(P)
    assert walked is None or np.abs(walked / expected - 1).max() < 1e-8
    np.testing.assert_allclose(stationary_of(P).d, expected, rtol=1e-8)


def test_the_reversed_chain_of_weakly_coupled_parts_balances_their_exchange():
    P = blocks(np.random.default_rng(3), (30, 20), 1e-13)
    mdp = bc.FiniteMDP(P[:, None, :], np.zeros((50, 1)), 0.9, np.full(50, 0.02))
    d = exact.stationary(mdp)
    assert d[0] * P[0, 30] == pytest.approx(d[30] * P[30, 0], rel=1e-12)
    assert all(equivalence.gap < 1e-12 for equivalence in exact.equivalences(mdp))


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("discount", [1.0, 1 - 1e-12, 0.9])
def test_values_of_very_long_episodes(discount, as_sparse):
    mdp = line(37, 0.25, discount, as_sparse)
    expected = exact_values(mdp)
    np.testing.assert_allclose(exact.value(mdp)[:-1], expected, rtol=1e-13)
    if discount == 1:
        assert expected[0] == pytest.approx(-4.5e17, rel=0.01)
    np.testing.assert_allclose(exact.optimal(mdp).v[:-1], expected, rtol=1e-13)


def test_values_of_a_long_sparse_line():
    p, n = 0.495, 3_000
    # the expected time from a cell to the next: 1/p + (1−p)/p times that of the cell before; 1/p for the first
    times = np.empty(n - 1)
    times[0] = 1 / p
    for k in range(1, n - 1):
        times[k] = 1 / p + (1 - p) / p * times[k - 1]
    expected = -np.cumsum(times[::-1])[::-1]
    np.testing.assert_allclose(exact.value(line(n, p, as_sparse=True))[:-1], expected, rtol=1e-10)


@given(st.integers(0, 2**32 - 1), st.floats(-16, -2), st.sampled_from([1.0, 1 - 1e-12, 0.99]), st.booleans())
def test_values_where_ends_are_rare_against_fractions(seed, exponent, discount, mixed):
    rng = np.random.default_rng(seed)
    n = 7
    P = np.zeros((n, 1, n))
    P[:-1, 0, :-1] = rng.dirichlet(np.ones(n - 1), n - 1)
    P[0, 0, -1] = 10.0**exponent
    P[0, 0, :-1] *= 1 - 10.0**exponent
    reward = -rng.random((n, 1)) if not mixed else rng.normal(size=(n, 1)) + 3
    mdp = bc.FiniteMDP(P, reward, discount, np.eye(1, n)[0], np.arange(n) == n - 1)
    np.testing.assert_allclose(exact.value(mdp)[:-1], exact_values(mdp), rtol=1e-12)


def test_values_that_cancel_beyond_rounding_are_refused():
    """Along a line, each step forward earns 1 and each step back −1: what is earned is the way made."""
    n = 37
    mdp = line(n, 0.25)
    cells = np.arange(n)
    reward = np.where(cells[None, :] > cells[:, None], 1.0, -1.0)
    reward[0, 0] = 0.0
    mixed = bc.FiniteMDP(mdp.transition, reward, 1.0, mdp.start, mdp.terminal)
    with pytest.raises(bc.InputError, match=r"of both signs .* nearly cancel"):
        exact.value(mixed)
    short = bc.FiniteMDP(line(9, 0.25).transition, reward[:9, :9], 1.0, np.eye(1, 9)[0], cells[:9] == 8)
    np.testing.assert_allclose(exact.value(short), 8 - cells[:9], atol=1e-9)


def test_values_that_no_float_can_hold_are_refused():
    with pytest.raises(bc.InputError, match="not finite in double precision"):
        exact.value(line(2_000, 0.25))


def two_speeds(length, discount=1.0, slow=(0.25, 0.25)):
    """A line with two actions of different chances to go forward; −1 for each step."""
    transition = np.zeros((length, 2, length))
    for a, forward in enumerate(slow):
        mdp = line(length, forward)
        transition[:, a] = mdp.transition[:, 0]
    return bc.FiniteMDP(transition, -np.ones((length, 2)), discount, np.eye(1, length)[0], mdp.terminal)


@pytest.mark.parametrize("method", ["auto", "policy-iteration", "value-iteration"])
@pytest.mark.parametrize("discount", [1.0, 1 - 1e-12])
def test_optimal_ends_with_an_answer_or_a_sentence(method, discount):
    quick = two_speeds(36, discount, (0.25, 0.75))
    if method != "value-iteration" or discount == 1:
        best = exact.optimal(quick, method)
        np.testing.assert_array_equal(best.policy[:-1, 1], 1)
        np.testing.assert_allclose(best.v, exact.value(quick, [1] * 36), rtol=1e-12)
    same = exact.optimal(two_speeds(36, discount, (0.25, 0.25)), "policy-iteration")
    np.testing.assert_allclose(same.v, exact.value(line(36, 0.25, discount)), rtol=1e-12)
    for slow in ((0.25, 0.26), (0.26, 0.25)):
        world = two_speeds(36, discount, slow)
        with pytest.raises(bc.InputError, match=r"in state \d+ is lost in rounding|2000 sweeps were not enough"):
            exact.optimal(world, method, max_iterations=2_000)


@pytest.mark.parametrize("earned", [5.0, 0.0])
@pytest.mark.parametrize("discount", [0.9, 1 - 1e-6, 1 - 1e-10, 1 - 1e-14])
def test_where_nothing_is_ever_earned_all_actions_are_alike_without_doubt(earned, discount):
    """0 → 1 earns something, once; 1 stays or goes on to 2, which stays."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
    transition[[0, 0, 1, 1, 2, 2], [0, 1] * 3, [1, 1, 1, 2, 2, 2]] = 1
    reward[0, :, 1] = earned
    best = exact.optimal(bc.FiniteMDP(transition, reward, discount, [1, 0, 0]))
    assert best.v.tolist() == [earned, 0, 0]


def test_value_iteration_without_discount_does_not_stop_on_the_way():
    """Each sweep changes little, but there are many to come: a self-loop that is left with probability 1e-6."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0] = [1 - 1e-6, 1e-6]
    transition[0, 1] = [0, 1]
    transition[1, :, 1] = 1
    reward = np.array([[[1e-6] * 2, [0.5] * 2], [[0.0] * 2] * 2])
    mdp = bc.FiniteMDP(transition, reward, 1.0, [1, 0], [False, True])
    best = exact.optimal(mdp, "value-iteration", tolerance=1e-5)
    assert best.v[0] == pytest.approx(1.0, rel=1e-9)


def test_states_that_are_reached_have_a_past_even_if_their_probability_underflows():
    n = 500
    up = np.zeros((n, n))
    up[np.arange(n), np.minimum(np.arange(n) + 1, n - 1)] += 0.1
    up[np.arange(n), np.maximum(np.arange(n) - 1, 0)] += 0.9
    world = bc.FiniteMDP(up[:, None, :], np.ones((n, 1)), 0.9, np.eye(1, n)[0])
    for mdp in (world, bc.FiniteMDP(world.table, world.table_reward, 0.9, world.start)):
        assert exact.stationary(mdp)[-1] == 0  # 9⁻⁵⁰⁰
        model = exact.backward(mdp)
        assert model.undefined.size == 0
        # a birth–death chain is reversible
        np.testing.assert_allclose(dense(model.states), up, rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(dense(exact.n_step(mdp, None, 3).states), np.linalg.matrix_power(up, 3), rtol=1e-9)
        rows = np.asarray(exact.lambda_model(mdp, None, 0.5)).sum(axis=1)
        np.testing.assert_allclose(rows, 1, rtol=1e-12)
        np.testing.assert_allclose(exact.linear_backward(mdp, None, np.ones((n, 1))).past, 1, rtol=1e-12)
    np.testing.assert_allclose(exact.reverse(up), up, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(exact.reverse(up[::-1, ::-1]), up[::-1, ::-1], rtol=1e-10, atol=1e-300)


def test_states_that_are_reached_in_so_many_steps_have_a_past_however_unlikely():
    """A walk up a line with 1 of 10 steps, counted in whole numbers: 10ᵗ times the probability."""
    n, t = 420, 400
    up = np.zeros((n, n))
    up[np.arange(n), np.minimum(np.arange(n) + 1, n - 1)] += 0.1
    up[np.arange(n), np.maximum(np.arange(n) - 1, 0)] += 0.9
    ways = [1] + [0] * (n - 1)
    for _ in range(t):
        before, ways = ways, [9 * (ways[0] + ways[1])]
        ways += [before[s - 1] + 9 * before[min(s + 1, n - 1)] for s in range(1, n)]
    after = [9 * (ways[0] + ways[1])] + [ways[s - 1] + 9 * ways[min(s + 1, n - 1)] for s in range(1, n)]
    world = bc.FiniteMDP(up[:, None, :], np.ones((n, 1)), 0.9, np.eye(1, n)[0])
    for mdp in (world, bc.FiniteMDP(world.table, world.table_reward, 0.9, world.start)):
        model = exact.backward_at(mdp, t=t)
        np.testing.assert_array_equal(model.undefined, np.arange(t + 2, n))
        states = dense(model.states)
        for s in range(1, t + 2):
            np.testing.assert_allclose(states[s, s - 1], ways[s - 1] / after[s], rtol=1e-9)
            np.testing.assert_allclose(states[s, s + 1], 9 * ways[s + 1] / after[s], rtol=1e-9)
        np.testing.assert_allclose(states[: t + 2].sum(axis=1), 1, rtol=1e-9)


def test_steps_of_any_probability_have_a_past():
    """0 → 1 → 2 → 0, each but the last with a probability of 10⁻³⁰⁰, else to where it came from."""
    P = np.array([[1, 1e-300, 0], [1, 0, 1e-300], [1, 0, 0]])
    mdp = bc.FiniteMDP(P[:, None, :], np.ones((3, 1)), 0.9, [1, 0, 0])
    np.testing.assert_array_equal(exact.backward_at(mdp, t=0).undefined, [2])
    np.testing.assert_allclose(exact.backward_at(mdp, t=1).states, [[1, 0, 0], [1, 0, 0], [0, 1, 0]], atol=1e-290)


def test_no_reward_is_expected_of_what_underflows():
    """A smallest λ: the probability of two steps is 0 in double precision, what they earn is not."""
    earned, probability = np.array([[5e-324, 3.0], [0.0, -1.0]]), np.array([[0.0, 0.5], [0.25, 1.0]])
    for form in (np.asarray, sparse.csr_array):
        np.testing.assert_array_equal(dense(ratio(form(earned), form(probability))), [[0, 6], [0, -1]])


def test_parts_that_no_float_connects_are_refused():
    """Two wells, and a hill between them that is climbed with a probability of 9⁻⁸⁰⁰."""
    n = 1_601
    towards = np.where(np.arange(n) <= n // 2, 0.1, 0.9)
    P = np.zeros((n, n))
    P[np.arange(n), np.minimum(np.arange(n) + 1, n - 1)] += towards
    P[np.arange(n), np.maximum(np.arange(n) - 1, 0)] += 1 - towards
    for form in (P, sparse.csr_array(P)):
        with pytest.raises(bc.InputError, match="connected so weakly"):
            stationary_of(form)


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(solving, "_LARGEST_WORK", 1.0)
    monkeypatch.setattr(solving, "_LARGEST_DENSE", 0)
    with pytest.raises(bc.InputError, match=r"2,998 states.* mixes too slowly"):
        exact.value(line(2_999, 0.495, as_sparse=True))


@pytest.mark.interpreted
@pytest.mark.parametrize("ends", [False, True], ids=["for ever", "two steps"])
def test_rewards_whose_values_overflow_are_refused_and_named(ends):
    """Also where episodes are so short that values are summed and nothing is eliminated."""
    transition = np.zeros((3, 1, 3))
    transition[[0, 1, 2], 0, [1, 2, 2] if ends else [1, 0, 2]] = 1.0
    mdp = bc.FiniteMDP(transition, np.full((3, 1), 1e308), 0.99, [1.0, 0.0, 0.0], [False, False, ends])
    with pytest.raises(bc.InputError, match=r"not finite in double precision: .*rewards are too large"):
        bc.exact.value(mdp)
