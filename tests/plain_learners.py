"""Monte Carlo, traces and expected traces in plain NumPy: full tables, as the algorithms are printed."""

import numpy as np

SMALLEST = 1e-8


class PlainLearner:
    """What the twins share: q (S, A), and how many values were updated."""

    def __init__(self, n_states, n_actions, discount):
        self.q, self.discount, self.updates = np.zeros((n_states, n_actions)), discount, 0

    def delta(self, s, a, r, s2, ends):
        return (r if ends else r + self.discount * self.q[s2].max()) - self.q[s, a]

    def finish(self, alpha, s, ends):
        pass


class PlainMonteCarlo(PlainLearner):
    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        self.episode = [*([] if first else self.episode), (s, a, r)]

    def finish(self, alpha, s, ends):
        g = 0.0 if ends else self.q[s].max()
        for s, a, r in reversed(self.episode):
            g = r + self.discount * g
            self.q[s, a] += alpha * (g - self.q[s, a])
            self.updates += 1


class PlainTraces(PlainLearner):
    def __init__(self, n_states, n_actions, discount, lam, replacing=False, smallest=SMALLEST):
        super().__init__(n_states, n_actions, discount)
        self.decay, self.replacing, self.smallest = discount * lam, replacing, smallest
        self.e = np.zeros_like(self.q)

    def visit(self, s, a, first):
        greedy = self.q[s, a] == self.q[s].max()
        self.e *= self.decay if greedy and not first else 0.0
        self.e[self.e < self.smallest] = 0.0
        self.e[s, a] = 1.0 if self.replacing else self.e[s, a] + 1.0

    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        delta = self.delta(s, a, r, s2, ends)
        self.visit(s, a, first)
        self.q += alpha * delta * self.e
        self.updates += np.count_nonzero(self.e)


class PlainExpectedTraces(PlainTraces):
    def __init__(self, n_states, n_actions, discount, lam, smallest=SMALLEST):
        super().__init__(n_states, n_actions, discount, lam, False, smallest)
        self.z = np.zeros((*self.q.shape, *self.q.shape))
        self.visits = np.zeros_like(self.q)

    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        delta = self.delta(s, a, r, s2, ends)
        self.visit(s, a, first)
        self.visits[s, a] += 1
        beta = max(beta, 1 / self.visits[s, a])
        z = self.z[s, a]
        z *= 1 - beta
        z[z < self.smallest] = 0.0
        z += beta * self.e
        self.q += alpha * delta * z
        self.updates += np.count_nonzero(z)
