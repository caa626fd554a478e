"""Values that are linear in features, v(s) = x(s)ᵀw and q(s, a) = x(s)ᵀw_a, with sparse features."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Matrix, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.copies import picked
from backcast.core.errors import InputError

_HUGE = 1e100  # squares of larger features would overflow


@part
class Features(NamedTuple):
    """The nonzero features of each state, at the places offset[s] … offset[s + 1] − 1.

    Attributes:
        offset: (S + 1,).
        which: (places,), the index i of each feature.
        size: (places,), its size x_i(s).
        norm: the largest ‖x(s)‖², which scales the steps of models.
    """

    offset: Indices
    which: Indices
    size: Vector
    norm: float

    def square(self, s: int) -> float:
        """The squared norm ‖x(s)‖²."""
        total = 0.0
        for k in range(self.offset[s], self.offset[s + 1]):
            total += self.size[k] * self.size[k]
        return total

    def product(self, s: int, vector: Vector, start: int) -> float:
        """The product of x(s) with the entries of a vector from `start` on."""
        total = 0.0
        for k in range(self.offset[s], self.offset[s + 1]):
            total += self.size[k] * vector[start + self.which[k]]
        return total


@part
class LinearValues(NamedTuple):
    """Action values q(s, a) = x(s)ᵀw_a; a prediction world has A = 1 and q is v.

    The features of a pair s·A + a are those of s, at the weights of a: φ(s, a)ᵀw = x(s)ᵀw_a.

    Attributes:
        features: x(s).
        w: (A · d,), the weights; those of action a begin at a · d.
        n_actions: A.
        n_features: d.
        n_given: number of features given by the user; there may be one more for terminal states.
    """

    features: Features
    w: Vector
    n_actions: int
    n_features: int
    n_given: int

    @property
    def n_states(self) -> int:
        """S."""
        return len(self.features.offset) - 1

    def get(self, s: int, a: int) -> float:
        """q(s, a)."""
        return self.features.product(s, self.w, a * self.n_features)

    def rank(self, s: int, a: int) -> float:
        """A number that orders the actions of s as q does, and is equal where q is."""
        return self.get(s, a)

    def probe(self, s: int, a: int) -> float:
        """A number that is large where q(s, a) diverges: one of its weights."""
        first = self.features.offset[s]
        return self.w[a * self.n_features + self.features.which[first]] if first < self.features.offset[s + 1] else 0.0

    def compare(self, truth: Vector, unit: float, errors: Vector) -> None:
        """Write unit · (v(s) − truth[s]) of each state into `errors`, in prediction."""
        for s in range(truth.size):
            errors[s] = unit * (self.get(s, 0) - truth[s])

    def best(self, s: int) -> float:
        """max_a q(s, a)."""
        most = self.get(s, 0)
        for a in range(1, self.n_actions):
            most = max(most, self.get(s, a))
        return most

    def move(self, pair: int, target: float, alpha: float) -> None:
        """A semi-gradient step: w ← w + α (target − q(s, a)) φ(s, a)."""
        self.nudge(pair, alpha * (target - self.get(pair // self.n_actions, pair % self.n_actions)))

    def nudge(self, pair: int, amount: float) -> None:
        """Step along the features of a pair s·A + a: w ← w + amount · φ(s, a)."""
        add_features(self.w, self, pair, amount)

    def weight_at(self, key: int) -> float:
        """One of the weights of all actions, (A · d,)."""
        return self.w[key]

    def shift_weight(self, key: int, amount: float) -> None:
        """Add an amount to one of the weights."""
        self.w[key] += amount

    def prefetch_pair(self, pair: int) -> None:
        """Do nothing: there are few weights, and they stay in the cache."""

    @in_python
    def as_array(self) -> Vector:
        """The values of all states, (S, A), or (n, S, A) if stacked."""
        if self.w.ndim > 1:
            return np.stack([picked(self, place).as_array() for place in range(len(self.w))])
        weights = self.w.reshape(self.n_actions, self.n_features)
        found: Vector = as_matrix(self.features, self.n_features) @ weights.T
        return found

    @in_python
    def as_weights(self) -> Vector:
        """The weights of the given features, (A, d), or (n, A, d) if stacked."""
        return self.w.reshape(*self.w.shape[:-1], self.n_actions, self.n_features)[..., : self.n_given]


@kernel
def add_features(vector: Vector, values: LinearValues, pair: int, amount: float) -> None:
    """Add amount · φ(s, a) of a pair s·A + a to a vector of the size of the weights."""
    s, start = pair // values.n_actions, pair % values.n_actions * values.n_features
    for k in range(values.features.offset[s], values.features.offset[s + 1]):
        vector[start + values.features.which[k]] += amount * values.features.size[k]


def features_of(matrix: Matrix) -> Features:
    """The features of a sparse matrix (S, d), a row for each state."""
    rows = matrix.tocsr()
    offset, which, size = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)
    return Features(offset, which, size, largest_norm(matrix) or 1.0)


def largest_norm(matrix: Matrix) -> float:
    """The largest ‖x(s)‖² of a sparse matrix (S, d)."""
    if np.abs(matrix.data).max(initial=0.0) > _HUGE:
        raise InputError(
            f"features: an entry is {np.abs(matrix.data).max():g}; expected at most {_HUGE:g}, or scale them"
        )
    return float((matrix * matrix).sum(axis=1).max())


def constant(n_states: int) -> Features:
    """One feature, which is 1 in every state."""
    places = np.arange(n_states + 1, dtype=np.int64)
    return Features(places, np.zeros(n_states, dtype=np.int64), np.ones(n_states), 1.0)


def empty_features(n_states: int, width: int) -> Features:
    """Room for `width` features, none larger than 1, of each of `n_states` unknown states."""
    places = n_states * width
    offset, which = np.arange(n_states + 1) * width, np.zeros(places, dtype=np.int64)
    return Features(offset, which, np.zeros(places), float(width))


def zero_values(features: Features, n_features: int, n_given: int, n_actions: int) -> LinearValues:
    """Values with all weights 0."""
    return LinearValues(features, np.zeros(n_features * n_actions), n_actions, n_features, n_given)


def as_matrix(features: Features, n_features: int) -> Matrix:
    """The features as a sparse matrix, (S, d)."""
    shape = len(features.offset) - 1, n_features
    return sparse.csr_array((features.size, features.which, features.offset), shape=shape)
