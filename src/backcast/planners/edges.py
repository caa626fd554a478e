"""Edges touched: the transitions of a model, or of a memory, that a planner reads to make its value updates.

Value updates say how many numbers were written; edges say how much was looked at for it. A sum over what may follow a
pair touches every outcome that was observed; a drawn outcome is one; news of a state touch all pairs that led there.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices
from backcast.core.compiling import kernel, part
from backcast.models.contract import BackwardRows


class EdgeCount(Protocol):
    """Is told of the edges that a planner touches."""

    def touch(self, number: int) -> None:
        """So many more were touched."""


@part
class Uncounted(NamedTuple):
    """Counts nothing."""

    unused: int = 0

    def touch(self, number: int) -> None:
        """Plays no part."""


@part
class Edges(NamedTuple):
    """Counts edges; `touched` (1,)."""

    touched: Indices

    def touch(self, number: int) -> None:
        """So many more were touched."""
        self.touched[0] += number


UNCOUNTED = Uncounted()


@kernel
def observed_before(model: BackwardRows, s: int) -> int:
    """How many predecessors of s a model has observed, in all its rows for s."""
    number = 0
    for row in range(model.first_row(s), model.last_row(s)):
        number += model.rows.used[row]
    return number


def no_edges() -> Edges:
    """None was touched yet."""
    return Edges(np.zeros(1, dtype=np.int64))


def edges_touched(planner: object) -> NDArray[np.int64]:
    """How many a planner, and the parts that it is made of, have touched; of planners that are stacked, (n,)."""
    if isinstance(planner, Edges):
        return planner.touched[..., 0]
    parts = planner if isinstance(planner, tuple) else ()
    return sum((edges_touched(each) for each in parts), np.zeros((), dtype=np.int64))
