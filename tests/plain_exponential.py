"""Exponential families and abstract models, dense: the losses of appendix C.3 and their gradients as they are printed.

The reference for `backcast.models.linear.exponential` and `backcast.models.linear.abstract`. Losses and gradients are
apart, so that the second can be checked against finite differences of the first.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN
from backcast.core.randomness import uniform


class Case(NamedTuple):
    """What an objective is told of one step.

    Outcomes o are rows: z(o), δ(o) and φ(o), the features along which planning would correct the weights w.
    """

    outcomes: np.ndarray  # (O, D) z(o)
    condition: np.ndarray  # (C,) z(s)
    observed: int  # o_i
    errors: np.ndarray  # (O,) δ(o)
    features: np.ndarray  # (O, n) φ(o)
    target: float  # R_i + γ v(S_i'), of the real step
    w: np.ndarray  # (n,)
    alpha: float  # of planning

    @property
    def corrections(self):
        """Δ(o), (O, n)."""
        return self.errors[:, None] * self.features

    @property
    def real_correction(self):
        """Δ(o_i), of the step with its own reward and its own end, (n,)."""
        along = self.features[self.observed]
        return (self.target - along @ self.w) * along

    @property
    def joint_features(self):
        """The paper's x̃(o, s), the products z_i(o) z_j(s), (O, D · C)."""
        return np.einsum("oi,j->oij", self.outcomes, self.condition).reshape(len(self.outcomes), -1)


def chances(psi, case):
    """P_θ(· | s), (O,)."""
    logits = case.joint_features @ psi.ravel()
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def likelihood_loss(psi, case):
    return -np.log(chances(psi, case)[case.observed])


def planner_aware_loss(psi, case):
    gap = sum(p * delta for p, delta in zip(chances(psi, case), case.corrections, strict=True)) - case.real_correction
    return 0.5 * (gap**2).sum()


def meta_loss(psi, case):
    """The squared error of the step after planning has moved the weights, with the target that it has now."""
    planned = case.w + case.alpha * chances(psi, case) @ case.corrections
    return 0.5 * (case.target - case.features[case.observed] @ planned) ** 2


def covariance(psi, case):
    """Cov[Δ(o), x̃(o, s)] = E[Δ x̃ᵀ] − E[Δ] E[x̃]ᵀ, (n, D · C)."""
    p, delta, joint = chances(psi, case), case.corrections, case.joint_features
    return np.einsum("o,on,ok->nk", p, delta, joint) - np.outer(p @ delta, p @ joint)


def likelihood_gradient(psi, case):
    joint = case.joint_features
    return (chances(psi, case) @ joint - joint[case.observed]).reshape(psi.shape)


def planner_aware_gradient(psi, case):
    gap = chances(psi, case) @ case.corrections - case.real_correction
    return (gap @ covariance(psi, case)).reshape(psi.shape)


def meta_gradient(psi, case):
    along = case.features[case.observed]
    left = case.target - along @ (case.w + case.alpha * chances(psi, case) @ case.corrections)
    return (-case.alpha * left * along @ covariance(psi, case)).reshape(psi.shape)


LOSSES = {"likelihood": likelihood_loss, "planner-aware": planner_aware_loss, "meta": meta_loss}
GRADIENTS = {"likelihood": likelihood_gradient, "planner-aware": planner_aware_gradient, "meta": meta_gradient}


def ends_apart(X, terminal):
    """One more feature for terminal states that have none, or share some with states that go on."""
    mixed = terminal & ((X != 0) @ (X[~terminal] != 0).any(axis=0) | ~X.any(axis=1))
    own = np.sqrt(largest_norm(X) or 1.0) * mixed
    return np.column_stack([X * ~mixed[:, None], own]) if mixed.any() else X


def largest_norm(X):
    return (X**2).sum(axis=1).max()


def of_pairs(F, n_actions):
    """The features of a state at the places of an action, for all pairs s·A + a, (S · A, A · d)."""
    return np.stack([np.kron(action, row) for row in F for action in np.eye(n_actions)])


class PlainLinear:
    """What both twins share: values q(s, a) = φ(s, a)ᵀw, TD or Q-learning, and when to plan."""

    def __init__(self, agent, setup):
        self.agent, self.forward = agent, agent.kind == "forward"
        self.S, self.A, self.discount = setup.n_states, setup.n_actions, setup.discount
        maps = agent.get("features"), agent.get("model_features", agent.get("features"))
        self.X, self.Z = (ends_apart(F.bind(setup.world).matrix, setup.world.mdp.terminal) for F in maps)
        self.phi = of_pairs(self.X, self.A)
        self.w = np.zeros(self.phi.shape[1])

    def q(self, s):
        return self.phi[s * self.A : (s + 1) * self.A] @ self.w

    def begin(self, rates, s):
        if self.forward and self.agent.plans_from_current and not self.agent.learn:
            self.improve(s, self.discount, rates[ALPHA_PLAN])

    def target(self, r, s2, ends):
        return r + (0.0 if ends else self.discount * self.q(s2).max())

    def observe(self, rates, s, a, r, s2, ends, first):
        self.learn(rates, s, a, r, s2, ends)
        along = self.phi[s * self.A + a]
        if self.agent.learn:
            self.w = self.w + rates[ALPHA] * (self.target(r, s2, ends) - along @ self.w) * along
        for state, discount in self.references(s, s2, ends, first):
            self.improve(state, discount, rates[ALPHA_PLAN])

    def references(self, s, s2, ends, first):
        """The states that are planned from after a step, each with its discount."""
        current = [(s2, 0.0 if ends else self.discount)]
        if self.forward:
            return [(s, self.discount)] if not self.agent.plans_from_current else current[: not ends]
        if self.agent.plans_from_current:
            return current
        at_the_end = current if ends and not self.agent.learn else []
        return [(s, self.discount)][: not first] + at_the_end


