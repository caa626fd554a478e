"""The interface of models for learners, planners and observers.

**Every model** has `learn`; everything else has a default.

**A backward model for backward planners** stores predecessors in rows (`rows`: softmax, counts or true rows, see
`backcast.models.rows`). A planner that plans from s reads the rows first_row(s) … last_row(s) − 1. An entry at a place
of a row stands for the pair s̃·A + ã = pair(row, key). It has the probability weight · share · factor(row) and is
corrected towards target(place, base, best), where `best` is max_a q(s, a) and `base` is computed once for all entries.
By default there is one row for each state, its keys are pairs, and each entry has the mean reward and the mean discount
on the path: then `rows` and `learn` are all that a model needs.

**A forward model for forward planners** stores the successors of the pair s·A + a in the row of this number. An entry
has the expected return outlook(place, h), where h = look_ahead(s') is the value of arriving in s'. By default this is
max_a q(s', a), and each entry has the mean reward and the mean discount on the path to it: again, `rows` and `learn`
are all that a model needs.
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
    """The methods an author writes: learn about the world."""

    def learn(self, values: Any, step: Step, discount: float, rates: Vector) -> None:
        """Learn from a step; `values` are those before the learner's update."""


class Model(ModelPart, ReadableModel, Protocol):
    """The full interface of a model; `part` adds the defaults."""

    def restart(self, s: int, rates: Vector) -> None:
        """Learn that an episode begins in s."""

    def prefetch_state(self, s: int, here: int) -> None:
        """Prefetch the data of s, a possible next state of the agent, which is `here`; called in large worlds."""

    def prefetch_ahead(self, s: int) -> None:
        """Prefetch the data for looking ahead to s."""

    def readable(self, values: Any) -> object:
        """The model at `runs.models`: by default its answers in the layout of `backcast.exact`."""


class ProbabilityRows(Protocol):
    """Rows of probabilities, as planners read them: one for each condition, over N outcomes (keys).

    Row i uses the places offset[i] … offset[i] + used[i] − 1; the outcome at place k is key[k] and has the probability
    weight[k] · share[i]. With a width above 0, every other outcome has the probability share[i]: weights are then
    relative to these.

    """

    @property
    def offset(self) -> Indices:
        """(rows + 1,), where the places of each row begin."""

    @property
    def used(self) -> Indices:
        """(rows,), the number of places in use: the outcomes observed."""

    @property
    def key(self) -> Indices:
        """(places,), the outcome."""

    @property
    def weight(self) -> Vector:
        """(places,), its weight."""

    @property
    def reward(self) -> Vector:
        """(places,), the mean reward on the path to it; learned by models."""

    @property
    def carried(self) -> Vector:
        """(places,), the mean discount on the path to it; learned by models."""

    @property
    def share(self) -> Vector:
        """(rows,), the factor of weights."""

    @property
    def width(self) -> int:
        """N if outcomes never observed have probability, else 0."""

    def unobserved(self, row: int) -> int:
        """The number of outcomes that share the probability left by the observed ones."""


class OutcomeRows(ProbabilityRows, Protocol):
    """Rows that learn from what is observed."""

    def observe(self, row: int, key: int, alpha: float, mass: float) -> int:
        """Learn that this outcome was observed `mass` times, with step size α; return its place."""

    def forget(self, row: int, rate: float) -> None:
        """Decay a row, at a rate in [0, 1), towards its initial state."""

    def with_room(self: R, states: Sequence[int], rows: Sequence[int]) -> R:
        """The same rows with at least one free place in each of the given rows (`grown_in`); in Python only."""

    def observe_none(self, row: int, mass: float) -> None:
        """Learn that none of the outcomes was observed, `mass` times."""

    def prefetch_row(self, row: int, here: int) -> None:
        """Prefetch a row, where the agent's current state has the row `here`; called in large worlds."""

    def rate(self, place: int, alpha: float, mass: float) -> float:
        """The step size of rewards and discounts of an outcome; called once after each observation of it."""


class HasRows(ModelPart, Protocol):
    """A model that stores what it learns in rows."""

    @property
    def rows(self) -> ProbabilityRows:
        """Its rows."""


