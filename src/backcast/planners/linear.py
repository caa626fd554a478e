"""Planning with values that are linear in features: how weights are corrected when planning from a state.

`BackwardPlanner` and `ForwardPlanner` define *when* and from which state to plan; these parts define how. Models of
outcomes share one interface: `outcomes_of(s, a)` conditions on s and returns the number of outcomes, `outcome(k)` is
the k-th of them, `chance_of(k)` its weight, and `reward_of(s̃)` the reward between.
"""

import math
from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import Step
from backcast.core.randomness import Stream, uniform
from backcast.models.contract import BackwardRows
from backcast.models.linear.abstract import CorrectionModel
from backcast.models.linear.contract import ExpectedTarget, OutcomesAfter, OutcomesBefore, WeighedOutcomes
from backcast.models.linear.expectation import BackwardFeatures
from backcast.planners.edges import UNCOUNTED, EdgeCount, observed_before
from backcast.values.linear import LinearValues
from backcast.values.step_sizes import SCHEDULED, StepSizes


@part
class WeighedPredecessors(NamedTuple):
    """The distributional update of tabular rows: Σ_s̃ P←(s̃, ã | s) δ(s̃, s) φ(s̃, ã), then one step along it.

    Attributes:
        amount: (S·A,), the step along the features of each pair, computed before any correction.
        step_size: step size of an update of a pair, weighted by its probability; all are counted first.
        edges: edges touched.
    """

    amount: Vector
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def correct(
        self, model: BackwardRows, values: LinearValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make a backward update from s; return the number of updates of the weights."""
        rows = model.rows
        best = values.best(s)
        base = model.base(s, best, discount)
        for row in range(model.first_row(s), model.last_row(s)):
            step = rows.share[row] * model.factor(row)
            for k in range(rows.offset[row], rows.offset[row] + rows.used[row]):
                pair = model.pair(row, rows.key[k])
                old = values.get(pair // values.n_actions, pair % values.n_actions)
                self.amount[pair] = step * rows.weight[k] * (model.target(k, base, best) - old)
                self.step_size.of(pair, 0.0, step * rows.weight[k])
        for row in range(model.first_row(s), model.last_row(s)):
            for k in range(rows.offset[row], rows.offset[row] + rows.used[row]):
                pair = model.pair(row, rows.key[k])
                values.nudge(pair, self.step_size.of(pair, alpha * self.amount[pair], 0.0))
        self.edges.touch(observed_before(model, s))
        return 1


@part
class ExpectedOutcomes(NamedTuple):
    """The same update for a model of outcomes: all corrections are computed before any is made.

    Attributes:
        amount: (S·A,), the step along the features of each outcome.
        step_size: step size of an update of a pair, weighted by its probability; all are counted first.
    """

    amount: Vector
    step_size: StepSizes = SCHEDULED

    def correct(
        self, model: OutcomesBefore, values: LinearValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make a backward update from s; return the number of updates of the weights."""
        ahead = discount * values.best(s)
        outcomes = model.outcomes_of(s, 0)
        for k in range(outcomes):
            before, a = model.outcome(k) // values.n_actions, model.outcome(k) % values.n_actions
            self.amount[k] = model.chance_of(k) * (model.reward_of(before) + ahead - values.get(before, a))
            self.step_size.of(model.outcome(k), 0.0, abs(model.chance_of(k)))
        for k in range(outcomes):
            values.nudge(model.outcome(k), self.step_size.of(model.outcome(k), alpha * self.amount[k], 0.0))
        return 1


@part
class SampledOutcomes(NamedTuple):
    """`samples` updates with sampled outcomes: pairs that led here, or states that follow."""

    samples: int
    stream: Stream
    step_size: StepSizes = SCHEDULED

    def correct(
        self, model: OutcomesBefore, values: LinearValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make backward updates from s; return the number of updates of the weights."""
        outcomes = model.outcomes_of(s, 0)
        for _ in range(self.samples):
            pair = model.outcome(draw_outcome_of(model, outcomes, self.stream))
            target = model.reward_of(pair // values.n_actions) + discount * values.best(s)
            values.move(pair, target, self.step_size.of(pair, alpha, 1.0))
        return self.samples

    def renew(self, model: OutcomesAfter, values: LinearValues, step: Step, discount: float) -> None:
        """Do nothing: there is nothing to update."""

    def reevaluate(self, model: OutcomesAfter, values: LinearValues, s: int, discount: float, alpha: float) -> int:
        """For all a, make forward updates of q(s, a); return the number of updates of the weights."""
        for a in range(values.n_actions):
            outcomes = model.outcomes_of(s, a)
            for _ in range(self.samples):
                following = draw_outcome_of(model, outcomes, self.stream)
                pair = s * values.n_actions + a
                target = model.worth(values, following, discount)
                values.move(pair, target, self.step_size.of(pair, alpha, 1.0))
        return values.n_actions * self.samples


@kernel
def draw_outcome_of(model: WeighedOutcomes, outcomes: int, stream: Stream) -> int:
    """Sample an outcome by its weight."""
    left = uniform(stream)
    for k in range(outcomes - 1):
        left -= model.chance_of(k)
        if left < 0.0:
            return k
    return outcomes - 1


@part
class ExpectedTargets(NamedTuple):
    """For all a: w ← w + α (E[R + γ max_a' q(S', a') | s, a] − q(s, a)) φ(s, a); the model gives the expectation."""

    step_size: StepSizes = SCHEDULED

    def renew(self, model: ExpectedTarget, values: LinearValues, step: Step, discount: float) -> None:
        """Do nothing: there is nothing to update."""

    def reevaluate(self, model: ExpectedTarget, values: LinearValues, s: int, discount: float, alpha: float) -> int:
        """Make a forward update of s; return the number of updates of the weights."""
        for a in range(values.n_actions):
            pair = s * values.n_actions + a
            target = model.expected_target(values, s, a, discount)
            values.move(pair, target, self.step_size.of(pair, alpha, 1.0))
        return values.n_actions


@part
class LearnedCorrection(NamedTuple):
    """The correction of s that a model has learned: w ← w + α D z(s)."""

    unused: int = 0

    def correct(
        self, model: CorrectionModel, values: LinearValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make a backward update from s; return the number of updates of the weights."""
        return follow_correction(model, values, s, alpha)

    def renew(self, model: CorrectionModel, values: LinearValues, step: Step, discount: float) -> None:
        """Do nothing: there is nothing to update."""

    def reevaluate(self, model: CorrectionModel, values: LinearValues, s: int, discount: float, alpha: float) -> int:
        """Make a forward update of s; return the number of updates of the weights."""
        return follow_correction(model, values, s, alpha)


@kernel
def follow_correction(model: CorrectionModel, values: LinearValues, s: int, alpha: float) -> int:
    """Add the correction of s, times α, to the weights."""
    model.correction.estimate(s, 0)
    for i in range(model.correction.counter[0]):
        key = model.correction.touched[i]
        values.shift_weight(key, alpha * model.correction.y[key])
    return 1


@part
class MeanFeatures(NamedTuple):
    """The naive update with the mean features φ̄ of the preceding pair: w ← w + α (φ̄ᵀΘ_r z + γ xᵀw − φ̄ᵀw) φ̄."""

    unused: int = 0

    def correct(
        self, model: BackwardFeatures, values: LinearValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make a backward update from s; return the number of updates of the weights."""
        model.mean.estimate(s, 0)
        model.rewards.condition_on(s)
        mean, earned = model.mean, model.rewards.theta.y
        error = discount * values.best(s) + (0.0 if model.by_pair else earned[0])
        for i in range(mean.counter[0]):
            key = mean.touched[i]
            error += mean.y[key] * ((earned[key] if model.by_pair else 0.0) - values.weight_at(key))
        for i in range(mean.counter[0]):
            values.shift_weight(mean.touched[i], alpha * error * mean.y[mean.touched[i]])
        return 1


@part
class DrawnFeatures(NamedTuple):
    """`samples` such updates with features φ̃ drawn from a Gaussian with the mean φ̄ and the residuals' covariance.

    Attributes:
        samples: number of draws in each planning step.
        drawn: (A · d,), the imagined features.
        stream: random numbers.
    """

    samples: int
    drawn: Vector
    stream: Stream

    def correct(
        self, model: BackwardFeatures, values: LinearValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make backward updates from s; return the number of updates of the weights."""
        model.mean.estimate(s, 0)
        model.rewards.condition_on(s)
        earned = model.rewards.theta.y
        for _ in range(self.samples):
            draw_features(model, self.drawn, self.stream)
            error = discount * values.best(s) + (0.0 if model.by_pair else earned[0])
            for key in range(self.drawn.size):
                error += self.drawn[key] * ((earned[key] if model.by_pair else 0.0) - values.weight_at(key))
            for key in range(self.drawn.size):
                values.shift_weight(key, alpha * error * self.drawn[key])
        return self.samples


@kernel
def draw_features(model: BackwardFeatures, drawn: Vector, stream: Stream) -> None:
    """Draw φ̃ = φ̄ + Σ_i g_i ρ_i / √n, g_i ~ N(0, 1), around the last estimated mean φ̄, with residuals ρ_i."""
    for key in range(drawn.size):
        drawn[key] = model.mean.y[key]
    n = min(int(model.seen[0]), model.residuals.shape[0])
    for i in range(n):
        # Box–Muller transform
        radius = math.sqrt(-2.0 * math.log(1.0 - uniform(stream)) / n)
        g = radius * math.cos(2.0 * math.pi * uniform(stream))
        for key in range(drawn.size):
            drawn[key] += g * model.residuals[i, key]
