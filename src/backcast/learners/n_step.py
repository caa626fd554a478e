"""n-step TD for prediction (A = 1), n-step Q-learning for control.

    q(S_t, A_t) ← q(S_t, A_t) + α (R_{t+1} + … + γⁿ⁻¹ R_{t+n} + γⁿ max_a q(S_{t+n}, a) − q(S_t, A_t))

n steps later; at the end of an episode with the remaining steps (Sutton and Barto, 2018, section 7.1). In control the
behaviour policy is not the greedy policy that is evaluated. As in Watkins (1989), a return is cut at the first
non-greedy action after A_t: what follows it says nothing about the greedy policy, and the return bootstraps from the
largest value of the state in which that action was taken. The n-step Q-learning of Mnih et al. (2016) is not cut, and
learns something between the values of the two policies.
"""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import Step
from backcast.learners.window import Window
from backcast.values.contract import Values
from backcast.values.policies import greedy_chance


@part
class NStep(NamedTuple):
    """n-step TD or Watkins's n-step Q-learning. Each visit is learned from once."""

    window: Window

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Update the step n − 1 before this one, and all others held if this one explores.

        An action counts as greedy by the values with which it was chosen; ties with the best are greedy.
        """
        if step.first:
            self.window.clear()
        updates = 0
        if greedy_chance(values, step.s, step.a) == 0.0:
            updates += self.window.learn_all(values, values.best(step.s), rates)
        self.window.enter(step.s * values.n_actions + step.a, step.r)
        if self.window.is_full():
            updates += self.window.learn_oldest(values, 0.0 if step.ends else values.best(step.s2), rates)
        return updates

    def conclude(self, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Make one update for each step left; if the episode was truncated, returns bootstrap from max_a q(s, a)."""
        return self.window.learn_all(values, 0.0 if ends else values.best(s), rates)
