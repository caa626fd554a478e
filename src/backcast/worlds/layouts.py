"""Where the states of a world are drawn, for worlds that have no levels and are no mazes: in a row, or in cells.

A world says it by `World.layout`. What is drawn changes nothing about the world: what it does is in its MDP.
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
    """A layout that says where states are drawn, and nothing else."""


@dataclass(frozen=True)
class Line(Drawing):
    """States in a row, in the order of their numbers."""


@dataclass(frozen=True)
class Grid(Drawing):
    """States in cells of 1 × 1.

    Attributes:
        x: how far the left edge of each state's cell is from the left, (S,).
        y: how far its upper edge is from the top, (S,).
        names: what each state is called, (S,).
        actions: what actions are called, (A,); up, down, left and right, or north, south, west and east, have arrows.
        groups: rectangles around cells that belong together.
        unreached: how a cell looks that is never reached: '.' like floor, 'T' like an end, 'X' like a wall.
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
    """A grid whose states are numbered row by row.

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
