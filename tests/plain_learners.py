"""n-step methods, Monte Carlo, traces and expected traces in plain NumPy: full tables, as they are printed."""

import numpy as np

from backcast.twins.dense import Counter

SMALLEST = 1e-8


class PlainLearner:
    """What the twins share: q (S, A), how many values were updated, and ε as it is at the moment."""

    def __init__(self, n_states, n_actions, discount, averages=False):
        self.q, self.discount, self.updates = np.zeros((n_states, n_actions)), discount, 0
        self.learned = Counter(averages, n_states, n_actions)
        self.epsilon = 0.0

    def expected(self, s):
        policy = (1 - self.epsilon) * (self.q[s] == self.q[s].max())
        policy = policy / (self.q[s] == self.q[s].max()).sum() + self.epsilon / len(self.q[s])
        return policy @ self.q[s]

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
            self.q[s, a] += alpha * self.learned.share((s, a)) * (g - self.q[s, a])
            self.updates += 1


class PlainNStep(PlainLearner):
    """n-step TD and Watkins's n-step Q-learning: every step waits until its return is known.

    All of an episode is kept: (pair, reward, state after it) of each step, and `waiting`, the first that was not
    learned from.
    """

    def __init__(self, n_states, n_actions, discount, n, averages=False):
        super().__init__(n_states, n_actions, discount, averages)
        self.n = n

    def value(self, s):
        return self.q[s].max()

    def learn(self, alpha, end, v):
        """The step that waits longest: its return over the rewards before step number `end`, and v there."""
        rewards = [r for _, r, _ in self.steps[self.waiting : end]]
        g = sum(self.discount**k * r for k, r in enumerate(rewards)) + self.discount ** len(rewards) * v
        pair = self.steps[self.waiting][0]
        self.q[pair] += alpha * self.learned.share(pair) * (g - self.q[pair])
        self.waiting += 1
        self.updates += 1

    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        if first:
            self.steps, self.waiting = [], 0
        if self.q[s, a] < self.q[s].max():
            best = self.q[s].max()
            while self.waiting < len(self.steps):
                self.learn(alpha, len(self.steps), best)
        self.steps.append(((s, a), r, s2))
        if len(self.steps) - self.waiting == self.n:
            self.learn(alpha, len(self.steps), 0.0 if ends else self.value(s2))

    def finish(self, alpha, s, ends):
        v = 0.0 if ends else self.value(s)
        while self.waiting < len(self.steps):
            self.learn(alpha, len(self.steps), v)


class PlainExpectedSarsa(PlainNStep):
    def value(self, s):
        return self.expected(s)

    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        if first:
            self.steps, self.waiting = [], 0
        self.steps.append(((s, a), r, s2))
        if len(self.steps) - self.waiting == self.n:
            self.learn(alpha, len(self.steps), 0.0 if ends else self.expected(s2))


class PlainSarsa(PlainExpectedSarsa):
    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        if first:
            self.steps, self.waiting = [], 0
        if len(self.steps) - self.waiting == self.n:
            self.learn(alpha, len(self.steps), self.q[s, a])
        self.steps.append(((s, a), r, s2))


class PlainTraces(PlainLearner):
    def __init__(self, n_states, n_actions, discount, lam, replacing=False, smallest=SMALLEST, averages=False):
        super().__init__(n_states, n_actions, discount, averages)
        self.decay, self.replacing, self.smallest = discount * lam, replacing, smallest
        self.e, self.visits = np.zeros_like(self.q), np.zeros_like(self.q)

    def visit(self, s, a, first):
        greedy = self.q[s, a] == self.q[s].max()
        self.e *= self.decay if greedy and not first else 0.0
        self.e[self.e < self.smallest] = 0.0
        self.e[s, a] = 1.0 if self.replacing else self.e[s, a] + 1.0
        self.visits[s, a] += 1

    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        delta = self.delta(s, a, r, s2, ends)
        self.visit(s, a, first)
        self.credit(alpha * delta * self.e)
        self.updates += np.count_nonzero(self.e)

    def credit(self, change):
        """In averages a visit is one update."""
        self.q += change / np.maximum(1, self.visits) if self.learned.averages else change


class PlainExpectedTraces(PlainTraces):
    def __init__(self, n_states, n_actions, discount, lam, smallest=SMALLEST, averages=False):
        super().__init__(n_states, n_actions, discount, lam, False, smallest, averages)
        self.z = np.zeros((*self.q.shape, *self.q.shape))

    def observe(self, alpha, beta, s, a, r, s2, ends, first):
        delta = self.delta(s, a, r, s2, ends)
        self.visit(s, a, first)
        beta = beta / self.visits[s, a] if self.learned.averages else max(beta, 1 / self.visits[s, a])
        z = self.z[s, a]
        z *= 1 - beta
        z[z < self.smallest] = 0.0
        z += beta * self.e
        self.credit(alpha * delta * z)
        self.updates += np.count_nonzero(z)
