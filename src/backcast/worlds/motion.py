"""How worlds move whose states are vectors, in the mathematics of whatever library of arrays is handed in."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

Numbers: TypeAlias = Any  # an array of the library that is handed in


class Moved(NamedTuple):
    """What a step led to: the state, what it earned, and whether the episode ends there."""

    state: Numbers
    reward: Numbers
    ends: Numbers


class Motion(NamedTuple):
    """How a world moves, in the mathematics of the library `xp`, NumPy or `jax.numpy`, with 64 bits.

    Attributes:
        shape: of an observation.
        n_actions: A.
        draws: how many random numbers in [0, 1) decide where an episode begins.
        start: from `xp` and these numbers, (draws,), to the first state.
        step: from `xp`, a state and an action to what follows.
        observe: from `xp` and a state to what is observed of it, float32.
    """

    shape: tuple[int, ...]
    n_actions: int
    draws: int
    start: Callable[[ModuleType, Numbers], Numbers]
    step: Callable[[ModuleType, Numbers, Numbers], Moved]
    observe: Callable[[ModuleType, Numbers], Numbers]
