"""Positions and names of a world's states in the drawing.

A grid has a cell of 1 × 1 for each state and `x`, `y` are its upper left corner; a graph has a node of the given radius
and `x`, `y` are its centre. A group's rectangle encloses its states, and there is room for its title above it.
"""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import Any

import numpy as np

from backcast.core.arrays import Mask
from backcast.core.errors import InputError
from backcast.worlds.garnet import Garnet
from backcast.worlds.layouts import CLOCKWISE, Grid, Line, full_grid
from backcast.worlds.television import Television
from backcast.worlds.world import World

EDGES = 3000  # the most edges to draw; more are drawn as a grey block
_RADIUS = 0.42  # the radius of a node; the distance of nodes is 1
_ASPECT = 4 / 3
_FEWEST_ROWS, _TALLEST_COLUMN, _LONGEST_ROW, _LARGEST_RING = 6, 30, 21, 150
_TITLE_SHARE, _TITLES_IN_FULL = 1 / 12, 5  # share of a graph's height for titles; the most levels with sizes in titles
_DIRECTIONS = {
    **dict.fromkeys(("up", "north"), (0, -1)),
    **dict.fromkeys(("down", "south"), (0, 1)),
    **dict.fromkeys(("left", "west"), (-1, 0)),
    **dict.fromkeys(("right", "east"), (1, 0)),
}


def layout_of(world: World) -> dict[str, Any]:
    r"""The page's data to draw a world. If every seed draws the world anew, pass a drawn one.

    Kinds of states are one character each: '.' floor, 'X' wall, 'S' where every episode begins, 'G' the end to be
    reached, 'T' any other end, such as a hole.

    Examples:
        >>> from backcast import worlds
        >>> layout = layout_of(worlds.maze("SX\n.G"))
        >>> layout["kinds"], layout["x"], layout["y"], layout["names"][3]
        ('SX.G', [0, 1, 0, 1], [0, 0, 1, 1], 'row 2, column 2')
    """
    draw = next(draw for of, draw in _DRAWN if isinstance(world.layout, of))
    drawn = draw(world)
    sizes = {len(drawn[each]) for each in ("x", "y", "names", "kinds")}
    if sizes != {world.n_states}:
        raise InputError(
            f"layout: that of {world.name} is for {' or '.join(f'{size:,}' for size in sorted(sizes))} states, expected"
            f" {world.n_states:,}"
        )
    return {"actions": _actions(world), "edges": [], "groups": [], "editable": False, **drawn}


def _maze(world: World) -> dict[str, Any]:
    rows, columns = world.layout.shape
    kinds = "".join(world.layout.ravel())
    return _gridded(full_grid(rows, columns, CLOCKWISE), kinds) | {"editable": world.later is None}


def _television(world: World) -> dict[str, Any]:
    signals, channels = world.layout
    return _gridded(full_grid(signals, channels, down="signal", across="channel"), _kinds(world))


def _grid(world: World) -> dict[str, Any]:
    return _gridded(world.layout, _kinds(world, world.layout.unreached))


def _cells(world: World) -> dict[str, Any]:
    """A world with unknown layout: states in a grid that is slightly wider than high."""
    columns = ceil((world.n_states * _ASPECT) ** 0.5)
    row, column = np.divmod(np.arange(world.n_states), columns)
    names = tuple(f"state {s}" for s in range(world.n_states))
    return _gridded(Grid(tuple(column.tolist()), tuple(row.tolist()), names), _kinds(world))


def _walk(world: World) -> dict[str, Any]:
    """A row of nodes or, if there are many, several rows; it zigzags if a step may skip a neighbour."""
    n = world.n_states
    edges = _edges(world)
    pitch = 2 if edges else 1  # rows are further apart if edges are drawn between them
    columns = n if n <= _LONGEST_ROW else ceil((n * pitch * _ASPECT) ** 0.5)
    row, place = np.divmod(np.arange(n), columns)
    column = np.where(row % 2, columns - 1 - place, place)
    passes_over = any(abs(there - here) > 1 for here, there in edges)
    aside = np.where(column % 2, 0.45, -0.45) if passes_over else 0.0
    return {
        **_graph(column + 0.5, pitch * (row + 0.5) + aside, columns, pitch * (int(row[-1]) + 1)),
        "kinds": _kinds(world),
        "names": [f"state {s}" for s in range(n)],
        "edges": edges,
    }


def _garnet(world: World) -> dict[str, Any]:
    """A ring around the state in which episodes end; cells if there are many states."""
    if world.n_states > _LARGEST_RING:
        return _cells(world)
    n = world.n_states - 1
    radius, angle = max(1.0, n / (2 * np.pi)), 2 * np.pi * np.arange(n) / n
    x, y, middle = np.append(radius * np.sin(angle), 0.0), np.append(-radius * np.cos(angle), 0.0), radius + 0.5
    return {
        **_graph(middle + x, middle + y, 2 * middle, 2 * middle),
        "kinds": _kinds(world),
        "names": [f"state {s}" for s in range(world.n_states)],
        "edges": _edges(world),
    }


