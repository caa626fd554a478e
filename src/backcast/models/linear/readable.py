"""Linear models that can be asked: what a run has learned, in the layout of `backcast.exact.linear_backward`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.errors import InputError
from backcast.models.linear.abstract import CorrectionModel
from backcast.models.linear.expectation import BackwardExpectation, BackwardFeatures, ForwardExpectation
from backcast.models.linear.exponential import ExponentialBackward, ExponentialForward
from backcast.models.linear.regression import estimates
from backcast.values.linear import LinearValues, as_matrix

LINEAR_MODELS = (
    BackwardExpectation,
    BackwardFeatures,
    ForwardExpectation,
    ExponentialBackward,
    ExponentialForward,
    CorrectionModel,
)


@dataclass(frozen=True)
class LearnedLinear:
    """A linear model after a run, evaluated at each state; D = A · d, with φ(s, a) as features of pairs.

    Features are those given: one that terminal states got of their own is left out. What a model does not say is
    refused: an abstract model has corrections and nothing else.
    """

    model: Any = field(repr=False)
    values: LinearValues = field(repr=False)

    def __repr__(self) -> str:
        return f"LearnedLinear({type(self.model).__name__} of {self.values.n_states} states)"

    @property
    def states(self) -> Vector:
        """The weights of the pairs that led to s, (S, S · A) [s, s̃·A + ã]; of what follows, (S, A, S) [s, a, s'].

        Probabilities of an exponential family; of an expectation model, a measure that may be negative.
        """
        n, model = self.values.n_states, self.model
        if isinstance(model, BackwardExpectation):
            return estimates(model.measure, n)
        if isinstance(model, ExponentialBackward):
            return np.stack([_chances(model, s, 0) for s in range(n)])
        if isinstance(model, ExponentialForward):
            return np.array([[_chances(model, s, a) for a in range(self.values.n_actions)] for s in range(n)])
        raise self._silent("states")

    @property
    def expectation(self) -> Vector:
        """E[φ̃ | s], (S, D), looking backward; E[x' | s, a], (S, A, d), zero in terminal states, looking forward."""
        n, model, d = self.values.n_states, self.model, self.values.n_given
        if isinstance(model, BackwardFeatures):
            return self._of_given(estimates(model.mean, n))
        if isinstance(model, ForwardExpectation):
            return np.stack([estimates(model.mean, n, a)[:, :d] for a in range(self.values.n_actions)], axis=1)
        if isinstance(model, CorrectionModel):
            raise self._silent("expectation")
        if isinstance(model, ExponentialForward):
            return self.states @ (model.goes_on[:, None] * self._matrix())
        return self.states @ self._of_pairs()

    @property
    def second_moment(self) -> Vector:
        """E[φ̃ φ̃ᵀ | s], (S, D, D), looking backward."""
        self._only_weights("second_moment")
        features = self._of_pairs()
        return np.einsum("sp,pi,pj->sij", self.states, features, features, optimize=True)

    @property
    def reward(self) -> Vector:
        """E[r φ̃ | s], (S, D), looking backward: the vector reward E[φ̃ φ̃ᵀ | s] Θ_r z(s)."""
        self._only_weights("reward")
        theta, outcomes = self.model.rewards
        earned = estimates(theta, self.values.n_states) @ as_matrix(outcomes, len(theta.y)).toarray().T
        return (self.states * np.repeat(earned, self.values.n_actions, axis=1)) @ self._of_pairs()

    @property
    def correction(self) -> Vector:
        """The correction Δ(s) of an abstract model, (S, D)."""
        if not isinstance(self.model, CorrectionModel):
            raise self._silent("correction")
        return self._of_given(estimates(self.model.correction, self.values.n_states))

    def _of_pairs(self) -> Vector:
        """φ(s, a), (S · A, A · d)."""
        features = self._matrix()
        pairs = np.einsum("si,ab->sabi", features, np.eye(self.values.n_actions))
        return pairs.reshape(len(features) * self.values.n_actions, -1)

    def _matrix(self) -> Vector:
        """The given features of all states, (S, d)."""
        features: Vector = as_matrix(self.values.features, self.values.n_features).toarray()
        return features[:, : self.values.n_given]

    def _of_given(self, estimated: Vector) -> Vector:
        """Estimates for each weight, (S, A · n), without those of a feature that was not given."""
        by_action = estimated.reshape(len(estimated), self.values.n_actions, self.values.n_features)
        return by_action[:, :, : self.values.n_given].reshape(len(estimated), -1)

    def _only_weights(self, what: str) -> None:
        if not isinstance(self.model, BackwardExpectation | ExponentialBackward):
            raise self._silent(what)

    def _silent(self, what: str) -> InputError:
        return InputError(f"{what}: a {type(self.model).__name__} says nothing about it")


def _chances(model: Any, s: int, a: int) -> Vector:
    n = model.family.face(s, a)
    chances: Vector = model.family.chance[:n].copy()
    return chances
