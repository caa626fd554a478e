"""Edges touched: the transitions of a model, or of a memory, that a planner reads to make its value updates.

Value updates count the numbers written; edges count what was read for this. A sum over the successors of a pair touches
every observed outcome; a sampled outcome is one edge; passing on a changed value touches all pairs that led to a state.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices
from backcast.core.compiling import kernel, part
from backcast.models.contract import BackwardRows


class EdgeCount(Protocol):
    """Counts the edges that a planner touches."""

    def touch(self, number: int) -> None:
        """Count more edges."""


@part
class Uncounted(NamedTuple):
    """Counts nothing."""

    unused: int = 0

    def touch(self, number: int) -> None:
        """Do nothing."""


@part
class Edges(NamedTuple):
    """Counts edges; `touched` (1,)."""

    touched: Indices

    def touch(self, number: int) -> None:
        """Count more edges."""
        self.touched[0] += number


UNCOUNTED = Uncounted()


@kernel
def observed_before(model: BackwardRows, s: int) -> int:
    """The number of observed predecessors of s, in all rows of a model for s."""
    number = 0
    for row in range(model.first_row(s), model.last_row(s)):
        number += model.rows.used[row]
    return number


def no_edges() -> Edges:
    """A counter at 0."""
    return Edges(np.zeros(1, dtype=np.int64))


def edges_touched(planner: object) -> NDArray[np.int64]:
    """The edges touched by a planner and its parts; (n,) for stacked planners."""
    if isinstance(planner, Edges):
        return planner.touched[..., 0]
    parts = planner if isinstance(planner, tuple) else ()
    return sum((edges_touched(each) for each in parts), np.zeros((), dtype=np.int64))
