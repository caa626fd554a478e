"""Places of features: the numbered states of a finite world, or the points of a Box."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from backcast.core.arrays import Vector, as_whole
from backcast.core.errors import InputError
from backcast.mdp import FiniteMDP

_NO_BOUND = 1e30  # Gymnasium writes "unbounded" as inf or as the largest float32

Bounds = float | Sequence[float] | None


@dataclass(frozen=True, eq=False)
class Scale:
    """The bounds of m coordinates.

    A coordinate c without a lower or an upper bound is squashed to c / (1 + |c|), and so are its bounds: ±∞ to ±1.

    Attributes:
        low: the lower bounds after squashing, (m,).
        high: the upper bounds after squashing, (m,).
        squashed: 1 for each coordinate that is squashed, 0 for the others, (m,).
    """

    low: Vector
    high: Vector
    squashed: Vector

    @classmethod
    def between(cls, low: Vector, high: Vector) -> "Scale":
        """The scale between bounds, each (m,), of which some may be infinite."""
        squashed = ((low <= -_NO_BOUND) | (high >= _NO_BOUND)).astype(np.float64)
        low, high = _squash(np.clip([low, high], -_NO_BOUND, _NO_BOUND), squashed)
        return cls(low, high, squashed)

    @property
    def dimensions(self) -> int:
        """The number of coordinates, m."""
        return len(self.low)

    @cached_property
    def span(self) -> Vector:
        """The distance between the bounds, (m,); 1 where they are equal, to avoid division by zero."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    def stretch(self, points: Vector, units: Any) -> Vector:
        """The points (n, m) clipped to the bounds and stretched, so that they lie between 0 and `units`.

        Integer coordinates between integer bounds are stretched exactly wherever the result is an integer.
        """
        inside = np.minimum(np.maximum(_squash(points, self.squashed), self.low), self.high)
        return (inside - self.low) * units / self.span


def _squash(c: Vector, squashed: Vector) -> Vector:
    return c / (1 + squashed * abs(c))


@dataclass(frozen=True, eq=False)
class Place:
    """The place that a feature map is bound to.

    Attributes:
        n_states: S of a finite place; None for a Box.
        points: the coordinates of the states, (S, m); None for a Box.
        scale: the bounds of the coordinates.
        seed: seed of the run, for features that every seed draws anew.
    """

    n_states: int | None
    points: Vector | None
    scale: Scale
    seed: int


def read_place(given: Any, seed: int, coordinates: Any = None, low: Bounds = None, high: Bounds = None) -> Place:
    """Make a place from a number of states, a World, a FiniteMDP, or a Gymnasium environment or space.

    Args:
        given: the place.
        seed: seed of the run.
        coordinates: (S, m) instead of the place's own.
        low: the lower bounds of the coordinates instead of the place's own: a number, or one for each coordinate.
        high: the upper bounds.
    """
    space = getattr(given, "observation_space", given)
    if _is_box(space):
        if coordinates is not None:
            raise InputError("coordinates: given for a Box space, whose observations are coordinates themselves")
        own = [np.asarray(edge, dtype=np.float64).ravel() for edge in (space.low, space.high)]
        return Place(None, None, Scale.between(*_bounded(own[0], own[1], low, high)), seed)
    n_states, points = _states(given, seed)
    if coordinates is not None:
        points = coordinates
        if len(points) != n_states:
            raise InputError(f"coordinates: {len(points)} rows given for {n_states} states; expected one per state")
    scale = Scale.between(*_bounded(points.min(axis=0), points.max(axis=0), low, high))
    return Place(n_states, points, scale, seed)


def _is_box(space: object) -> bool:
    return all(hasattr(space, attribute) for attribute in ("low", "high", "shape"))


def _bounded(own_low: Vector, own_high: Vector, low: Bounds, high: Bounds) -> tuple[Vector, Vector]:
    """The place's own bounds, replaced by those given."""
    edges = []
    for name, own, given in (("low", own_low, low), ("high", own_high, high)):
        edge = own if given is None else np.asarray(given, dtype=np.float64)
        if edge.shape not in ((), own.shape):
            raise InputError(f"{name}: {edge.size} numbers given for {own.size} coordinates; expected one for each")
        edges.append(np.broadcast_to(edge, own.shape))
    wrong = (edges[0] > edges[1]) | ((edges[0] == edges[1]) & (low is not None or high is not None))
    if wrong.any():
        j = int(np.argmax(wrong))
        raise InputError(f"low: {edges[0][j]:g} and high: {edges[1][j]:g} of coordinate {j}; low must be below high")
    return edges[0], edges[1]


def _states(given: object, seed: int) -> tuple[int, Vector]:
    """The number of states and their coordinates (S, m)."""
    if isinstance(given, (int, float, np.integer)):
        return _numbered(as_whole("place", given, 1))
    if isinstance(given, FiniteMDP):
        return _numbered(given.n_states)
    from gymnasium.spaces import Discrete  # slow to import

    from backcast.worlds.views import coordinates_of
    from backcast.worlds.world import World

    if isinstance(given, World):
        drawn = given.draw(seed)
        return drawn.n_states, coordinates_of(drawn)
    space = getattr(given, "observation_space", given)
    if not isinstance(space, Discrete):
        raise InputError(
            f"place: {type(given).__name__} given, expected a number of states, a World, a FiniteMDP, or a Gymnasium"
            " environment or space that is Discrete or Box"
        )
    world = getattr(getattr(given, "unwrapped", None), "world", None)
    if isinstance(world, World) and world.n_states == space.n:
        return world.n_states, coordinates_of(world)
    return _numbered(int(space.n))


def _numbered(n_states: int) -> tuple[int, Vector]:
    return n_states, np.arange(n_states, dtype=np.float64)[:, None]
