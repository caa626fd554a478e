"""The theory on random worlds: dense and sparse, episodic, periodic, with unreachable states."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import backcast as bc
from backcast.exact import solve as solving
from backcast.exact.stationary import stationary_of
from random_worlds import dense, densified, leveled, random_mdp, random_policy, simulate, worlds_and_policies

CLOSE = dict(rtol=1e-10, atol=1e-10)
exact = bc.exact


@given(worlds_and_policies())
def test_stationary_distribution(world_and_policy):
    mdp, policy = world_and_policy
    P, d = dense(exact.chain(mdp, policy)), exact.stationary(mdp, policy)
    np.testing.assert_allclose(P.sum(axis=1), 1, **CLOSE)
    np.testing.assert_allclose(d @ P, d, **CLOSE)
    assert d.sum() == pytest.approx(1, abs=1e-12)
    walk = np.linalg.matrix_power(0.5 * (np.eye(len(P)) + P), 2**14)  # lazy, so that periods do not matter
    np.testing.assert_allclose(mdp.start @ walk, d, atol=1e-8)
    assert (d[(mdp.start @ walk) == 0] == 0).all()


@given(worlds_and_policies(), st.integers(1, 5))
def test_equivalences_of_appendix_b(world_and_policy, n):
    mdp, policy = world_and_policy
    v = np.random.default_rng(0).normal(size=mdp.n_states)
    for equivalence in exact.equivalences(mdp, policy, v, n):
        assert equivalence.left.shape == equivalence.right.shape
        assert equivalence.gap < 1e-10, str(equivalence)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([0.0, 0.5, 1.0]))
def test_offline_td_views_agree(seed, length, discount):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(4, 3))
    views = exact.offline_td(
        rng.integers(0, 4, length), rng.normal(size=length), features @ rng.normal(size=3), discount, features
    )
    assert views.gap < 1e-10


@given(worlds_and_policies())
def test_backward_model_is_bayes_rule(world_and_policy):
    mdp, policy = world_and_policy
    model, d = exact.backward(mdp, policy), exact.stationary(mdp, policy)
    S, A = mdp.n_states, mdp.n_actions
    joint = dense(model.joint).reshape(S, S, A)
    given_action = dense(model.given_action).reshape(S, A, S)
    seen = d > 0
    np.testing.assert_array_equal(model.undefined, np.flatnonzero(~seen))
    assert np.isnan(joint[~seen]).any(axis=(1, 2)).all()
    np.testing.assert_allclose(joint[seen].sum(axis=(1, 2)), 1, **CLOSE)
    np.testing.assert_allclose(joint[seen].sum(axis=2), dense(model.states)[seen], **CLOSE)
    np.testing.assert_allclose(joint[seen].sum(axis=1), model.action[seen], **CLOSE)
    for s in np.flatnonzero(seen):
        for a in range(A):
            if model.action[s, a] > 0:
                np.testing.assert_allclose(given_action[s, a] * model.action[s, a], joint[s, :, a], **CLOSE)
            else:
                assert np.isnan(given_action[s, a]).any()
    # equation 3, written out
    transition = densified(mdp).transition.copy()
    transition[mdp.terminal] = mdp.start
    s_next = int(np.argmax(d))
    for a in np.flatnonzero(model.action[s_next] > 0):
        written = policy[:, a] / model.action[s_next, a] * d / d[s_next] * transition[:, a, s_next]
        np.testing.assert_allclose(given_action[s_next, a], written, **CLOSE)


@given(worlds_and_policies(), st.integers(0, 4))
def test_backward_in_time_is_bayes_rule_and_tends_to_the_stationary_one(world_and_policy, t):
    mdp, policy = world_and_policy
    model = exact.backward_at(mdp, policy, t=t)
    before, after = exact.distribution(mdp, policy, t=t), exact.distribution(mdp, policy, t=t + 1)
    np.testing.assert_array_equal(model.undefined, np.flatnonzero(after == 0))
    seen = after > 0
    both = before[:, None] * dense(exact.chain(mdp, policy))
    np.testing.assert_allclose(dense(model.states)[seen] * after[seen, None], both.T[seen], **CLOSE)


def test_backward_in_time_tends_to_the_stationary_one():
    mdp = random_mdp(np.random.default_rng(3), 5, 2, density=1.0)
    policy = random_policy(np.random.default_rng(4), mdp)
    late = exact.backward_at(mdp, policy, t=300).joint
    np.testing.assert_allclose(late, exact.backward(mdp, policy).joint, **CLOSE)


@given(worlds_and_policies())
def test_dense_and_sparse_agree(world_and_policy):
    mdp, policy = world_and_policy
    thin = bc.FiniteMDP(mdp.table, mdp.table_reward, mdp.discount, mdp.start, mdp.terminal)
    full = densified(mdp)
    S, A = mdp.n_states, mdp.n_actions
    np.testing.assert_allclose(exact.stationary(thin, policy), exact.stationary(full, policy), **CLOSE)
    np.testing.assert_allclose(exact.value(thin, policy), exact.value(full, policy), **CLOSE)
    np.testing.assert_allclose(exact.optimal(thin).v, exact.optimal(full).v, **CLOSE)
    seen = exact.stationary(full, policy) > 0
    one, other = exact.backward(thin, policy), exact.backward(full, policy)
    assert all(sparse.issparse(m) for m in (one.joint, one.states, one.given_action))
    np.testing.assert_allclose(dense(one.joint).reshape(S, S, A)[seen], other.joint[seen], **CLOSE)
    assert np.isnan(one.states.sum(axis=1)[~seen]).all()
    for build in (lambda m: exact.n_step(m, policy, 3), lambda m: exact.lambda_model(m, policy, 0.4)):
        one, other = build(thin), build(full)
        for name in ("states", "earned", "discounted"):
            np.testing.assert_allclose(dense(getattr(one, name))[seen], getattr(other, name)[seen], **CLOSE)
        np.testing.assert_allclose(dense(one.reward), other.reward, **CLOSE)
    X = np.random.default_rng(5).normal(size=(S, 3))
    one = exact.backward_correction(thin, policy, X, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(one[seen], exact.backward_correction(full, policy, X, [1, 2, 3])[seen], **CLOSE)
    thin_X = exact.backward_correction(thin, policy, sparse.csr_array(X), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(thin_X[seen], one[seen], **CLOSE)


@given(worlds_and_policies(), st.integers(1, 5))
def test_n_step_models_are_powers_and_their_rewards_path_sums(world_and_policy, n):
    mdp, policy = world_and_policy
    model, seen = exact.n_step(mdp, policy, n), exact.stationary(mdp, policy) > 0
    one = np.nan_to_num(dense(exact.backward(mdp, policy).states))
    np.testing.assert_allclose(dense(model.states)[seen], np.linalg.matrix_power(one, n)[seen], **CLOSE)
    # earned, by walking all paths of n steps
    P, r = dense(exact.chain(mdp, policy)), dense(exact.transition_reward(mdp, policy))
    probability = {(s, s): (1.0, 0.0, 1.0) for s in range(mdp.n_states)}  # (s̃, s) -> weight, gain, discount
    for _ in range(n):
        following = {}
        for (first, last), (weight, gain, left) in probability.items():
            for s in np.flatnonzero(P[last]):
                p = P[last, s]
                alive = mdp.discount if not (mdp.terminal[last] or mdp.terminal[s]) else 0.0
                w, g, f = following.get((first, s), (0.0, 0.0, 0.0))
                following[first, s] = (
                    w + weight * p,
                    g + p * (gain + left * r[last, s]),
                    f + p * left * alive,
                )
        probability = following
    for (first, last), (weight, gain, _) in probability.items():
        assert dense(model.reward)[first, last] == pytest.approx(gain / weight, rel=1e-9, abs=1e-9)


@given(worlds_and_policies(), st.floats(0, 0.9))
def test_lambda_model_recursion_closed_form_and_mixture_agree(world_and_policy, lam):
    mdp, policy = world_and_policy
    model = exact.lambda_model(mdp, policy, lam)
    weights = (1 - lam) * lam ** np.arange(400.0)
    weights = weights[: np.argmin(weights > 1e-16)]  # the rest is far below what is compared
    mixture = exact.multi_time(mdp, policy, weights / weights.sum())
    seen = exact.stationary(mdp, policy) > 0
    for name in ("states", "earned", "discounted"):
        left, right = dense(getattr(model, name)), dense(getattr(mixture, name))
        np.testing.assert_allclose(left[seen], right[seen], rtol=1e-9, atol=1e-10)


@given(worlds_and_policies())
def test_state_dependent_lambda_satisfies_the_recursion(world_and_policy):
    mdp, policy = world_and_policy
    lam = np.random.default_rng(6).random(mdp.n_states)
    seen = exact.stationary(mdp, policy) > 0
    model = exact.lambda_model(mdp, policy, lam)
    M, B = (
        np.asarray(model)[np.ix_(seen, seen)],
        dense(exact.backward(mdp, policy).states)[np.ix_(seen, seen)],
    )
    np.testing.assert_allclose(M.sum(axis=1), 1, **CLOSE)
    np.testing.assert_allclose(M, (1 - lam[seen]) * B + (B * lam[seen]) @ M, **CLOSE)
    option = dense(exact.option_model(mdp, policy, 1 - lam))
    np.testing.assert_allclose(option[np.ix_(seen, seen)], M, **CLOSE)


@given(worlds_and_policies())
def test_every_model_keeps_reward_earned_and_states_consistent(world_and_policy):
    mdp, policy = world_and_policy
    for model in (
        exact.n_step(mdp, policy, 2),
        exact.multi_time(mdp, policy, [0.2, 0.0, 0.8]),
        exact.lambda_model(mdp, policy, 0.7),
    ):
        seen = np.setdiff1d(np.arange(mdp.n_states), model.undefined)
        left = dense(model.states)[seen] * dense(model.reward).T[seen]
        np.testing.assert_allclose(left, dense(model.earned)[seen], **CLOSE)


@given(worlds_and_policies(), st.sampled_from([1, 2, 4]))
def test_backward_corrections_vanish_on_average_at_the_true_values(world_and_policy, n):
    mdp, policy = world_and_policy
    d, v = exact.stationary(mdp, policy), exact.value(mdp, policy)
    seen = d > 0
    for model in (exact.n_step(mdp, policy, n), exact.lambda_model(mdp, policy, 0.6)):
        correction = dense(exact.tabular_correction(mdp, model, v))
        np.testing.assert_allclose(d[seen] @ correction[seen], 0, atol=1e-10)


@given(worlds_and_policies())
def test_weighed_by_the_later_end_a_lambda_of_each_state_leaves_the_true_values_alone(world_and_policy):
    """The paper's weights do not (tests/planners/test_unbiased_planning.py); for a constant λ both are the same."""
    mdp, policy = world_and_policy
    lam = np.linspace(0.1, 0.9, mdp.n_states)
    d, v = bc.exact.stationary(mdp, policy), bc.exact.value(mdp, policy)
    model = bc.exact.lambda_model(mdp, policy, lam, weigh_by="later")
    correction = dense(bc.exact.tabular_correction(mdp, model, v))
    np.testing.assert_allclose(d[d > 0] @ correction[d > 0], 0, atol=1e-10 * (1 + np.abs(v).max()))
    x = np.arange(mdp.n_states) + 1.0
    operator = bc.exact.lambda_model(mdp, policy, lam, weigh_by="later", as_operator=True)
    for part in ("states", "earned", "discounted"):
        np.testing.assert_allclose(getattr(operator, part) @ x, dense(getattr(model, part)) @ x, atol=1e-10)
    earlier, later = (bc.exact.lambda_model(mdp, policy, 0.7, weigh_by=end) for end in ("earlier", "later"))
    np.testing.assert_allclose(dense(later.states), dense(earlier.states), atol=1e-12)
    np.testing.assert_allclose(dense(later.reward), dense(earlier.reward), atol=1e-10)


