"""Readable linear models: the results of a run in the layout of `backcast.exact.linear_backward`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.errors import InputError
from backcast.models.linear.regression import estimates
from backcast.values.linear import LinearValues, as_matrix


@dataclass(frozen=True, repr=False)
class LearnedLinear:
    """A linear model after a run, evaluated at each state; D = A · d, with φ(s, a) as features of pairs.

    Features are the given ones: the extra feature of terminal states is left out. Quantities that a model does not have
    are refused: an abstract model has corrections only.
    """

    model: Any = field(repr=False)
    values: LinearValues = field(repr=False)

    def __repr__(self) -> str:
        return f"LearnedLinear({type(self.model).__name__} of {self.values.n_states} states)"

    @property
    def states(self) -> Vector:
        """The weights of the pairs that led to s, (S, S · A) [s, s̃·A + ã]; of what follows, (S, A, S) [s, a, s'].

        Probabilities for an exponential family; for an expectation model, a measure that may be negative.
        """
        raise self._silent("states")

    @property
    def expectation(self) -> Vector:
        """E[φ̃ | s], (S, D), looking backward; E[x' | s, a], (S, A, d), zero in terminal states, looking forward."""
        raise self._silent("expectation")

    @property
    def second_moment(self) -> Vector:
        """E[φ̃ φ̃ᵀ | s], (S, D, D), looking backward."""
        raise self._silent("second_moment")

    @property
    def reward(self) -> Vector:
        """E[r φ̃ | s], (S, D), looking backward: the vector reward E[φ̃ φ̃ᵀ | s] Θ_r z(s)."""
        raise self._silent("reward")

    @property
    def correction(self) -> Vector:
        """The correction Δ(s) of an abstract model, (S, D)."""
        raise self._silent("correction")

    def _silent(self, what: str) -> InputError:
        return InputError(f"{what}: a {type(self.model).__name__} says nothing about it")

    def _matrix(self) -> Vector:
        """The given features of all states, (S, d)."""
        features: Vector = as_matrix(self.values.features, self.values.n_features).toarray()
        return features[:, : self.values.n_given]

    def _of_given(self, estimated: Vector) -> Vector:
        """Estimates for each weight, (S, A · n), without those of features that were not given."""
        by_action = estimated.reshape(len(estimated), self.values.n_actions, self.values.n_features)
        return by_action[:, :, : self.values.n_given].reshape(len(estimated), -1)


class LearnedPredecessors(LearnedLinear):
    """A model with weights of the pairs that led to each state."""

    @property
    def states(self) -> Vector:
        """The weights of the pairs that led to s, (S, S · A) [s, s̃·A + ã]."""
        weights: Vector = self.model.weights_of(self.values)
        return weights

    @property
    def expectation(self) -> Vector:
        """E[φ̃ | s], (S, D)."""
        return self.states @ self._of_pairs()

    @property
    def second_moment(self) -> Vector:
        """E[φ̃ φ̃ᵀ | s], (S, D, D)."""
        features = self._of_pairs()
        return np.einsum("sp,pi,pj->sij", self.states, features, features, optimize=True)

    @property
    def reward(self) -> Vector:
        """E[r φ̃ | s], (S, D): the vector reward E[φ̃ φ̃ᵀ | s] Θ_r z(s)."""
        theta, outcomes = self.model.rewards
        earned = estimates(theta, self.values.n_states) @ as_matrix(outcomes, len(theta.y)).toarray().T
        return (self.states * np.repeat(earned, self.values.n_actions, axis=1)) @ self._of_pairs()

    def _of_pairs(self) -> Vector:
        """φ(s, a), (S · A, A · d)."""
        features = self._matrix()
        pairs = np.einsum("si,ab->sabi", features, np.eye(self.values.n_actions))
        return pairs.reshape(len(features) * self.values.n_actions, -1)


class LearnedSuccessors(LearnedLinear):
    """A model with probabilities of the states that follow."""

    @property
    def states(self) -> Vector:
        """P(s' | s, a), (S, A, S) [s, a, s']."""
        weights: Vector = self.model.weights_of(self.values)
        return weights

    @property
    def expectation(self) -> Vector:
        """E[x' | s, a], (S, A, d), zero in terminal states."""
        return self.states @ (self.model.goes_on[:, None] * self._matrix())


class LearnedFeatures(LearnedLinear):
    """A model of the mean features of the pair that led here."""

    @property
    def expectation(self) -> Vector:
        """E[φ̃ | s], (S, D)."""
        return self._of_given(estimates(self.model.mean, self.values.n_states))


class LearnedNextFeatures(LearnedLinear):
    """A model of the mean next features."""

    @property
    def expectation(self) -> Vector:
        """E[x' | s, a], (S, A, d), zero in terminal states."""
        states, actions = range(self.values.n_states), range(self.values.n_actions)
        found = np.array([[self.model.expected_features(s, a) for a in actions] for s in states])
        return found[:, :, : self.values.n_given]


class LearnedCorrections(LearnedLinear):
    """A model of corrections only."""

    @property
    def correction(self) -> Vector:
        """The correction Δ(s), (S, D)."""
        return self._of_given(estimates(self.model.correction, self.values.n_states))
