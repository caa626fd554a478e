"""Linear values v(s) = x(s)ᵀw: the TD fixed point, and models of features forward and backward (appendix C.1).

A terminal state's value is 0 by definition: its features count as zero wherever values are read or corrected, and a
restart (a step from a terminal state to the start) earns nothing and corrects nothing. With x̃ = x(S̃) the features of
the predecessor, every expectation over the past here is E[… x̃ …; S̃ is not terminal | s].

If planning backward starts from every state in proportion to its visits, Σ_s d_π(s) Δ←(s), each step of the chain is
corrected once, as in TD learning. If Δ← is right on average, planning therefore converges to `lstd`, as TD does.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from scipy.sparse.linalg import aslinearoperator

from backcast.core.arrays import Indices, Matrix, Vector, dense
from backcast.core.errors import InputError
from backcast.exact.chains import OneStep, Policy, scale, transition_reward
from backcast.exact.corrections import as_vector, feature_matrix
from backcast.exact.reversal import by_bayes
from backcast.exact.stationary import Visits, stationary, visits
from backcast.mdp import FiniteMDP

_RANK = 1e-12  # singular values below this fraction of the largest are treated as 0
_BLOCK = 2**23  # numbers held in memory when least squares reads the steps of a chain


@dataclass(frozen=True)
class LinearForward:
    """A forward model of features.

    Attributes:
        expectation: E[x(S') | s], (S, d); terminal successors count as zero.
        reward: E[R | s], (S,).
        features: x(s), (S, d), zero in terminal states.
        discount: γ.
    """

    expectation: Vector = field(repr=False)
    reward: Vector = field(repr=False)
    features: Matrix = field(repr=False)
    discount: float

    def correction(self, weights: ArrayLike) -> Vector:
        """Δ→(s) = (E[R | s] + γ E[x(S') | s]ᵀw − x(s)ᵀw) x(s), (S, d)."""
        w = as_vector("weights", weights, self.features.shape[1])
        error = self.reward + self.discount * (self.expectation @ w) - self.features @ w
        return dense(scale(error, self.features))


@dataclass(frozen=True)
class LinearBackward:
    """A backward model of features, evaluated at each state; rows of never-visited states are NaN.

    Attributes:
        expectation: E[x̃ | s], (S, d).
        reward: E[r(S̃, s) x̃ | s], (S, d).
        expected_reward: E[r(S̃, s) | s], (S,).
        past: P(S̃ is not terminal | s), (S,): the probability that the step to s was not a restart.
        undefined: the states s that are never visited.
        features: x(s), (S, d), zero in terminal states.
        discount: γ.
        predecessors: the weights of the states s̃ in these expectations, an operator (S, S) [s, s̃]; in the exact model
            P←(s̃ | s), 0 for terminal s̃ and in rows of never-visited states.
    """

    expectation: Vector = field(repr=False)
    reward: Vector = field(repr=False)
    expected_reward: Vector = field(repr=False)
    past: Vector = field(repr=False)
    undefined: Indices
    features: Matrix = field(repr=False)
    discount: float
    predecessors: Matrix = field(repr=False)

    @cached_property
    def second_moment(self) -> Vector:
        """E[x̃x̃ᵀ | s], (S, d, d), computed on first access."""
        return _undefine(_moments(self.predecessors, dense(self.features)), self.undefined)

    def correction(self, weights: ArrayLike) -> Vector:
        """Δ←(s) = E[r x̃ | s] + (γ(s) E[x̃ | s] x(s)ᵀ − E[x̃x̃ᵀ | s]) w, (S, d); γ(s) is 0 in terminal states.

        For the exact model this is `backward_correction`. It does not compute `second_moment`.
        """
        v = self.features @ as_vector("weights", weights, self.features.shape[1])
        own = dense(self.predecessors @ scale(v, self.features))
        return self.reward + self.discount * v[:, None] * self.expectation - own

    def naive_correction(self, weights: ArrayLike) -> Vector:
        """The invalid update (E[r | s] + γ(s) x(s)ᵀw − E[x̃ | s]ᵀw) E[x̃ | s], (S, d).

        It multiplies the expectations of two dependent variables, the error and x̃. Both are conditioned on s having a
        predecessor, and the product is weighted by the probability of that: restarts correct nothing here either. The
        update is exact where the predecessor is certain.
        """
        w = as_vector("weights", weights, self.features.shape[1])
        error = self.expected_reward + self.past * self.discount * (self.features @ w) - self.expectation @ w
        return (error * _odds(self.past))[:, None] * self.expectation


def linear_forward(mdp: FiniteMDP, policy: Policy, features: object) -> LinearForward:
    """The forward expectation model of features (S, d), dense or sparse (appendix C.1)."""
    X = _lively(mdp, features)
    one = OneStep(mdp, policy)
    goes_on = scale(np.where(mdp.terminal, 0.0, 1.0), one.P)
    return LinearForward(dense(goes_on @ X), np.asarray(one.R.sum(axis=1)).ravel(), X, mdp.discount)


def linear_backward(mdp: FiniteMDP, policy: Policy, features: object) -> LinearBackward:
    """The exact backward model in three quantities, of features (S, d), dense or sparse (appendix C.1).

    To plan with it, w ← w + α Σ_s d_π(s) Δ←(s), use `correction(w)` for the states with d_π(s) > 0. Written out, the
    update is reward[s] + γ (x(s)ᵀw) expectation[s] − second_moment[s] w with the x(s) of `features`, which are zero in
    terminal states.

    Examples:
        >>> mdp = FiniteMDP([[[0, 1, 0]], [[0.5, 0, 0.5]], [[0, 1, 0]]], [[4], [0], [0]], 0.5, [1, 0, 0])
        >>> model = linear_backward(mdp, None, [[3.0], [1.0], [1.0]])   # state 1 is reached from 0 and 2 alike
        >>> model.expectation.ravel(), model.second_moment.ravel(), model.reward.ravel()
        (array([1., 2., 1.]), array([1., 5., 1.]), array([0., 6., 0.]))
    """
    X = _lively(mdp, features)
    d, one = visits(mdp, policy), OneStep(mdp, policy)
    alive = Visits(np.where(mdp.terminal, 0.0, d.scaled), d.bits)
    predecessors, earned = by_bayes(one.P, alive, d), by_bayes(one.R, alive, d)
    undefined = d.never
    parts = predecessors @ X, earned @ X, earned.sum(axis=1), predecessors.sum(axis=1)
    means, gains, reward, past = (_undefine(dense(part), undefined) for part in parts)
    return LinearBackward(means, gains, reward, past, undefined, X, mdp.discount, predecessors)


def fitted_backward(mdp: FiniteMDP, policy: Policy, features: object, condition: object = None) -> LinearBackward:
    """The backward model that is linear in conditions z(s): the limit of least squares as the number of steps grows.

    Over the steps S̃ → S of the chain that are not restarts (restarts are not observed),

        E[x̃ | s] ≈ H z(s),  E[x̃x̃ᵀ | s] ≈ M(z(s)) = Σ_k z_k(s) M_k,  E[R | s] ≈ ρᵀz(s),  R ≈ x̃ᵀΘ z(s),

    each with the least mean squared error, and E[r x̃ | s] ≈ M(z(s)) Θ z(s), the paper's r_x(x). The returned model
    holds these times `past`, the probability that s has a predecessor, as the exact model does. With one-hot conditions
    and features it equals the exact model.

    Even a poor fit may be right on average: Σ_s d(s) Δ←(s) vanishes at the LSTD solution whenever on the states that
    have a past (1) a constant is linear in z, cᵀz = 1, and (2) so are the features of the values with zeros in
    terminal states, x(s) = B z(s). Proof: a residual of least squares is orthogonal to z. With expectations over the
    observed steps, E[H z xᵀ] = E[H z zᵀ] Bᵀ = E[x̃ zᵀ] Bᵀ = E[x̃ x(S)ᵀ] by (2), E[M(z)] = E[x̃x̃ᵀ zᵀc] = E[x̃x̃ᵀ] by
    (1), and E[M(z) Θ z] = Σ_k E[M(z) z_k] Θ e_k = E[x̃x̃ᵀ Θ z], which by (1) and the residual of Θ, E[x̃ (R − x̃ᵀΘz) zᵀ]
    = 0, is E[R x̃]. Together: E[x̃ (R + γ x(S)ᵀw − x̃ᵀw)], which is 0 at LSTD. Conditions that satisfy (1) and (2):
    without terminal states, features that include a constant; otherwise the features with zeros in terminal states, and
    a constant.

    Args:
        mdp: the world.
        policy: the policy that the model is tied to.
        features: X (S, d), dense or sparse, of the values.
        condition: Z (S, D), dense or sparse, the conditions; by default the features. Terminal states are not set to
            zero: planning from a terminal state whose conditions are zero has no effect.

    Returns:
        The model. Θ is found by dense least squares with d·D unknowns and an equation for each possible step.
    """
    X = dense(_lively(mdp, features))
    Z = dense(feature_matrix("condition", features if condition is None else condition, mdp.n_states))
    exact = linear_backward(mdp, policy, X)
    d, past = stationary(mdp, policy), np.nan_to_num(exact.past)
    fit = _regression(Z, d * past) * _odds(past)
    coefficients = fit @ exact.predecessors
    given = past[:, None] * Z
    moments, theta = _moments(coefficients, X), _reward_parameters(mdp, policy, exact, Z)
    parts = (
        given @ (coefficients @ X),
        np.einsum("sk,kij,jl,sl->si", given, moments, theta, Z, optimize=True),
        given @ (fit @ np.nan_to_num(exact.expected_reward)),
        past,
    )
    means, gains, reward, past = (_undefine(part, exact.undefined) for part in parts)
    predecessors = aslinearoperator(given) @ aslinearoperator(coefficients)
    return LinearBackward(means, gains, reward, past, exact.undefined, X, mdp.discount, predecessors)


def lstd(mdp: FiniteMDP, policy: Policy, features: object) -> Vector:
    """The TD fixed point: w (d,) with E_d[x(S) (R + γ x(S')ᵀw − x(S)ᵀw)] = 0, S ~ d_π.

    The values X w are unique in visited states: for f = X w, E_d[f(S) (f(S) − γ f(S'))] is
    (1 − γ) E_d[f(S)²] + ½ γ E_d[(f(S) − f(S'))²], above 0 unless f is 0 wherever the policy goes. If features are
    redundant, these are the smallest weights that give them, to which learning from w = 0 converges.

    Args:
        mdp: the world.
        policy: its policy.
        features: X (S, d), dense or sparse; the identity gives the values themselves.

    Raises:
        InputError: if all features are zero wherever the policy goes; or with discount 1, if the policy ends no episode
            and the level of the values is not determined.
    """
    d, model = stationary(mdp, policy), linear_forward(mdp, policy, features)
    X, E = dense(model.features)[d > 0], model.expectation[d > 0]
    weighed = d[d > 0, None] * X
    return _at_rest(weighed.T @ (X - model.discount * E), weighed.T @ model.reward[d > 0], X)


def plan_backward(
    mdp: FiniteMDP, policy: Policy, features: object, model: LinearBackward | None = None, naive: bool = False
) -> Vector:
    """The fixed point of planning backward: w (d,) with Σ_s d_π(s) Δ←(s) = 0.

    Planning w ← w + α Σ_s d_π(s) Δ←(s) from w = 0 ends here if it converges, also where corrections leave some
    directions of w unchanged. For the exact model the fixed point is `lstd`.

    Args:
        mdp: the world.
        policy: its policy, which determines how often each state is planned from.
        features: X (S, d), dense or sparse.
        model: the model of these features to plan with; by default the exact one.
        naive: whether to plan with `naive_correction`.

    Raises:
        InputError: if all corrections are zero, or if planning has no fixed point or more than one.
    """
    model = linear_backward(mdp, policy, features) if model is None else model
    if not np.array_equal(dense(model.features), dense(_lively(mdp, features))):
        raise InputError("model: it is a model of other features than those given")
    d = stationary(mdp, policy)
    seen = np.flatnonzero(d)
    X, E, weight = dense(model.features)[seen], model.expectation[seen], d[seen, None]
    if not naive:
        preceding = (model.predecessors.T @ d)[seen, None]
        A = X.T @ (preceding * X) - model.discount * E.T @ (weight * X)
        return _at_rest(A, d[seen] @ model.reward[seen], X)
    past = model.past[seen, None]
    corrected = weight * _odds(past) * E
    A = corrected.T @ (E - model.discount * past * X)
    return _at_rest(A, corrected.T @ model.expected_reward[seen], E)


def _at_rest(A: Vector, b: Vector, directions: Vector) -> Vector:
    """The w in the row space of `directions` (n, d) with A w = b; it contains those of A and b.

    Solved in an orthonormal basis of the values X w, so that the scale of the features does not matter, unless a
    column is more than 10¹² times smaller than another: such a column counts as zero.
    """
    _, sizes, axes = linalg.svd(directions, full_matrices=False)
    kept = sizes > _RANK * sizes.max(initial=0.0)
    if not kept.any():
        raise InputError("features: all are zero wherever the policy goes, so that there is nothing to correct")
    basis = axes[kept].T / sizes[kept]
    system, target = basis.T @ A @ basis, basis.T @ b
    rows = np.abs(system).max(axis=1)
    if not rows.all() or np.linalg.cond(system / rows[:, None]) > 1 / _RANK:
        raise InputError(
            "features: the expected corrections vanish at no w that they lead to, or at more than one"
            " (with discount 1, the policy must end its episodes)"
        )
    return basis @ np.linalg.solve(system / rows[:, None], target / rows)


def _regression(Z: Vector, weight: Vector) -> Vector:
    """The matrix C (D, S) for which C y is the smallest of the b that minimise Σ_s weight(s) (y(s) − bᵀz(s))²."""
    root = np.sqrt(weight)
    return linalg.pinv(root[:, None] * Z, rtol=_RANK) * root


def _reward_parameters(mdp: FiniteMDP, policy: Policy, exact: LinearBackward, Z: Vector) -> Vector:
    """Θ (d, D), the smallest that minimises E[(R − x(S̃)ᵀ Θ z(S))²] over steps that are not restarts."""
    X = exact.features
    steps = sparse.coo_array(exact.predecessors)
    later, earlier = steps.coords
    root = np.sqrt(stationary(mdp, policy)[later] * steps.data)
    earned = np.asarray(transition_reward(mdp, policy)[earlier, later]).ravel()
    size = X.shape[1] * Z.shape[1]
    reduced: Matrix = np.zeros((1, size + 1))
    for some in np.array_split(np.arange(len(root)), 1 + len(root) * size // _BLOCK):
        products = (X[earlier[some], :, None] * Z[later[some], None, :]).reshape(-1, size)
        rows = root[some, None] * np.column_stack([products, earned[some]])
        reduced = np.linalg.qr(np.vstack([reduced, rows]), mode="r")
    theta, *_ = linalg.lstsq(reduced[:, :-1], reduced[:, -1], cond=_RANK)
    return theta.reshape(X.shape[1], Z.shape[1])


def _moments(weights: Matrix, X: Vector) -> Vector:
    """Σ_s̃ weights[k, s̃] x(s̃) x(s̃)ᵀ, (K, d, d)."""
    n_states, size = X.shape
    return (weights @ (X[:, :, None] * X[:, None, :]).reshape(n_states, -1)).reshape(-1, size, size)


def _lively(mdp: FiniteMDP, features: object) -> Matrix:
    """The features (S, d), zero in terminal states."""
    return scale(np.where(mdp.terminal, 0.0, 1.0), feature_matrix("features", features, mdp.n_states))


def _odds(probability: Vector) -> Vector:
    """Elementwise 1 / probability, 0 where it is undefined."""
    return np.divide(1.0, probability, out=np.zeros_like(probability), where=probability > 0)


def _undefine(rows: Vector, undefined: Indices) -> Vector:
    rows[undefined] = np.nan
    return rows