def _chain(world: World) -> dict[str, Any]:
    """Levels from left to right: a column for each, spread over the height, or a block of several for large ones."""
    sizes: Sequence[int] = world.layout
    rows = _rows_of(sizes)
    widths = [ceil(size / rows) for size in sizes]
    gap = max(_least_gap(rows, len(sizes)), (_ASPECT * rows - sum(widths)) / len(sizes))
    x, y, names, groups, left, top = [], [], [], [], gap / 2, rows * _TITLE_SHARE
    for level, (size, width) in enumerate(zip(sizes, widths, strict=True), start=1):
        in_column = ceil(size / width)
        column, place = np.divmod(np.arange(size), in_column)
        x += list(left + column + 0.5)
        y += list(top + (place + 0.5) * rows / in_column)
        names += [f"level {level}, state {state}" for state in range(1, size + 1)]
        groups.append(_group(left, top, width, rows, f"level {level}" + _size(size, among=len(sizes))))
        left += width + gap
    drawn = _graph(x, y, left - gap / 2, top + rows)
    return {**drawn, "kinds": _kinds(world), "names": names, "edges": _edges(world), "groups": groups}


def _size(size: int, among: int) -> str:
    """The size of a level as part of its title, if there is room for it."""
    return "" if among > _TITLES_IN_FULL else f": {size} state{'s' if size > 1 else ''}"


def _rows_of(sizes: Sequence[int]) -> int:
    """The number of nodes in the height of a chain: as few as its aspect allows, but one column if possible."""
    tallest = max(_FEWEST_ROWS, max(sizes))
    if tallest <= _TALLEST_COLUMN:
        return tallest
    for rows in range(_TALLEST_COLUMN, tallest):
        width = sum(ceil(size / rows) for size in sizes) + len(sizes) * _least_gap(rows, len(sizes))
        if width <= _ASPECT * rows:
            return rows
    return tallest


def _least_gap(rows: int, levels: int) -> float:
    return max(2.0, 0.7 * rows / levels)


def _gridded(grid: Grid, kinds: str) -> dict[str, Any]:
    """States in cells."""
    size = {"width": _plain(max(grid.x) + 1), "height": _plain(max(grid.y) + 1)}
    places = {"x": _list(grid.x), "y": _list(grid.y), "names": list(grid.names), "kinds": kinds}
    return {"shape": "grid", **size, **places, "groups": [_group(*group) for group in grid.groups]}


def _graph(x: Iterable[float], y: Iterable[float], width: float, height: float) -> dict[str, Any]:
    size = {"width": _plain(width), "height": _plain(height)}
    return {"shape": "graph", **size, "x": _list(x), "y": _list(y), "radius": _RADIUS}


def _group(x: float, y: float, width: float, height: float, title: str) -> dict[str, Any]:
    return {"x": _plain(x), "y": _plain(y), "width": _plain(width), "height": _plain(height), "title": title}


def _list(numbers: Iterable[float]) -> list[float]:
    return [_plain(number) for number in numbers]


def _plain(number: float) -> float:
    """A number for JSON, as short as possible."""
    return int(number) if number == int(number) else round(float(number), 3)


def _kinds(world: World, never: str = ".") -> str:
    """One character for each state; `never` for those that are never reached."""
    mdp = world.mdp
    goal = _goals(world)
    kinds = np.where(mdp.reachable, ".", never)
    kinds[mdp.start == 1] = "S"
    kinds[mdp.terminal] = "T"
    kinds[goal] = "G"
    return "".join(kinds)


def _goals(world: World) -> Mask:
    """The terminal states of a control world with the largest reward on entering; none in prediction."""
    mdp = world.mdp
    goal = np.zeros(mdp.n_states, dtype=np.bool_)
    arrivals = mdp.table.tocoo()
    enters = mdp.terminal[arrivals.col] & ~mdp.terminal[arrivals.row // mdp.n_actions]
    if not world.is_prediction and enters.any():
        earned, entered = mdp.table_reward.data[enters], arrivals.col[enters]
        goal[entered[earned == earned.max()]] = True
    return goal


def _edges(world: World) -> list[list[int]]:
    """The edges between states, unless there are too many to draw."""
    ways = world.mdp.graph.tocoo()
    pairs = np.unique(np.stack([ways.row, ways.col], axis=1)[~world.mdp.terminal[ways.row]], axis=0)
    return pairs.tolist() if len(pairs) <= EDGES else []


def _actions(world: World) -> list[dict[str, Any]]:
    """The names of actions and where they lead, for mazes and grids."""
    n = world.n_actions
    named = world.layout.actions if isinstance(world.layout, Grid) else ()
    names = CLOCKWISE if isinstance(world.layout, np.ndarray) else named
    if len(names) != n:  # with a policy, there is one action
        names = ("on",) if n == 1 else tuple(f"action {a}" for a in range(n))
    directions = (_DIRECTIONS.get(name, (0, 0)) for name in names)
    return [{"name": name, "dx": dx, "dy": dy} for name, (dx, dy) in zip(names, directions, strict=True)]


_DRAWN: tuple[tuple[Any, Callable[[World], dict[str, Any]]], ...] = (
    (np.ndarray, _maze),
    (Television, _television),
    (Garnet, _garnet),
    (tuple, _chain),
    (Line, _walk),
    (Grid, _grid),
    (object, _cells),
)  # types of layouts, and how each is drawn
