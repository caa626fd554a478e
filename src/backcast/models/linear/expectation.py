"""Expectation models of features (appendix C.1), forward and backward.

The backward update of linear values needs three quantities, each linear in the features z of the state planned from:

    w ← w + α (r(z) + (γ E[x̃ | z] xᵀ − E[x̃ x̃ᵀ | z]) w),    r(z) = E[x̃ x̃ᵀ | z] Θ_r z

E[x̃ x̃ᵀ | z] is a matrix for each feature: 10⁹ numbers for 1,000 features. But all targets are functions of the
predecessor s̃, and least squares are linear in their targets. So one regression, of the indicator of s̃, is enough:

    c(z)[s̃] ≈ P(S̃ = s̃ | z)    E[x̃ | z] = Σ_s̃ c(z)[s̃] x(s̃)    E[x̃ x̃ᵀ | z] = Σ_s̃ c(z)[s̃] x(s̃) x(s̃)ᵀ

The three are equal, to rounding, to separately learned quantities; and the update becomes
w ← w + α Σ_s̃ c(z)[s̃] (x̃ᵀΘ_r z + γ xᵀw − x̃ᵀw) x̃, whose cost depends on the number of observed predecessors.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.models.linear.readable import LearnedFeatures, LearnedLinear, LearnedNextFeatures, LearnedPredecessors
from backcast.models.linear.regression import Regression, estimates
from backcast.models.linear.rewards import BilinearReward
from backcast.values.linear import LinearValues, add_features


@part
class BackwardExpectation(NamedTuple):
    """The three quantities, by one measure c over the pairs s̃·A + ã that may have led here."""

    measure: Regression
    rewards: BilinearReward

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Regression of the pair (s, a) that led to s', and of the reward."""
        pair = step.s * values.n_actions + step.a
        self.measure.prepare(step.s2, 0)
        self.measure.subtract(pair, 1.0)
        self.measure.adjust(step.s2, 0, rates[ALPHA_MODEL])
        self.rewards.fit_reward(step.s2, step.s, step.r, rates[ALPHA_MODEL])

    def outcomes_of(self, s: int, a: int) -> int:
        """Condition on s; return the number of pairs with a weight."""
        self.measure.estimate(s, 0)
        self.rewards.condition_on(s)
        return self.measure.counter[0]

    def outcome(self, k: int) -> int:
        """The k-th of these pairs s̃·A + ã."""
        return self.measure.touched[k]

    def chance_of(self, k: int) -> float:
        """Its weight c(z), which may be negative."""
        return self.measure.y[self.measure.touched[k]]

    def reward_of(self, s: int) -> float:
        """The expected reward between s̃ and the state conditioned on."""
        return self.rewards.between(s)

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Forget the predecessors among these states, whose numbers are reused."""
        rows = self.measure.rows
        rows.weight[np.isin(rows.key // n_actions, states)] = 0.0

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """The learned model: the weights of the pairs that led to each state, and derived quantities."""
        return LearnedPredecessors(self, values)

    @in_python
    def weights_of(self, values: LinearValues) -> Vector:
        """The measure at each state, (S, S · A)."""
        return estimates(self.measure, values.n_states)


@part
class BackwardFeatures(NamedTuple):
    """A model of the features φ̃ of the pair that led here: their mean only, or a Gaussian around it.

    The mean only (`naive`) gives the update w ← w + α (φ̄ᵀΘ_r z + γ xᵀw − φ̄ᵀw) φ̄ with φ̄ = E[φ̃ | z], which is wrong:
    the error and the gradient are both functions of φ̃, and the mean of a product is not the product of means.

    A Gaussian draws φ̃ = φ̄ + Σ_i g_i ρ_i / √n, g_i ~ N(0, 1), with the last n residuals ρ = φ̃ − φ̄:
    its covariance is theirs, of rank n, and no matrix is formed or factored. Averaged over the samples the
    update has the second moment φ̄φ̄ᵀ + Cov, and is right where the residuals do not depend on z.

    Attributes:
        mean: regression of φ̃ on z.
        rewards: Θ_r.
        residuals: (n, A · d), the last residuals, the oldest overwritten first; empty for the mean only.
        seen: (1,), number of residuals so far.
        by_pair: whether rewards depend on φ̃ (prediction).
    """

    mean: Regression
    rewards: BilinearReward
    residuals: Vector
    seen: Vector
    by_pair: bool

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Regression of the features of (s, a) on those of s', and of the reward; the residual is remembered."""
        features, start = values.features, step.a * values.n_features
        if self.residuals.size > 0:
            residual = self.residuals[int(self.seen[0]) % self.residuals.shape[0]]
            self.mean.estimate(step.s2, 0)
            for key in range(residual.size):
                residual[key] = -self.mean.y[key]
            add_features(residual, values, step.s * values.n_actions + step.a, 1.0)
            self.seen[0] += 1.0
        self.mean.prepare(step.s2, 0)
        for k in range(features.offset[step.s], features.offset[step.s + 1]):
            self.mean.subtract(start + features.which[k], features.size[k])
        self.mean.adjust(step.s2, 0, rates[ALPHA_MODEL])
        self.rewards.fit_reward(step.s2, step.s, step.r, rates[ALPHA_MODEL])

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """The mean of the features."""
        return LearnedFeatures(self, values)


@part
class ForwardExpectation(NamedTuple):
    """The forward model: E[x' | z, a] and E[R | z, a], where terminal successors count as zero.

    The reward has its own regression. The paper's E[x' | z]ᵀ Θ_r z would be quadratic in z, but the residuals of least
    squares are orthogonal to z only: the fixed point of planning would not be that of TD.

    Attributes:
        mean: regression of x' on z for each action; its last output is the reward.
    """

    mean: Regression

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Regression of the features of s', and of the reward, on the features of s."""
        features = values.features
        self.mean.prepare(step.s, step.a)
        if not step.ends:
            for k in range(features.offset[step.s2], features.offset[step.s2 + 1]):
                self.mean.subtract(features.which[k], features.size[k])
        self.mean.subtract(values.n_features, step.r)
        self.mean.adjust(step.s, step.a, rates[ALPHA_MODEL])

    def expected_target(self, values: LinearValues, s: int, a: int, discount: float) -> float:
        """E[R | z, a] + γ max_a' E[x' | z, a]ᵀw_a'."""
        self.mean.estimate(s, a)
        return self.mean.y[values.n_features] + discount * self.best_ahead(values)

    def best_ahead(self, values: LinearValues) -> float:
        """The largest E[x']ᵀw_a' over actions a', for the last estimated features."""
        most = -np.inf
        for a in range(values.n_actions):
            total = 0.0
            for i in range(self.mean.counter[0]):
                key = self.mean.touched[i]
                if key < values.n_features:
                    total += self.mean.y[key] * values.weight_at(a * values.n_features + key)
            most = max(most, total)
        return most

    @in_python
    def expected_features(self, s: int, a: int) -> Vector:
        """E[x' | z(s), a], (d,)."""
        self.mean.estimate(s, a)
        return self.mean.y[:-1].copy()

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """The mean of the next features."""
        return LearnedNextFeatures(self, values)
