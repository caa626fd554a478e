"""Dynamics of worlds whose states are vectors, for any array library that is passed in."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

Numbers: TypeAlias = Any  # an array of that library


class Moved(NamedTuple):
    """The outcome of a step: the next state, the reward, and whether the next state is terminal."""

    state: Numbers
    reward: Numbers
    ends: Numbers


class Motion(NamedTuple):
    """The dynamics of a world, in 64 bits; functions take the array library `xp`, NumPy or `jax.numpy`.

    Attributes:
        shape: shape of an observation.
        n_actions: A.
        draws: number of random numbers in [0, 1) that determine the first state.
        start: function of `xp` and these numbers, (draws,), that returns the first state.
        step: function of `xp`, a state and an action that returns the outcome.
        observe: function of `xp` and a state that returns its observation, float32.
    """

    shape: tuple[int, ...]
    n_actions: int
    draws: int
    start: Callable[[ModuleType, Numbers], Numbers]
    step: Callable[[ModuleType, Numbers, Numbers], Moved]
    observe: Callable[[ModuleType, Numbers], Numbers]
