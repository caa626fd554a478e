"""Rows of counts: the maximum-likelihood estimate of the same probabilities that `Rows` holds as a softmax.

P(outcome) = count / total. Outcomes never observed have probability 0. A row without observations says nothing, which
is not the same as saying that all outcomes are equally likely.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.locality import prefetch, side_by_side
from backcast.models.rows import find, grown_in, heads, likely_place, places_for


@part
class CountRows(NamedTuple):
    """One row for each condition; row i may use the places offset[i] … offset[i + 1] − 1.

    All data of a row are adjacent in memory, and so are those of a place.

    Attributes:
        offset: (rows + 1,), where the places of each row begin.
        used: (rows,), the number of places in use: the outcomes observed.
        key: (places,), the outcome.
        weight: (places,), the number of observations.
        reward: (places,), the mean reward r(row, outcome).
        carried: (places,), the mean discount on the path to it, used by models over several steps.
        share: (rows,), 1 / total.
        total: (rows,), all observations, also those of no outcome in the row.
        width: 0: nothing is left for the unobserved.
    """

    offset: Indices
    used: Indices
    key: Indices
    weight: Vector
    reward: Vector
    carried: Vector
    share: Vector
    total: Vector
    width: int

    def observe(self, row: int, key: int, alpha: float, mass: float) -> int:
        """Count an outcome `mass` times (α is ignored); return its place."""
        place = find(self, row, key)
        if place == self.offset[row] + self.used[row]:
            self.key[place], self.weight[place], self.reward[place], self.carried[place] = key, 0.0, 0.0, 0.0
            self.used[row] += 1
        self.weight[place] += mass
        self.observe_none(row, mass)
        return place

    def observe_none(self, row: int, mass: float) -> None:
        """Count an observation of none of the outcomes."""
        self.total[row] += mass
        self.share[row] = 1.0 / self.total[row]

    def forget(self, row: int, rate: float) -> None:
        """Discount past observations: count ← (1 − rate) count."""
        first = self.offset[row]
        for k in range(first, first + self.used[row]):
            self.weight[k] *= 1.0 - rate
        self.total[row] *= 1.0 - rate
        if self.total[row] > 0.0:
            self.share[row] = 1.0 / self.total[row]

    def rate(self, place: int, alpha: float, mass: float) -> float:
        """The step size with which rewards and discounts of an outcome become means."""
        return mass / self.weight[place]

    def prefetch_row(self, row: int, here: int) -> None:
        """Prefetch a row from its likely position; `here` is a known row."""
        place = likely_place(self, row, here)
        prefetch(self.used, row)
        prefetch(self.key, place)
        prefetch(self.key, place + 2)

    def unobserved(self, row: int) -> int:
        """None."""
        return 0

    @in_python
    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> "CountRows":
        """The same with at least one free place in each of these rows."""
        return grown_in(self, rows)

    @in_python
    def laid_out(self) -> "CountRows":
        """The same rows, with data that are used together adjacent in memory."""
        rows = _blank(self.offset)
        for name in ("used", "key", "weight", "reward", "carried", "share", "total"):
            column = getattr(self, name)
            getattr(rows, name)[: len(column)] = column
        return rows


@kernel
def draw_restart(restarts: CountRows, arrivals: Vector, s: int, left: float) -> int:
    """Draw the terminal state that led to s; −1 if none did.

    Args:
        restarts: a row for each s over terminal states.
        arrivals: (S,), number of arrivals in s.
        s: the state.
        left: the remainder of a uniform number after the probabilities of the other predecessors.
    """
    first = restarts.offset[s]
    for k in range(first, first + restarts.used[s]):
        left -= restarts.weight[k] / arrivals[s]
        if left < 0.0:
            return restarts.key[k]
    return -1


def empty_counts(capacity: Indices) -> CountRows:
    """Empty rows; capacity (rows,) bounds the outcomes ever observed."""
    return _blank(places_for(capacity))


def _blank(offset: Indices) -> CountRows:
    """Empty rows that begin at the given places, (rows + 1,).

    If each row has one place, as in a deterministic world, a row and its place are adjacent.
    """
    place = int, float, float, float
    if (np.diff(offset) == 1).all():
        begins, used, share, total, *places = heads(offset, 0, 0.0, float, *place)
    else:
        begins, used, share, total = heads(offset, 0, 0.0, float)
        places = side_by_side(int(offset[-1]) + 2, *place)  # two, because Numba gives a single place another type
    key, weight, reward, carried = places
    return CountRows(begins, used, key, weight, reward, carried, share, total[:-1], 0)
