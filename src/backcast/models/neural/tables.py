"""Tables of what models by networks have learned of a finite world, readable like all other models."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from backcast.core.arrays import Mask, Vector
from backcast.models.readable import Known, LearnedBackward, LearnedBoth, LearnedForward


class Tabled(Protocol):
    """Tables of a model."""

    def __init__(self, *tables: Vector) -> None: ...

    def learned(self, n_states: int, n_actions: int, values: Vector) -> object:
        """The readable model."""


class TabledBackward(NamedTuple):
    """P←(s̃, ã | s) and rewards of all states and pairs, each (S, S·A); over several steps also discounts."""

    probability: Vector
    reward: Vector
    discount: Vector | None = None

    def predecessors(self, s: int) -> Known:
        """All pairs that may lead to s; none for an unknown row."""
        keys = np.flatnonzero(self.probability[s] > 0)
        carried = None if self.discount is None else self.discount[s, keys]
        return Known(keys, self.probability[s, keys], self.reward[s, keys], carried)

    def reward_by_state(self) -> Vector | None:
        """Rewards belong to pairs."""
        return None

    def contains_restarts(self) -> bool:
        """Rows describe steps."""
        return False

    def learned(self, n_states: int, n_actions: int, values: Vector) -> LearnedBackward:
        """The readable model."""
        return LearnedBackward(self, n_states, n_actions, values)


class TabledForward(NamedTuple):
    """P(s' | s, a) and rewards, each (S, A, S), and ends, (S,) by next state or (S, A) by pair."""

    probability: Vector
    reward: Vector
    ends: Mask

    def successors(self, s: int, a: int) -> Known:
        """All states that may follow (s, a)."""
        keys = np.flatnonzero(self.probability[s, a] > 0)
        ends = self.ends[keys] if self.ends.ndim == 1 else np.full(keys.size, self.ends[s, a])
        return Known(keys, self.probability[s, a, keys], self.reward[s, a, keys], ends=ends)

    def reward_by_state(self) -> Vector | None:
        """Rewards belong to transitions."""
        return None

    def ends_by_state(self) -> Mask | None:
        """Whether a state is more likely to end the episode than not; None if pairs end it."""
        return self.ends if self.ends.ndim == 1 else None

    def learned(self, n_states: int, n_actions: int, values: Vector) -> LearnedForward:
        """The readable model."""
        return LearnedForward(self, n_states, n_actions, values)


class TabledCorrections(NamedTuple):
    """Corrections Δ(s) of the parameters of the values, (S, P), in the order of `Runs.weights`."""

    correction: Vector

    def learned(self, n_states: int, n_actions: int, values: Vector) -> "TabledCorrections":
        """The table itself."""
        return self


def learned_of(tables: Sequence[Tabled], values: Vector) -> object:
    """The readable models, as in `Runs.models`: one, or one of each direction."""
    n_states, n_actions = values.shape
    found: list[Any] = [table.learned(n_states, n_actions, values) for table in tables]
    return LearnedBoth(*found) if len(found) == 2 else found[0]
