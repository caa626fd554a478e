"""Mazes with random walls."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from backcast.core.arrays import as_whole
from backcast.core.errors import InputError
from backcast.core.randomness import layout_generator
from backcast.worlds.chain import PerSeed
from backcast.worlds.kinds import Discount, Given, Probability, Seed, Sketch, Steps, register_world
from backcast.worlds.maze import MOVES, maze
from backcast.worlds.world import World, refuse_large

_SIZE, _WALLS = 10, 0.25
_TRIES, _TRIED_CELLS = (10, 1000), 10_000_000  # most mazes that are drawn, and most cells in all
_QUICK = 10_000  # cells of a maze that is quick to draw


class SizeSketch(Sketch):
    """What is known of a random maze before it is drawn: its size."""

    def why_unmade(self, given: Given) -> str:
        """Why a large maze is not made."""
        rows, columns = _shape(given.get("size", _SIZE))
        return "the maze is large, and was not made" if rows * columns > _QUICK else ""

    def name(self, given: Given) -> str:
        """As `random_maze` calls it."""
        size, walls = given.get("size", _SIZE), given.get("walls", _WALLS)
        return _name(_shape(size), walls, given.get("slip", 0.0), given.get("reward_probability", 1.0))

    def sizes(self, given: Given) -> dict[str, int]:
        """The numbers of rows and columns."""
        rows, columns = _shape(given.get("size", _SIZE))
        return {"the number of rows": rows, "the number of columns": columns}


@register_world("random-maze", purpose="control", label="Maze with random walls", sketch=SizeSketch())
def random_maze(
    size: int | tuple[int, int] = _SIZE,
    walls: Probability = _WALLS,
    seed: Seed | None = 0,
    slip: Probability = 0.0,
    reward_probability: Probability = 1.0,
    discount: Discount = 0.99,
    max_steps: Steps | None = None,
) -> World:
    """A maze with random walls, from the lower left corner to the upper right one.

    ## Description
    A share `walls` of all cells except the start and the goal are walls. Every choice of them is equally likely, but
    mazes whose walls separate the goal from the start are redrawn. Beyond about 40 % of walls, most are.

    ## Actions
    Up, right, down and left, as in `maze`; a move into a wall or off the grid has no effect.

    ## States
    Every cell, walls included (they are never reached), numbered row by row. Some floor cells may be enclosed by walls.

    ## Start
    The lower left corner.

    ## Reward
    Entering the goal earns 1 with probability `reward_probability` (default 1), otherwise 0.

    ## Episode end
    Terminated at the goal, the upper right corner; truncated after `max_steps`, by default 100 per cell.

    Args:
        size: the number of rows and of columns, or (rows, columns).
        walls: the share of walls among the cells.
        seed: seed of the maze; None: every seed of a run draws its own.
        slip: probability that a move is replaced by one of the four, drawn uniformly.
        reward_probability: probability that entering the goal earns 1; otherwise it earns 0.
        discount: γ, how much later rewards count.
        max_steps: number of steps after which episodes are truncated; by default 100 per cell.

    Examples:
        >>> for row in random_maze((3, 5), walls=0.3, seed=1).layout:
        ...     print("".join(row))
        ..XXG
        .X.X.
        S....
    """
    shape = _shape(size)
    name = _name(shape, walls, slip, reward_probability)
    limit = 100 * shape[0] * shape[1] if max_steps is None else max_steps
    draw = partial(_drawn_world, name, shape, walls, (slip, reward_probability, discount, limit))
    return World(name, None, max_steps=limit, redraw=PerSeed(draw)) if seed is None else draw(seed)


def _drawn_world(name: str, shape: tuple[int, int], walls: float, how: tuple[Any, ...], seed: int) -> World:
    cells = _draw(shape, walls, seed)
    return replace(maze("\n".join("".join(row) for row in cells), *how), name=name)


def _shape(size: int | tuple[int, int]) -> tuple[int, int]:
    """The numbers of rows and columns."""
    rows, columns = size if isinstance(size, Sequence) and len(size) == 2 else (size, size)
    if isinstance(rows, Sequence) or isinstance(size, str):
        raise InputError(f"size: {size!r} given, expected a whole number, or (rows, columns)")
    rows, columns = as_whole("size", rows, 1), as_whole("size", columns, 1)
    if rows * columns < 2:
        raise InputError("size: 1 cell given, expected 2 or more: a start and a goal")
    refuse_large("size", rows * columns, len(MOVES) * rows * columns)
    return rows, columns


def _name(shape: tuple[int, int], walls: float, slip: float, reward_probability: float) -> str:
    name = f"random-maze-{shape[0]}x{shape[1]}-walls-{walls:g}"
    name += f"-slip-{slip:g}" if slip else ""
    return name + (f"-reward-{reward_probability:g}" if reward_probability < 1 else "")


def _draw(shape: tuple[int, int], walls: float, seed: int) -> np.ndarray:
    """The characters (rows, columns) of a maze whose goal can be reached."""
    from scipy import ndimage  # takes a tenth of a second, so not imported by default

    rng, size = layout_generator(seed), shape[0] * shape[1]
    start, goal = size - shape[1], shape[1] - 1
    others = np.setdiff1d(np.arange(size), (start, goal))
    tries = int(np.clip(_TRIED_CELLS // size, *_TRIES))
    for _ in range(tries):
        cells = np.full(size, ".")
        cells[rng.choice(others, round(walls * others.size), replace=False)] = "X"
        region, _ = ndimage.label(cells.reshape(shape) == ".")
        if region.flat[start] == region.flat[goal]:
            cells[start], cells[goal] = "S", "G"
            return cells.reshape(shape)
    raise InputError(
        f"walls: {walls:g} given, but in none of {tries:,} mazes of {shape[0]} × {shape[1]} cells that were drawn could"
        " the goal be reached; give a smaller share of walls, or another seed"
    )
