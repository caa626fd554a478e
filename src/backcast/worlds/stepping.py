"""Worlds as tables that compiled loops step through."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import part
from backcast.core.locality import prefetch
from backcast.core.randomness import pick

States = NDArray[np.int32] | Indices
FOREVER = 2**62  # steps, if episodes are not truncated
LARGE = 2**16  # state-action pairs of a world that, with an agent's tables, exceeds a core's own cache


@part
class Near(NamedTuple):
    """For a world that fits into a core's own cache: nothing is prefetched."""

    unused: int = 0

    def prefetch_next(self, table: "Table", agent: Any, s: int, a: int) -> None:
        """Nothing."""


@part
class Far(NamedTuple):
    """For a large world: data of the next step is prefetched while the agent learns from this one."""

    unused: int = 0

    def prefetch_next(self, table: "Table", agent: Any, s: int, a: int) -> None:
        """Prefetch what world and agent will need after a is taken in s, for one guessed successor."""
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
        offset: (S·A + 1,), where the outcomes of row s·A + a begin.
        cumulative: cumulative probability of each outcome within its row.
        next_state: s' of each outcome, as made by `state_numbers`.
        reward: r of each outcome.
        terminal: (S,), whether an episode ends there.
        n_actions: A.
        even: number of outcomes of each row; 0 if rows differ.
        ahead: `Near` or, in a large world, `Far`; kernels are compiled separately for each.
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
    ahead: Near | Far = Near()

    def draw_start(self, u: float) -> int:
        """Draw the first state of an episode, for a uniform u."""
        return self.start_state[pick(self.start_cumulative, 0, self.start_state.size, u)]

    def draw_outcome(self, s: int, a: int, u: float) -> int:
        """Draw the index of an outcome of (s, a), for a uniform u."""
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
        """Prefetch the outcomes of s."""
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
        """The table in force after `taken` real steps."""
        return self.first if taken < self.change else self.second

    def holds_until(self, taken: int, most: int) -> int:
        """The number of real steps, at most `most`, up to which that table stays in force."""
        return min(most, self.change) if taken < self.change else most


def state_numbers(states: Indices, n_states: int) -> States:
    """Copy state numbers to the smallest integer type for `n_states` states, to save memory traffic."""
    return np.array(states, dtype=np.int32) if n_states <= 2**31 else np.array(states, dtype=np.int64)


def ahead(offset: Indices) -> Near | Far:
    """Return `Far` if prefetching is worthwhile, else `Near`."""
    return Far() if offset.size - 1 > LARGE else Near()


def even(offset: Indices) -> int:
    """The number of outcomes of each row, given where they begin, offset (rows + 1,); 0 if rows differ."""
    sizes = np.diff(offset)
    return int(sizes[0]) if sizes.size and (sizes == sizes[0]).all() else 0
