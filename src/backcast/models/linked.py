"""A two-way model with linked edges: each edge into s points to the same edge among the successors of s̃.

Each edge stores the value of its end that the expectation of its beginning contains: a planner that keeps
E(s, a) = Σ_s' P(s' | s, a) (r + γ̄ u(s, a, s')) can replace one u without a sum over the others.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import Step
from backcast.models.readable import Known, LearnedForward
from backcast.models.rows import find
from backcast.models.two_way import TwoWayModel
from backcast.values.contract import Values

A = TypeVar("A", bound=NDArray[Any])


@part
class LinkedModel(NamedTuple):
    """Counts in both directions, and the value last passed along each edge.

    Attributes:
        counts: the transitions, counted in both directions.
        told: for each place of `counts.rows`, the value u of its successor.
        twin: for each place of `counts.led_here`, the index of the same edge among the outcomes of its pair, from 0.
    """

    counts: TwoWayModel
    told: Vector
    twin: Indices

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Count the transition in both directions, and link them."""
        self.counts.learn(values, step, discount, rates)
        rows, led_here = self.counts.rows, self.counts.led_here
        pair = step.s * self.counts.n_actions + step.a
        self.twin[find(led_here, step.s2, pair)] = find(rows, pair, step.s2) - rows.offset[pair]

    @in_python
    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> "LinkedModel":
        """The same with at least one free place in each of these rows."""
        ahead, back = self.counts.rows.with_room(states, rows), self.counts.led_here.with_room(states, rows)
        told = _moved(self.told, self.counts.rows.offset, ahead.offset)
        twin = _moved(self.twin, self.counts.led_here.offset, back.offset)
        return LinkedModel(self.counts._replace(rows=ahead, led_here=back), told, twin)

    @in_python
    def successors(self, s: int, a: int) -> Known:
        """The states that followed (s, a)."""
        return self.counts.successors(s, a)

    @in_python
    def predecessors(self, s: int) -> Known:
        """The pairs that led to s."""
        return self.counts.predecessors(s)

    @in_python
    def readable(self, values: Values) -> LearnedForward:
        """The forward rows; the other direction has the same counts."""
        return self.counts.readable(values)


def linked(counts: TwoWayModel) -> LinkedModel:
    """A model without counts."""
    ahead, back = counts.rows.offset[-1], counts.led_here.offset[-1]
    return LinkedModel(counts, np.zeros(ahead), np.zeros(back, dtype=np.int64))


@kernel
def twin_of(model: LinkedModel, place: int) -> int:
    """The place in `counts.rows` of the edge at a place of `counts.led_here`."""
    return model.counts.rows.offset[model.counts.led_here.key[place]] + model.twin[place]


def _moved(beside: A, before: Indices, after: Indices) -> A:
    """Move data from the places of rows that began at `before` to those that begin at `after`."""
    if before[-1] == after[-1]:
        return beside
    moved = np.zeros(after[-1], dtype=beside.dtype)
    places = np.repeat(after[:-1] - before[:-1], np.diff(before)) + np.arange(before[-1])
    moved[places] = beside
    return cast(A, moved)
