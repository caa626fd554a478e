"""Models that can be asked: what a run has learned, in the layout of `backcast.exact`.

A model answers for one state at a time, by `predecessors(s)` if it looks back and by `successors(s, a)` if it looks
ahead, each a `Known` or, if it does not look there, None. What is here turns these answers into matrices.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from backcast.core.arrays import Indices, Mask, Vector, as_whole
from backcast.core.compiling import in_python, optional
from backcast.core.errors import InputError
from backcast.models.scoring import ModelScore, score_backward
from backcast.values.contract import Values

_NONE, _NOBODY = np.zeros(0), np.zeros(0, dtype=np.int64)


class Known(NamedTuple):
    """What a model knows of the predecessors of a state, or of the successors of a state and an action.

    Attributes:
        keys: (n,) pairs s̃·A + ã that lead here, or states s' that follow.
        probability: (n,) of each.
        reward: (n,) the mean reward on the way between.
        discount: (n,) the mean discount on the way between; None of a model that keeps none: it is γ, or 0 at an end.
        ends: (n,) of such a model, whether each successor ends the episode; None if it does not say.
        each_other: the probability that a softmax leaves for each outcome never observed.
        ended: terminal states after which an episode began here, of backward models that count restarts.
        ended_probability: of each of them.
    """

    keys: Indices
    probability: Vector
    reward: Vector
    discount: Vector | None = None
    ends: Mask | None = None
    each_other: float = 0.0
    ended: Indices = _NOBODY
    ended_probability: Vector = _NONE

    def targets(self, best: Vector, discount: float) -> Vector:
        """Of each successor s', r + γ̄(s') max_a' q(s', a'), where that maximum is best[s'] and the discount γ."""
        carried = self.discount
        if carried is None:
            carried = np.full(self.keys.size, discount) if self.ends is None else np.where(self.ends, 0.0, discount)
        return self.reward + carried * best[self.keys]


class LooksBack(Protocol):
    """What a model that looks back says of itself, in Python only."""

    def predecessors(self, s: int) -> Known | None:
        """What is known to lead to s; None if it does not look back."""

    def reward_by_state(self) -> Vector | None:
        """The reward r(s) of arriving in each state, (S,), of models that keep one for each."""

    def contains_restarts(self) -> bool:
        """Whether rows also say how often an episode began in s."""


class LooksAhead(Protocol):
    """What a model that looks ahead says of itself, in Python only."""

    def successors(self, s: int, a: int) -> Known | None:
        """What is known to follow (s, a); None if it does not look ahead."""

    def reward_by_state(self) -> Vector | None:
        """The reward r(s') of arriving in each state, (S,), of models that keep one for each."""

    def ends_by_state(self) -> Mask | None:
        """Whether each state is taken to end the episode, (S,), of models that know; others keep discounts."""


class ReadableModel(LooksBack, LooksAhead, Protocol):
    """Both; whatever a part does not answer has a default."""


@optional("predecessors")
@in_python
def _does_not_look_back(self: object, s: int) -> Known | None:
    """Most models do not look back."""
    return None


@optional("successors")
@in_python
def _does_not_look_ahead(self: object, s: int, a: int) -> Known | None:
    """Most models do not look ahead."""
    return None


@optional("reward_by_state")
@in_python
def _rewards_belong_to_pairs(self: object) -> Vector | None:
    """The reward r(s) of arriving in each state, (S,), of models that keep one for each; most keep r(s̃, s)."""
    return None


@optional("ends_by_state")
@in_python
def _keeps_no_ends(self: object) -> Mask | None:
    """Whether each state is taken to end the episode, (S,), of models that know; others keep discounts."""
    return None


@optional("contains_restarts")
@in_python
def _describes_steps_only(self: object) -> bool:
    """Whether rows also say how often an episode began in s."""
    return False


@optional("readable")
@in_python
def _as_it_looks(self: ReadableModel, values: Values) -> object:
    """What is shown of a model after a run: what it says of itself, or the part as it is."""
    if self.predecessors(0) is not None:
        return LearnedBackward(self, values.n_states, values.n_actions, values.as_array())
    if self.successors(0, 0) is not None:
        return LearnedForward(self, values.n_states, values.n_actions, values.as_array())
    return self


Amount = Callable[[Known], Vector | float]


@dataclass(frozen=True)
class Prediction:
    """Outcomes with their probabilities, the most probable first; iterate over (state, action, probability).

    Attributes:
        states: predecessors or successors.
        actions: the actions that led from the predecessors; of a forward prediction, the action asked for.
        probability: of each.
        each_other: the probability that a softmax leaves for each outcome never observed.
    """

    states: Indices
    actions: Indices
    probability: Vector
    each_other: float

    def __iter__(self) -> Iterator[tuple[int, int, float]]:
        return zip(self.states.tolist(), self.actions.tolist(), self.probability.tolist(), strict=True)


@dataclass(frozen=True)
class LearnedBackward:
    """A backward model after a run; `np.asarray(model)` is `model.states`.

    A row of a softmax that was never observed is uniform; a row of counts that was never observed is NaN, as rows of
    states never visited are in `backcast.exact`.
    """

    model: LooksBack = field(repr=False)
    n_states: int
    n_actions: int
    values: Any = field(default=None, repr=False, compare=False)

    def predict(self, s: int) -> Prediction:
        """The predecessors of s: which state and action led here?"""
        known = self._known(_within("s", s, self.n_states))
        order = np.argsort(-known.probability, kind="stable")
        states, actions = np.divmod(known.keys[order], self.n_actions)
        return Prediction(states, actions, known.probability[order], known.each_other)

    @property
    def contains_restarts(self) -> bool:
        """Whether rows also say how often an episode began in s; those of a softmax describe steps only."""
        return bool(self.model.contains_restarts())

    @property
    def joint(self) -> Vector:
        """P←(s̃, ã | s), (S, S, A) [s, s̃, ã]; no action led from a terminal state: a restart is spread over all."""
        full = self._probability()
        for s in range(self.n_states):
            known = self._known(s)
            full[s, known.ended] += (known.ended_probability / self.n_actions)[:, None]
        full[full.sum(axis=(1, 2)) <= 0] = np.nan
        return full

    @property
    def states(self) -> Vector:
        """P←(s̃ | s), (S, S) [s, s̃]."""
        return self.joint.sum(axis=2)

    @property
    def action(self) -> Vector:
        """The backward policy π←(ã | s), (S, A) [s, ã]."""
        return self.joint.sum(axis=1)

    @property
    def given_action(self) -> Vector:
        """P←(s̃ | s, ã), (S, A, S) [s, ã, s̃]; NaN where ã never led to s."""
        joint = self.joint.transpose(0, 2, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return joint / joint.sum(axis=2, keepdims=True)

    @property
    def reward(self) -> Vector:
        """The reward on the way from s̃ to s, (S, S) [s̃, s]; r(s), (S,), of the paper's model in control."""
        by_state = self.model.reward_by_state()
        if by_state is not None:
            return np.array(by_state)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(self.earned / self._probability().sum(axis=2)).T

    @property
    def earned(self) -> Vector:
        """E[reward on the way; S̃ = s̃ | s], (S, S) [s, s̃]."""
        by_state = self.model.reward_by_state()
        if by_state is not None:
            return self.states * by_state[:, None]
        return self._unless_unknown(self._spread(lambda known: known.probability * known.reward).sum(axis=2))

    @property
    def discounted(self) -> Vector:
        """E[discount on the way; S̃ = s̃ | s], (S, S) [s, s̃]; of a model that knows how far it looks."""
        if self._known(0).discount is None:
            raise InputError("discounted: the paper's one-step model keeps no discounts; they are γ, or 0 at an end")
        return self._unless_unknown(self._spread(lambda known: known.probability * _kept_discount(known)).sum(axis=2))

    def score(self, exact: Any, values: Any = None) -> ModelScore:
        """How far it is from the exact backward model, averaged over d_π.

        Args:
            exact: `backcast.exact.backward(mdp, policy)`.
            values: that are corrected, (S,) or (S, A); by default those that were learned beside it.
        """
        return score_backward(self, exact, self.values if values is None else values)

    def _known(self, s: int) -> Known:
        known = self.model.predecessors(s)
        assert known is not None
        return known

    def _probability(self) -> Vector:
        return self._spread(lambda known: known.probability, lambda known: known.each_other)

    def _unless_unknown(self, rows: Vector) -> Vector:
        """NaN in rows of states that were never arrived at, as in `states`."""
        return np.where(np.isnan(self.states), np.nan, rows)

    def _spread(self, amount: Amount, elsewhere: Amount = lambda known: 0.0) -> Vector:
        """(S, S, A) [s, s̃, ã]: an amount of each predecessor that is known, and one for all others."""
        full = np.zeros((self.n_states, self.n_states * self.n_actions))
        for s in range(self.n_states):
            known = self._known(s)
            full[s] = elsewhere(known)
            full[s, known.keys] = amount(known)
        return full.reshape(self.n_states, self.n_states, self.n_actions)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Vector:
        return np.array(self.states, dtype=dtype, copy=copy)


@dataclass(frozen=True)
class LearnedForward:
    """A forward model after a run."""

    model: LooksAhead = field(repr=False)
    n_states: int
    n_actions: int
    values: Any = field(default=None, repr=False, compare=False)

    def predict(self, s: int, a: int = 0) -> Prediction:
        """The successors of (s, a): what comes next?"""
        known = self._known(_within("s", s, self.n_states), _within("a", a, self.n_actions))
        order = np.argsort(-known.probability, kind="stable")
        return Prediction(known.keys[order], np.full(len(order), a), known.probability[order], known.each_other)

    @property
    def transition(self) -> Vector:
        """P(s' | s, a), (S, A, S); over several steps where the model spans them. NaN in rows of counts never seen."""
        return self._spread(lambda known: known.probability, _left_to_each)

    @property
    def reward(self) -> Vector:
        """r(s, a, s'), (S, A, S), where rewards belong to pairs; r(s'), (S,), where they belong to states."""
        by_state = self.model.reward_by_state()
        return self._spread(lambda known: known.reward) if by_state is None else np.array(by_state)

    @property
    def discounted(self) -> Vector:
        """E[discount on the way; S' = s' | s, a], (S, A, S); of a model that keeps discounts."""
        if self._known(0, 0).discount is None:
            raise InputError("discounted: a one-step model keeps no discounts; they are γ, or 0 at an end")
        return self._spread(_kept_discount) * self.transition

    @property
    def ends(self) -> Mask:
        """Whether a state is taken to end the episode, (S,)."""
        ends = self.model.ends_by_state()
        if ends is None:
            raise InputError("ends: this model keeps discounts instead, which are 0 where a step ends; see discounted")
        return ends

    def _known(self, s: int, a: int) -> Known:
        known = self.model.successors(s, a)
        assert known is not None
        return known

    def _spread(self, amount: Amount, elsewhere: Amount = lambda known: 0.0) -> Vector:
        """(S, A, S): an amount of each successor that is known, and one for all others."""
        full = np.zeros((self.n_states, self.n_actions, self.n_states))
        for s, a in np.ndindex(full.shape[:2]):
            known = self._known(s, a)
            full[s, a] = elsewhere(known)
            full[s, a, known.keys] = amount(known)
        return full


@dataclass(frozen=True)
class LearnedBoth:
    """The forward and the backward model of an agent that has both."""

    forward: LearnedForward
    backward: LearnedBackward


def _kept_discount(known: Known) -> Vector:
    assert known.discount is not None
    return known.discount


def _left_to_each(known: Known) -> float:
    """The probability of each outcome never observed; unknown where nothing was observed and nothing is assumed."""
    return known.each_other if known.each_other or known.keys.size else np.nan


def _within(field: str, given: int, size: int) -> int:
    number = as_whole(field, given, 0)
    if number >= size:
        raise InputError(f"{field}: {given} given, expected 0 to {size - 1}")
    return number
