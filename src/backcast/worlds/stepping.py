"""Worlds as compiled loops walk through them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import part
from backcast.core.locality import prefetch
from backcast.core.randomness import pick

States = NDArray[np.int32] | Indices
FOREVER = 2**62  # steps, where episodes are not cut off
LARGE = 2**16  # pairs of state and action of a world that, with an agent's tables, is too large for a core's own cache


@part
class Near(NamedTuple):
    """Of a world that a core's own cache has room for: nothing is asked for before it is needed."""

    unused: int = 0

    def prefetch_next(self, table: "Table", agent: Any, s: int, a: int) -> None:
        """Nothing."""


@part
class Far(NamedTuple):
    """Of a large world: memory is asked for what the next step will need, while this one is learned from."""

    unused: int = 0

    def prefetch_next(self, table: "Table", agent: Any, s: int, a: int) -> None:
        """Ask memory for what world and agent will need if a is taken in s: of all that may follow, one guess."""
        near = table.likely_next(s, a)
        table.prefetch_state(near, s)
        agent.values.prefetch_pair(near * table.n_actions)
        agent.model.prefetch_state(near, s)
        agent.planner.prefetch_state(near, s)


@part
class Table(NamedTuple):
    """A world that can be stepped: for each state and action its outcomes, with cumulative probabilities.

    Attributes:
        start_state: the states that may begin an episode.
        start_cumulative: their cumulative probabilities.
        offset: (S·A + 1,) where the outcomes of row s·A + a begin.
        cumulative: cumulative probability of each outcome within its row.
        next_state: s' of each outcome, as `state_numbers` makes them.
        reward: r of each outcome.
        terminal: (S,) whether an episode ends there.
        n_actions: A.
        even: how many outcomes each row has; 0 if rows differ in that.
        ahead: `Near` or, in a large world, `Far`; a kernel is compiled for the one or the other.
    """

    start_state: Indices
    start_cumulative: Vector
    offset: Indices
    cumulative: Vector
    next_state: States
    reward: Vector
    terminal: Mask
    n_actions: int
    even: int
    ahead: Any = Near()

    def draw_start(self, u: float) -> int:
        """The state that begins an episode, for a uniform u."""
        return self.start_state[pick(self.start_cumulative, 0, self.start_state.size, u)]

    def draw_outcome(self, s: int, a: int, u: float) -> int:
        """The index of an outcome of (s, a), for a uniform u."""
        row = s * self.n_actions + a
        if self.even > 0:
            return pick(self.cumulative, row * self.even, (row + 1) * self.even, u)
        return pick(self.cumulative, self.offset[row], self.offset[row + 1], u)

    def next_of(self, outcome: int) -> int:
        """The state s' of an outcome."""
        return np.int64(self.next_state[outcome])  # type: ignore[return-value]

    def likely_next(self, s: int, a: int) -> int:
        """A state that may follow (s, a)."""
        row = s * self.n_actions + a
        return self.next_of(row * self.even if self.even > 0 else self.offset[row])

    def prefetch_state(self, s: int, here: int) -> None:
        """Ask memory for the outcomes of s."""
        row = s * self.n_actions
        if self.even > 0:
            prefetch(self.next_state, row * self.even)
            prefetch(self.reward, row * self.even)
        else:
            prefetch(self.offset, row)


@part
class Tables(NamedTuple):
    """A world in the course of a run: `first` for the first `change` real steps, then `second`.

    A world that does not change is the same table twice, and `change` is FOREVER.
    """

    first: Table
    second: Table
    change: int

    def at(self, taken: int) -> Table:
        """The table that holds when so many real steps have been taken."""
        return self.first if taken < self.change else self.second

    def holds_until(self, taken: int, most: int) -> int:
        """The number of real steps, at most `most`, up to which that table holds."""
        return min(most, self.change) if taken < self.change else most


def state_numbers(states: Indices, n_states: int) -> States:
    """A copy of numbers of states, in as few bytes as `n_states` states allow: a large world is read from memory."""
    return np.array(states, dtype=np.int32) if n_states <= 2**31 else np.array(states, dtype=np.int64)


def ahead(offset: Indices) -> Any:
    """Whether it is worth while to ask memory for what the next step may need: `Far` or `Near`."""
    return Far() if offset.size - 1 > LARGE else Near()


def even(offset: Indices) -> int:
    """How many outcomes each row has, where offset (rows + 1,) says where they begin; 0 if rows differ in that."""
    sizes = np.diff(offset)
    return int(sizes[0]) if sizes.size and (sizes == sizes[0]).all() else 0
