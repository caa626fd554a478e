"""The paper's Algorithms 2, 3 and 4 in plain NumPy: dense, slow, readable, and the reference for the kernels.

Every softmax row is a full row of logits, and every planning update changes every state, as the algorithms are printed.
`backcast.run` computes the same at the cost of the observed states only; tests run both on the same transitions, and
`backcast bench` times both.
"""

from typing import Any

import numpy as np

from backcast import exact
from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.agents.setup import Setup
from backcast.core.arrays import Vector
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN


def softmax(logits: Vector) -> Vector:
    """exp(logits) / Σ exp(logits) over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


class Counter:
    """The updates of each entry of a table: α times `share` is the step size of an update."""

    def __init__(self, averages: bool, *shape: int) -> None:
        self.averages, self.n = averages, np.zeros(shape)

    def share(self, entry: Any, weight: Vector | float = 1.0) -> Any:
        """The weight or, with averaged step sizes, the weight over the sum so far; of one entry or of several."""
        if not self.averages:
            return weight
        self.n[entry] += weight
        return weight / np.where(self.n[entry] > 0, self.n[entry], 1.0)


class DenseTwin:
    """An agent with tables of full size: q (S, A), and models as logits and rewards."""

    def __init__(self, agent: Agent, setup: Setup) -> None:
        S, A = setup.n_states, setup.n_actions
        self.agent, self.setup, self.discount = agent, setup, setup.discount
        self.direction, self.true = KINDS[agent.kind].direction, agent.knows_the_truth
        self.q = np.zeros((S, A))
        self.backward_logits = np.zeros((S, S, A))  # [s', s, a]
        self.forward_logits = np.zeros((S, A, S))  # [s, a, s']
        self.end_logits = np.zeros((S, 2))  # goes on, ends
        self.pair_reward = np.zeros((S, S))  # [s, s'], in prediction
        self.state_reward = np.zeros(S)  # r(s'), in control
        self.learned, self.planned = Counter(agent.averages, S, A), Counter(agent.averages, S, A)
        self.of_pairs, self.of_states = Counter(agent.averages, S, S), Counter(agent.averages, S)
        if self.true:
            self._know_the_truth()

    def _know_the_truth(self) -> None:
        world = self.setup.world
        assert world is not None
        S, A = self.setup.n_states, self.setup.n_actions
        self.terminal = world.mdp.terminal
        if self.direction == "forward":
            rows = world.rows.toarray().reshape(S, A, S)
            self.true_forward = rows
            prediction = world.is_prediction
            reward = exact.transition_reward(world.mdp, world.policy)[:, None, :] if prediction else world.mdp.reward
            self.true_reward = np.broadcast_to(reward, rows.shape)
        else:
            back = np.nan_to_num(exact.backward(world.mdp, world.policy).states)
            back[:, self.terminal] = 0.0
            self.true_backward = back[:, :, None]
            self.pair_reward = exact.transition_reward(world.mdp, world.policy)

    def begin(self, rates: Vector, s: int) -> None:
        """Plan from the first state of an episode, in pure forward planning from s' and with true backward rows."""
        if not self.agent.plans_from_current:
            return
        if self.direction == "forward" and not self.agent.learn:
            self.plan_forward(s, rates[ALPHA_PLAN])
        if self.direction == "backward" and self.true:
            self.plan_backward(s, False, rates[ALPHA_PLAN])

    def observe(self, rates: Vector, s: int, a: int, r: float, s2: int, ends: bool, first: bool) -> None:
        """Process one interaction: learn the model, learn the values, plan."""
        if not self.true:
            self.learn_model(s, a, r, s2, ends, rates[ALPHA_MODEL])
        if self.agent.learn:
            target = r + (0.0 if ends else self.discount * self.q[s2].max())
            self.q[s, a] += rates[ALPHA] * self.learned.share((s, a)) * (target - self.q[s, a])
        self.plan(s, s2, ends, first, rates[ALPHA_PLAN])

    def learn_model(self, s: int, a: int, r: float, s2: int, ends: bool, alpha: float) -> None:
        """Cross-entropy steps for transitions and terminations, a regression step for the reward."""
        if self.direction == "backward":
            row = self.backward_logits[s2].ravel()
            chosen = s * self.setup.n_actions + a
        elif self.direction == "forward":
            row, chosen = self.forward_logits[s, a], s2
        else:
            return
        row -= alpha * softmax(row)
        row[chosen] += alpha
        self.end_logits[s2] -= alpha * softmax(self.end_logits[s2])
        self.end_logits[s2, int(ends)] += alpha
        self.pair_reward[s, s2] += alpha * self.of_pairs.share((s, s2)) * (r - self.pair_reward[s, s2])
        self.state_reward[s2] += alpha * self.of_states.share(s2) * (r - self.state_reward[s2])

    def plan(self, s: int, s2: int, ends: bool, first: bool, alpha: float) -> None:
        """Plan from the state(s) given by the frame and the mode."""
        current, pure = self.agent.plans_from_current, not self.agent.learn
        if self.direction == "backward":
            if current:
                self.plan_backward(s2, ends, alpha)
            elif self.true or not first:  # true rows contain restarts
                self.plan_backward(s, False, alpha)
            if not current and pure and ends:
                self.plan_backward(s2, True, alpha)
        elif self.direction == "forward" and not (current and ends):
            self.plan_forward(s2 if current else s, alpha)

    def plan_backward(self, ref: int, ends: bool, alpha: float) -> None:
        """q(s̃, ã) ← q(s̃, ã) + α P←(s̃, ã | ref) (r + γ max q(ref, ·) − q(s̃, ã)) for every s̃, ã (Algorithms 2 and 4)."""
        S, A = self.q.shape
        probability = self.true_backward[ref] if self.true else softmax(self.backward_logits[ref].ravel()).reshape(S, A)
        reward = self.pair_reward[:, [ref]] if self.setup.is_prediction else self.state_reward[ref]
        target = reward + (0.0 if ends else self.discount * self.q[ref].max())
        self.q += alpha * self.planned.share(..., probability) * (target - self.q)

    def plan_forward(self, ref: int, alpha: float) -> None:
        """q(ref, a) ← q(ref, a) + α Σ_s' P(s' | ref, a) (r + γ̄(s') max q(s', ·) − q(ref, a)), every a (Algorithm 3)."""
        for a in range(self.setup.n_actions):
            probability = self.true_forward[ref, a] if self.true else softmax(self.forward_logits[ref, a])
            target = self._forward_reward(ref, a) + self.discount * self._goes_on() * self.q.max(axis=1)
            self.q[ref, a] += alpha * self.planned.share((ref, a)) * (probability @ target - self.q[ref, a])

    def _forward_reward(self, s: int, a: int) -> Vector:
        if self.true:
            return self.true_reward[s, a]
        return self.pair_reward[s] if self.setup.is_prediction else self.state_reward

    def _goes_on(self) -> Vector:
        """1 for states assumed to be non-terminal, 0 for those assumed to be terminal."""
        if self.true:
            return np.where(self.terminal, 0.0, 1.0)
        if self.setup.is_prediction:
            return np.ones(self.setup.n_states)
        return np.where(self.end_logits[:, 0] > self.end_logits[:, 1], 1.0, 0.0)
