"""SARSA and Expected SARSA, over one or n steps: the values of the ε-greedy behaviour policy.

    SARSA:     q(S_t, A_t) ← q(S_t, A_t) + α (R_{t+1} + … + γⁿ⁻¹ R_{t+n} + γⁿ q(S_{t+n}, A_{t+n}) − q(S_t, A_t))
    expected:  Σ_a π(a | S_{t+n}) q(S_{t+n}, a) in place of q(S_{t+n}, A_{t+n})

(Rummery and Niranjan, 1994; van Seijen et al., 2009; Sutton and Barto, 2018, sections 6.4, 6.6 and 7.2). SARSA learns
from a step when the next action is known: after the next step, or when the episode is over. The next action is chosen
before that update, as in the book's algorithms, so that nothing else depends on the delay. If an episode is truncated
there is no next action; its expected value is used instead.
"""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import EPSILON, Step
from backcast.learners.window import Window
from backcast.values.contract import Values
from backcast.values.policies import expected


@part
class Sarsa(NamedTuple):
    """SARSA over the steps of the window."""

    window: Window

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Update the step n before this one, bootstrapping from q(s, a) of this one."""
        if step.first:
            self.window.clear()
        updates = 0
        if self.window.is_full():
            updates = self.window.learn_oldest(values, values.get(step.s, step.a), rates)
        self.window.enter(step.s * values.n_actions + step.a, step.r)
        return updates

    def conclude(self, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Make one update for each step left; if truncated, returns bootstrap from Σ_a π(a | s) q(s, a)."""
        return self.window.learn_all(values, 0.0 if ends else expected(values, s, rates[EPSILON]), rates)


@part
class ExpectedSarsa(NamedTuple):
    """Expected SARSA over the steps of the window."""

    window: Window

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Update the step n − 1 before this one."""
        if step.first:
            self.window.clear()
        self.window.enter(step.s * values.n_actions + step.a, step.r)
        if not self.window.is_full():
            return 0
        v = 0.0 if step.ends else expected(values, step.s2, rates[EPSILON])
        return self.window.learn_oldest(values, v, rates)

    def conclude(self, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """As `Sarsa`."""
        return self.window.learn_all(values, 0.0 if ends else expected(values, s, rates[EPSILON]), rates)
