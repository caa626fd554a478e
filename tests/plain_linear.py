"""Linear agents in plain NumPy: dense features, every tensor of the paper written down, equations solved afresh.

With φ(s, a) the features of s at the weights of a (in prediction x(s)), w (A·d,) and z(s) what models are linear in:

    backward    H (A·d, D), M (A·d, A·d, D):  w ← w + α (r(z) + (γ H z xᵀ − M(z)) w)          (appendix C.1)
    naive       H:                            w ← w + α (r̄(z) + γ xᵀw − (H z)ᵀw) H z
    forward     F_a (d, D), ρ_a (D,):         w_a ← w_a + α (ρ_aᵀz + γ max_b (F_a z)ᵀ w_b − xᵀw_a) x

The twins walk through the same episodes as `backcast.run`, with the same random numbers, if actions are random.
"""

import numpy as np

from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN
from backcast.core.randomness import imagination, streams, uniform


class LeastMeanSquares:
    """Tensors B (…, D) with y = B z, moved by α (Y − B z) zᵀ, relative to the largest ‖z‖²."""

    def __init__(self, shape, n_inputs, norm):
        self.B, self.norm = np.zeros((*shape, n_inputs)), norm

    def __call__(self, z):
        return self.B @ z

    def learn(self, z, y, alpha):
        self.B += alpha * np.multiply.outer(y - self(z), z) / self.norm


def largest_norm(X):
    return (X**2).sum(axis=1).max()


class LeastSquares:
    """Tensors B (…, D) that minimise Σ ‖Y − B z‖² + ridge ‖B‖², from all that was observed."""

    def __init__(self, shape, n_inputs, ridge):
        self.squares, self.products = ridge * np.eye(n_inputs), np.zeros((*shape, n_inputs))

    def __call__(self, z):
        return self.products @ np.linalg.solve(self.squares, z)

    def learn(self, z, y, alpha):
        self.squares += np.outer(z, z)
        self.products += np.multiply.outer(y, z)


class PlainLinear:
    """Learns from real steps only; the others also learn a model and plan with it."""

    def __init__(self, agent, world, seed=0):
        self.agent, self.world, self.seed, self.A = agent, world, seed, world.n_actions
        self.X = self.features_of(agent.get("features"))
        self.Z = self.features_of(agent.get("model_features") or agent.get("features"))
        self.d, self.D = self.X.shape[1], self.Z.shape[1]
        self.w, self.updates = np.zeros(self.A * self.d), [0, 0]
        self.learned, self.planned = np.zeros_like(self.w), np.zeros_like(self.w)  # updates of each feature

    def features_of(self, recipe):
        """Terminal states without features, or with some that others have too, share a feature of their own."""
        X, terminal = recipe.bind(self.world, self.seed).matrix, self.world.mdp.terminal
        of_others = (X[~terminal] != 0).any(axis=0)
        mixed = terminal & ((X[:, of_others] != 0).any(axis=1) | (X == 0).all(axis=1))
        own = np.sqrt(largest_norm(X) or 1.0) * mixed
        return np.column_stack([np.where(mixed[:, None], 0, X), own]) if mixed.any() else np.array(X)

    def regression(self, *shape):
        if self.agent.get("learn_by") == "rls":
            return LeastSquares(shape, self.D, self.agent.get("ridge", 1e-6))
        return LeastMeanSquares(shape, self.D, largest_norm(self.Z))

    def move(self, n, phi, change):
        """w ← w + change φ, in averages over Σ_j φ_j² n_j: the updates of each feature so far, this one included."""
        if not self.agent.averages:
            self.w += change * phi
            return
        n += phi != 0
        self.w += self.divided(n, phi, change) * phi

    def divided(self, n, phi, change):
        return change / (phi**2 @ n) if phi.any() else 0.0

    def phi(self, s, a):
        return np.kron(np.eye(self.A)[a], self.X[s])

    def q(self, s):
        return self.w.reshape(self.A, self.d) @ self.X[s]

    @property
    def table(self):
        return np.array([self.q(s) for s in range(self.world.n_states)])

    def walk(self, episodes, max_steps=None):
        """All episodes; actions are random, as ε = 1 has it."""
        table, limit = self.world.steps_table, max_steps or self.world.max_steps or np.inf
        of_world, of_agent = streams(self.seed)
        for rates in self.agent.rates(episodes):
            s, t = int(table.draw_start(uniform(of_world))), 0
            ends = self.world.mdp.terminal[s]
            if not ends:
                self.begin(s, rates)
            while not ends and t < limit:
                a = 0
                if self.A > 1:
                    assert uniform(of_agent) < 1
                    a = int(uniform(of_agent) * self.A)
                outcome = table.draw_outcome(s, a, uniform(of_world))
                s2, r = int(table.next_state[outcome]), table.reward[outcome]
                ends = self.world.mdp.terminal[s2]
                self.observe(s, a, r, s2, ends, t == 0, rates)
                s, t = s2, t + 1
        return self

    def observe(self, s, a, r, s2, ends, first, rates):
        self.learn_model(s, a, r, s2, ends, rates[ALPHA_MODEL])
        if self.agent.learn:
            target = r + (0 if ends else self.world.discount * self.q(s2).max())
            self.move(self.learned, self.phi(s, a), rates[ALPHA] * (target - self.q(s)[a]))
            self.updates[0] += 1
        self.plan(s, s2, ends, first, rates[ALPHA_PLAN])

    def begin(self, s, rates):
        pass

    def learn_model(self, s, a, r, s2, ends, alpha):
        pass

    def plan(self, s, s2, ends, first, alpha):
        pass


