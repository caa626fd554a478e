"""Distributions of the exponential family (appendix C.3): maximum likelihood, planner-aware or meta-learned.

    P_θ(o | s) = exp(z(o)ᵀ Ψ z(s)) / Σ_o' exp(z(o')ᵀ Ψ z(s)),    o: the pair s̃, ã that led to s, or the state after s, a

The paper's features of a pair, x̃(o, s), are the products z_i(o) z_j(s), and θ is Ψ. With one-hot features Ψ is the
table of logits of the tabular models. For each step, o_i is the observed outcome, and Δ(o) the correction that planning
would make: δ(s̃, s) φ(s̃, ã) looking backward, δ(s, s') φ(s, a) looking forward, with the agent's current values, those
of pure planning or of learning and planning. All gradients are sums over outcomes times z(s)ᵀ:

    likelihood       −log P_θ(o_i | s):                    Σ_o P(o) z(o) − z(o_i)
    planner-aware    ½ |Σ_o P(o) Δ(o) − Δ(o_i)|²:          Σ_o P(o) (e·Δ(o) − E[e·Δ]) z(o),   e = E[Δ] − Δ(o_i)
    meta             ½ (δ_i⁺)²:                            the same with                     e = −α δ_i⁺ φ_i

where δ_i⁺ = δ_i − α φ_iᵀE[Δ] is the error that would remain in this step if the agent had just planned (with its target
held fixed): a meta-learned model makes the value error after a planning update fall, whatever its probabilities then
mean. E[Δ] uses the learned reward, Δ(o_i) the real one. Steps are relative to the largest ‖z(o)‖² ‖z(s)‖²; those
on the last two gradients also to a quarter of the mean of ‖Δ(o_i)‖² (for meta, times α), so that the units of reward
do not matter.
"""

import math
from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA_MODEL, ALPHA_PLAN, Step
from backcast.models.linear.readable import LearnedLinear, LearnedPredecessors, LearnedSuccessors
from backcast.models.linear.regression import Regression
from backcast.models.linear.rewards import BilinearReward
from backcast.models.linear.scaling import running_mean
from backcast.values.linear import Features, LinearValues, add_features
from backcast.values.targets import td_error

LIKELIHOOD, PLANNER_AWARE, META = 0, 1, 2
_STEEP = 4.0  # the covariance of two outcomes is at most 1 / 4 of their difference, and that of most is much smaller


