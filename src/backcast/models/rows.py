"""Rows of probabilities whose cost depends on the observed outcomes, not on the possible ones.

A softmax row over N outcomes starts at equal logits and moves by the cross-entropy gradient,
row ← row + α (onehot − softmax(row)). All outcomes that were never observed keep equal logits for ever. So a row
stores, for each outcome observed, its weight *relative to an unobserved one*, w = exp(logit − logit of the others),
and 1 / Z with Z = Σ w + (N − observed). Then P(outcome) = w / Z, and 1 / Z for each unobserved outcome. This equals the
dense softmax up to rounding (w never falls below 1, and grows only like a logarithm's exponential: no overflow).

Rows that hold true probabilities have w = P, Z = 1 and no unobserved outcome.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, optional, part
from backcast.core.locality import prefetch, side_by_side, zeros
from backcast.core.numerics import E, exp_of_fraction
from backcast.core.randomness import Stream, uniform
from backcast.models.contract import OutcomeRows, ProbabilityRows
from backcast.models.readable import Known
from backcast.values.step_sizes import SCHEDULED, Averaged, Scheduled, step_sizes

R = TypeVar("R", bound=ProbabilityRows)  # a NamedTuple
BLOCK = 4  # weights are added in blocks of this size


@part
class Rows(NamedTuple):
    """One row for each condition; row i may use the places offset[i] … offset[i + 1] − 1.

    All data of a row are adjacent in memory; weights are contiguous, because they are updated together.

    Attributes:
        offset: (rows + 1,), where the places of each row begin.
        used: (rows,), the number of places in use: the outcomes observed.
        key: (places,), the outcome.
        weight: (places,), its weight w.
        reward: (places,), the mean reward r(row, outcome).
        carried: (places,), the mean discount on the path to it, used by models over several steps.
        share: (rows,), 1 / Z, the probability of each unobserved outcome.
        step_size: step sizes of rewards and discounts of outcomes.
        width: N, the number of possible outcomes; 0 for true rows, which contain all their outcomes.
    """

    offset: Indices
    used: Indices
    key: Indices
    weight: Vector
    reward: Vector
    carried: Vector
    share: Vector
    step_size: Scheduled | Averaged
    width: int

    def observe(self, row: int, key: int, alpha: float, mass: float) -> int:
        """Make a cross-entropy step of size α · mass (at most 1) towards the observed outcome; return its place.

        Relative to the logit of the unobserved outcomes, each logit changes by −α (p − p_unobserved) = (α / Z) (1 − w),
        and that of the observed outcome by α more.
        """
        alpha = min(1.0, alpha * mass)
        place = find(self, row, key)
        if place == self.offset[row] + self.used[row]:
            self.key[place], self.weight[place], self.reward[place] = key, 1.0, 0.0
            self.used[row] += 1
        first = self.offset[row]
        last = first + self.used[row]
        step = alpha * self.share[row]
        grown = E * exp_of_fraction(alpha - 1.0)
        weights = self.weight[first:last]  # a loop over an array of its own becomes one of vectors
        for k in range(weights.size):
            weights[k] *= exp_of_fraction(step * (1.0 - weights[k]))
        self.weight[place] *= grown
        total = float(self.width)
        for block in range(first, last, BLOCK):
            a, b = weight_at(self, block, last), weight_at(self, block + 1, last)
            c, d = weight_at(self, block + 2, last), weight_at(self, block + 3, last)
            total += ((a + b) + (c + d)) - BLOCK
        self.share[row] = 1.0 / total
        return place

    def observe_none(self, row: int, mass: float) -> None:
        """A softmax over the possible outcomes has no place for "none of them"."""

    def forget(self, row: int, rate: float) -> None:
        """Decay all logits of a row towards equal ones: logit ← (1 − rate) logit."""
        first = self.offset[row]
        total = float(self.width)
        for k in range(first, first + self.used[row]):
            self.weight[k] = math.exp((1.0 - rate) * math.log(self.weight[k]))
            total += self.weight[k] - 1.0
        self.share[row] = 1.0 / total

    def rate(self, place: int, alpha: float, mass: float) -> float:
        """The step size of an outcome's reward and discount; called once for each observation."""
        return min(1.0, self.step_size.of(place, alpha * mass, mass))

    def prefetch_row(self, row: int, here: int) -> None:
        """Prefetch a row from its likely position; `here` is a known row."""
        place = likely_place(self, row, here)
        prefetch(self.used, row)
        prefetch(self.key, place)
        prefetch(self.weight, place)
        prefetch(self.reward, place)

    def unobserved(self, row: int) -> int:
        """The number of outcomes that share the probability left by the observed ones."""
        return max(0, self.width - self.used[row])

    @in_python
    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> "Rows":
        """The same rows with at least one free place in each of the given rows."""
        return grown_in(self, rows)

    @in_python
    def is_constant(self) -> bool:
        """True rows never change."""
        return self.width == 0


@kernel
def likely_place(rows: ProbabilityRows, row: int, here: int) -> int:
    """Guess where a row begins, as if all rows between it and `here` had as many places as `here`."""
    first = rows.offset[here]
    return first + (row - here) * (rows.offset[here + 1] - first)


@kernel
def weight_at(rows: Rows, place: int, last: int) -> float:
    """The weight of a place of a row that ends before `last`; beyond it 1, as for unobserved outcomes."""
    return rows.weight[place] if place < last else 1.0


