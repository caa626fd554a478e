"""Models that can be asked: what a run has learned, in the layout of `backcast.exact`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backcast.arrays import Indices, Vector, as_whole
from backcast.errors import InputError
from backcast.models.backward import BackwardModel
from backcast.models.forward import ForwardModel
from backcast.models.rows import Rows, predict


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

    def __iter__(self) -> Any:
        return zip(self.states.tolist(), self.actions.tolist(), self.probability.tolist(), strict=True)


@dataclass(frozen=True)
class LearnedBackward:
    """A backward model after a run."""

    model: BackwardModel = field(repr=False)
    n_states: int
    n_actions: int

    def predict(self, s: int) -> Prediction:
        """The predecessors of s: which state and action led here?"""
        keys, probability, each_other = predict(self.model.rows, _within("s", s, self.n_states))
        order = np.argsort(-probability, kind="stable")
        states, actions = np.divmod(keys[order], self.n_actions)
        return Prediction(states, actions, probability[order], each_other)

    @property
    def joint(self) -> Vector:
        """P←(s̃, ã | s), (S, S, A) [s, s̃, ã]."""
        return _dense(self.model.rows, self.n_states * self.n_actions).reshape(self.n_states, self.n_states, -1)

    @property
    def states(self) -> Vector:
        """P←(s̃ | s), (S, S) [s, s̃]."""
        return self.joint.sum(axis=2)

    @property
    def reward(self) -> Vector:
        """r(s̃, s), (S, S) [s̃, s], in prediction; r(s), (S,), in control."""
        if not self.model.by_pair:
            return self.model.state_reward.copy()
        return _dense_reward(self.model.rows, self.n_states).T


@dataclass(frozen=True)
class LearnedForward:
    """A forward model after a run."""

    model: ForwardModel = field(repr=False)
    n_states: int
    n_actions: int

    def predict(self, s: int, a: int = 0) -> Prediction:
        """The successors of (s, a): what comes next?"""
        row = _within("s", s, self.n_states) * self.n_actions + _within("a", a, self.n_actions)
        keys, probability, each_other = predict(self.model.rows, row)
        order = np.argsort(-probability, kind="stable")
        return Prediction(keys[order], np.full(len(keys), a), probability[order], each_other)

    @property
    def transition(self) -> Vector:
        """P(s' | s, a), (S, A, S)."""
        return _dense(self.model.rows, self.n_states).reshape(self.n_states, self.n_actions, self.n_states)

    @property
    def reward(self) -> Vector:
        """r(s, a, s'), (S, A, S), where rewards belong to pairs; r(s'), (S,), where they belong to states."""
        if not self.model.by_pair:
            return self.model.state_reward.copy()
        return _dense_reward(self.model.rows, self.n_states).reshape(self.n_states, self.n_actions, self.n_states)

    @property
    def ends(self) -> Any:
        """Whether a state is taken to end the episode, (S,)."""
        return self.model.goes_on <= 0


def learned(model: Any, n_states: int, n_actions: int) -> Any:
    """Wrap a model part so that it can be asked; parts without a wrapper are given back as they are."""
    if isinstance(model, BackwardModel):
        return LearnedBackward(model, n_states, n_actions)
    if isinstance(model, ForwardModel):
        return LearnedForward(model, n_states, n_actions)
    return model


def _within(field: str, given: int, size: int) -> int:
    number = as_whole(field, given, 0)
    if number >= size:
        raise InputError(f"{field}: {given} given, expected 0 to {size - 1}")
    return number


def _dense(rows: Rows, width: int) -> Vector:
    full = np.zeros((len(rows.used), width))
    for row in range(len(rows.used)):
        keys, probability, each_other = predict(rows, row)
        if rows.width:
            full[row] = each_other
        full[row, keys] = probability
    return full


def _dense_reward(rows: Rows, width: int) -> Vector:
    full = np.zeros((len(rows.used), width))
    for row in range(len(rows.used)):
        places = slice(rows.offset[row], rows.offset[row] + rows.used[row])
        full[row, rows.key[places]] = rows.reward[places]
    return full
