"""Layouts: where the states of a world are drawn if it has no levels and is no maze, in a row or in cells.

A world sets it with `World.layout`. A layout changes nothing about the world, whose dynamics are in its MDP.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

CLOCKWISE = ("up", "right", "down", "left")


class Group(NamedTuple):
    """A rectangle around some cells, with a title above it."""

    x: float
    y: float
    width: float
    height: float
    title: str


class Drawing:
    """A layout that only says where states are drawn."""


@dataclass(frozen=True)
class Line(Drawing):
    """States in a row, in the order of their numbers."""


@dataclass(frozen=True)
class Grid(Drawing):
    """States in cells of 1 × 1.

    Attributes:
        x: distance of the left edge of each state's cell from the left, (S,).
        y: distance of its upper edge from the top, (S,).
        names: what each state is called, (S,).
        actions: names of the actions, (A,); up, down, left and right, or north, south, west and east, are drawn as
            arrows.
        groups: rectangles around cells that belong together.
        unreached: how cells that are never reached are drawn: '.' as floor, 'T' as an end, 'X' as a wall.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    names: tuple[str, ...]
    actions: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    unreached: str = "."


def full_grid(
    rows: int,
    columns: int,
    actions: tuple[str, ...] = (),
    unreached: str = ".",
    down: str = "row",
    across: str = "column",
) -> Grid:
    """Make a grid whose states are numbered row by row.

    Examples:
        >>> full_grid(2, 3).names[4]
        'row 2, column 2'
    """
    row, column = np.divmod(np.arange(rows * columns), columns)
    names = tuple(f"{down} {r + 1}, {across} {c + 1}" for r, c in zip(row, column, strict=True))
    return Grid(tuple(column.tolist()), tuple(row.tolist()), names, actions, unreached=unreached)


_STOPS, _TITLES = ("Red", "Green", "Yellow", "Blue"), ("Red", "Green", "Yellow", "Blue", "taxi")
_ACTIONS = ("south", "north", "east", "west", "pickup", "dropoff")


def taxi() -> Grid:
    """Gymnasium's Taxi: a grid for each place of the passenger (left to right) and each destination (top to bottom)."""
    states, size, pitch_x, pitch_y = np.arange(500), 5, 6, 6.5
    cell, passenger, destination = states // 20, states // 4 % 5, states % 4
    row, column = np.divmod(cell, size)
    left, top = passenger * pitch_x, destination * pitch_y + (pitch_y - size)
    places = [f"passenger at {stop}" for stop in _STOPS] + ["passenger in the taxi"]
    names = (
        f"{places[p]}, to {_STOPS[d]}: row {r + 1}, column {c + 1}"
        for p, d, r, c in zip(passenger, destination, row, column, strict=True)
    )
    groups = (
        Group(p * pitch_x, d * pitch_y + pitch_y - size, size, size, f"{title} → {stop}")
        for p, title in enumerate(_TITLES)
        for d, stop in enumerate(_STOPS)
    )
    x, y = (left + column).tolist(), (top + row).tolist()
    return Grid(tuple(x), tuple(y), tuple(names), _ACTIONS, tuple(groups))
