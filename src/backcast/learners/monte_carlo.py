"""Every-visit Monte Carlo: at the end of an episode, values move towards the observed returns.

    G_t = R_{t+1} + γ G_{t+1}        q(S_t, A_t) ← q(S_t, A_t) + α (G_t − q(S_t, A_t))   for every visit

(Sutton and Barto, 2018, chapter 5; every visit: Singh and Sutton, 1996). This learns the values of the behaviour
policy: in control the ε-greedy policy, not the greedy one that Q-learning evaluates.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import ALPHA, Step
from backcast.models.trajectory import Trajectory, empty_trajectory
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes

LONGEST = 100_000  # most visits that are remembered: 3 MB for each agent


@part
class MonteCarlo(NamedTuple):
    """Remembers an episode and learns from all of it when it is over, from the last step to the first.

    Attributes:
        past: the steps of this episode. If an episode has more steps than there is room for, the oldest are forgotten
            and nothing is learned about their visits; this does not affect the others.
        step_size: step size of an update of a pair.
    """

    past: Trajectory
    step_size: StepSizes = SCHEDULED

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Remember the step; return 0 updates."""
        if step.first:
            self.past.clock[0] = 0
        self.past.remember(step.s * values.n_actions + step.a, step.r, discount, 1.0)
        return 0

    def conclude(self, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Make one update for each visit; if the episode was truncated, returns bootstrap from max_a q(s, a)."""
        past = self.past
        g = 0.0 if ends else values.best(s)
        at, updates = past.clock[1], 0
        for _ in range(past.clock[0]):
            at = at - 1 if at > 0 else past.pairs.size - 1
            g = past.reward[at] + discount * g
            if past.pairs[at] >= 0:
                values.move(past.pairs[at], g, self.step_size.of(past.pairs[at], rates[ALPHA], 1.0))
                updates += 1
        return updates

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Drop visits to these states, whose numbers are reused."""
        self.past.pairs[np.isin(self.past.pairs // n_actions, states)] = -1


def monte_carlo(max_steps: int | None, step_size: StepSizes) -> MonteCarlo:
    """Make a learner with room for episodes of max_steps steps, but at most for the last 100,000."""
    return MonteCarlo(empty_trajectory(LONGEST if max_steps is None else min(max_steps, LONGEST)), step_size)
