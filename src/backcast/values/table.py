"""The table of values that agents learn and plan with; `linear.values` has values that are linear in features."""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.values.linear import LinearValues, action_values


@part
class Values(NamedTuple):
    """Action values q(s, a) = scale · u[s·A + a] + shift; a prediction world has A = 1 and q is v.

    Backward planning applies one and the same map v ← (1 − c) v + c y to all states that were never observed to
    precede the reference state. Kept in this form, that costs two multiplications however many states there are.
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

    def rank(self, s: int, a: int) -> float:
        """A number that orders the actions of s as q does, and is equal where q is."""
        return self.u[s * self.n_actions + a]

    def probe(self, s: int, a: int) -> float:
        """A number that is large where q(s, a) explodes."""
        return self.get(s, a)

    def predicted(self, s: int) -> float:
        """v(s), in prediction."""
        return self.affine[0] * self.u[s] + self.affine[1]

    def best(self, s: int) -> float:
        """max_a q(s, a)."""
        first = s * self.n_actions
        most = self.u[first]
        for k in range(first + 1, first + self.n_actions):
            most = max(most, self.u[k])
        return self.affine[0] * most + self.affine[1]


def zeros(n_states: int, n_actions: int) -> Values:
    """A table of zeros."""
    return Values(np.zeros(n_states * n_actions), np.array([1.0, 0.0, 1.0]), n_actions)


def as_array(values: Values | LinearValues) -> Vector:
    """The plain table, (S, A)."""
    if isinstance(values, LinearValues):
        return action_values(values)
    return (values.affine[0] * values.u + values.affine[1]).reshape(-1, values.n_actions)


@kernel
def fold(values: Values) -> None:
    """Write scale and shift into the entries: needed when the scale has become small."""
    scale, shift = values.affine[0], values.affine[1]
    for k in range(values.u.size):
        values.u[k] = scale * values.u[k] + shift
    values.affine[0], values.affine[1], values.affine[2] = 1.0, 0.0, 1.0
