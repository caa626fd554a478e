"""Models that can be asked: what a run has learned, in the layout of `backcast.exact`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from backcast.core.arrays import Indices, Vector, as_whole
from backcast.core.errors import InputError
from backcast.models.backward import BackwardModel
from backcast.models.extended import ExtendedModel
from backcast.models.forward import ExtendedForward, ForwardModel
from backcast.models.lambda_td import LambdaModel
from backcast.models.rows import predict
from backcast.models.side_by_side import BothModels
from backcast.models.two_way import TwoWayModel


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
    """A backward model after a run; `np.asarray(model)` is `model.states`.

    A row of a softmax that was never observed is uniform; a row of counts that was never observed is NaN, as rows of
    states never visited are in `backcast.exact`.
    """

    model: Any = field(repr=False)
    n_states: int
    n_actions: int

    def predict(self, s: int) -> Prediction:
        """The predecessors of s: which state and action led here?"""
        s = _within("s", s, self.n_states)
        rows, found, probability, each_other = self.model.rows, [], [], 0.0
        for row in range(self.model.first_row(s), self.model.last_row(s)):
            keys, chances, left = predict(rows, row)
            found.append(np.array([self.model.pair(row, key) for key in keys], dtype=np.int64))
            probability.append(chances * self._share(row))
            each_other = left if rows.width else 0.0
        pairs, chances = np.concatenate(found), np.concatenate(probability)
        order = np.argsort(-chances, kind="stable")
        states, actions = np.divmod(pairs[order], self.n_actions)
        return Prediction(states, actions, chances[order], each_other)

    @property
    def contains_restarts(self) -> bool:
        """Whether rows also say how often an episode began in s; those of a softmax describe steps only."""
        return not self.model.rows.width

    @property
    def joint(self) -> Vector:
        """P←(s̃, ã | s), (S, S, A) [s, s̃, ã]; no action led from a terminal state: a restart is spread over all."""
        full = self._spread("weight") + self._restarts()
        seen = full.sum(axis=(1, 2)) > 0
        full[~seen] = np.nan
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
        if isinstance(self.model, BackwardModel) and not self.model.by_pair:
            return self.model.state_reward.copy()
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(self.earned / self._spread("weight").sum(axis=2)).T

    @property
    def earned(self) -> Vector:
        """E[reward on the way; S̃ = s̃ | s], (S, S) [s, s̃]."""
        if isinstance(self.model, BackwardModel) and not self.model.by_pair:
            return self.states * self.model.state_reward[:, None]
        return self._unless_unknown(self._spread("reward").sum(axis=2))

    @property
    def discounted(self) -> Vector:
        """E[discount on the way; S̃ = s̃ | s], (S, S) [s, s̃]; of a model that knows how far it looks."""
        if isinstance(self.model, BackwardModel):
            raise InputError("discounted: the paper's one-step model keeps no discounts; they are γ, or 0 at an end")
        return self._unless_unknown(self._spread("carried").sum(axis=2))

    def _unless_unknown(self, rows: Vector) -> Vector:
        """NaN in rows of states that were never arrived at, as in `states`."""
        return np.where(np.isnan(self.states), np.nan, rows)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        return np.array(self.states, dtype=dtype, copy=copy)

    def _share(self, row: int) -> float:
        """What the probabilities of a row are to be multiplied with: π←(ã | s) where it is conditioned on ã."""
        if not getattr(self.model, "conditioned", False):
            return 1.0
        arrivals = self.model.arrivals[row // self.n_actions]
        return float(self.model.led[row] / arrivals) if arrivals > 0 else 0.0

    def _spread(self, name: str) -> Vector:
        """(S, S, A) [s, s̃, ã]: probabilities, or rewards or discounts times probabilities."""
        rows, full = self.model.rows, np.zeros((self.n_states, self.n_states * self.n_actions))
        mixed = isinstance(self.model, LambdaModel) or name == "weight"  # else kept given both ends
        for s in range(self.n_states):
            for row in range(self.model.first_row(s), self.model.last_row(s)):
                keys, chances, each_other = predict(rows, row)
                places = slice(rows.offset[row], rows.offset[row] + rows.used[row])
                if rows.width and name == "weight":
                    full[s] = each_other
                pairs = np.array([self.model.pair(row, key) for key in keys], dtype=np.int64)
                full[s, pairs] = (
                    self._share(row) * getattr(rows, name)[places] * (rows.share[row] if mixed else chances)
                )
        return full.reshape(self.n_states, self.n_states, -1)

    def _restarts(self) -> Vector:
        """(S, S, A): ways that began at a terminal state, of models that count them."""
        full = np.zeros((self.n_states, self.n_states, self.n_actions))
        if isinstance(self.model, ExtendedModel) and not self.model.rows.width:
            restarts = self.model.restarts
            total = self.model.arrivals
            for s in np.flatnonzero(restarts.total > 0):
                keys, _, _ = predict(restarts, int(s))
                places = slice(restarts.offset[s], restarts.offset[s] + restarts.used[s])
                full[s, keys] = (restarts.weight[places] / total[s] / self.n_actions)[:, None]
        return full


@dataclass(frozen=True)
class LearnedForward:
    """A forward model after a run."""

    model: Any = field(repr=False)
    n_states: int
    n_actions: int

    def predict(self, s: int, a: int = 0) -> Prediction:
        """The successors of (s, a): what comes next?"""
        row = _within("s", s, self.n_states) * self.n_actions + _within("a", a, self.n_actions)
        keys, probability, each_other = predict(self.model.rows, row)
        order = np.argsort(-probability, kind="stable")
        left = each_other if self.model.rows.width else 0.0
        return Prediction(keys[order], np.full(len(keys), a), probability[order], left)

    @property
    def transition(self) -> Vector:
        """P(s' | s, a), (S, A, S); over several steps where the model spans them. NaN in rows of counts never seen."""
        return self._spread("weight")

    @property
    def reward(self) -> Vector:
        """r(s, a, s'), (S, A, S), where rewards belong to pairs; r(s'), (S,), where they belong to states."""
        if isinstance(self.model, ForwardModel) and not self.model.by_pair:
            return self.model.state_reward.copy()
        reward = self._spread("reward")
        if not isinstance(self.model, LambdaModel):
            return reward
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(reward / self._spread("weight"))

    @property
    def discounted(self) -> Vector:
        """E[discount on the way; S' = s' | s, a], (S, A, S); of a model that keeps discounts."""
        if isinstance(self.model, ForwardModel):
            raise InputError("discounted: a one-step model keeps no discounts; they are γ, or 0 at an end")
        carried = self._spread("carried")
        return carried if isinstance(self.model, LambdaModel) else carried * self._spread("weight")

    @property
    def ends(self) -> Any:
        """Whether a state is taken to end the episode, (S,)."""
        if not isinstance(self.model, ForwardModel):
            raise InputError("ends: this model keeps discounts instead, which are 0 where a step ends; see discounted")
        return self.model.goes_on <= 0

    def _spread(self, name: str) -> Vector:
        rows = self.model.rows
        full = np.zeros((self.n_states * self.n_actions, self.n_states))
        for row in range(len(full)):
            keys, chances, each_other = predict(rows, row)
            places = slice(rows.offset[row], rows.offset[row] + rows.used[row])
            if name == "weight":
                full[row] = each_other if rows.width else (0.0 if len(keys) else np.nan)
                full[row, keys] = chances
            else:
                full[row, keys] = getattr(rows, name)[places]
        return full.reshape(self.n_states, self.n_actions, self.n_states)


@dataclass(frozen=True)
class LearnedBoth:
    """The forward and the backward model of an agent that has both."""

    forward: LearnedForward
    backward: LearnedBackward


def learned(model: Any, n_states: int, n_actions: int) -> Any:
    """Wrap a model part so that it can be asked; parts without a wrapper are given back as they are."""
    looks_ahead = isinstance(model, ForwardModel | ExtendedForward | TwoWayModel)
    if looks_ahead or (isinstance(model, LambdaModel) and model.forward):
        return LearnedForward(model, n_states, n_actions)
    if isinstance(model, BackwardModel | ExtendedModel | LambdaModel):
        return LearnedBackward(model, n_states, n_actions)
    if isinstance(model, BothModels):
        return LearnedBoth(*(learned(one, n_states, n_actions) for one in model))
    return model


def _within(field: str, given: int, size: int) -> int:
    number = as_whole(field, given, 0)
    if number >= size:
        raise InputError(f"{field}: {given} given, expected 0 to {size - 1}")
    return number
