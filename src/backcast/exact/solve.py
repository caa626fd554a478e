"""Solve (I − Q) x = b, where every state of the substochastic Q eventually leaks.

I − Q is then a nonsingular M-matrix: its inverse Σ_k Q^k has no negative entry. Elimination without subtraction
(`backcast.exact.elimination`) solves it accurately in every entry. Large sparse worlds that mix fast are solved by
BiCGSTAB and accepted only with a certificate: if t satisfies (I − Q) t ≥ c > 0 everywhere, then ‖(I − Q)⁻¹‖_∞ ≤
max(t) / c, and the residual bounds the error. Both bounds include rounding. A system that can be neither certified
nor eliminated is refused.
"""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from backcast.core.arrays import Matrix, Vector, dense
from backcast.core.errors import InputError
from backcast.exact import elimination

_SMALL = 1_000
_FULL = 0.05
_LARGEST_DENSE = 10_000
_LARGEST_FILL = 10**8
_LARGEST_WORK = 5e10  # multiplications of a sparse elimination: two minutes
_DENSE_SPEEDUP = 50  # a multiplication in a matrix product, relative to one in sparse rows
_KRYLOV_STEPS = 150
_NEAR = 1e3  # a bound on expected times that is good enough
_REFINEMENTS = 3
_GOAL = 1e-11
_CERTIFIED = 1e-8
_UNIT = float(np.finfo(float).eps)


class Leaky:
    """The system (I − Q) x = b.

    Args:
        Q: (n, n), dense or csr, not negative. Its diagonal is not read: it follows from the other entries and `leak`.
        leak: what leaves each row, 1 − Σ_j Q(i, j), computed without cancellation; (n,), not negative.
        as_dense: whether to treat a csr Q as dense; by default `better_dense` decides.
    """

    def __init__(self, Q: Matrix, leak: Vector, as_dense: bool | None = None) -> None:
        self.Q = Q
        self.leak = leak
        self._as_dense = better_dense(Q) if as_dense is None else as_dense

    def solve(self, b: Vector) -> Vector:
        """Solve (I − Q) x = b for b (n,) or (n, k).

        If states are eliminated, the error of x(i) is of the order of the rounding unit times ((I − Q)⁻¹ |b|)(i).
        Otherwise it is certified to be at most 1e-8 max |x|.

        Raises:
            InputError: if x is not finite in double precision, or if Q is too large for both methods.
        """
        x = bounded_sum(self.Q, b)
        if x is None:
            x = self.solve_iteratively(b)
        return _finite(self.elimination.solve(b) if x is None else x)

    def solve_left(self, b: Vector) -> Vector:
        """Solve x (I − Q) = b for b (n,), as `solve`, but certified relative to Σ |x|."""
        x = bounded_sum(self.Q.T, b)
        if x is None and self._norm is not None:
            x = certified_krylov(self._system.T.tocsr(), b, self._norm, order=1)
        return _finite(self.elimination.solve_left(b) if x is None else x)

    def solve_iteratively(self, b: Vector) -> Vector | None:
        """Solve iteratively; None unless Q is large and the solution can be certified."""
        if self._norm is None:
            return None
        found = [certified_krylov(self._system, column, self._norm) for column in b.reshape(len(b), -1).T]
        return None if any(x is None for x in found) else np.stack(found, axis=1).reshape(b.shape)  # type: ignore[arg-type]

    @cached_property
    def _system(self) -> sparse.csr_array:
        """I − Q."""
        moves = (self.Q - sparse.diags_array(self.Q.diagonal())).tocsr()
        return (sparse.diags_array(self.leak + moves.sum(axis=1)) - moves).tocsr()

    @cached_property
    def _norm(self) -> float | None:
        """A bound on the norm of the inverse if iterating may be worthwhile, else None."""
        return None if self._as_dense or self.Q.shape[0] <= _SMALL else inverse_norm(self._system)

    @cached_property
    def elimination(self) -> elimination.Dense | elimination.Factors:
        """The elimination of the states, accurate in every entry; entries that overflow are not finite."""
        if self._as_dense:
            return elimination.Dense(dense(self.Q), self.leak)
        n, plan = self.Q.shape[0], elimination.plan(self.Q)
        if n <= _LARGEST_DENSE and plan.work > n**3 / _DENSE_SPEEDUP:
            return elimination.Dense(self.Q.toarray(), self.leak)
        if plan.work > _LARGEST_WORK or plan.fill > _LARGEST_FILL:
            raise InputError(
                f"chain: it has {n:,} states, which need {20 * plan.fill / 2**30:.1f} GiB and"
                f" {plan.work:.1g} multiplications to be eliminated, and an iterative solution could not be certified:"
                " it mixes too slowly"
            )
        return elimination.Factors(plan, self.leak)


