"""Leveled random chains: the prediction worlds of the paper's fan-in and fan-out studies."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from backcast.core.arrays import Matrix, Vector
from backcast.core.errors import InputError
from backcast.core.randomness import layout_generator
from backcast.core.settings import Bounds
from backcast.mdp import FiniteMDP
from backcast.worlds.kinds import Discount, Given, Seed, Sketch, register_world
from backcast.worlds.world import World, refuse_large

_DENSE_LIMIT = 2_000  # states, above which a world is sparse


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


@register_world("chain", purpose="prediction", label="Leveled chain", sketch=LevelsSketch())
def chain(
    levels: Sequence[int] = (500, 50, 5),
    seed: Seed | None = 0,
    discount: Discount = 0.9,
    branches: Annotated[int, Bounds(1)] = 1,
) -> World:
    """A Markov reward process whose states form levels, each leading only to the next; the last one is terminal.

    Transition weights and start weights are uniform on (0, 1), normalised; the rewards of transitions into the last
    level are normal with mean 10 and standard deviation 10, all others are 0. Large levels before small ones *channel*
    (large fan-in), small before large ones *broadcast* (large fan-out).

    Args:
        levels: the number of states of each level, two levels or more.
        seed: which chain; None: every seed of a run draws its own, as in the paper.
        discount: γ, how much later rewards count.
        branches: so many chains side by side, between which nothing leads; their rewards have mean 10 and −10 in turn.
            A world in which it is wrong to take all states to be worth about the same.
    """
    sizes = _checked(levels)
    if branches > min(sizes):
        raise InputError(f"branches: {branches} given, expected at most {min(sizes)}, the size of the smallest level")
    name = "chain-" + "-".join(map(str, sizes)) + (f"-branches-{branches}" if branches > 1 else "")
    if seed is None:
        draw = partial(chain, sizes, discount=discount, branches=branches)
        return World(name, None, layout=sizes, redraw=PerSeed(draw))
    make = partial(_draw, sizes, seed, discount, branches)
    return World(name, None, layout=sizes, make=make)


class PerSeed:
    """Draws the world of a seed and remembers the last ones, for agents share them; a pickled copy remembers none."""

    def __init__(self, draw: Callable[[int], World]) -> None:
        self._draw = draw
        self._remembered = lru_cache(maxsize=32)(draw)

    def __call__(self, seed: int) -> World:
        """The world of this seed."""
        return self._remembered(seed)

    def __reduce__(self) -> Any:
        return PerSeed, (self._draw,)


def reward_process(transition: Matrix, reward: Matrix, discount: float, start: Any, terminal: Any) -> FiniteMDP:
    """A world of one action from sparse P(s' | s) and r(s, s'), each (S, S); dense unless it is large."""
    if transition.shape[0] > _DENSE_LIMIT:
        return FiniteMDP(transition, reward, discount, start, terminal)
    return FiniteMDP(transition.toarray()[:, None, :], reward.toarray()[:, None, :], discount, start, terminal)


def _checked(levels: Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in levels)
    except (TypeError, ValueError) as error:
        raise InputError(f"levels: {levels!r} given, expected the sizes of two or more levels") from error
    if len(sizes) < 2 or min(sizes) < 1 or any(size != given for size, given in zip(sizes, levels, strict=True)):
        raise InputError(f"levels: {tuple(levels)} given, expected two or more whole numbers, each 1 or more")
    refuse_large("levels", sum(sizes), sum(before * after for before, after in pairwise(sizes)))
    return sizes


def _draw(sizes: tuple[int, ...], seed: int, discount: float, branches: int) -> FiniteMDP:
    rng = layout_generator(seed)
    bounds = np.cumsum((0, *sizes))
    n_states = int(bounds[-1])
    weights = [rng.random((sizes[k], sizes[k + 1])) for k in range(len(sizes) - 1)]
    earned = rng.normal(10.0, 10.0, size=(sizes[-2], sizes[-1]))
    if branches > 1:
        branch = [np.arange(size) * branches // size for size in sizes]
        weights = [block * (branch[k][:, None] == branch[k + 1]) for k, block in enumerate(weights)]
        earned = (earned - 20.0 * (branch[-2] % 2)[:, None]) * (weights[-1] > 0)
    rows = [block / block.sum(axis=1, keepdims=True) for block in weights]
    transition = _above_the_diagonal(rows, sizes)
    reward = _above_the_diagonal([*(np.zeros_like(block) for block in rows[:-1]), earned], sizes)
    start = np.zeros(n_states)
    start[: sizes[0]] = rng.random(sizes[0])
    start /= start.sum()
    terminal = np.arange(n_states) >= bounds[-2]
    return reward_process(transition, reward, discount, start, terminal)


def _above_the_diagonal(blocks: list[Vector], sizes: tuple[int, ...]) -> sparse.csr_array:
    """One block from each level to the next, (S, S)."""
    first, last = sparse.csr_array((sum(sizes), sizes[0])), sparse.csr_array((sizes[-1], sum(sizes[1:])))
    inner = sparse.vstack([sparse.block_diag([sparse.csr_array(block) for block in blocks]), last])
    return sparse.csr_array(sparse.hstack([first, inner]))
