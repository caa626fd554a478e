"""What learners, planners and those who look at a model may ask of it.

**Every model** has `learn`; all else has a default.

**A backward model that backward planners plan with** keeps its predecessors in rows (`rows`: softmax, counts or true
ones, see `backcast.models.rows`). A planner that plans from s looks at the rows first_row(s) … last_row(s) − 1. An
entry at a place of a row stands for the pair s̃·A + ã = pair(row, key), has the probability weight · share · factor(row)
and is corrected towards target(place, base, best), where `best` is max_a q(s, a) and `base` is asked once for all
entries. By default there is one row for each state, its keys are pairs, and beside each entry stand the mean reward on
the way and the mean discount: then `rows` and `learn` are all that a model needs.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from backcast.core.arrays import Indices, Vector
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

    def prefetch_state(self, s: int, here: int) -> None:
        """Ask memory for what is kept of s, where the agent, which is `here`, may be next; asked in large worlds."""

    def prefetch_ahead(self, s: int) -> None:
        """Ask memory for what looking ahead to s needs."""

    def predecessors(self, s: int) -> Known | None:
        """What is known to lead to s; None if it does not look back. In Python only."""

    def successors(self, s: int, a: int) -> Known | None:
        """What is known to follow (s, a); None if it does not look ahead. In Python only."""

    def readable(self, values: Values) -> Any:
        """What is shown of it at `runs.models`: by default what its answers say in the layout of `backcast.exact`."""


class OutcomeRows(Protocol):
    """Rows of probabilities: one for each thing that is conditioned on, over N possible outcomes (keys).

    Row i uses the places offset[i] … offset[i] + used[i] − 1; the outcome at place k of it is key[k] and has the
    probability weight[k] · share[i]. With a width above 0, outcomes that are not there have the probability share[i]
    each: weights are then relative to theirs.

    Attributes:
        offset: (rows + 1,) where the places of each row begin.
        used: (rows,) how many of them are in use: the outcomes observed.
        key: (places,) the outcome.
        weight: (places,) its weight.
        reward: (places,) the mean reward on the way to it; models learn it.
        carried: (places,) the mean discount on the way to it; likewise.
        share: (rows,) what weights are multiplied with.
        width: N if something is left to outcomes never observed, else 0.
    """

    offset: Indices
    used: Indices
    key: Indices
    weight: Vector
    reward: Vector
    carried: Vector
    share: Vector
    width: int

    def observe(self, row: int, key: int, alpha: float, mass: float) -> int:
        """Learn that this outcome was observed, `mass` times, with step size α; its place."""

    def forget(self, row: int, rate: float) -> None:
        """Draw a row back, by a rate in [0, 1), towards what it was before anything was observed."""

    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> Any:
        """The same with at least one free place in each of these rows (`grown_in`). In Python only."""

    def observe_none(self, row: int, mass: float) -> None:
        """Learn that none of the outcomes was observed, `mass` times."""

    def prefetch_row(self, row: int, here: int) -> None:
        """Ask memory for a row, where the agent's present state has the row `here`; asked in large worlds."""

    def rate(self, place: int, alpha: float, mass: float) -> float:
        """The step size for what is kept beside an outcome; asked once after each observation of it."""

    def unobserved(self, row: int) -> int:
        """How many outcomes share what the observed ones leave."""


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


@optional("prefetch_state")
def _asks_for_nothing(self: Any, s: int, here: int) -> None:
    """What is not asked for before it is needed is waited for."""


@optional("prefetch_ahead")
def _looks_ahead_to_nothing(self: Any, s: int) -> None:
    """Likewise."""


@optional("prefetch_row")
def _waits_for_the_row(self: Any, row: int, here: int) -> None:
    """Likewise."""


@optional("observe_none")
def _has_no_place_for_it(self: Any, row: int, mass: float) -> None:
    """Rows over all possible outcomes have no place for "none of them"."""


@optional("rate")
def _moves_as_models_do(self: Any, place: int, alpha: float, mass: float) -> float:
    """What is kept beside an outcome moves by the step size of the model."""
    return min(1.0, alpha * mass)


@optional("unobserved")
def _all_others(self: Any, row: int) -> int:
    """All outcomes that are not in the row, if something is left to them."""
    return max(0, self.width - self.used[row])
