"""Expectation models of features (appendix C.1): which follow, and which led here?

The backward update of linear values needs three quantities, each linear in the features z of the state planned from:

    w ← w + α (r(z) + (γ E[x̃ | z] xᵀ − E[x̃ x̃ᵀ | z]) w),    r(z) = E[x̃ x̃ᵀ | z] Θ_r z

E[x̃ x̃ᵀ | z] is a matrix for each feature: for 1,000 features, 10⁹ numbers. But all targets are functions of the
predecessor s̃, and least squares are linear in their targets. So one regression is enough, of the indicator of s̃:

    c(z)[s̃] ≈ P(S̃ = s̃ | z)    E[x̃ | z] = Σ_s̃ c(z)[s̃] x(s̃)    E[x̃ x̃ᵀ | z] = Σ_s̃ c(z)[s̃] x(s̃) x(s̃)ᵀ

The three are the same numbers, to rounding, as if each had been learned by itself; and the update becomes
w ← w + α Σ_s̃ c(z)[s̃] (x̃ᵀΘ_r z + γ xᵀw − x̃ᵀw) x̃, whose cost follows the predecessors that were observed.
"""

import math
from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.core.randomness import Stream, uniform
from backcast.models.linear.regression import Regression
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
        self.measure.regard(pair, 1.0)
        self.measure.adjust(step.s2, 0, rates[ALPHA_MODEL])
        self.rewards.heed(step.s2, step.s, step.r, rates[ALPHA_MODEL])

    def improve(self, values: LinearValues, s: int, discount: float, alpha: float) -> int:
        """The expected backward update from s: all corrections taken before any is made."""
        ahead = discount * values.best(s)
        self.measure.estimate(s, 0)
        self.rewards.turn_to(s)
        for i in range(self.measure.counter[0]):
            pair = self.measure.touched[i]
            before, a = pair // values.n_actions, pair % values.n_actions
            self.measure.y[pair] *= self.rewards.between(before) + ahead - values.get(before, a)
        for i in range(self.measure.counter[0]):
            pair = self.measure.touched[i]
            values.nudge(pair, alpha * self.measure.y[pair])
        return 1


