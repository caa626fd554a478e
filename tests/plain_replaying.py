"""Dyna and replay as in the books: lists, dicts and dense arrays, with random numbers of the kernels' own stream."""

from collections import defaultdict

import numpy as np

from backcast.randomness import uniform


class PlainPlanning:
    """TD(0) or Q-learning from real steps, then `planning_step` so many times."""

    def __init__(self, agent, setup, samples=5):
        self.q = np.zeros((setup.n_states, setup.n_actions))
        self.learns, self.discount, self.stream = agent.learn, setup.discount, setup.stream()
        self.samples = agent.get("sample", samples)
        self.updates = [0, 0]

    def observe(self, rates, s, a, r, s2, ends):
        self.remember(s, a, r, s2, ends)
        if self.learns:
            self.q[s, a] += rates[0] * self.error(s, a, r, s2, ends)
            self.updates[0] += 1
        for _ in range(self.samples):
            self.planning_step(rates[2])
            self.updates[1] += 1

    def error(self, s, a, r, s2, ends):
        return r + (0 if ends else self.discount * self.q[s2].max()) - self.q[s, a]

    def choose(self, n):
        return int(uniform(self.stream) * n)


class PlainDyna(PlainPlanning):
    """Tabular Dyna-Q, with a model that counts."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.rewards = defaultdict(dict)  # (s, a) -> {s': rewards seen}
        self.ended = set()
        self.pairs = []

    def remember(self, s, a, r, s2, ends):
        self.rewards[s, a].setdefault(s2, []).append(r)
        if ends:
            self.ended.add(s2)
        if (s, a) not in self.pairs:
            self.pairs.append((s, a))

    def planning_step(self, alpha):
        s, a = self.pairs[self.choose(len(self.pairs))]
        r, s2 = self.imagine(s, a)
        self.q[s, a] += alpha * self.error(s, a, r, s2, s2 in self.ended)

    def imagine(self, s, a):
        """Mean reward and next state, drawn by their frequency."""
        seen = self.rewards[s, a]
        times = np.array([len(rewards) for rewards in seen.values()])
        bounds = np.cumsum(times / times.sum())
        drawn = min(int(np.searchsorted(bounds, uniform(self.stream), side="right")), len(times) - 1)
        s2 = list(seen)[drawn]
        return np.mean(seen[s2]), s2


class PlainDynaPlus(PlainDyna):
    """Dyna-Q+: a bonus for what was long not tried, and a guess for what never was."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.kappa, self.now, self.tried = agent.get("bonus", 1e-4), 0, defaultdict(int)

    def remember(self, s, a, r, s2, ends):
        if all(state != s for state, _ in self.pairs):
            self.pairs += [(s, b) for b in range(self.q.shape[1])]
        super().remember(s, a, r, s2, ends)
        self.now += 1
        self.tried[s, a] = self.now

    def imagine(self, s, a):
        r, s2 = super().imagine(s, a) if (s, a) in self.tried else (0.0, s)
        return r + self.kappa * np.sqrt(self.now - self.tried.get((s, a), 0)), s2


class PlainReplay(PlainPlanning):
    """Uniform experience replay."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.places, self.memory, self.steps = agent.get("buffer", 10_000), [], 0

    def remember(self, *transition):
        if self.steps < self.places:
            self.memory.append(transition)
        else:
            self.memory[self.steps % self.places] = transition
        self.steps += 1

    def planning_step(self, alpha):
        s, a, *rest = self.memory[self.choose(len(self.memory))]
        self.q[s, a] += alpha * self.error(s, a, *rest)


class PlainPrioritizedReplay(PlainReplay):
    """Proportional prioritization with importance weights, β = 1/2."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.exponent, self.priority, self.most = agent.get("exponent", 0.6), np.zeros(self.places), 1.0

    def remember(self, *transition):
        self.priority[self.steps % self.places] = self.most
        super().remember(*transition)

    def planning_step(self, alpha):
        n = len(self.memory)
        chances = self.priority[:n] ** self.exponent
        chances = chances / chances.sum()
        j = min(int(np.searchsorted(np.cumsum(chances), uniform(self.stream), side="right")), n - 1)
        weights = (n * chances) ** -0.5
        s, a, *rest = self.memory[j]
        error = self.error(s, a, *rest)
        self.q[s, a] += alpha * weights[j] / weights.max() * error
        self.priority[j] = abs(error) + 1e-6
        self.most = max(self.most, self.priority[j])