class PlainCorrection(PlainLinear):
    """An abstract model: D (n, C)."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.D = np.zeros((len(self.w), self.Z.shape[1]))

    def learn(self, rates, s, a, r, s2, ends):
        z, along = self.Z[s if self.forward else s2], self.phi[s * self.A + a]
        correction = (self.target(r, s2, ends) - along @ self.w) * along
        self.D += rates[ALPHA_MODEL] * np.outer(correction - self.D @ z, z) / largest_norm(self.Z)

    def improve(self, s, discount, alpha):
        self.w = self.w + alpha * self.D @ self.Z[s]


class PlainExponential(PlainLinear):
    """A distribution: Ψ (D, C), with a row of logits for each state, or for each pair looking forward; and Θ."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        pairs = of_pairs(self.Z, self.A)
        self.outcomes, self.conditions = (self.Z, pairs) if self.forward else (pairs, self.Z)
        self.psi = np.zeros((self.outcomes.shape[1], self.conditions.shape[1]))
        one = np.ones((self.S, 1))
        self.earning = self.X if self.forward or self.A == 1 else one  # features of the outcome
        self.earning_given = self.Z if not self.forward or self.A == 1 else one
        self.theta = np.zeros((self.earning.shape[1], self.earning_given.shape[1]))
        self.goes_on = np.full(self.S, 1.0 if self.A == 1 else 0.0)
        self.mean_square, self.steps = 0.0, 0
        self.stream = setup.stream()

    def reward(self, s):
        """r(o, s) for all states o, (S,)."""
        return self.earning @ self.theta @ self.earning_given[s]

    def imagined(self, s, a, discount):
        """Of all outcomes: the targets that planning from s would have, and the features φ(o) of what it corrects."""
        if self.forward:
            ahead = np.array([self.q(later).max() for later in range(self.S)])
            targets = self.reward(s) + discount * self.goes_on * ahead
            return targets, np.tile(self.phi[s * self.A + a], (self.S, 1))
        return np.repeat(self.reward(s), self.A) + discount * self.q(s).max(), self.phi

    def case(self, rates, s, a, r, s2, ends):
        """The step as the objectives see it."""
        given = s if self.forward else s2
        discount = 0.0 if ends and not self.forward else self.discount
        targets, features = self.imagined(given, a, discount)
        return Case(
            self.outcomes,
            self.conditions[s * self.A + a if self.forward else s2],
            s2 if self.forward else s * self.A + a,
            targets - features @ self.w,
            features,
            self.target(r, s2, ends),
            self.w,
            rates[ALPHA_PLAN],
        )

    def step_size(self, case, alpha):
        """Of model learning, for the gradient as it is: relative to the largest ‖z(o)‖² ‖z(s)‖² and to the scale."""
        step = alpha / (largest_norm(self.outcomes) * largest_norm(self.conditions))
        objective = self.agent.get("model")
        if objective == "likelihood":
            return step
        self.steps += 1
        self.mean_square += max(0.01, 1 / self.steps) * ((case.real_correction**2).sum() - self.mean_square)
        return step / (0.25 * max(self.mean_square, 1e-12)) / (case.alpha if objective == "meta" else 1.0)

    def learn(self, rates, s, a, r, s2, ends):
        case = self.case(rates, s, a, r, s2, ends)
        self.psi = self.psi - self.step_size(case, rates[ALPHA_MODEL]) * GRADIENTS[self.agent.get("model")](
            self.psi, case
        )
        given, outcome = (s, s2) if self.forward else (s2, s)
        z, o = self.earning_given[given], self.earning[outcome]
        norm = largest_norm(self.earning) * largest_norm(self.earning_given)
        self.theta = self.theta + rates[ALPHA_MODEL] * (r - o @ self.theta @ z) * np.outer(o, z) / norm
        self.goes_on[s2] = not ends

    def distribution(self, s, a=0):
        """P_θ(· | s), looking forward of an action."""
        logits = self.outcomes @ self.psi @ self.conditions[s * self.A + a if self.forward else s]
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    def expected_correction(self, s, discount, a=0):
        """E[Δ(o)] under the model, (n,)."""
        targets, features = self.imagined(s, a, discount)
        return self.distribution(s, a) @ ((targets - features @ self.w)[:, None] * features)

    def improve(self, s, discount, alpha):
        for a in range(self.A if self.forward else 1):
            for _ in range(self.agent.get("sample", 0)):
                o = self.draw(self.distribution(s, a))
                targets, features = self.imagined(s, a, discount)
                self.w = self.w + alpha * (targets[o] - features[o] @ self.w) * features[o]
            if self.agent.get("sample") is None:
                self.w = self.w + alpha * self.expected_correction(s, discount, a)

    def draw(self, distribution):
        return int(min(np.searchsorted(np.cumsum(distribution), uniform(self.stream), "right"), len(distribution) - 1))
