"""Leveled random chains: the prediction worlds of the paper's fan-in and fan-out studies."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from backcast.arrays import as_whole
from backcast.errors import InputError
from backcast.mdp import FiniteMDP
from backcast.randomness import layout_generator
from backcast.worlds.world import World


def chain(levels: Sequence[int] = (500, 50, 5), seed: int | None = 0, discount: float = 0.9) -> World:
    """A Markov reward process whose states form levels, each leading only to the next; the last one is terminal.

    Transition weights and start weights are uniform on (0, 1), normalised; the rewards of transitions into the last
    level are normal with mean 10 and standard deviation 10, all others are 0. Large levels before small ones *channel*
    (large fan-in), small before large ones *broadcast* (large fan-out).

    Args:
        levels: the number of states of each level, two levels or more.
        seed: which chain; None: every seed of a run draws its own, as in the paper.
        discount: γ.
    """
    sizes = _checked(levels)
    name = "chain-" + "-".join(map(str, sizes))
    if seed is None:
        draw = lru_cache(maxsize=32)(lambda run_seed: chain(sizes, run_seed, discount))  # agents share their worlds
        return World(name, None, layout=sizes, redraw=draw)
    return World(name, _draw(sizes, as_whole("seed", seed, 0), discount), layout=sizes)


def _checked(levels: Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in levels)
    except (TypeError, ValueError) as error:
        raise InputError(f"levels: {levels!r} given, expected the sizes of two or more levels") from error
    if len(sizes) < 2 or min(sizes) < 1 or any(size != given for size, given in zip(sizes, levels, strict=True)):
        raise InputError(f"levels: {tuple(levels)} given, expected two or more whole numbers, each 1 or more")
    return sizes


def _draw(sizes: tuple[int, ...], seed: int, discount: float) -> FiniteMDP:
    rng = layout_generator(seed)
    bounds = np.cumsum((0, *sizes))
    n_states = int(bounds[-1])
    transition = np.zeros((n_states, n_states))
    reward = np.zeros((n_states, n_states))
    for k in range(len(sizes) - 1):
        block = np.s_[bounds[k] : bounds[k + 1], bounds[k + 1] : bounds[k + 2]]
        weights = rng.random((sizes[k], sizes[k + 1]))
        transition[block] = weights / weights.sum(axis=1, keepdims=True)
    last = np.s_[bounds[-3] : bounds[-2], bounds[-2] :]
    reward[last] = rng.normal(10.0, 10.0, size=(sizes[-2], sizes[-1]))
    start = np.zeros(n_states)
    start[: sizes[0]] = rng.random(sizes[0])
    start /= start.sum()
    return FiniteMDP(transition[:, None, :], reward[:, None, :], discount, start, np.arange(n_states) >= bounds[-2])
