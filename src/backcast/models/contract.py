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
from typing import Any, Protocol, TypeVar

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import optional
from backcast.core.interaction import Step
from backcast.models.readable import ReadableModel
from backcast.values.contract import Values

R = TypeVar("R")


class ModelPart(Protocol):
    """What an author writes: it learns about the world."""

    def learn(self, values: Any, step: Step, discount: float, rates: Vector) -> None:
        """Learn from a step; `values` are those before it is learned from."""


class Model(ModelPart, ReadableModel, Protocol):
    """What may be asked of a model; `part` has added the defaults."""

    def restart(self, s: int, rates: Vector) -> None:
        """Learn that an episode begins in s."""

    def prefetch_state(self, s: int, here: int) -> None:
        """Ask memory for what is kept of s, where the agent, which is `here`, may be next; asked in large worlds."""

    def prefetch_ahead(self, s: int) -> None:
        """Ask memory for what looking ahead to s needs."""

    def readable(self, values: Any) -> object:
        """What is shown of it at `runs.models`: by default what its answers say in the layout of `backcast.exact`."""


class ProbabilityRows(Protocol):
    """Rows of probabilities, as planners read them: one for each thing that is conditioned on, over N outcomes (keys).

    Row i uses the places offset[i] … offset[i] + used[i] − 1; the outcome at place k of it is key[k] and has the
    probability weight[k] · share[i]. With a width above 0, outcomes that are not there have the probability share[i]
    each: weights are then relative to theirs.

    """

    @property
    def offset(self) -> Indices:
        """(rows + 1,) where the places of each row begin."""

    @property
    def used(self) -> Indices:
        """(rows,) how many of them are in use: the outcomes observed."""

    @property
    def key(self) -> Indices:
        """(places,) the outcome."""

    @property
    def weight(self) -> Vector:
        """(places,) its weight."""

    @property
    def reward(self) -> Vector:
        """(places,) the mean reward on the way to it; models learn it."""

    @property
    def carried(self) -> Vector:
        """(places,) the mean discount on the way to it; likewise."""

    @property
    def share(self) -> Vector:
        """(rows,) what weights are multiplied with."""

    @property
    def width(self) -> int:
        """N if something is left to outcomes never observed, else 0."""

    def unobserved(self, row: int) -> int:
        """How many outcomes share what the observed ones leave."""


class OutcomeRows(ProbabilityRows, Protocol):
    """Rows that learn from what is observed."""

    def observe(self, row: int, key: int, alpha: float, mass: float) -> int:
        """Learn that this outcome was observed, `mass` times, with step size α; its place."""

    def forget(self, row: int, rate: float) -> None:
        """Draw a row back, by a rate in [0, 1), towards what it was before anything was observed."""

    def with_room(self: R, states: Sequence[int], rows: Sequence[int]) -> R:
        """The same with at least one free place in each of these rows (`grown_in`). In Python only."""

    def observe_none(self, row: int, mass: float) -> None:
        """Learn that none of the outcomes was observed, `mass` times."""

    def prefetch_row(self, row: int, here: int) -> None:
        """Ask memory for a row, where the agent's present state has the row `here`; asked in large worlds."""

    def rate(self, place: int, alpha: float, mass: float) -> float:
        """The step size for what is kept beside an outcome; asked once after each observation of it."""


class HasRows(ModelPart, Protocol):
    """A model that keeps what it learns in rows."""

    @property
    def rows(self) -> ProbabilityRows:
        """Its rows."""


class BackwardRows(Model, HasRows, Protocol):
    """A backward model that planners can plan with."""

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


class ForwardRows(Model, HasRows, Protocol):
    """A forward model that planners can plan with: a row for each pair s·A + a over the states that follow."""

    @property
    def ahead(self) -> Vector:
        """(S,) h(s), as last refreshed; read only if rows leave something to outcomes never observed."""

    @property
    def sum_ahead(self) -> Vector:
        """(2,) Σ_s h(s), and the refreshes since it was last summed afresh; likewise."""

    def look_ahead(self, values: Values, s: int, discount: float) -> float:
        """h(s), the value of arriving in s."""

    def outlook(self, place: int, h: float) -> float:
        """What is expected of the outcome at a place, for its h."""

    def unseen(self, h: float) -> float:
        """What is expected of outcomes never observed, for a sum of their h."""


@optional("restart")
def _learns_from_steps(self: object, s: int, rates: Vector) -> None:
    """Most models learn nothing from the beginning of an episode."""


@optional("first_row")
def _first_of_one(self: object, s: int) -> int:
    """Most models have one row for each state."""
    return s


@optional("last_row")
def _after_the_one(self: object, s: int) -> int:
    """Most models have one row for each state."""
    return s + 1


@optional("factor")
def _counts_fully(self: object, row: int) -> float:
    """Most rows count fully."""
    return 1.0


@optional("pair")
def _keys_are_pairs(self: object, row: int, key: int) -> int:
    """Most keys are pairs."""
    return key


@optional("base")
def _leaves_nothing(self: object, s: int, best: float, discount: float) -> float:
    """Most rows leave nothing to pairs never observed."""
    return 0.0


@optional("target")
def _reward_and_value(self: BackwardRows, place: int, base: float, best: float) -> float:
    """The mean reward on the way, and max_a q(s, a) times the mean discount."""
    return self.rows.reward[place] + self.rows.carried[place] * best


@optional("describes")
def _describes_steps(self: object, first: bool, back: int) -> bool:
    """Whether the row of a state describes how the agent arrived there. Most rows describe steps, not restarts.

    Args:
        self: the model.
        first: whether the state began the episode.
        back: 0 for the state that was arrived in last, 1 for the one before it.
    """
    return not first


@optional("ended_before")
def _knows_no_ends(self: object, s: int, left: float) -> int:
    """Most models do not tell which terminal state came before a restart."""
    return -1


@optional("portion")
def _is_what_it_counts(self: BackwardRows, row: int) -> float:
    """How much of what led to a state is in a row: for most models, as much as the row counts in planning."""
    return self.factor(row)


@optional("prefetch_state")
def _asks_for_nothing(self: object, s: int, here: int) -> None:
    """What is not asked for before it is needed is waited for."""


@optional("prefetch_ahead")
def _looks_ahead_to_nothing(self: object, s: int) -> None:
    """Likewise."""


@optional("prefetch_row")
def _waits_for_the_row(self: object, row: int, here: int) -> None:
    """Likewise."""


@optional("observe_none")
def _has_no_place_for_it(self: object, row: int, mass: float) -> None:
    """Rows over all possible outcomes have no place for "none of them"."""


@optional("rate")
def _moves_as_models_do(self: object, place: int, alpha: float, mass: float) -> float:
    """What is kept beside an outcome moves by the step size of the model."""
    return min(1.0, alpha * mass)


@optional("unobserved")
def _all_others(self: ProbabilityRows, row: int) -> int:
    """All outcomes that are not in the row, if something is left to them."""
    return max(0, self.width - self.used[row])