def test_the_papers_mixture_reward_does_not_make_a_valid_correction():
    """Σ_n w_n r⁽ⁿ⁾ ignores how likely each horizon is given both ends; the posterior-weighted reward does not."""
    mdp = random_mdp(np.random.default_rng(8), 4, 1, density=1.0)
    d, v, weights = exact.stationary(mdp), exact.value(mdp), (0.5, 0.5)
    ours = exact.multi_time(mdp, None, weights)
    literal = sum(w * exact.n_step(mdp, None, n).reward for n, w in enumerate(weights, start=1))
    target = ours.states * literal.T + ours.discounted * v[:, None]
    assert np.abs(d @ (target - ours.states * v)).max() > 1e-3
    assert np.abs(d @ exact.tabular_correction(mdp, ours, v)).max() < 1e-12


@given(worlds_and_policies())
def test_values_satisfy_bellman_and_methods_agree(world_and_policy):
    mdp, policy = world_and_policy
    world = densified(mdp)
    v, q = exact.value(mdp, policy), exact.action_value(mdp, policy)
    np.testing.assert_allclose((policy * q).sum(axis=1), v, **CLOSE)
    ahead = (world.transition * (world.reward + mdp.discount * v)).sum(axis=2)
    np.testing.assert_allclose(q[~mdp.terminal], ahead[~mdp.terminal], **CLOSE)
    by_policy, by_value = exact.optimal(mdp, "policy-iteration"), exact.optimal(mdp, "value-iteration")
    np.testing.assert_allclose(by_policy.v, by_value.v, atol=2e-10)
    np.testing.assert_allclose(exact.value(mdp, by_policy.policy), by_policy.v, **CLOSE)
    assert (by_policy.v >= v - 1e-10).all()
    assert by_policy.residual < 1e-10


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_discount_one(seed, as_sparse):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 2, terminals=2, density=1.0, discount=1.0, as_sparse=as_sparse)
    policy = random_policy(rng, mdp)
    costs = bc.FiniteMDP(mdp.table, -np.ones((6, 2)), 1.0, mdp.start, mdp.terminal)
    v = exact.value(costs, policy)
    P = densified(costs).transition
    np.testing.assert_allclose(v, np.where(mdp.terminal, 0, -1 + np.einsum("sa,sat,t->s", policy, P, v)), **CLOSE)
    by_policy, by_value = exact.optimal(costs, "policy-iteration"), exact.optimal(costs, "value-iteration")
    np.testing.assert_allclose(by_policy.v, by_value.v, atol=1e-8)
    np.testing.assert_allclose(exact.value(costs, by_value.policy), by_value.v, atol=1e-8)


