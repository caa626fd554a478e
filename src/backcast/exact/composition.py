"""Paths of several steps, composed of single steps: as matrices, or as operators that form no matrix.

One step is three matrices A, E and B. Forward, [s̃, s], they are A = P (reached), E = R (earned and reached) and B = G
(discounted and reached), and the reward of a path is that of its first step plus the discounted reward of the rest:

    P⁽ⁿ⁺¹⁾ = P P⁽ⁿ⁾,   G⁽ⁿ⁺¹⁾ = G G⁽ⁿ⁾,   W⁽ⁿ⁺¹⁾ = R P⁽ⁿ⁾ + G W⁽ⁿ⁾.

Backward, [s, s̃], all three are reversed by Bayes' rule. The last step of a backward path is the earliest in time: the
reward of a step is discounted by the earlier ones, W⁽ⁿ⁺¹⁾ = R← G←⁽ⁿ⁾ + P← W⁽ⁿ⁾. So A = G← and B = P←: the same formulas
with the two exchanged,

    X⁽ⁿ⁺¹⁾ = A X⁽ⁿ⁾,   Y⁽ⁿ⁺¹⁾ = B Y⁽ⁿ⁾,   W⁽ⁿ⁺¹⁾ = E X⁽ⁿ⁾ + B W⁽ⁿ⁾.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from backcast.core.arrays import Indices, Matrix, Vector, dense
from backcast.core.errors import InputError
from backcast.exact.chains import OneStep, scale
from backcast.exact.reversal import by_bayes
from backcast.exact.solve import Leaky
from backcast.exact.stationary import Visits
from backcast.mdp import FiniteMDP

_LARGEST = 8 * 2**30  # bytes
_DENSE_MATRICES = 10  # matrices of size S × S that are in memory at once while a dense model is made
_SAMPLE = 500  # states sampled to estimate the fill of sparse matrices
_SIZE = 12  # bytes of an entry of a sparse matrix
_MATRICES = 11  # matrices in memory at once while a mixture is made


@dataclass(frozen=True)
class StepMatrices:
    """One step of a chain, forward or backward, each matrix (n, n) [from, to].

    Attributes:
        chain: the transition matrix.
        earned: E[reward of the step; the step leads to `to`].
        discounted: the transition matrix times the discount of each step.
        carried: γ in non-terminal states, 0 in terminal ones, (n,); a step carries γ only if both its ends do.
        backward: whether the chain runs backward.
    """

    chain: Matrix
    earned: Matrix
    discounted: Matrix
    carried: Vector
    backward: bool

    @classmethod
    def forward(cls, mdp: FiniteMDP, one: OneStep) -> "StepMatrices":
        """One step of the recurrent chain."""
        return cls(one.P, one.R, one.G, np.where(mdp.terminal, 0.0, mdp.discount), False)

    def reversed(self, d: Visits) -> "StepMatrices":
        """One step back; rows of states that are never visited are 0."""
        return replace(self.each(lambda part: by_bayes(part, d, d)), backward=True)

    def among(self, states: Indices) -> "StepMatrices":
        """The same restricted to a closed set of states."""
        return replace(self.each(lambda part: part[states][:, states]), carried=self.carried[states])

    def each(self, change: Callable[[Matrix], Matrix]) -> "StepMatrices":
        """The same with `change` applied to each matrix."""
        chain, earned, discounted = (change(part) for part in (self.chain, self.earned, self.discounted))
        return replace(self, chain=chain, earned=earned, discounted=discounted)

    @property
    def pair(self) -> tuple[Matrix, Matrix]:
        """A and B of the formulas above."""
        return (self.discounted, self.chain) if self.backward else (self.chain, self.discounted)

    def in_order(self, X: object, W: object, Y: object) -> tuple[Any, Any, Any]:
        """(states, earned, discounted) from the results of the formulas."""
        return (Y, W, X) if self.backward else (X, W, Y)

    def systems(self, go_on: Vector, thin: bool = False) -> tuple[Leaky, Leaky]:
        """I − A diag(go_on) and I − B diag(go_on); `thin` to keep them sparse."""
        stopped = 1 - go_on
        whole, lost = self.chain @ np.ones(len(go_on)), self.chain @ (1 - self.carried + self.carried * stopped)
        leaks = self.chain @ stopped, np.where(self.carried > 0, lost, whole)
        chain, discounted = (
            Leaky(sparse.csr_array(Q) if thin else Q, leak, as_dense=not thin)
            for Q, leak in zip((scale(None, part, go_on) for part in (self.chain, self.discounted)), leaks, strict=True)
        )
        return (discounted, chain) if self.backward else (chain, discounted)


def mixture(step: StepMatrices, weights: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """(states, earned, discounted) of n steps, weighted by weights[n − 1]."""
    _refuse_large_mixture(step, weights)
    A, B = step.pair
    E = step.earned
    X_n, W_n, Y_n = A, E, B
    X = W = Y = 0.0
    for n, weight in enumerate(weights, start=1):
        if n > 1:
            W_n = E @ X_n + B @ W_n
            X_n, Y_n = A @ X_n, B @ Y_n
        if weight:
            X, W, Y = X + weight * X_n, W + weight * W_n, Y + weight * Y_n
    return step.in_order(X, W, Y)


def mixture_operators(step: StepMatrices, weights: Vector) -> tuple[LinearOperator, LinearOperator, LinearOperator]:
    """Return `mixture` as operators; applying one takes a step for each weight."""
    A, B = step.pair
    E = step.earned

    def powers(matrix: Matrix) -> Callable[[Vector], Vector]:
        def apply(x: Vector) -> Vector:
            y = np.zeros(len(x))
            for weight in weights[::-1]:
                y = matrix @ (weight * x + y)
            return y

        return apply

    def rewards(A: Matrix, E: Matrix, B: Matrix) -> Callable[[Vector], Vector]:
        def apply(x: Vector) -> Vector:
            ahead = y = np.zeros(len(x))
            for weight in weights[::-1]:
                ahead = weight * x + A @ ahead
                y = E @ ahead + B @ y
            return y

        return apply

    return step.in_order(
        _operator(powers(A), powers(A.T), A.shape[0]),
        _operator(rewards(A, E, B), rewards(B.T, E.T, A.T), A.shape[0]),
        _operator(powers(B), powers(B.T), A.shape[0]),
    )


def stopping(step: StepMatrices, stop: Vector, go_on: Vector) -> tuple[Vector, Vector, Vector]:
    """(states, earned, discounted), dense, of paths that in each state s stop or go on with these probabilities, (n,).

    X = A diag(stop) + A diag(go_on) X and likewise Y; W = E diag(stop) + E diag(go_on) X + B diag(go_on) W.
    """
    n = len(stop)
    step = step.each(dense)
    A, B = step.pair
    by_A, by_B = step.systems(go_on)
    X = by_A.solve(A * stop)
    both = by_B.solve(np.hstack([B * stop, step.earned * stop + (step.earned * go_on) @ X]))
    return step.in_order(X, both[:, n:], both[:, :n])


def stopping_operators(
    step: StepMatrices, stop: Vector, go_on: Vector
) -> tuple[LinearOperator, LinearOperator, LinearOperator]:
    """Return `stopping` as operators; applying one solves one or two sparse systems."""
    A, B = step.pair
    E = step.earned
    by_A, by_B = step.systems(go_on, thin=True)

    def stops(system: Leaky, matrix: Matrix) -> tuple[Callable[[Vector], Vector], Callable[[Vector], Vector]]:
        return lambda x: system.solve(matrix @ (stop * x)), lambda y: stop * (matrix.T @ system.solve_left(y))

    X, X_transposed = stops(by_A, A)
    Y, Y_transposed = stops(by_B, B)

    def earn(x: Vector) -> Vector:
        return by_B.solve(E @ (stop * x + go_on * X(x)))

    def earn_transposed(y: Vector) -> Vector:
        u = E.T @ by_B.solve_left(y)
        return stop * u + X_transposed(go_on * u)

    n = len(stop)
    return step.in_order(
        _operator(X, X_transposed, n), _operator(earn, earn_transposed, n), _operator(Y, Y_transposed, n)
    )


def embedded(part: LinearOperator, states: Indices, size: int, undefined: Indices) -> LinearOperator:
    """Embed an operator on some states in one on all `size` states: 0 elsewhere, NaN at [s, s] of undefined states."""

    def spread(apply: Callable[[Vector], Vector]) -> Callable[[Vector], Vector]:
        def applied(x: Vector) -> Vector:
            y = np.zeros(size)
            y[states] = apply(np.ravel(x)[states])
            y[undefined] = np.nan
            return y

        return applied

    return _operator(spread(part.matvec), spread(part.rmatvec), size)


def refuse_large_model(n_states: int) -> None:
    """Raise InputError if dense matrices of `n_states` states would take too much memory."""
    _refuse(_DENSE_MATRICES * 8 * n_states**2, n_states)


def _refuse_large_mixture(step: StepMatrices, weights: Vector) -> None:
    """Raise InputError if the sparse matrices of `mixture` would take too much memory, before any is made.

    The fill is estimated from paths that begin in a sample of states: xₙ₊₁ = xₙ A, yₙ₊₁ = yₙ B and
    wₙ₊₁ = wₙ A + yₙ E are some rows of X, Y and W. In memory are the matrices of n steps, those of n + 1, both
    summands of W, and the sums so far.
    """
    A, B = step.pair
    n_states = A.shape[0]
    if not sparse.issparse(A) or _SIZE * _MATRICES * n_states**2 <= _LARGEST:
        return
    rows = np.unique(np.linspace(0, n_states - 1, _SAMPLE).astype(np.int64))
    x, w, y = A[rows], step.earned[rows], B[rows]
    found = [sparse.csr_array(part.shape) for part in (x, w, y)]
    for n, weight in enumerate(weights, start=1):
        if n > 1:
            x, w, y = x @ A, w @ A + y @ step.earned, y @ B
        if weight:
            found = [total + abs(part) for total, part in zip(found, (x, w, y), strict=True)]
        entries = 2 * (x.nnz + 2 * w.nnz + y.nnz) + sum(total.nnz for total in found)
        _refuse(_SIZE * entries * n_states / len(rows), n_states, "at least")


def _refuse(size: float, n_states: int, roughly: str = "about") -> None:
    if size > _LARGEST:
        raise InputError(
            f"mdp: the model of {n_states:,} states would need {roughly} {size / 2**30:,.1f} GiB as matrices, more than"
            f" the {_LARGEST / 2**30:.0f} GiB that are allowed; give as_operator=True, which makes no matrix of that"
            " size"
        )


def _operator(apply: Callable[[Vector], Vector], transposed: Callable[[Vector], Vector], size: int) -> LinearOperator:
    return LinearOperator((size, size), matvec=apply, rmatvec=transposed, dtype=np.float64)
