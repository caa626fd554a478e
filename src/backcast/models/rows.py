"""Rows of probabilities that cost what was observed, not what is possible.

A softmax row over N outcomes starts at equal logits and moves by the cross-entropy gradient,
row ← row + α (onehot − softmax(row)). All outcomes that were never observed keep equal logits for ever. So a row
stores, for each outcome observed, its weight *relative to an unobserved one*, w = exp(logit − logit of the others),
and 1 / Z with Z = Σ w + (N − observed). Then P(outcome) = w / Z, and 1 / Z for each unobserved outcome. This equals the
dense softmax up to rounding (w never falls below 1, and grows only like a logarithm's exponential: no overflow).

Rows that hold true probabilities have w = P, Z = 1 and no unobserved outcome.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.arrays import Indices, Vector
from backcast.compiling import part
from backcast.numerics import E, exp_of_fraction

BLOCK = 4  # rows begin at multiples of it and are updated so many places at a time, used or not


@part
class Rows(NamedTuple):
    """One row for each thing that is conditioned on; row i may use the places offset[i] … offset[i + 1] − 1.

    Attributes:
        offset: (rows + 1,) where the places of each row begin.
        used: (rows,) how many places are in use: the outcomes observed.
        key: (places,) the outcome.
        weight: (places,) its weight w.
        reward: (places,) the mean reward r(row, outcome).
        share: (rows,) 1 / Z, the probability of each unobserved outcome.
        width: N, the number of possible outcomes; 0 for true rows, whose outcomes are all there.
    """

    offset: Indices
    used: Indices
    key: Indices
    weight: Vector
    reward: Vector
    share: Vector
    width: int

    def find(self, row: int, key: int) -> int:
        """The place of an outcome in a row, made if it is new."""
        first = self.offset[row]
        last = first + self.used[row]
        place = last
        for k in range(first, last):  # to the end, for a branch that nobody can foresee costs more than looking on
            place = k if self.key[k] == key else place
        if place == last:
            self.key[last], self.weight[last], self.reward[last] = key, 1.0, 0.0
            self.used[row] += 1
        return place

    def observe(self, row: int, key: int, alpha: float) -> int:
        """One cross-entropy step towards the observed outcome; its place.

        Against the logit of the unobserved, that of each outcome changes by −α (p − p_unobserved) = (α / Z) (1 − w),
        and that of the observed one by α more.
        """
        place = self.find(row, key)
        first = self.offset[row]
        last = first + self.used[row]
        step = alpha * self.share[row]
        grown = E * exp_of_fraction(alpha - 1.0)
        for block in range(first, last, BLOCK):
            for k in range(block, block + BLOCK):
                self.weight[k] *= exp_of_fraction(step * (1.0 - self.weight[k]))
        self.weight[place] *= grown
        total = float(self.width)
        for block in range(first, last, BLOCK):  # unused places weigh 1
            w = self.weight[block : block + BLOCK]
            total += ((w[0] + w[1]) + (w[2] + w[3])) - BLOCK
        self.share[row] = 1.0 / total
        return place

    def unobserved(self, row: int) -> int:
        """How many outcomes share what the observed ones leave."""
        return max(0, self.width - self.used[row])


def empty_rows(capacity: Indices, width: int) -> Rows:
    """Softmax rows over `width` outcomes at equal logits; capacity (rows,) bounds the outcomes ever observed."""
    offset = np.zeros(len(capacity) + 1, dtype=np.int64)
    np.cumsum((capacity + (BLOCK - 1)) // BLOCK * BLOCK, out=offset[1:])
    rows, places = len(capacity), offset[-1]
    key, count = np.zeros(places, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    return Rows(offset, count, key, np.ones(places), np.zeros(places), np.full(rows, 1.0 / width), width)


def true_rows(offset: NDArray[np.int64], key: NDArray[np.int64], probability: Vector, reward: Vector) -> Rows:
    """Rows that hold what is true, and nothing else."""
    return Rows(
        offset.astype(np.int64),
        np.diff(offset).astype(np.int64),
        key.astype(np.int64),
        np.array(probability, dtype=np.float64),
        np.array(reward, dtype=np.float64),
        np.ones(len(offset) - 1),
        0,
    )


def with_room(rows: Rows, row: int) -> Rows:
    """The same rows with at least one free place in `row`: for worlds whose graph is not known beforehand."""
    used = int(rows.used[row])
    if used < rows.offset[row + 1] - rows.offset[row]:
        return rows
    extra = max(BLOCK, used)
    at = rows.offset[row + 1]
    offset = rows.offset.copy()
    offset[row + 1 :] += extra
    key = np.insert(rows.key, at, np.zeros(extra, dtype=np.int64))
    weight, reward = np.insert(rows.weight, at, np.ones(extra)), np.insert(rows.reward, at, np.zeros(extra))
    return rows._replace(offset=offset, key=key, weight=weight, reward=reward)


def predict(rows: Rows, row: int) -> tuple[Indices, Vector, float]:
    """The outcomes seen in a row, their probabilities, and the probability that is left for each unseen one."""
    places = slice(rows.offset[row], rows.offset[row] + rows.used[row])
    return rows.key[places].copy(), rows.weight[places] * rows.share[row], float(rows.share[row])