def forget_states(model: BackwardExpectation, states: Indices, n_actions: int) -> None:
    """No longer correct what was remembered of these states, whose numbers are given to others."""
    rows = model.measure.rows
    rows.weight[np.isin(rows.key // n_actions, states)] = 0.0


@part
class BackwardFeatures(NamedTuple):
    """A model of the features φ̃ of the pair that led here: their mean alone, or a Gaussian around it.

    The mean alone (`naive`) gives the update w ← w + α (φ̄ᵀΘ_r z + γ xᵀw − φ̄ᵀw) φ̄ with φ̄ = E[φ̃ | z], which is wrong:
    the error and the gradient are both functions of φ̃, and the mean of a product is not the product of means.

    A Gaussian (`samples` above 0) draws φ̃ = φ̄ + Σ_i g_i ρ_i / √n, g_i ~ N(0, 1), with the last n residuals ρ = φ̃ − φ̄:
    its covariance is theirs, of rank n, without a matrix being written or factored. Averaged over the samples the
    update has the second moment φ̄φ̄ᵀ + Cov, and is right where the residuals do not depend on z.

    Attributes:
        mean: regression of φ̃ on z.
        rewards: Θ_r.
        residuals: (n, A · d) the last residuals, the oldest overwritten first; empty for the mean alone.
        seen: (1,) how many residuals there have been.
        drawn: (A · d,) the features imagined.
        samples: how many are drawn in each planning step.
        by_pair: whether rewards depend on φ̃ (prediction).
        stream: random numbers.
    """

    mean: Regression
    rewards: BilinearReward
    residuals: Vector
    seen: Vector
    drawn: Vector
    samples: int
    by_pair: bool
    stream: Stream

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Regression of the features of (s, a) on those of s', and of the reward; the residual is remembered."""
        features, start = values.features, step.a * values.n_features
        if self.samples > 0:
            residual = self.residuals[int(self.seen[0]) % self.residuals.shape[0]]
            self.mean.estimate(step.s2, 0)
            for key in range(residual.size):
                residual[key] = -self.mean.y[key]
            add_features(residual, values, step.s * values.n_actions + step.a, 1.0)
            self.seen[0] += 1.0
        self.mean.prepare(step.s2, 0)
        for k in range(features.offset[step.s], features.offset[step.s + 1]):
            self.mean.regard(start + features.which[k], features.size[k])
        self.mean.adjust(step.s2, 0, rates[ALPHA_MODEL])
        self.rewards.heed(step.s2, step.s, step.r, rates[ALPHA_MODEL])

    def improve(self, values: LinearValues, s: int, discount: float, alpha: float) -> int:
        """Updates from s towards which imagined features lead."""
        self.mean.estimate(s, 0)
        self.rewards.turn_to(s)
        earned = self.rewards.theta.y
        if self.samples == 0:
            mean = self.mean
            error = discount * values.best(s) + (0.0 if self.by_pair else earned[0])
            for i in range(mean.counter[0]):
                key = mean.touched[i]
                error += mean.y[key] * ((earned[key] if self.by_pair else 0.0) - values.w[key])
            for i in range(mean.counter[0]):
                values.w[mean.touched[i]] += alpha * error * mean.y[mean.touched[i]]
            return 1
        for _ in range(self.samples):
            self.draw_features()
            error = discount * values.best(s) + (0.0 if self.by_pair else earned[0])
            for key in range(self.drawn.size):
                error += self.drawn[key] * ((earned[key] if self.by_pair else 0.0) - values.w[key])
            for key in range(self.drawn.size):
                values.w[key] += alpha * error * self.drawn[key]
        return self.samples

    def draw_features(self) -> None:
        """Draw φ̃ around the mean that was estimated last."""
        for key in range(self.drawn.size):
            self.drawn[key] = self.mean.y[key]
        n = min(int(self.seen[0]), self.residuals.shape[0])
        for i in range(n):
            # Box and Muller's way to a normal number
            radius = math.sqrt(-2.0 * math.log(1.0 - uniform(self.stream)) / n)
            g = radius * math.cos(2.0 * math.pi * uniform(self.stream))
            for key in range(self.drawn.size):
                self.drawn[key] += g * self.residuals[i, key]


@part
class ForwardExpectation(NamedTuple):
    """The forward model: E[x' | z, a] and E[R | z, a], where what ends an episode counts as no features.

    The reward is regressed by itself. The paper's E[x' | z]ᵀ Θ_r z would be quadratic in z, but the residuals of least
    squares are orthogonal to z only: planning would not come to rest at the TD fixed point.

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
                self.mean.regard(features.which[k], features.size[k])
        self.mean.regard(values.n_features, step.r)
        self.mean.adjust(step.s, step.a, rates[ALPHA_MODEL])

    def improve(self, values: LinearValues, s: int, discount: float, alpha: float) -> int:
        """For all a: w ← w + α (E[R | z, a] + γ max_a' E[x' | z, a]ᵀw_a' − q(s, a)) φ(s, a)."""
        for a in range(values.n_actions):
            self.mean.estimate(s, a)
            target = self.mean.y[values.n_features] + discount * self.best_ahead(values)
            values.move(s * values.n_actions + a, target, alpha)
        return values.n_actions

    def best_ahead(self, values: LinearValues) -> float:
        """max_a' E[x']ᵀw_a'."""
        most = -np.inf
        for a in range(values.n_actions):
            total = 0.0
            for i in range(self.mean.counter[0]):
                key = self.mean.touched[i]
                if key < values.n_features:
                    total += self.mean.y[key] * values.w[a * values.n_features + key]
            most = max(most, total)
        return most
