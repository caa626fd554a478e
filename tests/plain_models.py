"""Backward agents in plain Python: full tables, the whole past in a list, every planning step as it is written down.

The reference for `backcast.models.extended`, `backcast.models.lambda_td` and `backcast.planners.selective`. It draws
random numbers in the same order, from streams of its own.
"""

import numpy as np

from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN, EPSILON
from backcast.core.randomness import uniform
from backcast.models.options import option_chances, per_state
from backcast.twins.dense import Counter, softmax


class PlainBackward:
    """q (S, A), and a backward model over any number of steps as tables (S, S·A)."""

    def __init__(self, agent, setup):
        self.agent, self.S, self.A, self.discount = agent, setup.n_states, setup.n_actions, setup.discount
        self.q = np.zeros((self.S, self.A))
        self.counts = agent.get("model", "counts" if agent.get("conditioned") else "softmax") == "counts"
        pairs = self.S * self.A
        self.logits, self.count = np.zeros((self.S, pairs)), np.zeros((self.S, pairs))
        self.reward, self.carried = np.zeros((self.S, pairs)), np.zeros((self.S, pairs))
        self.seen = np.zeros((self.S, pairs), dtype=bool)
        self.order = [[] for _ in range(self.S)]  # pairs in the order in which they were first observed
        self.arrivals, self.restarts = np.zeros(self.S), np.zeros((self.S, self.S))
        self.ends_seen = [[] for _ in range(self.S)]
        self.past, self.ended, self.told = [], None, [False, False]
        self.model_stream, self.plan_stream = setup.stream(1), setup.stream()
        self.made = [0, 0]
        self.learned, self.planned = Counter(agent.averages, self.S, self.A), Counter(agent.averages, pairs)
        self.observed = Counter(agent.averages, self.S, pairs)

    def begin(self, rates, s):
        """The end of the last episode leads to the first state of this one."""
        self.restart(s, rates[ALPHA_MODEL])
        if self.agent.plans_from_current and self.told[0]:
            self.plan_from(s, False, rates[ALPHA_PLAN])

    def restart(self, s, alpha):
        if self.ended is None:
            self.past = []
            self.told = [False, self.told[0]]
        else:
            self.past.append((self.ended, None, 0.0, 0.0, 1.0))
            self.arrive(s, alpha)

    # ------------------------------------------------------------------ model

    def ratio(self, s, a, rates):
        option, q = self.agent.get("option"), self.q[s]
        greedy = (q == q.max()) / (q == q.max()).sum()
        behaviour = rates[EPSILON] / self.A + (1 - rates[EPSILON]) * greedy[a]
        if option is not None and option.policy is not None:
            return option.policy[s][a] / behaviour
        return greedy[a] / behaviour if self.agent.get("importance") else 1.0

    def look_back(self):
        """State, pair (None: a restart), reward, discount and ratio of a way; "broken" or "short" if there is none."""
        horizon, weights = self.agent.get("horizon", 1), self.agent.get("weights")
        lam, option = self.agent.get("lam"), self.agent.get("option")
        stop = go_on = None
        if lam is not None:
            go_on = per_state("lam", lam, self.S)
            stop = 1 - go_on
        elif option is not None:
            stop, go_on = option_chances(option, self.S)
        elif weights is not None:
            cumulative = np.cumsum(weights)
            horizon = len(weights)
            if len(weights) > 1 and cumulative[-2] > 0:
                u = uniform(self.model_stream)
                horizon = 1 + next((n for n, c in enumerate(cumulative[:-1]) if c > u), len(weights) - 1)
        reward, discount, ratio = 0.0, 1.0, 1.0
        for back, (state, pair, r, gamma, rho) in enumerate(reversed(self.past), start=1):
            reward, discount, ratio = r + gamma * reward, discount * gamma, ratio * rho
            if stop is None:
                if back == horizon:
                    return state, pair, reward, discount, ratio
                continue
            u = uniform(self.model_stream)
            if u < stop[state]:
                return state, pair, reward, discount, ratio
            if u >= stop[state] + go_on[state]:
                return "broken", ratio
        return ("short" if stop is None else "broken"), ratio

    def arrive(self, s, alpha):
        found = self.look_back()
        described = found[0] != "short" and (self.counts or (found[0] != "broken" and found[1] is not None))
        self.told = [described, self.told[0]]
        if found[0] == "short" or found[-1] < 1e-12:
            return
        mass, forget = found[-1], self.agent.get("forget", 0.0)
        self.logits[s] *= 1 - forget
        for table in (self.count, self.arrivals, self.restarts):
            table[s] *= 1 - forget
        self.arrivals[s] += mass
        if found[0] == "broken":
            return
        state, pair, reward, discount, _ = found
        if pair is None:
            self.restarts[s, state] += mass
            self.ends_seen[s] += [state] if state not in self.ends_seen[s] else []
            return
        if not self.seen[s, pair]:
            self.seen[s, pair] = True
            self.order[s].append(pair)
        step = min(1.0, alpha * mass)
        self.logits[s] -= step * softmax(self.logits[s])
        self.logits[s, pair] += step
        self.count[s, pair] += mass
        rate = mass / self.count[s, pair] if self.counts else min(1.0, alpha * self.observed.share((s, pair), mass))
        self.reward[s, pair] += rate * (reward - self.reward[s, pair])
        self.carried[s, pair] += rate * (discount - self.carried[s, pair])

    def probability(self, s):
        if not self.counts:
            return softmax(self.logits[s])
        if self.arrivals[s] == 0:
            return np.zeros(self.S * self.A)
        if not self.agent.get("conditioned"):
            return self.count[s] / self.arrivals[s]
        led = np.tile(self.count[s].reshape(self.S, self.A).sum(axis=0), self.S)  # so that ties are those of rounding
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num((1 / led) * (led / self.arrivals[s])) * self.count[s]

    # ------------------------------------------------------------------ one interaction

    def observe(self, rates, s, a, r, s2, ends, first):
        gamma = 0.0 if ends else self.discount
        self.past.append((s, s * self.A + a, r, gamma, self.ratio(s, a, rates)))
        self.ended = s2 if ends else None
        self.arrive(s2, rates[ALPHA_MODEL])
        if self.agent.learn:
            self.learn_value(rates[ALPHA], s, a, r + gamma * self.q[s2].max())
        self.plan(s, s2, ends, rates[ALPHA_PLAN])

    def learn_value(self, alpha, s, a, target):
        self.q[s, a] += alpha * self.learned.share((s, a)) * (target - self.q[s, a])
        self.made[0] += 1

    def plan(self, s, s2, ends, alpha):
        """From the states whose rows were told how the agent arrived there."""
        if not self.agent.plans_from_current and self.told[1]:
            self.plan_from(s, False, alpha)
        if (self.agent.plans_from_current or (ends and not self.agent.learn)) and self.told[0]:
            self.plan_from(s2, ends, alpha)

    # ------------------------------------------------------------------ planning

    def targets(self, s, ends):
        best = self.q[s].max()
        unseen = 0.0 if ends else self.usual_discount() * best
        return np.where(self.seen[s], self.reward[s] + self.carried[s] * best, unseen)

    def usual_discount(self):
        """E[γⁿ]."""
        weights, lam = self.agent.get("weights"), self.agent.get("lam")
        if weights is not None:
            return sum(w * self.discount ** (n + 1) for n, w in enumerate(weights))
        if lam is not None:
            return sum((1 - lam) * lam**n * self.discount ** (n + 1) for n in range(2000))
        return self.discount ** self.agent.get("horizon", 1)

    def weight(self, s):
        option = self.agent.get("option")
        return 1.0 if option is None or option.termination is None else per_state("", option.termination, self.S)[s]

    def plan_from(self, s, ends, alpha):
        sample, depth = self.agent.get("sample"), self.agent.get("depth", 1)
        if sample is None:
            self.branch(s, ends, alpha, depth)
            return
        for _ in range(sample):
            later, over = s, ends
            for _ in range(depth):
                pair = self.draw(later)
                if pair is None:
                    break
                if pair < 0:  # a restart: go on from the terminal state before it
                    later, over = -1 - pair, True
                    continue
                unseen = not self.seen[later, pair]
                target = self.targets(later, over)[pair]
                self.q.ravel()[pair] += alpha * self.planned.share(pair) * (target - self.q.ravel()[pair])
                self.made[1] += 1
                if unseen:
                    break
                later, over = pair // self.A, False

    def rank(self, s):
        """Observed pairs, the most probable first; among equals the first in the rows."""
        probability = self.probability(s)
        return sorted(self.in_rows(s), key=lambda pair: -probability[pair])

    def in_rows(self, s):
        """Observed pairs as they lie in the rows: in the order of observation, conditioned ones action by action."""
        return sorted(self.order[s], key=lambda pair: pair % self.A) if self.agent.get("conditioned") else self.order[s]

    def branch(self, s, ends, alpha, depth):
        top, flat = self.agent.get("top", 0), self.q.ravel()
        weight = self.weight(s) * self.probability(s)
        targets = self.targets(s, ends)
        chosen = self.rank(s)[:top] if top else self.in_rows(s)
        touched = chosen if top or self.counts else range(self.S * self.A)
        for pair in touched:
            flat[pair] += alpha * self.planned.share(pair, weight[pair]) * (targets[pair] - flat[pair])
            self.made[1] += 1
        if depth > 1:
            for pair in chosen:
                self.branch(pair // self.A, False, alpha, depth - 1)

    def draw(self, s):
        probability, left = self.weight(s) * self.probability(s), uniform(self.plan_stream)
        for pair in self.in_rows(s):
            left -= probability[pair]
            if left < 0:
                return pair
        if self.counts:
            for ended in self.ends_seen[s]:
                left -= self.restarts[s, ended] / self.arrivals[s]
                if left < 0:
                    return -1 - ended
            return None
        while True:
            pair = int(uniform(self.plan_stream) * self.S * self.A)
            if not self.seen[s, pair]:
                return pair


class PlainLambda(PlainBackward):
    """A λ-model by temporal differences: three tables [s, s̃, ã]."""

    def __init__(self, agent, setup):
        super().__init__(agent, setup)
        self.P, self.W, self.D = (np.zeros((self.S, self.S * self.A)) for _ in range(3))
        self.visits, self.lam = np.zeros(self.S), per_state("lam", agent.get("lam"), self.S)
        self.counts = True

    def bootstrap(self, s, a, r, gamma, s2, alpha):
        self.visits[s2] += 1
        alpha = alpha / self.visits[s2] if self.agent.averages else max(alpha, 1 / self.visits[s2])
        lam = self.lam[s] if self.P[s].any() or len(self.order[s]) else 0.0
        one = np.zeros(self.S * self.A)
        led = [s * self.A + a] if a is not None else range(s * self.A, (s + 1) * self.A)
        one[led] = (1 - lam) / len(led)
        P, W, D = self.P[s].copy(), self.W[s].copy(), self.D[s].copy()
        for table, target in (
            (self.P, one + lam * P),
            (self.W, one * r + lam * (W + D * r)),
            (self.D, one * gamma + lam * gamma * D),
        ):
            table[s2] += alpha * (target - table[s2])
        for pair in [*(self.order[s] if lam > 0 else []), *(led if lam < 1 else [])]:
            if not self.seen[s2, pair]:
                self.seen[s2, pair] = True
                self.order[s2].append(pair)

    def restart(self, s, alpha):
        self.told = [self.ended is not None, self.told[0]]
        if self.ended is not None:
            self.bootstrap(self.ended, None, 0.0, 0.0, s, alpha)

    def observe(self, rates, s, a, r, s2, ends, first):
        self.ended = s2 if ends else None
        self.told = [True, self.told[0]]
        gamma = 0.0 if ends else self.discount
        self.bootstrap(s, a, r, gamma, s2, rates[ALPHA_MODEL])
        if self.agent.learn:
            self.learn_value(rates[ALPHA], s, a, r + gamma * self.q[s2].max())
        self.plan(s, s2, ends, rates[ALPHA_PLAN])

    def probability(self, s):
        return self.P[s]

    def targets(self, s, ends):
        best = self.q[s].max()
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num((self.W[s] + self.D[s] * best) / self.P[s])
