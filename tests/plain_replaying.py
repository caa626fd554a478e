"""Dyna and replay as in the books: lists, dicts and dense arrays, with random numbers of the kernels' own stream."""

import math
from collections import defaultdict

import numpy as np

from backcast.core.randomness import uniform
from backcast.twins.dense import Counter


class PlainPlanning:
    """TD(0) or Q-learning from real steps, then `planning_step` so many times."""

    def __init__(self, agent, setup, samples=5):
        self.q = np.zeros((setup.n_states, setup.n_actions))
        self.learns, self.discount, self.stream = agent.learn, setup.discount, setup.stream()
        self.samples = agent.get("sample", samples)
        self.updates = [0, 0]
        self.learned, self.planned = (Counter(agent.averages, *self.q.shape) for _ in range(2))

    def observe(self, rates, s, a, r, s2, ends):
        self.remember(s, a, r, s2, ends)
        if self.learns:
            self.q[s, a] += rates[0] * self.learned.share((s, a)) * self.error(s, a, r, s2, ends)
            self.updates[0] += 1
        for _ in range(self.samples):
            self.planning_step(rates[2])
            self.updates[1] += 1

    def error(self, s, a, r, s2, ends):
        return r + (0 if ends else self.discount * self.q[s2].max()) - self.q[s, a]

    def choose(self, n):
        return int(uniform(self.stream) * n)


class PlainDyna(PlainPlanning):
    """Tabular Dyna-Q, with a model that counts, what is k observations of (s, a) old (1 − forget)ᵏ times."""

    forgets = 0.0

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.rewards = defaultdict(dict)  # (s, a) -> {s': [weight, reward] of all seen}
        self.ended = set()
        self.pairs = []
        self.forgets = agent.get("forget", self.forgets)

    def remember(self, s, a, r, s2, ends):
        for earlier in self.rewards[s, a].values():
            for entry in earlier:
                entry[0] *= 1 - self.forgets
        self.rewards[s, a].setdefault(s2, []).append([1.0, r])
        if ends:
            self.ended.add(s2)
        if (s, a) not in self.pairs:
            self.pairs.append((s, a))

    def planning_step(self, alpha):
        s, a = self.pairs[self.choose(len(self.pairs))]
        r, s2 = self.imagine(s, a)
        self.q[s, a] += alpha * self.planned.share((s, a)) * self.error(s, a, r, s2, s2 in self.ended)

    def imagine(self, s, a):
        """Mean reward and next state, drawn by their frequency."""
        seen = self.rewards[s, a]
        times = np.array([sum(weight for weight, _ in rewards) for rewards in seen.values()])
        bounds = np.cumsum(times / times.sum())
        drawn = min(int(np.searchsorted(bounds, uniform(self.stream), side="right")), len(times) - 1)
        s2 = list(seen)[drawn]
        weights, rewards = np.transpose(seen[s2])
        return np.average(rewards, weights=weights), s2


class PlainDynaPlus(PlainDyna):
    """Dyna-Q+: a bonus for what was long not tried, and a guess for what never was."""

    forgets = 0.5

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
        self.q[s, a] += alpha * self.planned.share((s, a)) * self.error(s, a, *rest)


class PlainPrioritizedReplay(PlainReplay):
    """Proportional prioritization with importance weights, β = 1/2."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.exponent, self.priority, self.most = agent.get("exponent", 0.6), np.zeros(self.places), 1.0
        self.largest = 0.0  # reward

    def remember(self, *transition):
        self.priority[self.steps % self.places] = self.most
        self.largest = max(self.largest, abs(transition[2]))
        super().remember(*transition)

    def planning_step(self, alpha):
        n = len(self.memory)
        chances = self.priority[:n] ** self.exponent
        chances = chances / chances.sum()
        j = min(int(np.searchsorted(np.cumsum(chances), uniform(self.stream), side="right")), n - 1)
        weights = (n * chances) ** -0.5
        s, a, *rest = self.memory[j]
        error = self.error(s, a, *rest)
        self.q[s, a] += alpha * self.planned.share((s, a), weights[j] / weights.max()) * error
        self.priority[j] = abs(error) / (self.largest or 1.0) + 1e-6
        self.most = max(self.most, self.priority[j])


def textbook_dyna_plus(world, seed, steps, bonus=1e-3, samples=10, alpha=1.0, epsilon=0.1, tries_all=True):
    """The reward that Dyna-Q+ of Sutton and Barto (2018, section 8.3) gains in a deterministic maze that changes.

    The model is a dictionary whose entries are overwritten. With `tries_all`, the actions never tried in a state that
    was visited are imagined, too; without bonus and `tries_all` it is Dyna-Q. It shares nothing with the kernels but
    the drawing of the maze.
    """
    rng, gained = np.random.default_rng(seed), 0.0
    q, model, tried = [[0.0] * 4 for _ in range(world.n_states)], {}, {}
    (start,) = np.flatnonzero(world.layout.ravel() == "S")
    s = start
    for now in range(1, steps + 1):
        cells = world.layout if now <= world.later.step else world.later.world.layout
        best = [a for a in range(4) if q[s][a] == max(q[s])]
        a = rng.integers(4) if rng.random() < epsilon else best[rng.integers(len(best))]
        s2 = _next_cell(cells, s, a)
        r = float(cells.flat[s2] == "G")
        gained += r
        q[s][a] += alpha * (r + (1 - r) * world.discount * max(q[s2]) - q[s][a])
        for b in range(4) if tries_all else ():
            model.setdefault((s, b), (0.0, s))
        model[s, a], tried[s, a] = (r, s2), now
        pairs = list(model)
        for x, b in (pairs[drawn] for drawn in rng.integers(len(pairs), size=samples).tolist()):
            earns, leads_to = model[x, b]
            target = earns + bonus * math.sqrt(now - tried.get((x, b), 0))
            q[x][b] += alpha * (target + (1 - earns) * world.discount * max(q[leads_to]) - q[x][b])
        s = start if r else s2
    return gained


def _next_cell(cells, s, a):
    (height, width), (down, right) = cells.shape, ((-1, 0), (0, 1), (1, 0), (0, -1))[a]
    row, column = s // width + down, s % width + right
    inside = 0 <= row < height and 0 <= column < width
    return row * width + column if inside and cells[row, column] != "X" else s


TWINS = {
    "dyna": PlainDyna,
    "dyna-plus": PlainDynaPlus,
    "replay": PlainReplay,
    "prioritized-replay": PlainPrioritizedReplay,
}
