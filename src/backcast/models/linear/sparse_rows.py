"""Sparse rows: memory and cost depend on the entries written, not on the possible ones."""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import part
from backcast.core.errors import InputError

BLOCK = 8
_MOST = 2**28  # most entries, 4 GiB if all are written


@part
class SparseRows(NamedTuple):
    """A row is a chain of blocks of `BLOCK` entries, taken from one pool on demand.

    Attributes:
        head: (rows,), the first block of each row, −1 if it is empty.
        tail: (rows,), the last block.
        used: (rows,), number of entries of each row.
        link: (blocks,), the block that follows each, −1 if none.
        key: (blocks · BLOCK,), the key of an entry.
        weight: (blocks · BLOCK,), its number.
        taken: (1,), number of blocks of the pool in use.
    """

    head: Indices
    tail: Indices
    used: Indices
    link: Indices
    key: Indices
    weight: Vector
    taken: Indices

    def append(self, row: int, key: int, weight: float) -> None:
        """Add an entry at the end of a row that does not have the key yet."""
        inside = self.used[row] % BLOCK
        if inside == 0:
            block = self.taken[0]
            if block == self.link.size:
                raise IndexError("a linear model needs more room than was foreseen")
            self.taken[0] += 1
            self.link[block] = -1
            if self.used[row] == 0:
                self.head[row] = block
            else:
                self.link[self.tail[row]] = block
            self.tail[row] = block
        place = self.tail[row] * BLOCK + inside
        self.key[place], self.weight[place] = key, weight
        self.used[row] += 1


def empty_blocks(room: Indices) -> SparseRows:
    """Empty rows that will hold at most room (rows,) entries.

    Entries that are never written cost no memory: the operating system allocates a page on first access.
    """
    rows, blocks = len(room), int(((room + BLOCK - 1) // BLOCK).sum())
    _refuse_too_many(blocks)
    nothing, none = np.full(rows, -1), np.zeros(rows, dtype=np.int64)
    link, key, weight = np.zeros(blocks, np.int64), np.zeros(blocks * BLOCK, np.int64), np.zeros(blocks * BLOCK)
    return SparseRows(nothing, nothing.copy(), none, link, key, weight, np.zeros(1, np.int64))


def with_blocks(rows: SparseRows, needed: int) -> SparseRows:
    """The same rows with at least `blocks` blocks left in the pool, for worlds that are not known in advance."""
    size = len(rows.link)
    if rows.taken[0] + needed <= size:
        return rows
    more = max(needed, size)
    _refuse_too_many(size + more)
    link, key = (np.concatenate([old, np.zeros(more * n, np.int64)]) for old, n in ((rows.link, 1), (rows.key, BLOCK)))
    return rows._replace(link=link, key=key, weight=np.concatenate([rows.weight, np.zeros(more * BLOCK)]))


def _refuse_too_many(blocks: int) -> None:
    if blocks * BLOCK > _MOST:
        raise InputError(
            f"features: the model may need {blocks * BLOCK:,} numbers, more than {_MOST:,}; use fewer features, or in a"
            " Box a smaller memory"
        )


def as_dense(rows: SparseRows, width: int) -> Vector:
    """The rows as a dense matrix, (rows, width)."""
    dense = np.zeros((len(rows.head), width))
    for row in np.flatnonzero(rows.used):
        left, block = int(rows.used[row]), int(rows.head[row])
        while left > 0:
            places = slice(block * BLOCK, block * BLOCK + min(left, BLOCK))
            dense[row, rows.key[places]] = rows.weight[places]
            left, block = left - BLOCK, int(rows.link[block])
    return dense
