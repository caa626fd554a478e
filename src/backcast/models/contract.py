"""What learners, planners and those who look at a model may ask of it.

**Every model** has `learn`; all else has a default.

**A backward model that backward planners plan with** keeps its predecessors in rows (`rows`: softmax, counts or true
ones, see `backcast.models.rows`). A planner that plans from s looks at the rows first_row(s) … last_row(s) − 1. An
entry at a place of a row stands for the pair s̃·A + ã = pair(row, key), has the probability weight · share · factor(row)
and is corrected towards target(place, base, best), where `best` is max_a q(s, a) and `base` is asked once for all
entries. By default there is one row for each state, its keys are pairs, and beside each entry stand the mean reward on
the way and the mean discount: then `rows` and `learn` are all that a model needs.
"""

from typing import Any, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import optional
from backcast.core.interaction import Step
from backcast.models.readable import Known
from backcast.values.contract import Values


class Model(Protocol):
    """What is learned about the world."""

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Learn from a step; `values` are those before it is learned from."""

    def restart(self, s: int, rates: Vector) -> None:
        """Learn that an episode begins in s."""

    def predecessors(self, s: int) -> Known | None:
        """What is known to lead to s; None if it does not look back. In Python only."""

    def successors(self, s: int, a: int) -> Known | None:
        """What is known to follow (s, a); None if it does not look ahead. In Python only."""

    def readable(self, values: Values) -> Any:
        """What is shown of it at `runs.models`: by default what its answers say in the layout of `backcast.exact`."""


class BackwardRows(Model, Protocol):
    """A backward model that planners can plan with."""

    rows: Any

    def describes(self, first: bool, back: int) -> bool:
        """Whether the row of a state describes how the agent arrived there; see `BackwardPlanner`."""

    def first_row(self, s: int) -> int:
        """The first row with predecessors of s."""

    def last_row(self, s: int) -> int:
        """One after the last row with predecessors of s."""

    def factor(self, row: int) -> float:
        """How much a row counts in a planning step."""

    def portion(self, row: int) -> float:
        """How much of what led to a state is in a row: what predecessors are ranked by."""

    def ended_before(self, s: int, left: float) -> int:
        """The terminal state that led to s, for what its rows leave of a uniform number, or −1."""

    def pair(self, row: int, key: int) -> int:
        """The pair s̃·A + ã that a key stands for."""

    def base(self, s: int, best: float, discount: float) -> float:
        """What all targets share, and what pairs never observed are corrected towards."""

    def target(self, place: int, base: float, best: float) -> float:
        """What an entry is corrected towards."""


@optional("restart")
def _learns_from_steps(self: Any, s: int, rates: Vector) -> None:
    """Most models learn nothing from the beginning of an episode."""


@optional("first_row")
def _first_of_one(self: Any, s: int) -> int:
    """Most models have one row for each state."""
    return s


@optional("last_row")
def _after_the_one(self: Any, s: int) -> int:
    """Most models have one row for each state."""
    return s + 1


@optional("factor")
def _counts_fully(self: Any, row: int) -> float:
    """Most rows count fully."""
    return 1.0


@optional("pair")
def _keys_are_pairs(self: Any, row: int, key: int) -> int:
    """Most keys are pairs."""
    return key


@optional("base")
def _leaves_nothing(self: Any, s: int, best: float, discount: float) -> float:
    """Most rows leave nothing to pairs never observed."""
    return 0.0


@optional("target")
def _reward_and_value(self: Any, place: int, base: float, best: float) -> float:
    """The mean reward on the way, and max_a q(s, a) times the mean discount."""
    return self.rows.reward[place] + self.rows.carried[place] * best


@optional("describes")
def _describes_steps(self: Any, first: bool, back: int) -> bool:
    """Whether the row of a state describes how the agent arrived there. Most rows describe steps, not restarts.

    Args:
        self: the model.
        first: whether the state began the episode.
        back: 0 for the state that was arrived in last, 1 for the one before it.
    """
    return not first


@optional("ended_before")
def _knows_no_ends(self: Any, s: int, left: float) -> int:
    """Most models do not tell which terminal state came before a restart."""
    return -1


@optional("portion")
def _is_what_it_counts(self: Any, row: int) -> float:
    """How much of what led to a state is in a row: for most models, as much as the row counts in planning."""
    return self.factor(row)