class BackwardRows(Model, HasRows, Protocol):
    """A backward model for planning."""

    def describes(self, first: bool, back: int) -> bool:
        """Whether the row of a state describes how the agent arrived there; see `BackwardPlanner`."""

    def first_row(self, s: int) -> int:
        """The first row with predecessors of s."""

    def last_row(self, s: int) -> int:
        """One after the last row with predecessors of s."""

    def factor(self, row: int) -> float:
        """The weight of a row in a planning step."""

    def portion(self, row: int) -> float:
        """The share of a state's predecessors in a row, by which predecessors are ranked."""

    def ended_before(self, s: int, left: float) -> int:
        """The terminal state that led to s, for the remainder of a uniform number after its rows, or −1."""

    def pair(self, row: int, key: int) -> int:
        """The pair s̃·A + ã that a key stands for."""

    def base(self, s: int, best: float, discount: float) -> float:
        """The common part of all targets, and the target of pairs never observed."""

    def target(self, place: int, base: float, best: float) -> float:
        """The target of an entry."""


class ForwardRows(Model, HasRows, Protocol):
    """A forward model for planning: a row for each pair s·A + a over the states that follow."""

    def look_ahead(self, values: Values, s: int, discount: float) -> float:
        """h(s), the value of arriving in s, stored or computed."""

    def refresh(self, values: Values, s: int, discount: float) -> None:
        """Update what is stored of h(s), after the values of s or what was learned of s changed."""

    def outlook(self, place: int, h: float) -> float:
        """The expected return of the outcome at a place, given its h."""

    def unseen(self, h: float) -> float:
        """The expected return of outcomes never observed, given the sum of their h."""

    def all_unseen(self, seen: float) -> float:
        """The expected return of all outcomes never observed, given the sum of h of the others."""


@optional("restart")
def _learns_from_steps(self: object, s: int, rates: Vector) -> None:
    """By default, nothing is learned from the beginning of an episode."""


@optional("first_row")
def _first_of_one(self: object, s: int) -> int:
    """By default, there is one row for each state."""
    return s


@optional("last_row")
def _after_the_one(self: object, s: int) -> int:
    """By default, there is one row for each state."""
    return s + 1


@optional("factor")
def _counts_fully(self: object, row: int) -> float:
    """By default, rows have weight 1."""
    return 1.0


@optional("pair")
def _keys_are_pairs(self: object, row: int, key: int) -> int:
    """By default, keys are pairs."""
    return key


@optional("base")
def _leaves_nothing(self: object, s: int, best: float, discount: float) -> float:
    """By default, pairs never observed have no probability."""
    return 0.0


@optional("target")
def _reward_and_value(self: BackwardRows, place: int, base: float, best: float) -> float:
    """The mean reward on the path, plus max_a q(s, a) times the mean discount."""
    return self.rows.reward[place] + self.rows.carried[place] * best


@optional("look_ahead")
def _is_worth_its_values(self: object, values: Values, s: int, discount: float) -> float:
    """By default, entries hold rewards and discounts, and h(s) = max_a q(s, a)."""
    return values.best(s)


@optional("refresh")
def _stores_no_values(self: object, values: Values, s: int, discount: float) -> None:
    """By default, h(s) is computed whenever it is needed."""


@optional("outlook")
def _reward_and_discounted(self: ForwardRows, place: int, h: float) -> float:
    """The mean reward on the path, plus h times the mean discount."""
    return self.rows.reward[place] + self.rows.carried[place] * h


@optional("unseen")
def _has_no_unseen(self: object, h: float) -> float:
    """By default, outcomes never observed have no probability."""
    return 0.0


@optional("all_unseen")
def _have_no_unseen(self: object, seen: float) -> float:
    """Likewise."""
    return 0.0


@optional("describes")
def _describes_steps(self: object, first: bool, back: int) -> bool:
    """Whether the row of a state describes the agent's arrival there. By default, rows describe steps, not restarts.

    Args:
        self: the model.
        first: whether the state began the episode.
        back: 0 for the state arrived in last, 1 for the one before it.
    """
    return not first


@optional("ended_before")
def _knows_no_ends(self: object, s: int, left: float) -> int:
    """By default, the terminal state before a restart is unknown."""
    return -1


@optional("portion")
def _is_what_it_counts(self: BackwardRows, row: int) -> float:
    """The share of a state's predecessors in a row: by default, the weight of the row in planning."""
    return self.factor(row)


@optional("prefetch_state")
def _asks_for_nothing(self: object, s: int, here: int) -> None:
    """By default, nothing is prefetched."""


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
    """By default, rewards and discounts use the step size of the model."""
    return min(1.0, alpha * mass)


@optional("unobserved")
def _all_others(self: ProbabilityRows, row: int) -> int:
    """All outcomes that are not in the row, if they have probability."""
    return max(0, self.width - self.used[row])