@kernel
def find(rows: ProbabilityRows, row: int, key: int) -> int:
    """The place of an outcome in a row; the first free place if it is new."""
    first = rows.offset[row]
    last = first + rows.used[row]
    place = last
    for k in range(first, last):  # to the end, because an unpredictable branch costs more than the rest of the loop
        place = k if rows.key[k] == key else place
    return place


@kernel
def connect(rows: OutcomeRows, row: int, key: int, reward: float, carried: float, alpha: float, mass: float) -> None:
    """Observe an outcome with the reward and the discount on the path to it."""
    place = rows.observe(row, key, alpha, mass)
    rate = rows.rate(place, alpha, mass)
    rows.reward[place] += rate * (reward - rows.reward[place])
    rows.carried[place] += rate * (carried - rows.carried[place])


@kernel
def draw_unobserved(rows: ProbabilityRows, first: int, last: int, stream: Stream) -> int:
    """Draw one of the outcomes that are not at the places first … last − 1, uniformly."""
    while True:
        key = int(uniform(stream) * rows.width)
        seen = False
        for k in range(first, last):
            seen |= rows.key[k] == key
        if not seen:
            return key


def places_for(capacity: Indices) -> Indices:
    """(rows + 1,), where rows of this capacity begin."""
    offset = np.zeros(len(capacity) + 1, dtype=np.int64)
    np.cumsum(capacity, out=offset[1:])
    return offset


def heads(offset: Indices, used: Indices | int, share: Vector | float, *more: type) -> list[NDArray[Any]]:
    """Allocate adjacent arrays: where rows begin, (rows + 1,), their numbers of places used and 1 / Z, (rows,).

    Numbers of places have 32 bits if that is enough.

    Args:
        offset: (rows + 1,).
        used: (rows,), or one number for all.
        share: likewise.
        more: dtypes of further adjacent arrays, (rows + 1,), filled with zeros.
    """
    whole = np.int32 if offset[-1] < 2**31 else np.int64
    columns = side_by_side(len(offset), whole, whole, float, *more)
    columns[1:3] = [column[:-1] for column in columns[1:3]]
    columns[0][:], columns[1][:], columns[2][:] = offset, used, share
    return columns


@optional("laid_out")
@in_python
def _heads_side_by_side(self: Any) -> Any:
    """The same rows, with data that are used together adjacent in memory."""
    offset, used, share = heads(self.offset, self.used, self.share)
    return self._replace(offset=offset, used=used, share=share)


def empty_rows(capacity: Indices, width: int, averages: bool = False) -> Rows:
    """Softmax rows over `width` outcomes at equal logits; capacity (rows,) bounds the outcomes ever observed.

    With `averages`, rewards and discounts are averaged; logits always move by α.
    """
    begins = places_for(capacity)
    places = int(begins[-1])
    offset, used, share = heads(begins, 0, 1.0 / width)
    weight, reward, carried = zeros(places), zeros(places), zeros(places)
    return Rows(offset, used, zeros(places, int), weight, reward, carried, share, step_sizes(averages, places), width)


def true_rows(
    offset: Indices, key: Indices, probability: Vector, reward: Vector, carried: Vector | None = None
) -> Rows:
    """Rows with true probabilities."""
    begins, used, share = heads(offset, np.diff(offset), 1.0)
    return Rows(
        begins,
        used,
        key.astype(np.int64),
        np.array(probability, dtype=np.float64),
        np.array(reward, dtype=np.float64),
        np.zeros(len(key)) if carried is None else np.array(carried, dtype=np.float64),
        share,
        SCHEDULED,
        0,
    )


def grown_in(rows: R, which: Sequence[int]) -> R:
    """The same rows with at least one free place in each of the given rows that exist."""
    for row in which:
        rows = grown(rows, row) if row < len(rows.used) else rows
    return rows


def grown(rows: R, row: int) -> R:
    """The same rows with at least one free place in `row`: for worlds whose graph is not known in advance."""
    used = int(rows.used[row])
    if used < rows.offset[row + 1] - rows.offset[row]:
        return rows
    extra = max(BLOCK, used)
    at = rows.offset[row + 1]
    offset = rows.offset.copy()
    offset[row + 1 :] += extra
    places = ("key", "weight", "reward", "carried")
    grown = {name: np.insert(getattr(rows, name), at, np.zeros(extra)) for name in places}
    tuple_of_rows: Any = rows
    if "step_size" in tuple_of_rows._fields:
        grown["step_size"] = tuple_of_rows.step_size.with_places(at, extra)
    larger: R = tuple_of_rows._replace(offset=offset, **grown).laid_out()
    return larger


def known_of(rows: ProbabilityRows, row: int) -> Known:
    """The observed outcomes of a row: probabilities, mean rewards and mean discounts."""
    places = places_of(rows, row)
    left = float(rows.share[row]) if rows.width else 0.0
    reward, carried = rows.reward[places].copy(), rows.carried[places].copy()
    return Known(rows.key[places].copy(), rows.weight[places] * rows.share[row], reward, carried, each_other=left)


def places_of(rows: ProbabilityRows, row: int) -> slice:
    """The places of a row that are in use."""
    return slice(rows.offset[row], rows.offset[row] + rows.used[row])
