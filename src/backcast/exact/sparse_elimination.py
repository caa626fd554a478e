"""Compiled loops of the sparse elimination, imported only when a large sparse world needs them.

The pattern of row i of the lower factor is a subtree of the elimination tree: from each entry j < i of row i up to i
(Davis, Direct Methods for Sparse Linear Systems, 2006, chapter 4). The pattern is symmetric, so that column i
of the upper factor has the same places.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import kernel


@kernel
def analyse(indptr: Indices, indices: Indices, parent: Indices, mark: Indices, counts: Indices) -> None:
    """The elimination tree and the number of entries in each row of the upper factor.

    Args:
        indptr: row starts of a symmetric pattern, (n + 1,).
        indices: its columns.
        parent: −1 everywhere; overwritten by the tree.
        mark: −1 everywhere; overwritten.
        counts: 0 everywhere; overwritten.
    """
    for i in range(len(parent)):
        mark[i] = i
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            while j < i and mark[j] != i:
                if parent[j] < 0:
                    parent[j] = i
                counts[j] += 1
                mark[j] = i
                j = parent[j]


@kernel
def lay_out(
    indptr: Indices,
    indices: Indices,
    parent: Indices,
    start: Indices,
    column: NDArray[np.int32],
    mark: Indices,
    end: Indices,
) -> None:
    """Write the columns of the upper factor; the arguments are those of `eliminate`."""
    for i in range(len(parent)):
        mark[i] = -1
        end[i] = start[i]
    for i in range(len(parent)):
        mark[i] = i
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            while j < i and mark[j] != i:
                column[end[j]] = i
                end[j] += 1
                mark[j] = i
                j = parent[j]


@partial(kernel, error_model="numpy")  # entries that overflow or are not connected are infinite; the caller checks
def eliminate(
    indptr: Indices,
    indices: Indices,
    data: Vector,
    leak: Vector,
    parent: Indices,
    start: Indices,
    column: NDArray[np.int32],
    upper: Vector,
    lower: Vector,
    exits: Vector,
    work: Vector,
    stack: Indices,
    mark: Indices,
    end: Indices,
) -> None:
    """Eliminate the states of Q one after the other, without subtraction.

    Args:
        indptr: row starts of Q with a symmetric pattern, (n + 1,).
        indices: its columns.
        data: its entries; the diagonal is not read.
        leak: (n,), overwritten by the leaks after earlier states are eliminated.
        parent: the elimination tree.
        start: row starts of the factors, (n + 1,).
        column: receives the columns of the upper factor (the rows of the lower one), int32.
        upper: receives the upper factor, row after row.
        lower: receives the lower factor, column after column.
        exits: receives leak(i) plus the rest of row i, (n,).
        work: 0 everywhere, (n,).
        stack: workspace (n,), as are `mark` and `end`.
        mark: see `stack`.
        end: see `stack`.
    """
    n = len(parent)
    lay_out(indptr, indices, parent, start, column, mark, end)
    for i in range(n):
        mark[i] = -1
        end[i] = start[i]
    for i in range(n):
        mark[i] = i
        top = n
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            work[j] += data[p]
            length = 0
            while j < i and mark[j] != i:
                stack[length] = j
                length += 1
                mark[j] = i
                j = parent[j]
            while length > 0:  # descendants come before their ancestors
                length -= 1
                top -= 1
                stack[top] = stack[length]
        for t in range(top, n):
            j = stack[t]
            share = work[j] / exits[j]
            work[j] = 0.0
            lower[end[j]] = share
            end[j] += 1
            for p in range(start[j], start[j + 1]):
                work[column[p]] += share * upper[p]
            leak[i] += share * leak[j]
        work[i] = 0.0
        exits[i] = leak[i]
        for p in range(start[i], start[i + 1]):
            upper[p] = work[column[p]]
            work[column[p]] = 0.0
            exits[i] += upper[p]


@partial(kernel, error_model="numpy")
def substitute(
    start: Indices,
    column: NDArray[np.int32],
    scattered: Vector,
    gathered: Vector,
    before: Vector,
    after: Vector,
    x: Vector,
) -> None:
    """Solve with one factor forward and with the other backward; x (n,) is overwritten.

    Args:
        start: row starts of the factors, (n + 1,).
        column: their columns.
        scattered: the factor of the forward pass.
        gathered: the factor of the backward pass.
        before: divisor of x in the forward pass, (n,).
        after: divisor of x in the backward pass, (n,).
        x: the right-hand side, overwritten by the solution.
    """
    n = len(x)
    for j in range(n):
        x[j] /= before[j]
        for p in range(start[j], start[j + 1]):
            x[column[p]] += scattered[p] * x[j]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for p in range(start[i], start[i + 1]):
            total += gathered[p] * x[column[p]]
        x[i] = total / after[i]