@part
class ExponentialFamily(NamedTuple):
    """P_θ(o | s) over all outcomes: pairs s̃·A + ã looking backward, states looking forward.

    Attributes:
        psi: row j holds the weights of z_j(s); estimate(s) gives Ψ z(s).
        outcomes: z of the states among the outcomes.
        chance: (outcomes,), P_θ(o | s) of the state last conditioned on.
        delta: (outcomes,), the TD error δ(o) of each outcome.
        known: (1,), number of states among the outcomes.
        n_inputs: D, the number of features z.
        branches: outcomes for each state: A looking backward, 1 looking forward.
    """

    psi: Regression
    outcomes: Features
    chance: Vector
    delta: Vector
    known: Indices
    n_inputs: int
    branches: int

    def softmax(self, s: int, a: int) -> int:
        """Compute P_θ(· | s) (and, looking forward, a); the number of outcomes."""
        self.psi.estimate(s, a)
        n, most = self.known[0] * self.branches, -np.inf
        for o in range(n):
            logit = self.outcomes.product(o // self.branches, self.psi.y, o % self.branches * self.n_inputs)
            self.chance[o] = logit
            most = max(most, logit)
        total = 0.0
        for o in range(n):
            self.chance[o] = math.exp(self.chance[o] - most)
            total += self.chance[o]
        for o in range(n):
            self.chance[o] /= total
        return n

    def subtract_outcome(self, o: int, amount: float) -> None:
        """Subtract amount · z(o) from the gradient."""
        s, start = o // self.branches, o % self.branches * self.n_inputs
        for k in range(self.outcomes.offset[s], self.outcomes.offset[s + 1]):
            self.psi.subtract(start + self.outcomes.which[k], amount * self.outcomes.size[k])

    def descend(self, s: int, a: int, alpha: float) -> None:
        """Make one step down the accumulated gradient, with α relative to the largest ‖z(o)‖² ‖z(s)‖²."""
        self.psi.adjust(s, a, alpha / self.outcomes.norm)


@part
class ExponentialBackward(NamedTuple):
    """A distribution over the pairs that led to s.

    Attributes:
        family: P_θ(s̃, ã | s).
        rewards: r(s̃, s).
        error: (A · d,), the vector e of the gradient; for META, without its factor α.
        scale: (2,), the mean of ‖Δ‖² over recent steps, and their number.
        objective: LIKELIHOOD, PLANNER_AWARE or META.
    """

    family: ExponentialFamily
    rewards: BilinearReward
    error: Vector
    scale: Vector
    objective: int

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Make a gradient step for the row of s' towards (s, a), and a step for the reward."""
        family, s2, alpha = self.family, step.s2, rates[ALPHA_MODEL]
        observed = step.s * values.n_actions + step.a
        n = family.softmax(s2, 0)
        if self.objective != LIKELIHOOD:
            self.find_td_errors(values, n, s2, 0.0 if step.ends else discount)
            delta = td_error(values, step, discount)
            self.find_error(values, n, observed, delta, rates[ALPHA_PLAN])
            alpha *= _STEEP / running_mean(self.scale, delta * delta * values.features.square(step.s))
            for o in range(n):
                a = o % values.n_actions
                family.delta[o] *= values.features.product(o // values.n_actions, self.error, a * values.n_features)
            collect_covariance(family, n)
        else:
            collect_likelihood(family, n, observed)
        family.descend(s2, 0, alpha)
        self.rewards.fit_reward(s2, step.s, step.r, rates[ALPHA_MODEL])

    def find_td_errors(self, values: LinearValues, n: int, s: int, discount: float) -> None:
        """Compute δ(s̃, s) = r(s̃, s) + γ max_a q(s, a) − q(s̃, ã) of all outcomes."""
        ahead = discount * values.best(s)
        self.rewards.condition_on(s)
        for o in range(n):
            before, a = o // values.n_actions, o % values.n_actions
            self.family.delta[o] = self.rewards.between(before) + ahead - values.get(before, a)

    def find_error(self, values: LinearValues, n: int, observed: int, delta: float, alpha: float) -> None:
        """The vector e of the gradient, for the error δ of the real step; for META, without the factor α."""
        self.error[:] = 0.0
        for o in range(n):
            add_features(self.error, values, o, self.family.chance[o] * self.family.delta[o])
        if self.objective == META:
            s, start = observed // values.n_actions, observed % values.n_actions * values.n_features
            delta -= alpha * values.features.product(s, self.error, start)
            self.error[:] = 0.0
        add_features(self.error, values, observed, -delta)

    def outcomes_of(self, s: int, a: int) -> int:
        """Condition on s; return the number of pairs that may have led here."""
        self.rewards.condition_on(s)
        return self.family.softmax(s, 0)

    def outcome(self, k: int) -> int:
        """The k-th pair s̃·A + ã, in the order of all pairs."""
        return k

    def chance_of(self, k: int) -> float:
        """Its probability."""
        return self.family.chance[k]

    def reward_of(self, s: int) -> float:
        """The expected reward between s̃ and the state conditioned on."""
        return self.rewards.between(s)

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """The learned model: the probabilities of the pairs that led to each state, and derived quantities."""
        return LearnedPredecessors(self, values)

    @in_python
    def weights_of(self, values: LinearValues) -> Vector:
        """P_θ(s̃, ã | s), (S, S · A)."""
        return np.stack([chances(self.family, s, 0) for s in range(values.n_states)])


@part
class ExponentialForward(NamedTuple):
    """A distribution over the states that follow (s, a).

    Planner-aware, Δ(s') = δ(s, s') φ(s, a) differs between outcomes in one number, and the loss is that of value-aware
    model learning, ½ (Σ_s' (P_θ(s') − P(s')) (r + γ v(s')))², times ‖x(s)‖².

    Attributes:
        family: P_θ(s' | s, a).
        rewards: r(s, s').
        goes_on: (S,), 1 if the episode continues in s', as last observed; initially 1 in prediction, 0 in control.
        scale: (2,), the mean of ‖Δ‖² over recent steps, and their number.
        objective: LIKELIHOOD, PLANNER_AWARE or META.
    """

    family: ExponentialFamily
    rewards: BilinearReward
    goes_on: Vector
    scale: Vector
    objective: int

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """Make a gradient step for the row of (s, a) towards s' and for the reward; record whether s' is terminal."""
        family, alpha = self.family, rates[ALPHA_MODEL]
        n = family.softmax(step.s, step.a)
        if self.objective != LIKELIHOOD:
            self.rewards.condition_on(step.s)
            square, mean = values.features.square(step.s), 0.0
            for o in range(n):
                family.delta[o] = self.worth(values, o, discount) - values.get(step.s, step.a)
                mean += family.chance[o] * family.delta[o]
            delta = td_error(values, step, discount)
            alpha *= _STEEP / running_mean(self.scale, delta * delta * square)
            error = rates[ALPHA_PLAN] * square * mean - delta if self.objective == META else mean - delta
            for o in range(n):
                family.delta[o] *= error * square
            collect_covariance(family, n)
        else:
            collect_likelihood(family, n, step.s2)
        family.descend(step.s, step.a, alpha)
        self.rewards.fit_reward(step.s, step.s2, step.r, rates[ALPHA_MODEL])
        self.goes_on[step.s2] = 0.0 if step.ends else 1.0

    def worth(self, values: LinearValues, s: int, discount: float) -> float:
        """The target r(s, s') + γ̄(s') max_a' q(s', a') of an imagined successor."""
        return self.rewards.between(s) + discount * self.goes_on[s] * values.best(s)

    def outcomes_of(self, s: int, a: int) -> int:
        """Condition on (s, a); return the number of states that may follow."""
        self.rewards.condition_on(s)
        return self.family.softmax(s, a)

    def chance_of(self, k: int) -> float:
        """The probability of the k-th state."""
        return self.family.chance[k]

    def expected_target(self, values: LinearValues, s: int, a: int, discount: float) -> float:
        """Σ_s' P_θ(s' | s, a) (r(s, s') + γ̄(s') max_a' q(s', a'))."""
        expected = 0.0
        for o in range(self.outcomes_of(s, a)):
            expected += self.family.chance[o] * self.worth(values, o, discount)
        return expected

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """The probabilities of the states that follow."""
        return LearnedSuccessors(self, values)

    @in_python
    def weights_of(self, values: LinearValues) -> Vector:
        """P_θ(s' | s, a), (S, A, S)."""
        pairs = [[chances(self.family, s, a) for a in range(values.n_actions)] for s in range(values.n_states)]
        return np.array(pairs)


@kernel
def collect_likelihood(family: ExponentialFamily, n: int, observed: int) -> None:
    """The gradient of −log P(observed): E[z(o)] − z(observed)."""
    family.psi.clear()
    for o in range(n):
        family.subtract_outcome(o, -family.chance[o])
    family.subtract_outcome(observed, 1.0)


@kernel
def collect_covariance(family: ExponentialFamily, n: int) -> None:
    """The gradient Σ_o P(o) (c(o) − E[c]) z(o), with c(o) = e·Δ(o) in `delta`."""
    family.psi.clear()
    mean = 0.0
    for o in range(n):
        mean += family.chance[o] * family.delta[o]
    for o in range(n):
        family.subtract_outcome(o, -family.chance[o] * (family.delta[o] - mean))


def chances(family: ExponentialFamily, s: int, a: int) -> Vector:
    """P_θ(· | s) (and, looking forward, a), over all outcomes."""
    n = family.softmax(s, a)
    return np.array(family.chance[:n])
