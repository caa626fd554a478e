"""Worlds as compiled loops walk through them."""

from typing import NamedTuple

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import part
from backcast.core.randomness import pick

FOREVER = 2**62  # steps, where episodes are not cut off


@part
class Table(NamedTuple):
    """A world that can be stepped: for each state and action its outcomes, with cumulative probabilities.

    Attributes:
        start_state: the states that may begin an episode.
        start_cumulative: their cumulative probabilities.
        offset: (S·A + 1,) where the outcomes of row s·A + a begin.
        cumulative: cumulative probability of each outcome within its row.
        next_state: s' of each outcome.
        reward: r of each outcome.
        terminal: (S,) whether an episode ends there.
        n_actions: A.
    """

    start_state: Indices
    start_cumulative: Vector
    offset: Indices
    cumulative: Vector
    next_state: Indices
    reward: Vector
    terminal: Mask
    n_actions: int

    def draw_start(self, u: float) -> int:
        """The state that begins an episode, for a uniform u."""
        return self.start_state[pick(self.start_cumulative, 0, self.start_state.size, u)]

    def draw_outcome(self, s: int, a: int, u: float) -> int:
        """The index of an outcome of (s, a), for a uniform u."""
        row = s * self.n_actions + a
        return pick(self.cumulative, self.offset[row], self.offset[row + 1], u)


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
