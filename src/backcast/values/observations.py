"""Non-discrete observations: each remembered one gets a number, so that agents can treat it as a state."""

from collections import OrderedDict
from typing import Any

import numpy as np

from backcast.core.arrays import Indices
from backcast.features.maps import FeatureMap
from backcast.values.linear import Features, empty_features


class Observations:
    """A memory of observations. Observations with the same features are the same state.

    When it is full, the least recently seen quarter is forgotten, and its numbers are reused.

    Attributes:
        space: the space of observations, a Gymnasium Box.
        capacity: how many observations are remembered.
        known: (1,), numbers below this one are assigned.
        forgotten: the numbers that were freed last.
    """

    def __init__(self, space: object, capacity: int, seed: int) -> None:
        self.space, self.capacity, self.seed = space, capacity, seed
        self.known = np.zeros(1, dtype=np.int64)
        self.forgotten: Indices = np.zeros(0, dtype=np.int64)
        self._maps: dict[Any, tuple[Any, Features]] = {}
        self._numbers: OrderedDict[bytes, int] = OrderedDict()
        self._free: list[int] = []

    def features(self, recipe: FeatureMap) -> tuple[Features, int, int]:
        """The features of all remembered observations, their number, and how many were given; written by `number`."""
        if recipe not in self._maps:
            bound = recipe.bind(self.space, self.seed)
            self._maps[recipe] = bound, empty_features(self.capacity, bound.width)
        bound, features = self._maps[recipe]
        return features, bound.n_features, bound.n_features

    def number(self, observation: object) -> int:
        """Return the number of an observation; `forgotten` are the numbers freed to make room for it."""
        self.forgotten = self.forgotten[:0]
        coded = [(bound.of(observation), features) for bound, features in self._maps.values()]
        key = b"".join(array.tobytes() for code, _ in coded for array in code)
        if key in self._numbers:
            self._numbers.move_to_end(key)
            return self._numbers[key]
        s = self._next_number()
        self._numbers[key] = s
        for (which, size), features in coded:
            first, last = features.offset[s], features.offset[s + 1]
            features.which[first : first + len(which)], features.size[first : first + len(which)] = which, size
            features.size[first + len(which) : last] = 0.0
        return s

    def _next_number(self) -> int:
        if self.known[0] < self.capacity:
            self.known[0] += 1
            return int(self.known[0]) - 1
        if not self._free:
            oldest = [self._numbers.popitem(last=False)[1] for _ in range(max(1, self.capacity // 4))]
            self.forgotten, self._free = np.array(oldest, dtype=np.int64), oldest
        return self._free.pop()
