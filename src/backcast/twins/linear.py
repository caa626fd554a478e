"""A plain NumPy agent with linear values in prediction: a readable reference for tests and benchmarks."""

import numpy as np

from backcast.agents.kinds import KINDS, Agent
from backcast.agents.settings import RIDGE
from backcast.agents.setup import Setup
from backcast.core.arrays import Vector
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN
from backcast.values.linear import as_matrix, zero_values


class LinearTwin:
    """TD(0), alone or with planning by an expectation model in the default frame, in dense vectors and matrices.

    The second moments of predecessors are stored as weights of states, as in `BackwardExpectation`: for d features a
    tensor (d, d, d) would be too large for a benchmark.

    Attributes:
        w: (d,) the weights.
    """

    def __init__(self, agent: Agent, setup: Setup) -> None:
        values = zero_values(*setup.features(agent.get("features")), setup.n_actions)
        self.X: Vector = as_matrix(values.features, values.n_features).toarray()
        self.direction, self.discount = KINDS[agent.kind].direction, setup.discount
        n_states, d = self.X.shape
        self.norm, self.w = values.features.norm, np.zeros(d)
        self.successors, self.predecessors = np.zeros((d, d + 1)), np.zeros((d, n_states))
        self.theta = np.zeros((d, d))
        ridge = agent.get("ridge", RIDGE)
        self.inverse = np.eye(d) / ridge if agent.get("learn_by") == "rls" else None

    def observe(self, rates: Vector, s: int, a: int, r: float, s2: int, ends: bool, first: bool) -> None:
        """One step: model learning, TD(0), planning."""
        x, x2 = self.X[s], self.X[s2]
        if self.direction == "forward":
            self.fit(self.successors, x, np.append(x2 * (not ends), r), rates[ALPHA_MODEL])
        if self.direction == "backward":
            self.fit(self.predecessors, x2, np.eye(1, len(self.X), s)[0], rates[ALPHA_MODEL])
            self.fit_reward(x2, x, r, rates[ALPHA_MODEL])
        v2 = 0.0 if ends else x2 @ self.w
        self.w += rates[ALPHA] * (r + self.discount * v2 - x @ self.w) * x
        if self.direction == "forward":
            expected = self.estimate(self.successors, x)
            target = expected[-1] + self.discount * expected[:-1] @ self.w
            self.w += rates[ALPHA_PLAN] * (target - x @ self.w) * x
        if self.direction == "backward":
            v2 = 0.0 if ends else x2 @ self.w
            errors = self.X @ (x2 @ self.theta) + self.discount * v2 - self.X @ self.w
            self.w += rates[ALPHA_PLAN] * self.X.T @ (self.estimate(self.predecessors, x2) * errors)

    def fit(self, weights: Vector, z: Vector, target: Vector, alpha: float) -> None:
        """One step of LMS, or of RLS with the sums of z and target."""
        if self.inverse is None:
            weights += np.outer(alpha / self.norm * z, target - z @ weights)
            return
        gain = self.inverse @ z
        self.inverse -= np.outer(gain / (1.0 + z @ gain), gain)
        weights += np.outer(z, target)

    def estimate(self, weights: Vector, z: Vector) -> Vector:
        """The expectation given z."""
        found: Vector = (z if self.inverse is None else self.inverse @ z) @ weights
        return found

    def fit_reward(self, z: Vector, outcome: Vector, r: float, alpha: float) -> None:
        """One step of Θ, with a row for each feature of the state conditioned on."""
        error = r - z @ self.theta @ outcome
        self.theta += np.outer(alpha * error / self.norm**2 * z, outcome)