class PlainBackwardPlanner(PlainLinear):
    """When and from where a backward planner plans, and the reward r ≈ x̃ᵀ Θ z (prediction) or θᵀz (control)."""

    def __init__(self, agent, world, seed=0):
        super().__init__(agent, world, seed)
        self.outcome = self.X if self.A == 1 else np.ones((world.n_states, 1))
        norm = largest_norm(self.outcome) * largest_norm(self.Z)
        self.theta = LeastMeanSquares((), self.outcome.shape[1] * self.D, norm)

    @property
    def Theta(self):
        return self.theta.B.reshape(-1, self.D)

    def learn_reward(self, s, r, s2, alpha):
        self.theta.learn(np.kron(self.outcome[s], self.Z[s2]), r, alpha)

    def plan(self, s, s2, ends, first, alpha):
        if self.agent.plans_from_current:
            self.improve(s2, 0 if ends else self.world.discount, alpha)
            return
        if not first:
            self.improve(s, self.world.discount, alpha)
        if ends and not self.agent.learn:
            self.improve(s2, 0, alpha)


class PlainBackward(PlainBackwardPlanner):
    """The three quantities, each learned by itself."""

    def __init__(self, agent, world, seed=0):
        super().__init__(agent, world, seed)
        n = self.A * self.d
        self.H, self.M = self.regression(n), self.regression(n, n)

    def learn_model(self, s, a, r, s2, ends, alpha):
        phi = self.phi(s, a)
        self.H.learn(self.Z[s2], phi, alpha)
        self.M.learn(self.Z[s2], np.outer(phi, phi), alpha)
        self.learn_reward(s, r, s2, alpha)

    def expectation(self, s):
        return self.H(self.Z[s])

    def second_moment(self, s):
        return self.M(self.Z[s])

    def reward(self, s):
        earned = self.Theta @ self.Z[s]
        return self.second_moment(s) @ earned if self.A == 1 else earned * self.expectation(s)

    def improve(self, s, discount, alpha):
        ahead = discount * self.q(s).max()
        self.w = self.w + alpha * (self.reward(s) + ahead * self.expectation(s) - self.second_moment(s) @ self.w)
        self.updates[1] += 1


class PlainAverages(PlainBackwardPlanner):
    """The same by the weight of each pair that may have led here, by which its update counts."""

    def __init__(self, agent, world, seed=0):
        super().__init__(agent, world, seed)
        self.measure = self.regression(world.n_states * self.A)

    def learn_model(self, s, a, r, s2, ends, alpha):
        self.measure.learn(self.Z[s2], np.eye(self.world.n_states * self.A)[s * self.A + a], alpha)
        self.learn_reward(s, r, s2, alpha)

    def improve(self, s, discount, alpha):
        ahead, weights, earned = discount * self.q(s).max(), self.measure(self.Z[s]), self.Theta @ self.Z[s]
        pairs = [(before, a) for before in range(self.world.n_states) for a in range(self.A)]
        changes = [
            weight * (self.outcome[before] @ earned + ahead - self.q(before)[a])
            for (before, a), weight in zip(pairs, weights, strict=True)
        ]
        for pair, weight in zip(pairs, weights, strict=True):  # all are counted before any is made
            self.planned += abs(weight) * (self.phi(*pair) != 0)
        for pair, weight, change in zip(pairs, weights, changes, strict=True):
            if weight:
                self.w += self.divided(self.planned, self.phi(*pair), alpha * change) * self.phi(*pair)
        self.updates[1] += 1


