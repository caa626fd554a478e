"""Forward models: what follows this state and action?"""

from typing import NamedTuple

import numpy as np

from backcast.arrays import Vector
from backcast.compiling import kernel, part
from backcast.models.rows import Rows
from backcast.values import Values


@part
class ForwardModel(NamedTuple):
    """P(s' | s, a): a row for each pair s·A + a over the next states, with rewards and, in control, terminations.

    The expectation over next states needs h(s') = r(s') + γ̄(s') max_a' q(s', a') also for all states never observed,
    which share one probability. Their sum is kept: only the states of the current step change it.

    Attributes:
        rows: probabilities and, where they belong to pairs, rewards of the next states.
        state_reward: (S,) r(s'), used in control.
        goes_on: (S,) logit(s' goes on) − logit(s' ends); γ̄(s') = γ where it is above 0, else 0.
        ahead: (S,) h(s'), as last refreshed.
        sum_ahead: (2,) Σ_s' h(s'), and the refreshes since it was last summed afresh.
        n_actions: A.
        by_pair: whether rewards belong to pairs.
        learns_ends: whether terminations are learned (control).
        learns: False for a true model.
    """

    rows: Rows
    state_reward: Vector
    goes_on: Vector
    ahead: Vector
    sum_ahead: Vector
    n_actions: int
    by_pair: bool
    learns_ends: bool
    learns: bool

    def learn(self, s: int, a: int, r: float, s2: int, ends: bool, alpha: float) -> None:
        """Cross-entropy step for the row of (s, a) towards s'; steps for the reward and the termination of s'."""
        if not self.learns:
            return
        place = self.rows.observe(s * self.n_actions + a, s2, alpha)
        if self.by_pair:
            self.rows.reward[place] += alpha * (r - self.rows.reward[place])
        else:
            self.state_reward[s2] += alpha * (r - self.state_reward[s2])
        if self.learns_ends:
            going = 1.0 / (1.0 + np.exp(-self.goes_on[s2]))
            # both logits of the two-way softmax move by the same amount, in opposite directions
            self.goes_on[s2] += 2.0 * alpha * ((0.0 if ends else 1.0) - going)


@kernel
def refresh(model: ForwardModel, values: Values, s: int, discount: float) -> None:
    """Bring h(s) and the sum up to date after the values, the reward or the termination of s changed."""
    h = model.state_reward[s]
    if model.goes_on[s] > 0.0:
        h += discount * values.best(s)
    model.sum_ahead[0] += h - model.ahead[s]
    model.ahead[s] = h
    model.sum_ahead[1] += 1.0
    if model.sum_ahead[1] > 16 * model.ahead.size:  # so that rounding errors do not pile up
        model.sum_ahead[0] = model.ahead.sum()
        model.sum_ahead[1] = 0.0
