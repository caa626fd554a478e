"""Walks along a line, whose values are well known: Boyan's chain and the random walk."""

from functools import partial
from typing import Annotated

import numpy as np
from scipy import sparse

from backcast.core.errors import InputError
from backcast.core.setting_types import Bounds, Label
from backcast.mdp import FiniteMDP
from backcast.worlds.chain import reward_process
from backcast.worlds.kinds import Discount, register_world
from backcast.worlds.layouts import Line
from backcast.worlds.world import World, refuse_large

_USUAL_JUMP = 100


@register_world("boyan", purpose="prediction", label="Boyan's chain")
def boyan(n: Annotated[int, Bounds(3, lab=1_000), Label("states")] = 13, discount: Discount = 1.0) -> World:
    """Boyan's chain: moves one or two states ahead with equal probability, at −3 per step, until the end.

    State 0 is the start and state n − 1 is terminal; from the state before it there is only one step, for −2. With
    discount 1, v(s) = −2·(n − 1 − s): a straight line, which a few features can represent exactly.

    Boyan, "Technical update: Least-squares temporal difference learning", Machine Learning 49 (2002), where states are
    numbered by their distance to the end.

    Args:
        n: number of states, the terminal one included.
        discount: γ, how much later rewards count.
    """
    refuse_large("n", n, 2 * n)
    return World(f"boyan-{n}", None, layout=Line(), make=partial(_boyan, n, discount))


def _boyan(n: int, discount: float) -> FiniteMDP:
    one_ahead, two_ahead = np.full(n - 1, 0.5), np.full(n - 2, 0.5)
    earned_by_one, earned_by_two = np.full(n - 1, -3.0), np.full(n - 2, -3.0)
    one_ahead[-1], earned_by_one[-1] = 1.0, -2.0
    transition = sparse.diags_array([one_ahead, two_ahead], offsets=[1, 2], shape=(n, n))
    reward = sparse.diags_array([earned_by_one, earned_by_two], offsets=[1, 2], shape=(n, n))
    states = np.arange(n)
    return reward_process(transition, reward, discount, np.where(states == 0, 1.0, 0.0), states == n - 1)


@register_world("random-walk", purpose="prediction", label="Random walk")
def random_walk(
    n: Annotated[int, Bounds(1, lab=1_000), Label("states")] = 1000,
    jump: Annotated[int, Bounds(1, lab=100)] | None = None,
    discount: Discount = 1.0,
) -> World:
    """A random walk over n states in a row, by jumps; leaving on the left earns −1, leaving on the right earns 1.

    A step leads to one of the `jump` nearest positions on each side, all equally likely; positions beyond an end count
    as that end. States are numbered from left to right: 0 and n + 1 are terminal, and the walk starts in the middle,
    state (n + 1) // 2. With discount 1, v(s) = −v(n + 1 − s), nearly a straight line (exactly if jump is 1), so that
    neighbouring states have similar values.

    Sutton and Barto, "Reinforcement Learning: An Introduction", second edition (2018), example 9.1.

    Args:
        n: number of states between the two terminal ones.
        jump: the largest jump, at most n; by default 100, or n if there are fewer states.
        discount: γ, how much later rewards count.
    """
    usual = min(n, _USUAL_JUMP)
    jump = usual if jump is None else jump
    if jump > n:
        raise InputError(f"jump: {jump} given, expected at most {n}, the number of states")
    refuse_large("n", n + 2, 2 * jump * n)
    name = f"random-walk-{n}" + (f"-jump-{jump}" if jump != usual else "")
    return World(name, None, layout=Line(), make=partial(_random_walk, n, jump, discount))


def _random_walk(n: int, jump: int, discount: float) -> FiniteMDP:
    states = np.arange(n + 2)
    inner = states[1:-1]
    places = inner[:, None] + np.concatenate([np.arange(-jump, 0), np.arange(1, jump + 1)])
    ways = (np.ones(places.size), (np.repeat(inner, 2 * jump), places.clip(0, n + 1).ravel()))
    transition = sparse.csr_array(ways, shape=(n + 2, n + 2)) / (2 * jump)
    ends = (np.repeat([-1.0, 1.0], n), (np.tile(inner, 2), np.repeat([0, n + 1], n)))
    reward = sparse.csr_array(ends, shape=transition.shape)
    start = np.where(states == (n + 1) // 2, 1.0, 0.0)
    return reward_process(transition, reward, discount, start, (states == 0) | (states == n + 1))
