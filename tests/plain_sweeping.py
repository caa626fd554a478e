"""The sweeping algorithms as they are printed, with dictionaries and a search for the maximum instead of a heap.

Two states that are equally far from a reward have priorities that differ by rounding errors only, and which one comes
first depends on how sums were formed. So the expectations are formed here in the same order as in the kernels, and
`deviation` says how far they are from the sums over all transitions ever seen.
"""

import numpy as np

from backcast.twins.dense import Counter

NEGLIGIBLE, NEAR = 1e-9, 1e-6


class Plain:
    """What all versions share: a model of counts, TD or Q-learning beside, and items that wait with a priority."""

    def __init__(self, agent, setup):
        self.n_actions, self.discount = setup.n_actions, setup.discount
        self.backups, self.learns, self.forgets = agent.get("sample", 5), agent.learn, agent.get("forget", 0.0)
        self.q = np.zeros((setup.n_states, setup.n_actions))
        self.expected = np.zeros_like(self.q)
        self.V = np.zeros(setup.n_states)  # as predecessors know it
        self.transitions = {}  # (s, a) → [(r, γ or 0, s'), …]
        self.times = {}  # (s, a) → how often it was seen, less what is forgotten
        self.ways = {}  # s' → {(s, a): [count, mean discount]}
        self.waiting, self.observed = {}, 0.0
        self.updates = [0, 0]
        self.learned, self.planned = (Counter(agent.averages, *self.q.shape) for _ in range(2))

    def observe(self, rates, s, a, r, s2, ends, first):
        seen, before = self.transitions.setdefault((s, a), []), self.ways.setdefault(s2, {})
        discount = 0.0 if ends else self.discount
        for pairs in self.ways.values():
            if (s, a) in pairs:
                pairs[s, a][0] *= 1 - self.forgets
        self.times[s, a] = (1 - self.forgets) * self.times.get((s, a), 0.0) + 1
        seen.append((r, discount, s2))
        way = before.setdefault((s, a), [0, 0.0])
        way[0] += 1
        way[1] += 1 / way[0] * (discount - way[1])
        target = r if ends else r + discount * self.V[s2]
        self.observed = max(self.observed, abs(target))
        self.expected[s, a] += 1 / self.times[s, a] * (target - self.expected[s, a])
        if self.learns:
            target = r if ends else r + discount * self.q[s2].max()
            self.q[s, a] += rates[0] * self.learned.share((s, a)) * (target - self.q[s, a])
            self.updates[0] += 1
        self.plan(s, a, rates[2])

    def next(self):
        """The item with the largest priority; the smallest of them if there are several."""
        if not self.waiting:
            return None
        item = min(self.waiting, key=lambda item: (-self.waiting[item], item))
        del self.waiting[item]
        return item

    def wait(self, item, change, priority):
        self.waiting.pop(item, None)
        if change > NEGLIGIBLE * self.observed:
            self.waiting[item] = priority

    def before(self, s):
        return self.ways.get(s, {})

    def chance(self, pair, s):
        return self.ways[s][pair][0] * (1 / self.times[pair])

    def tell(self, s, value):
        """V(s) ← value, in the expectations of all that led to s."""
        change, self.V[s] = value - self.V[s], value
        for pair, (_, discount) in self.before(s).items():
            self.expected[pair] += self.chance(pair, s) * discount * change
            self.updates[1] += change != 0

    def back_up(self, s):
        for a in range(self.n_actions):
            if (s, a) in self.transitions:
                self.q[s, a] = self.expected[s, a]
                self.updates[1] += 1

    def deviation(self):
        """How far the expectations are from sums over all that was seen."""
        sums = {
            pair: np.average(
                [r + discount * self.V[s2] for r, discount, s2 in seen],
                weights=(1 - self.forgets) ** np.arange(len(seen))[::-1],
            )
            for pair, seen in self.transitions.items()
        }
        return max(abs(self.expected[pair] - total) for pair, total in sums.items())


class PlainMooreAtkeson(Plain):
    def plan(self, s, a, alpha):
        self.waiting[s] = np.inf
        for _ in range(self.backups):
            if (s := self.next()) is None:
                return
            old = self.V[s]
            self.back_up(s)
            self.tell(s, self.q[s].max())
            change = abs(self.V[s] - old)
            for pair in self.before(s):
                priority = self.chance(pair, s) * change
                if priority > NEGLIGIBLE * self.observed and priority > self.waiting.get(pair[0], 0.0):
                    self.waiting[pair[0]] = priority


class PlainPengWilliams(Plain):
    def plan(self, s, a, alpha):
        self.tell_all(s)
        self.compare((s, a))
        moved = set()
        for _ in range(self.backups):
            if (pair := self.next()) is None:
                break
            moved.add(pair)
            self.q[pair] += alpha * self.planned.share(pair) * (self.expected[pair] - self.q[pair])
            self.updates[1] += 1
            self.tell_all(pair[0])
        self.updates[1] += not self.learns and (s, a) not in moved

    def tell_all(self, s):
        if self.q[s].max() == self.V[s]:
            return
        self.tell(s, self.q[s].max())
        for pair in self.before(s):
            self.compare(pair)

    def compare(self, pair):
        difference = abs(self.expected[pair] - self.q[pair])
        self.wait(pair, difference, difference)


class PlainSmallBackups(Plain):
    """V of `Plain` is what the paper calls U, and its V is the largest q, which is the table of expectations."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.learns, self.expected = False, self.q

    def plan(self, s, a, alpha):
        self.updates[1] += 1
        self.consider(s)
        for _ in range(self.backups):
            if (s := self.next()) is None:
                return
            self.tell(s, self.q[s].max())
            for earlier, _ in self.before(s):
                self.consider(earlier)

    def consider(self, s):
        priority = abs(self.q[s].max() - self.V[s])
        self.wait(s, priority, priority)


class PlainMcMahanGordon(PlainSmallBackups):
    largest = -np.inf

    def tell(self, s, value):
        self.largest = max(self.largest, value)
        super().tell(s, value)

    def consider(self, s):
        new = self.q[s].max()
        residual, cost_to_go = abs(new - self.V[s]), max(self.largest, new) - new + NEAR * self.observed
        self.wait(s, residual, residual / cost_to_go if residual else 0.0)


TWINS = {
    "moore-atkeson": PlainMooreAtkeson,
    "peng-williams": PlainPengWilliams,
    "mcmahan-gordon": PlainMcMahanGordon,
    "small-backups": PlainSmallBackups,
}