class PlainNaive(PlainBackwardPlanner):
    """The mean of the features that led here, as if it were what led here."""

    def __init__(self, agent, world, seed=0):
        super().__init__(agent, world, seed)
        self.H = self.regression(self.A * self.d)

    def learn_model(self, s, a, r, s2, ends, alpha):
        self.H.learn(self.Z[s2], self.phi(s, a), alpha)
        self.learn_reward(s, r, s2, alpha)

    def expectation(self, s):
        return self.H(self.Z[s])

    def improve(self, s, discount, alpha):
        self.correct(s, self.expectation(s), discount, alpha)

    def correct(self, s, before, discount, alpha):
        earned = self.Theta @ self.Z[s]
        reward = before @ earned if self.A == 1 else earned[0]
        self.w = self.w + alpha * (reward + discount * self.q(s).max() - before @ self.w) * before
        self.updates[1] += 1


class PlainGaussian(PlainNaive):
    """Draws what led here: the mean, and as many normal numbers as residuals are remembered."""

    def __init__(self, agent, world, seed=0):
        super().__init__(agent, world, seed)
        self.residuals, self.seen, self.stream = [], 0, imagination(seed, 0)

    def learn_model(self, s, a, r, s2, ends, alpha):
        oldest = self.seen % self.agent.get("buffer", 50)
        self.residuals[oldest : oldest + 1] = [self.phi(s, a) - self.expectation(s2)]
        self.seen += 1
        super().learn_model(s, a, r, s2, ends, alpha)

    def improve(self, s, discount, alpha):
        mean, n = self.expectation(s), len(self.residuals)
        for _ in range(self.agent.get("sample", 1)):
            before = mean.copy()
            for residual in self.residuals:
                length, angle = -2 * np.log(1 - uniform(self.stream)), 2 * np.pi * uniform(self.stream)
                before += np.sqrt(length) * np.cos(angle) * residual / np.sqrt(n)
            self.correct(s, before, discount, alpha)


class PlainForward(PlainLinear):
    """F_a z ≈ E[x'], zero where the episode ends, and ρ_aᵀz ≈ E[R]."""

    def __init__(self, agent, world, seed=0):
        super().__init__(agent, world, seed)
        self.F, self.rho = ([self.regression(*shape) for _ in range(self.A)] for shape in ((self.d,), ()))

    def begin(self, s, rates):
        if self.agent.plans_from_current and not self.agent.learn:
            self.improve(s, rates[ALPHA_PLAN])

    def learn_model(self, s, a, r, s2, ends, alpha):
        self.F[a].learn(self.Z[s], self.X[s2] * (not ends), alpha)
        self.rho[a].learn(self.Z[s], r, alpha)

    def plan(self, s, s2, ends, first, alpha):
        if not self.agent.plans_from_current:
            self.improve(s, alpha)
        elif not ends:
            self.improve(s2, alpha)

    def expectation(self, s):
        return np.array([F(self.Z[s]) for F in self.F])

    def improve(self, s, alpha):
        for a in range(self.A):
            best = (self.w.reshape(self.A, self.d) @ self.F[a](self.Z[s])).max()
            target = self.rho[a](self.Z[s]) + self.world.discount * best
            self.move(self.planned, self.phi(s, a), alpha * (target - self.q(s)[a]))
            self.updates[1] += 1


def twin_of(agent, world, seed=0):
    if agent.kind in ("td", "q"):
        return PlainLinear(agent, world, seed)
    if agent.kind == "forward":
        return PlainForward(agent, world, seed)
    if agent.averages:
        return PlainAverages(agent, world, seed)
    return {"naive": PlainNaive, "gaussian": PlainGaussian}.get(agent.get("model"), PlainBackward)(agent, world, seed)
