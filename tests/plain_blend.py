"""`blend` as its algorithm is printed: dictionaries, lists of all that was seen, and a search for the maximum.

Priorities that differ by rounding errors alone would decide which state comes first. So sums are formed in the order
of the kernels, and `deviation` says how far the expectations are from those of all transitions ever seen.
"""

import numpy as np

NEGLIGIBLE = 1e-9


class PlainBlend:
    def __init__(self, agent, setup):
        self.n_states, self.n_actions, self.discount = setup.n_states, setup.n_actions, setup.discount
        self.backups, self.kappa = agent.get("sample", 5), agent.get("gate", 1.0)
        pieces = agent.get("prior", True)
        pieces = ("shrinkage+unseen+untried" if pieces else "") if isinstance(pieces, bool) else pieces
        prediction = self.n_actions == 1
        self.shrinks, self.assumes = "shrinkage" in pieces and prediction, "unseen" in pieces and prediction
        self.hopes = "untried" in pieces and not prediction
        self.q = np.zeros((self.n_states, self.n_actions))
        self.v, self.policy = np.zeros(self.n_states), np.zeros(self.n_states, dtype=int)
        self.E, self.edges, self.told = {}, {}, {}  # edges: (s, a) → {s': [count, mean reward, mean discount]}
        self.announced, self.reach = np.zeros(self.n_states), np.zeros(self.n_states)
        self.before = {}  # s' → pairs that led there, in the order in which they did first
        self.waiting, self.steps, self.brings, self.updates = {}, 0, 0.0, 0
        self.tries, self.scatter, self.met, self.ended = {}, {}, np.zeros(self.n_states, dtype=int), set()
        self.assumed, self.found, self.mean, self.within, self.between = 0.0, [], 0.0, 0.0, 0.0
        self.sum = self.squares = self.observed = 0.0

    # the model

    def count(self, pair, r, s2, ends):
        edge = self.edges.setdefault(pair, {}).setdefault(s2, [0, 0.0, 0.0])
        edge[0] += 1
        edge[1] += 1 / edge[0] * (r - edge[1])
        edge[2] += 1 / edge[0] * ((0.0 if ends else self.discount) - edge[2])
        if pair not in (led := self.before.setdefault(s2, [])):
            led.append(pair)

    def share(self, pair):
        return 1 / sum(edge[0] for edge in self.edges[pair].values())

    def deviation(self):
        """How far E is from the sum over all successors, with what the edges were told; and the sums of all E."""
        sums = {
            pair: self.share(pair) * sum(n * (r + c * self.told[pair, s2]) for s2, (n, r, c) in edges.items())
            for pair, edges in self.edges.items()
        }
        E = np.array(list(self.E.values()))
        sums_of_all = abs(self.sum - E.sum()), abs(self.squares - E @ E)
        return max((*sums_of_all, *(abs(self.E[pair] - total) for pair, total in sums.items())))

    # the planner

    def begin(self, rates, s):
        self.meet(s, False)

    def observe(self, rates, s, a, r, s2, ends, first):
        pair = s, a
        shown = self.q[pair]
        self.count(pair, r, s2, ends)
        self.meet(s2, ends)
        self.foresee(pair, r, s2, ends)
        gained = self.wait(s)
        self.steps += 1
        self.brings += max(1 / self.steps, 0.01) * (gained - self.brings)
        if gained > NEGLIGIBLE * self.observed or self.n_actions == 1:
            self.waiting.pop(s, None)
            self.updates += self.commit(s)
        if self.n_actions > 1 and not ends:
            self.wait(s2)
        for _ in range(self.backups):
            if not self.waiting:
                break
            x = min(self.waiting, key=lambda x: (-self.waiting[x], x))
            if self.waiting[x] < self.kappa * self.brings:
                break
            del self.waiting[x]
            self.updates += self.commit(x)
        self.updates += self.q[pair] == shown

    def finish(self, rates, s, ends):
        self.assume()

    def foresee(self, pair, r, s2, ends):
        expected, share = 0.0, self.share(pair)
        for to, (n, reward, discount) in self.edges[pair].items():
            self.told[pair, to] = self.v[to]
            expected += n * (reward + discount * self.v[to])
            if to == s2:
                self.reach[s2] = max(self.reach[s2], n * share * discount)
        expected *= share
        target = r if ends else r + self.discount * self.v[s2]
        self.observed = max(self.observed, abs(target))
        self.weigh(pair, expected, target, share)
        self.E[pair] = expected

    def expect(self, s, a):
        return self.E.get((s, a), self.mean if self.hopes else 0.0)

    def best(self, s):
        return max(range(self.n_actions), key=lambda a: (self.expect(s, a), a == self.policy[s], -a))

    def wait(self, s):
        followed = self.expect(s, self.policy[s])
        promised = abs(followed - self.v[s])
        if self.n_actions > 1:
            promised = max(promised, self.expect(s, self.best(s)) - followed)
        self.waiting.pop(s, None)
        if promised > NEGLIGIBLE * self.observed:
            self.waiting[s] = promised
        return promised

    def commit(self, s):
        value = self.expect(s, self.policy[s])
        if self.n_actions > 1 and self.expect(s, self.best(s)) - value >= abs(value - self.v[s]):
            self.policy[s], value = self.best(s), self.expect(s, self.best(s))
        self.v[s] = value
        updates = self.show(s)
        if self.n_actions > 1:
            self.wait(s)
        return updates + self.tell(s)

    def show(self, s):
        value, shown, updates = self.v[s], self.v[s], 0
        if self.n_actions == 1:
            shown = self.shrunk(s)
        if self.q[s, self.policy[s]] != shown:
            self.q[s, self.policy[s]] = shown
            updates += 1
        for a in range(self.n_actions):
            if a != self.policy[s] and self.q[s, a] > value:
                self.q[s, a] = min(value - 1e-12 * (self.observed + abs(value)), self.expect(s, a))
                updates += 1
        return updates

    def tell(self, s):
        value, least = self.v[s], self.kappa * self.brings
        news = abs(value - self.announced[s])
        if self.backups == 0 or news == 0 or news * self.reach[s] < least:
            return 0
        self.announced[s], reach, updates = value, 0.0, 0
        for pair in self.before.get(s, []):
            n, _, discount = self.edges[pair][s]
            weight = n * self.share(pair) * discount
            reach = max(reach, weight)
            change = weight * (value - self.told[pair, s])
            if change != 0 and abs(change) >= least:
                self.told[pair, s] = value
                self.revise(self.E[pair], self.E[pair] + change)
                self.E[pair] += change
                self.wait(pair[0])
                updates += 1
        self.reach[s] = reach
        return updates

    # the prior

    def meet(self, s, ends):
        if not self.assumes:
            return
        self.met[s] += 1
        if ends:
            self.ended.add(s)
            if self.q[s, 0] != 0:
                self.q[s, 0] = 0.0
                self.updates += 1

    def weigh(self, pair, expected, target, share):
        n = self.tries[pair] = self.tries.get(pair, 0) + 1
        if n > 1:
            others = (expected - share * target) / (1 - share)
            self.scatter[pair] = self.scatter.get(pair, 0.0) + (target - others) ** 2 * (n - 1) / n
        self.revise(self.E.get(pair, 0.0), expected)
        pairs = len(self.E.keys() | {pair})
        if pairs < 2:
            return
        own = [self.scatter[each] / (tries - 1) for each, tries in self.tries.items() if tries > 1]
        mean = self.sum / pairs
        variance = max(self.squares - mean * self.sum, 0.0) / (pairs - 1)
        self.within = (sum(own) + 5 * variance) / (len(own) + 5)
        inverse = np.mean([1 / tries for tries in self.tries.values()])
        self.between = max(variance - self.within * inverse, 0.1 * variance)
        self.mean = to_zero(mean, variance, pairs)

    def revise(self, before, after):
        self.sum += after - before
        self.squares += after * after - before * before

    def shrunk(self, s):
        shown, n = self.v[s], self.tries.get((s, 0), 0)
        if self.shrinks and n > 0 and self.between > 0:
            k = (self.scatter.get((s, 0), 0.0) + 5 * self.within) / (n + 4) / self.between
            shown = (n * self.v[s] + k * self.mean) / (n + k)
        if self.assumes and self.met[s] == 1:
            self.found.append(shown)
        return shown

    def assume(self):
        if not self.assumes:
            return
        ends = sorted(self.ended)
        inner, ends = self.unseen(np.delete(np.arange(self.n_states), ends)), self.unseen(ends)
        value = inner / (inner + ends) * self.recent() if inner else 0.0
        if value == self.assumed or abs(value - self.assumed) < self.kappa * self.brings:
            return
        self.assumed = value
        self.q[self.met == 0, 0] = value
        self.updates += int((self.met == 0).sum())

    def unseen(self, states):
        once, twice = (np.sum(self.met[states] == n) for n in (1, 2))
        return once * (once - 1) / (2 * (twice + 1))

    def recent(self):
        mean = squares = 0.0
        for n, shown in enumerate(self.found, start=1):
            mean += max(1 / n, 1 / 20) * (shown - mean)
            squares += max(1 / n, 1 / 20) * (shown * shown - squares)
        n = min(len(self.found), 20)
        return 0.5 * mean if n < 2 else to_zero(mean, max(squares - mean * mean, 0.0), n)


def to_zero(mean, variance, n):
    return 0.0 if mean == 0 else mean * max(0.0, 1 - variance / (n * mean * mean))
