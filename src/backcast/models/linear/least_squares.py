"""The forward expectation model by recursive least squares, in the form that planning uses."""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.errors import InputError
from backcast.core.interaction import Step
from backcast.core.numerics import dot
from backcast.models.linear.readable import LearnedLinear, LearnedNextFeatures
from backcast.models.linear.root import MOST, Root, add_multiple, empty_root, find_gain, rotate
from backcast.values.linear import Features, LinearValues


@part
class ForwardLeastSquares(NamedTuple):
    """E[x' | z, a] and E[R | z, a] by least squares, where terminal successors count as zero.

    With RᵀR g = z, the estimate of any Y is gᵀ Σ_t z_t Y_t. Planning needs two of them,

        E[R | z, a] = gᵀ Σ_t z_t r_t        E[x' | z, a]ᵀw_a' = gᵀu,  u = Σ_t z_t x'_tᵀw_a',

    and u is kept up to date. A step changes a few weights, and each change costs D; estimating E[x' | z, a] would cost
    D · d in every step.

    Attributes:
        root: R of each action, for inputs z of width D.
        moments: (A, d, D) Σ_t x'_t z_tᵀ.
        earned: (A, D) Σ_t z_t r_t.
        ahead: (A, A, D) u of each action, and of the weights of each action a'.
        told: (A · d,), the weights w with which u was computed.
    """

    root: Root
    moments: Vector
    earned: Vector
    ahead: Vector
    told: Vector

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Add an observation of the features of s', and of the reward, given the features of s."""
        inputs, features, n = self.root.inputs, values.features, values.n_features
        for k in range(inputs.offset[step.s], inputs.offset[step.s + 1]):
            j, size = inputs.which[k], inputs.size[k]
            self.earned[step.a, j] += size * step.r
            if not step.ends:
                for i in range(features.offset[step.s2], features.offset[step.s2 + 1]):
                    self.moments[step.a, features.which[i], j] += size * features.size[i]
                for a in range(values.n_actions):
                    self.ahead[step.a, a, j] += size * features.product(step.s2, self.told, a * n)
        rotate(self.root, step.s, step.a)

    def expected_target(self, values: LinearValues, s: int, a: int, discount: float) -> float:
        """E[R | z, a] + γ max_a' E[x' | z, a]ᵀw_a'."""
        look_ahead(self, values)
        find_gain(self.root, s, a)
        most = -np.inf
        for following in range(values.n_actions):
            most = max(most, dot(self.root.gain, self.ahead[a, following]))
        return dot(self.root.gain, self.earned[a]) + discount * most

    @in_python
    def expected_features(self, s: int, a: int) -> Vector:
        """E[x' | z(s), a], (d,)."""
        find_gain(self.root, s, a)
        found: Vector = self.moments[a] @ self.root.gain
        return found

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """The mean of the next features."""
        return LearnedNextFeatures(self, values)


@kernel
def look_ahead(model: ForwardLeastSquares, values: LinearValues) -> None:
    """Update u: u ← u + (w_k − told_k) Σ_t z_t x'_tk for each weight that has changed."""
    for key in range(model.told.size):
        change = values.weight_at(key) - model.told[key]
        if change != 0.0:
            model.told[key] = values.weight_at(key)
            for a in range(values.n_actions):
                add_multiple(
                    model.ahead[a, key // values.n_features], change, model.moments[a, key % values.n_features]
                )


def forward_least_squares(
    inputs: Features, n_inputs: int, n_features: int, n_actions: int, ridge: float
) -> ForwardLeastSquares:
    """A model without observations."""
    if n_actions * n_features * n_inputs > MOST:
        raise InputError(
            f"learn_by: 'rls' keeps a moment of each of {n_features:,} features with each of {n_inputs:,}"
            f"{f' for each of {n_actions} actions' if n_actions > 1 else ''}, at most {MOST:,} numbers; use 'lms'"
        )
    return ForwardLeastSquares(
        root=empty_root(inputs, n_inputs, n_actions, ridge),
        moments=np.zeros((n_actions, n_features, n_inputs)),
        earned=np.zeros((n_actions, n_inputs)),
        ahead=np.zeros((n_actions, n_actions, n_inputs)),
        told=np.zeros(n_actions * n_features),
    )
