"""Views: what agents with a network observe in each state of a finite world, an array (S, …).

`world.view("pixels")` is the same world, observed through pixels. Agents with tables or features ignore it.
"""

import re
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from backcast.core.arrays import Vector, as_floats, frozen, refuse_non_finite
from backcast.core.errors import InputError, nearest
from backcast.mdp import FiniteMDP
from backcast.worlds.layouts import Grid

_MOST_NUMBERS = 50_000_000  # in all observations: 400 MB
_WALLS = ("X", "#")
_RANDOM = re.compile(r"random-([1-9]\d{0,5})")  # so many random features of each state


class Finite(Protocol):
    """What a view needs of a world."""

    @property
    def name(self) -> str:
        """The name in exported tables."""

    @property
    def n_states(self) -> int:
        """S."""

    @property
    def mdp(self) -> FiniteMDP:
        """Its finite MDP."""

    @property
    def layout(self) -> Any:
        """The layout of its states."""


def coordinates_of(world: Finite) -> Vector:
    """Coordinates (S, m): (row, column) in a maze, (level, place within it) in a chain, else the state number."""
    layout = world.layout
    if isinstance(layout, np.ndarray) and layout.ndim == 2:
        return np.indices(layout.shape).reshape(2, -1).T.astype(np.float64)
    if type(layout) is tuple:  # other worlds have named tuples
        within = [np.arange(size) / max(size - 1, 1) for size in layout]
        level = np.repeat(np.arange(len(layout), dtype=np.float64), layout)
        return np.stack([level, np.concatenate(within)], axis=1)
    return np.arange(world.n_states, dtype=np.float64)[:, None]


def _onehot(world: Finite) -> Vector:
    """(S, S): 1 at the state's number."""
    return np.eye(_not_too_many(world, world.n_states))


def _coordinates(world: Finite) -> Vector:
    """(S, m): the position of the state, each coordinate between 0 and 1."""
    points = coordinates_of(world)
    low, high = points.min(axis=0), points.max(axis=0)
    return (points - low) / np.where(high > low, high - low, 1.0)


def _pixels(world: Finite) -> Vector:
    """(channels, rows, columns) of each state; the channels are the agent, walls (of a maze) and where episodes end."""
    layout = world.layout
    if isinstance(layout, np.ndarray) and layout.ndim == 2:
        cell, shape = np.arange(world.n_states), layout.shape
        scenery = [np.isin(layout, _WALLS).astype(np.float64)]
    elif isinstance(layout, Grid) and all(float(place).is_integer() for place in (*layout.x, *layout.y)):
        column, row = np.array(layout.x, dtype=np.int64), np.array(layout.y, dtype=np.int64)
        shape = int(row.max()) + 1, int(column.max()) + 1
        cell, scenery = row * shape[1] + column, []
    else:
        raise InputError(f"view: {world.name} has no picture of cells; use 'onehot', 'coordinates' or an array (S, …)")
    size = shape[0] * shape[1]
    _not_too_many(world, size * (2 + len(scenery)))
    agent, ends = np.zeros((world.n_states, size)), np.zeros(size)
    agent[np.arange(world.n_states), cell] = 1.0
    ends[cell[world.mdp.terminal]] = 1.0
    everywhere = [np.broadcast_to(channel.reshape(size), agent.shape) for channel in (*scenery, ends)]
    return np.stack([agent, *everywhere], axis=1).reshape(world.n_states, -1, *shape)


VIEWS: dict[str, Callable[[Finite], Vector]] = {"onehot": _onehot, "coordinates": _coordinates, "pixels": _pixels}


def _random(world: Finite, d: int) -> Vector:
    """(S, d): normal numbers of variance 1 / d, the same for all worlds of S states."""
    _not_too_many(world, d)
    return np.random.default_rng([world.n_states, d]).standard_normal((world.n_states, d)) / np.sqrt(d)


def check_view(given: Any) -> str | Vector:
    """Return the name of a view, or a read-only copy of an array (S, …)."""
    if isinstance(given, str):
        if given not in VIEWS and not _RANDOM.fullmatch(given):
            known = ", ".join([*VIEWS, "random-64"])
            raise InputError(
                f"view: {given!r} given, expected an array (S, …) or one of {known}{nearest(given, VIEWS)}"
            )
        return given
    array = as_floats("view", given)
    if array.ndim < 2 or 0 in array.shape:
        raise InputError(f"view: shape {array.shape} given, expected (S, …), an observation for each state")
    refuse_non_finite("view", array)
    return frozen(np.array(array))


def observations_of(world: Finite, view: str | Vector) -> Vector:
    """The observations of all states through a view, (S, …)."""
    if isinstance(view, str):
        random = _RANDOM.fullmatch(view)
        return frozen(VIEWS[view](world) if random is None else _random(world, int(random[1])))
    if len(view) != world.n_states:
        raise InputError(f"view: {len(view)} observations given, but {world.name} has {world.n_states} states")
    return view


def _not_too_many(world: Finite, each: int) -> int:
    """Return the size of an observation; raise InputError if all states together have too many numbers."""
    if world.n_states * each > _MOST_NUMBERS:
        raise InputError(
            f"view: {world.n_states:,} states with {each:,} numbers each, expected at most {_MOST_NUMBERS:,} in all;"
            " use 'coordinates' or an array (S, …)"
        )
    return each
