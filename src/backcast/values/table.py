"""The table of values that agents learn and plan with."""

from typing import NamedTuple

import numpy as np

from backcast.core import locality
from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, part

_SMALL = 1e-6  # a smaller scale is folded into the entries


class Mapping(NamedTuple):
    """The mapping from the entries u of a table to values: q = scale · u + shift."""

    scale: float
    shift: float
    inverse: float


@part
class TableValues(NamedTuple):
    """Action values q(s, a) = scale · u[s·A + a] + shift; a prediction world has A = 1 and q is v.

    Backward planning applies the same map v ← (1 − c) v + c y to all states that were never observed to precede the
    reference state. In this form it costs two multiplications, whatever the number of states.
    """

    u: Vector
    affine: Vector  # (3,): scale, shift and 1 / scale
    n_actions: int

    @property
    def n_states(self) -> int:
        """S."""
        return self.u.size // self.n_actions

    def get(self, s: int, a: int) -> float:
        """q(s, a)."""
        return self.affine[0] * self.u[s * self.n_actions + a] + self.affine[1]

    def put(self, s: int, a: int, value: float) -> None:
        """q(s, a) ← value."""
        self.u[s * self.n_actions + a] = (value - self.affine[1]) * self.affine[2]

    def move(self, pair: int, target: float, alpha: float) -> None:
        """Move q(s, a) of a pair s·A + a towards a target, by a step of size α."""
        old = self.affine[0] * self.u[pair] + self.affine[1]
        self.u[pair] = (old + alpha * (target - old) - self.affine[1]) * self.affine[2]

    def nudge(self, pair: int, amount: float) -> None:
        """Add an amount to q(s, a) of a pair s·A + a."""
        self.u[pair] += amount * self.affine[2]

    def blend(self, share: float, target: float) -> None:
        """For all pairs: q ← (1 − share) q + share · target. Call `rescale` once afterwards."""
        self.affine[0] *= 1.0 - share
        self.affine[1] = (1.0 - share) * self.affine[1] + share * target
        self.affine[2] = 1.0 / self.affine[0]

    def mapping(self) -> Mapping:
        """The current mapping of the entries, with which `read` returns values as they were before a `blend`."""
        return Mapping(self.affine[0], self.affine[1], self.affine[2])

    def read(self, mapping: Mapping, pair: int) -> float:
        """q(s, a) of a pair under an earlier mapping."""
        return mapping.scale * self.u[pair] + mapping.shift

    def write(self, mapping: Mapping, pair: int, value: float) -> None:
        """q(s, a) ← value of a pair, under the current mapping."""
        self.u[pair] = (value - mapping.shift) * mapping.inverse

    def rescale(self) -> None:
        """Fold scale and shift into the entries if the scale has become small."""
        if self.affine[0] < _SMALL:
            _fold(self)

    def rank(self, s: int, a: int) -> float:
        """A number that orders the actions of s as q does, and is equal where q is."""
        return self.u[s * self.n_actions + a]

    def probe(self, s: int, a: int) -> float:
        """A number that is large where q(s, a) diverges."""
        return self.get(s, a)

    def compare(self, truth: Vector, unit: float, errors: Vector) -> None:
        """Write unit · (v(s) − truth[s]) of each state into `errors`, in prediction."""
        scale, shift = self.affine[0], self.affine[1]
        for s in range(truth.size):
            errors[s] = unit * (scale * self.u[s] + shift - truth[s])

    def best(self, s: int) -> float:
        """max_a q(s, a)."""
        first = s * self.n_actions
        most = self.u[first]
        for k in range(first + 1, first + self.n_actions):
            most = max(most, self.u[k])
        return self.affine[0] * most + self.affine[1]

    def prefetch_pair(self, pair: int) -> None:
        """Prefetch q(s, a) of a pair s·A + a."""
        locality.prefetch(self.u, pair)

    @in_python
    def as_array(self) -> Vector:
        """All values, (S, A), or (…, S, A) if stacked."""
        values: Vector = self.affine[..., :1] * self.u + self.affine[..., 1:2]
        return values.reshape(*values.shape[:-1], -1, self.n_actions)

    @in_python
    def as_weights(self) -> None:
        """A table has none."""

    @in_python
    def fill(self, values: Vector) -> None:
        """All q(s, a) ← values, (S, A) or (S·A,)."""
        self.affine[:] = 1.0, 0.0, 1.0
        self.u[:] = np.ravel(values)


@kernel
def _fold(values: TableValues) -> None:
    scale, shift = values.affine[0], values.affine[1]
    for k in range(values.u.size):
        values.u[k] = scale * values.u[k] + shift
    values.affine[0], values.affine[1], values.affine[2] = 1.0, 0.0, 1.0


def zeros(n_states: int, n_actions: int) -> TableValues:
    """A table of zeros."""
    return TableValues(locality.zeros(n_states * n_actions), np.array([1.0, 0.0, 1.0]), n_actions)