def better_dense(Q: Matrix) -> bool:
    """Whether to eliminate the states of Q as a dense matrix: it is dense, small, or nearly full."""
    n = Q.shape[0]
    return not sparse.issparse(Q) or n <= _SMALL or (n <= _LARGEST_DENSE and Q.nnz > _FULL * n**2)


def bounded_sum(Q: Matrix, b: Vector, longest: int = 16) -> Vector | None:
    """Σ_k Q^k b if it ends after a few terms because episodes are short (a leveled chain), else None."""
    if b.ndim > 1 and bounded_sum(Q, np.ones(len(b)), longest) is None:  # checked first on one vector, which is cheaper
        return None
    x = term = b
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses what is not finite
        for _ in range(longest):
            term = Q @ term
            if not term.any():
                return x
            x = x + term
    return None


def certified_krylov(system: sparse.csr_array, b: Vector, norm: float, order: float = np.inf) -> Vector | None:
    """A Krylov solution of system · x = b whose error is certified to be at most 1e-8 ‖x‖, else None.

    Args:
        system: an M-matrix (n, n), or its transpose.
        b: (n,).
        norm: a bound on the norm of the inverse, as `inverse_norm` gives it.
        order: of the norm in which the error is bounded: infinity, or 1 for a transpose.
    """
    x, residual = np.zeros_like(b), b
    for _ in range(_REFINEMENTS):
        x = x + _iterate(system, residual, rtol=1e-9)
        residual = b - system @ x
        size = float(np.linalg.norm(x, order))
        error = norm * float(np.linalg.norm(residual, order))
        lost = norm * float(np.linalg.norm(_rounding(system, x) + 4 * _UNIT * np.abs(b), order))
        if error <= max(_GOAL * size, lost) and error + lost <= _CERTIFIED * size:
            return x
    return None


def inverse_norm(system: sparse.csr_array) -> float | None:
    """A certified bound on ‖system⁻¹‖_∞ of an M-matrix, or None where none was found cheaply.

    max t / min (system · t), for any t > 0 with system · t > 0. t = 1 is good if every state leaks, that is, if
    the discount is below 1. The expected times to leak are a good choice if a few states hardly leak.
    """
    ones = np.ones(system.shape[0])
    bound = _bound(system, ones)
    if bound is not None and bound < _NEAR:
        return bound
    further = _bound(system, _iterate(system, ones, rtol=0.0, atol=0.5))
    found = [each for each in (bound, further) if each is not None]
    return min(found, default=None)


def _bound(system: sparse.csr_array, steps: Vector) -> float | None:
    progress = float((system @ steps - _rounding(system, steps)).min())
    return float(steps.max()) / progress if progress > 0 and steps.min() > 0 else None


def _rounding(system: sparse.csr_array, x: Vector) -> Vector:
    """A bound on the rounding errors of the entries of `system`, of a transpose too, and of system · x, (n,)."""
    terms = np.maximum(np.diff(system.indptr), np.bincount(system.indices, minlength=len(x)))
    return _UNIT * (terms + 4) * (abs(system) @ np.abs(x))


def _iterate(system: sparse.csr_array, b: Vector, **stop: float) -> Vector:
    """The result of a few steps of BiCGSTAB on system · x = b, converged or not."""
    with np.errstate(all="ignore"):
        x: Vector = linalg.bicgstab(system, b, maxiter=_KRYLOV_STEPS, **stop)[0]
    return x


def _finite(x: Vector) -> Vector:
    if not np.isfinite(x).all():
        raise InputError(
            "policy: expected times or values are not finite in double precision: it stays among some states for too"
            " long, or rewards are too large"
        )
    return x