def test_discount_one_prefers_ways_that_end():
    """Every action is worth 1 with discount 1, but going in circles earns nothing."""
    circle = [[[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], [[0, 0, 1], [0, 0, 1]]]
    reward = np.zeros((3, 3))
    reward[1, 2] = 1.0
    mdp = bc.FiniteMDP(circle, reward, 1.0, [1, 0, 0], [False, False, True])
    for method in ("policy-iteration", "value-iteration"):
        best = exact.optimal(mdp, method)
        np.testing.assert_allclose(best.v, [1, 1, 0])
        np.testing.assert_array_equal(best.policy[:2], [[0, 1], [0, 1]])
    np.testing.assert_allclose(exact.value(mdp, [0, 0, 0]), [0, 0, 0])


@pytest.mark.parametrize("kind", ["general", "leveled"])
def test_long_simulation_agrees_within_standard_errors(kind):
    rng = np.random.default_rng(11)
    mdp = leveled(rng, (4, 3, 2)) if kind == "leveled" else random_mdp(rng, 5, 2, terminals=1, density=1.0)
    policy = random_policy(rng, mdp)
    steps = 60_000
    states, actions, rewards = simulate(mdp, policy, steps, rng)
    model, d = exact.backward(mdp, policy), exact.stationary(mdp, policy)
    visits = np.bincount(states[1:], minlength=mdp.n_states)
    np.testing.assert_allclose(visits / steps, d, atol=6 / np.sqrt(steps))
    for s in np.flatnonzero(d > 0.02):
        before = np.flatnonzero(states[1:] == s)
        counts = np.zeros((mdp.n_states, mdp.n_actions))
        np.add.at(counts, (states[before], actions[before]), 1)
        error = 5 * np.sqrt(model.joint[s] * (1 - model.joint[s]) / len(before)) + 1e-9
        assert (np.abs(counts / len(before) - model.joint[s]) <= error).all()
    # two-step rewards, given both ends
    two = exact.n_step(mdp, policy, 2)
    alive = ~(mdp.terminal[states[:-2]] | mdp.terminal[states[1:-1]])
    gains = rewards[:-1] + np.where(alive, mdp.discount, 0.0) * rewards[1:]
    for first in range(mdp.n_states):
        for last in range(mdp.n_states):
            sample = gains[(states[:-2] == first) & (states[2:] == last)]
            if len(sample) > 200:
                error = 5 * sample.std() / np.sqrt(len(sample)) + 1e-9
                assert abs(sample.mean() - two.reward[first, last]) <= error


def test_large_sparse_methods_agree_with_dense_elimination(monkeypatch):
    """The paths for large worlds, taken by a small one: lazy walk, sparse elimination, certified Krylov."""
    rng = np.random.default_rng(12)
    P = rng.random((60, 60)) * (rng.random((60, 60)) < 0.2) + np.eye(60)[::-1]
    P /= P.sum(axis=1, keepdims=True)
    expected = stationary_of(P).d
    monkeypatch.setattr(solving, "_SMALL", 0)
    monkeypatch.setattr(solving, "_FULL", 1.0)
    monkeypatch.setattr(solving, "_DENSE_SPEEDUP", 1e-9)
    walked = sys.modules["backcast.exact.stationary"]._by_mixing(sparse.csr_array(P))
    np.testing.assert_allclose(walked, expected, rtol=1e-11)
    np.testing.assert_allclose(stationary_of(sparse.csr_array(P)).d, expected, rtol=1e-11)
    ring = sparse.csr_array(0.5 * (np.roll(np.eye(300), 1, axis=1) + np.roll(np.eye(300), -1, axis=1)))
    ring[0, 1], ring[0, 299] = 0.9, 0.1  # slow to mix: the walk gives up, the factors are thin
    slow = stationary_of(ring.tocsr()).d
    np.testing.assert_allclose(slow, stationary_of(ring.toarray()).d, rtol=1e-13)

    b = rng.normal(size=(60, 2))
    for discount in (0.9, 0.99999):
        system = solving.Leaky(sparse.csr_array(discount * P), np.full(60, 1 - discount), as_dense=False)
        full = solving.Leaky(discount * P, np.full(60, 1 - discount))
        np.testing.assert_allclose(system.solve_iteratively(b), full.solve(b), rtol=1e-9)
        np.testing.assert_allclose(system.elimination.solve(b), full.solve(b), rtol=1e-12)
        np.testing.assert_allclose(system.solve_left(b[:, 0]), full.solve_left(b[:, 0]), rtol=1e-9)
        np.testing.assert_allclose(system.elimination.solve_left(b[:, 0]), full.solve_left(b[:, 0]), rtol=1e-12)


def test_krylov_answers_are_certified_or_refused():
    ring = sparse.csr_array(0.5 * (np.roll(np.eye(4000), 1, axis=1) + np.roll(np.eye(4000), -1, axis=1)))
    leak = np.eye(1, 4000)[0]  # one leak in a long ring: 150 steps cannot solve it
    assert solving.Leaky(ring, leak).solve_iteratively(np.ones(4000)) is None
    x = solving.Leaky(0.9 * ring, np.full(4000, 0.1)).solve_iteratively(np.ones(4000))
    np.testing.assert_allclose(x, 10.0, rtol=1e-11)


def corridor(length, discount=0.9):
    """Cells in a row; left and right; entering the last one earns 1 and ends."""
    transition = np.zeros((length, 2, length))
    cells = np.arange(length)
    transition[cells, 0, np.maximum(cells - 1, 0)] = 1
    transition[cells, 1, np.minimum(cells + 1, length - 1)] = 1
    reward = np.zeros((length, length))
    reward[length - 2, length - 1] = 1
    return bc.FiniteMDP(transition, reward, discount, np.eye(1, length)[0], cells == length - 1)


def test_policy_iteration_sees_rewards_however_far_away():
    best = exact.optimal(corridor(400), "policy-iteration")
    np.testing.assert_allclose(best.v[:-1], 0.9 ** np.arange(398.0, -1, -1), rtol=1e-9)
    np.testing.assert_array_equal(best.policy[:-1], np.tile([0, 1], (399, 1)))


def test_nearly_decoupled_blocks_are_not_taken_for_mixed():
    rng = np.random.default_rng(13)
    blocks = sparse.block_diag([sparse.csr_array(rng.dirichlet(np.ones(600), 600)) for _ in range(2)]).tolil()
    blocks[0, 600] += 1e-12
    blocks[600, 0] += 9e-12
    P = sparse.csr_array(blocks)
    P = sparse.diags_array(1 / P.sum(axis=1)) @ P
    d = stationary_of(P.tocsr()).d
    # balance between the blocks: d(0) · 1 = d(600) · 9
    assert d[0] == pytest.approx(9 * d[600], rel=1e-2)


def test_rare_states_are_as_accurate_as_others():
    rng = np.random.default_rng(14)
    n = 1201
    P = np.zeros((n, n))
    P[:-1, :-1] = rng.dirichlet(np.ones(n - 1), n - 1)
    P[0, :-1] *= 1 - 1e-14
    P[0, -1] = 1e-14
    P[-1, -1], P[-1, 0] = 0.9, 0.1
    d = stationary_of(sparse.csr_array(P)).d
    assert d[-1] == pytest.approx(d[0] * 1e-14 / 0.1, rel=1e-6)


def test_very_rare_states_raise_no_warning():
    up, n = np.zeros((400, 1, 400)), 400
    up[np.arange(n), 0, np.minimum(np.arange(n) + 1, n - 1)] += 0.1
    up[np.arange(n), 0, np.maximum(np.arange(n) - 1, 0)] += 0.9
    mdp = bc.FiniteMDP(up, np.zeros((n, 1)), 0.9, np.eye(1, n)[0])
    states = exact.backward(mdp).states
    defined = ~np.isnan(states[:, 0])
    np.testing.assert_allclose(states[defined][:300].sum(axis=1), 1)


def test_undefined_rows_of_sparse_corrections_are_undefined():
    table = sparse.csr_array(np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]]))
    mdp = bc.FiniteMDP(table, sparse.csr_array((3, 3)), 0.9, [1, 0, 0], [False, False, True])
    for features in (np.eye(3), sparse.eye_array(3)):
        correction = exact.backward_correction(mdp, None, features, np.ones(3))
        np.testing.assert_array_equal(np.isnan(correction), [[False] * 3, [True] * 3, [True] * 3])
    assert np.isnan(exact.tabular_correction(mdp, exact.n_step(mdp), np.ones(3)).sum(axis=1)[1:]).all()


def test_a_random_sparse_chain_near_discount_one_is_solved_without_factors(monkeypatch):
    rng = np.random.default_rng(15)
    n = 4000
    P = sparse.csr_array((rng.dirichlet(np.ones(3), n).ravel(), rng.integers(0, n, 3 * n), np.arange(0, 3 * n + 1, 3)))
    monkeypatch.setattr(solving.Leaky, "elimination", None)
    b = rng.normal(size=n)
    x = solving.Leaky(0.9999 * P, np.full(n, 1 - 0.9999)).solve(b)
    np.testing.assert_allclose(x - 0.9999 * (P @ x), b, atol=1e-9)


def test_large_random_worlds_are_optimised_by_policy_iteration():
    rng = np.random.default_rng(16)
    n = 20_001
    rows = sparse.csr_array(
        (rng.dirichlet(np.ones(3), 2 * n).ravel(), rng.integers(0, n, 6 * n), np.arange(0, 6 * n + 1, 3)), (2 * n, n)
    )
    mdp = bc.FiniteMDP(rows, rng.normal(size=(n, 2)), 0.999, np.full(n, 1 / n))
    best = exact.optimal(mdp)
    assert best.method == "policy-iteration"
    assert best.residual < 1e-9
