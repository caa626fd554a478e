"""Elimination without subtraction: (I − Q) x = b, accurate in every entry, however slowly Q leaks.

A substochastic Q (n, n) is given by its off-diagonal entries and by what *leaks* from each row; the diagonal of I − Q
is their sum, leak(i) + Σ_{j≠i} Q(i, j), and the diagonal of Q is never read. Eliminating state k sends its probability
on to the others in proportion,

    Q(i, j) += Q(i, k) Q(k, j) / exit(k),   leak(i) += Q(i, k) leak(k) / exit(k),   exit(k) = leak(k) + Σ_j Q(k, j),

with the sum over the states that are left. Only non-negative numbers are added, multiplied and divided, so that nothing
cancels: every entry of (I − Q)⁻¹ has a relative error of a small multiple of the rounding unit, whatever the condition
of I − Q (Grassmann, Taksar and Heyman 1985; O'Cinneide 1993; Alfa, Xue and Ye 2002). For a b of both signs, the
error is that small relative to (I − Q)⁻¹ |b|.

The dense version eliminates block after block, so that its work is in products of non-negative matrices. The sparse
version is a compiled loop over the filled pattern in a fill-reducing order.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from backcast.core.arrays import Indices, Vector

_BLOCK = 64


class Dense:
    """The elimination of a dense Q (n, n) with its leak (n,), block after block, the last one first.

    One matrix stores the factors. For each block K, once later blocks are eliminated, with R the earlier states:
    (I − Q_KK)⁻¹ on the diagonal, (I − Q_KK)⁻¹ Q_KR left of it, Q_RK above it.
    """

    def __init__(self, Q: Vector, leak: Vector) -> None:
        A, leak = np.array(Q), leak.copy()
        width = _BLOCK if len(A) <= _BLOCK**2 // 4 else 4 * _BLOCK
        self._A = A
        self._blocks = [(begin, min(begin + width, len(A))) for begin in range(0, len(A), width)][::-1]
        with np.errstate(all="ignore"):
            for begin, end in self._blocks:
                back, there = A[begin:end, :begin], A[:begin, begin:end]
                inverse = _inverse(A[begin:end, begin:end], leak[begin:end] + back.sum(axis=1))
                back[:] = inverse @ back
                A[:begin, :begin] += there @ back
                leak[:begin] += there @ (inverse @ leak[begin:end])
                A[begin:end, begin:end] = inverse

    def solve(self, b: Vector) -> Vector:
        """Solve (I − Q) x = b for b (n,) or (n, k)."""
        A, x = self._A, np.array(b)
        with np.errstate(all="ignore"):
            for begin, end in self._blocks:
                x[begin:end] = A[begin:end, begin:end] @ x[begin:end]
                x[:begin] += A[:begin, begin:end] @ x[begin:end]
            for begin, end in self._blocks[::-1]:
                x[begin:end] += A[begin:end, :begin] @ x[:begin]
        return x

    def solve_left(self, b: Vector) -> Vector:
        """Solve x (I − Q) = b for b (n,)."""
        A, x = self._A, np.array(b)
        with np.errstate(all="ignore"):
            for begin, end in self._blocks:
                x[:begin] += x[begin:end] @ A[begin:end, :begin]
            for begin, end in self._blocks[::-1]:
                x[begin:end] = (x[begin:end] + x[:begin] @ A[:begin, begin:end]) @ A[begin:end, begin:end]
        return x


def _inverse(Q: Vector, leak: Vector) -> Vector:
    """(I − Q)⁻¹, (n, n); state by state if n is small."""
    n = len(Q)
    if n > _BLOCK:
        return Dense(Q, leak).solve(np.eye(n))
    A = np.hstack([Q, leak[:, None], np.eye(n)])
    exits = np.empty(n)
    for k in range(n - 1, -1, -1):
        exits[k] = A[k, :k].sum() + A[k, n]
        A[:k] += (A[:k, k] / exits[k])[:, None] * A[k]
    X = A[:, n + 1 :]
    for k in range(n):
        X[k] = (X[k] + A[k, :k] @ X[:k]) / exits[k]
    return X


@dataclass(frozen=True)
class Plan:
    """The order in which the states of a sparse Q are eliminated, and the entries this fills.

    Attributes:
        place: the place of each state in the order, (n,).
        indptr, indices, data: the rows of Q in that order, with the pattern of Q + Qᵀ.
        parent: the elimination tree; −1 for a root.
        counts: later states that a state is connected to when it is eliminated, (n,).
    """

    place: Indices
    indptr: Indices
    indices: Indices
    data: Vector
    parent: Indices
    counts: Indices

    @property
    def fill(self) -> int:
        """Entries of each of the two triangular factors."""
        return int(self.counts.sum())

    @property
    def work(self) -> float:
        """Multiplications that the elimination takes."""
        return float((self.counts.astype(np.float64) ** 2).sum())


def plan(Q: sparse.csr_array) -> Plan:
    """Plan the elimination of a sparse Q (n, n) in minimum-degree order."""
    from backcast.exact.sparse_elimination import analyse

    n = Q.shape[0]
    place = _minimum_degree(Q)
    entries = Q.tocoo()
    rows, columns = (place[coordinate] for coordinate in entries.coords)
    both = sparse.csr_array(
        (
            np.concatenate([entries.data, np.zeros(entries.nnz)]),
            (np.concatenate([rows, columns]), np.concatenate([columns, rows])),
        ),
        shape=(n, n),
    )
    indptr, indices = both.indptr.astype(np.int64), both.indices.astype(np.int64)
    parent, mark, counts = np.full(n, -1), np.full(n, -1), np.zeros(n, dtype=np.int64)
    analyse(indptr, indices, parent, mark, counts)
    return Plan(place, indptr, indices, both.data, parent, counts)


class Factors:
    """The triangular factors of a sparse I − Q, in the order of its plan.

    I − Q = (I − L)(diag(exits) − U), with the non-zeros of Lᵀ and U in the same places. Takes 20 bytes for each.

    Args:
        plan: the plan of Q.
        leak: (n,).
    """

    def __init__(self, plan: Plan, leak: Vector) -> None:
        from backcast.exact.sparse_elimination import eliminate

        n = len(leak)
        self._order = np.argsort(plan.place)
        self._start = np.concatenate([[0], np.cumsum(plan.counts)])
        self._column = np.empty(plan.fill, dtype=np.int32)
        self._upper, self._lower = np.empty((2, plan.fill))
        self._exits, work = np.empty(n), np.zeros(n)
        stack, mark, end = np.empty((3, n), dtype=np.int64)
        given = plan.indptr, plan.indices, plan.data, leak[self._order], plan.parent
        factors = self._start, self._column, self._upper, self._lower, self._exits
        with np.errstate(all="ignore"):
            eliminate(*given, *factors, work, stack, mark, end)

    def solve(self, b: Vector) -> Vector:
        """Solve (I − Q) x = b for b (n,) or (n, k)."""
        ones, columns = np.ones(len(b)), b.reshape(len(b), -1).T
        found = [self._substitute(self._lower, self._upper, ones, self._exits, column) for column in columns]
        return np.stack(found, axis=1).reshape(b.shape)

    def solve_left(self, b: Vector) -> Vector:
        """Solve x (I − Q) = b for b (n,)."""
        return self._substitute(self._upper, self._lower, self._exits, np.ones(len(b)), b)

    def _substitute(self, scattered: Vector, gathered: Vector, before: Vector, after: Vector, b: Vector) -> Vector:
        from backcast.exact.sparse_elimination import substitute

        x, ordered = np.empty(len(b)), b[self._order]
        with np.errstate(all="ignore"):
            substitute(self._start, self._column, scattered, gathered, before, after, ordered)
        x[self._order] = ordered
        return x


def _minimum_degree(Q: sparse.csr_array) -> Indices:
    """The place of each state in a fill-reducing order, found by an incomplete factorisation that keeps no entries."""
    n = Q.shape[0]
    pattern = sparse.csc_array((np.full(Q.nnz, 1.0 / n), Q.indices, Q.indptr), shape=Q.shape)
    keep_nothing: dict[str, Any] = {"drop_tol": 1.0, "fill_factor": 1, "diag_pivot_thresh": 0.0}
    factors = linalg.spilu(
        (2 * sparse.eye_array(n) - pattern).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        options={"SymmetricMode": True},
        **keep_nothing,
    )
    return np.asarray(factors.perm_c, dtype=np.int64)
