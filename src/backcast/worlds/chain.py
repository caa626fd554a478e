"""Leveled random chains: the prediction worlds of the paper's fan-in and fan-out studies."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.core.arrays import Indices, Mask, Matrix, Vector
from backcast.core.errors import InputError
from backcast.core.randomness import layout_generator
from backcast.core.setting_types import Bounds, Label
from backcast.mdp import FiniteMDP, from_rows
from backcast.worlds.kinds import Discount, Given, Picture, Seed, Sketch, register_world
from backcast.worlds.world import World, refuse_large

if TYPE_CHECKING:
    from backcast.worlds.stepping import States, Table

_DENSE_LIMIT = 2_000  # states, above which a world is sparse
_MOST_LEVELS, _MOST_TRANSITIONS = 16, 1_000_000  # limits of chains that are drawn directly


class LevelsSketch(Sketch):
    """What is known of a chain before it is drawn: its levels."""

    def sizes(self, given: Given) -> dict[str, int]:
        """The numbers of levels, states and transitions."""
        levels = given.get("levels", ())
        return {
            "the number of levels": len(levels),
            "the number of states": sum(levels),
            "the number of transitions": sum(before * after for before, after in pairwise(levels)),
        }

    def picture(self, given: Given) -> Picture:
        """The levels, and whether they grow or shrink."""
        sizes, branches = tuple(given["levels"]), given["branches"]
        if not sizes:
            return Picture()
        pattern = "Channelling" if sizes[0] > sizes[-1] else "Broadcasting" if sizes[0] < sizes[-1] else "Even levels"
        told = {1: "", 2: ", two branches of opposite sign"}
        side_by_side = told.get(branches, f", {branches} branches of alternating sign")
        return Picture(f"{pattern}: {' → '.join(map(str, sizes))} states{side_by_side}", sizes)


@register_world("chain", purpose="prediction", label="Leveled chain", sketch=LevelsSketch())
def chain(
    levels: Annotated[Sequence[int], Label("states of each level")] = (500, 50, 5),
    seed: Annotated[Seed, Label("chain’s seed")] | None = 0,
    discount: Discount = 0.9,
    branches: Annotated[int, Bounds(1)] = 1,
) -> World:
    """A Markov reward process whose states form levels, each leading only to the next; the last one is terminal.

    Transition weights and start weights are uniform on (0, 1), normalised; the rewards of transitions into the last
    level are normal with mean 10 and standard deviation 10, all others are 0. Large levels before small ones *channel*
    (large fan-in), small before large ones *broadcast* (large fan-out).

    Args:
        levels: the number of states of each level, two levels or more.
        seed: seed of the chain; None: every seed of a run draws its own, as in the paper.
        discount: γ, how much later rewards count.
        branches: number of chains side by side, without transitions between them; their rewards have mean 10 and −10 in
            turn. In such a world it is wrong to assume that all states have about the same value.
    """
    sizes = _checked(levels)
    if branches > min(sizes):
        raise InputError(f"branches: {branches} given, expected at most {min(sizes)}, the size of the smallest level")
    name = "chain-" + "-".join(map(str, sizes)) + (f"-branches-{branches}" if branches > 1 else "")
    draw = partial(_drawn_world, name, sizes, discount, branches)
    return World(name, None, layout=sizes, redraw=PerSeed(draw), same_graph=True) if seed is None else draw(seed)


def _drawn_world(name: str, sizes: tuple[int, ...], discount: float, branches: int, seed: int) -> World:
    how = sizes, seed, discount, branches
    return World(name, None, layout=sizes, make=partial(_draw, *how), direct=partial(_draw_directly, *how))


class PerSeed:
    """Draws the world of a seed and caches the last ones, because agents share them; pickling drops the cache."""

    def __init__(self, draw: Callable[[int], World]) -> None:
        self._draw = draw
        self._remembered = lru_cache(maxsize=32)(draw)

    def __call__(self, seed: int) -> World:
        """The world of this seed."""
        return self._remembered(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return PerSeed, (self._draw,)


def reward_process(
    transition: Matrix, reward: Matrix, discount: float, start: ArrayLike, terminal: ArrayLike
) -> FiniteMDP:
    """A world of one action from sparse P(s' | s) and r(s, s'), each (S, S); dense unless it is large."""
    return from_rows(transition, reward, discount, start, terminal, transition.shape[0] > _DENSE_LIMIT)


def _checked(levels: Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in levels)
    except (TypeError, ValueError) as error:
        raise InputError(f"levels: {levels!r} given, expected the sizes of two or more levels") from error
    if len(sizes) < 2 or min(sizes) < 1 or any(size != given for size, given in zip(sizes, levels, strict=True)):
        raise InputError(f"levels: {tuple(levels)} given, expected two or more whole numbers, each 1 or more")
    refuse_large("levels", sum(sizes), sum(before * after for before, after in pairwise(sizes)))
    return sizes


class _Drawn(NamedTuple):
    """The random parts of a chain: P(s' | s) from each level to the next, rewards of the last step, and the start.

    `flat` has all rows one after the other, and a 1 for each terminal state, which leads to itself.
    """

    flat: Vector
    rows: list[Vector]
    earned: Vector
    start: Vector


def _draw_numbers(sizes: tuple[int, ...], seed: int, branches: int) -> _Drawn:
    rng = layout_generator(seed)
    ends = np.cumsum([0, *(before * after for before, after in pairwise(sizes))]).tolist()
    flat = np.ones(ends[-1] + sizes[-1])
    rows = [flat[ends[k] : ends[k + 1]].reshape(sizes[k], sizes[k + 1]) for k in range(len(sizes) - 1)]
    for block in rows:
        rng.random(out=block)
    earned = rng.normal(10.0, 10.0, size=(sizes[-2], sizes[-1]))
    if branches > 1:
        branch = [np.arange(size) * branches // size for size in sizes]
        for k, block in enumerate(rows):
            block *= branch[k][:, None] == branch[k + 1]
        earned = (earned - 20.0 * (branch[-2] % 2)[:, None]) * (rows[-1] > 0)
    for block in rows:
        block /= block.sum(axis=1, keepdims=True)
    start = np.zeros(sum(sizes))
    start[: sizes[0]] = rng.random(sizes[0])
    start /= start.sum()
    return _Drawn(flat, rows, earned, start)


def _draw(sizes: tuple[int, ...], seed: int, discount: float, branches: int) -> FiniteMDP:
    _, rows, earned, start = _draw_numbers(sizes, seed, branches)
    transition = _above_the_diagonal(rows, sizes)
    reward = _above_the_diagonal([*(np.zeros_like(block) for block in rows[:-1]), earned], sizes)
    return reward_process(transition, reward, discount, start, np.arange(sum(sizes)) >= sum(sizes[:-1]))


def _draw_directly(sizes: tuple[int, ...], seed: int, discount: float, branches: int) -> "tuple[Table, Vector] | None":
    """Return the chain as a run needs it, (Table, v_π), with few NumPy operations, most of which release the GIL.

    The result is bitwise equal to that of the FiniteMDP. None for a large chain, or if a probability is 0.
    """
    from backcast.worlds.stepping import Table

    transitions = sum(before * after for before, after in pairwise(sizes))
    if branches > 1 or len(sizes) > _MOST_LEVELS or transitions > _MOST_TRANSITIONS:
        return None
    flat, rows, earned, start = _draw_numbers(sizes, seed, branches)
    first = start[: sizes[0]]
    if flat.min() == 0 or first.min() == 0:
        return None
    truth = _values(rows, earned, discount)
    for block in rows:
        np.cumsum(block, axis=1, out=block)
    reward = np.zeros(flat.size)
    reward[transitions - earned.size : transitions] = earned.ravel()
    offset, next_state, terminal, even = _graph(sizes)
    return Table(np.arange(sizes[0]), np.cumsum(first), offset, flat, next_state, reward, terminal, 1, even), truth


def _values(rows: list[Vector], earned: Vector, discount: float) -> Vector:
    """v_π, level by level from the last; sums are in the order of `backcast.exact.value`."""
    ends = earned.shape[1]
    of_level = np.add.reduceat((rows[-1] * earned).ravel(), np.arange(0, earned.size, ends))
    found = [np.zeros(ends), of_level]
    for block in rows[-2::-1]:
        terms = discount * block
        terms *= of_level
        of_level = np.cumsum(terms, axis=1, out=terms)[:, -1]
        found.append(of_level)
    return np.concatenate(found[::-1])


class _Graph(NamedTuple):
    """The parts of `Table` that all chains of the same levels share; read-only."""

    offset: Indices
    next_state: "States"
    terminal: Mask
    even: int


@lru_cache(maxsize=8)
def _graph(sizes: tuple[int, ...]) -> _Graph:
    from backcast.worlds.stepping import even, state_numbers

    bounds = np.cumsum((0, *sizes))
    levels = [np.arange(first, last) for first, last in pairwise(bounds)]
    following = [np.tile(after, size) for after, size in zip(levels[1:], sizes[:-1], strict=True)]
    counts = np.repeat((*sizes[1:], 1), sizes)
    offset = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    next_state = state_numbers(np.concatenate([*following, levels[-1]]), bounds[-1])
    return _Graph(offset, next_state, np.arange(bounds[-1]) >= bounds[-2], even(offset))


def _above_the_diagonal(blocks: list[Vector], sizes: tuple[int, ...]) -> sparse.csr_array:
    """One block from each level to the next, (S, S)."""
    first, last = sparse.csr_array((sum(sizes), sizes[0])), sparse.csr_array((sizes[-1], sum(sizes[1:])))
    inner = sparse.vstack([sparse.block_diag([sparse.csr_array(block) for block in blocks]), last])
    return sparse.csr_array(sparse.hstack([first, inner]))
