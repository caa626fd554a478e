"""The paper's backward model: which state and action led here?"""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.core.locality import prefetch
from backcast.models.contract import OutcomeRows
from backcast.models.counts import CountRows, draw_restart
from backcast.models.readable import Known
from backcast.models.rows import known_of
from backcast.models.trajectory import importance
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes


@part
class BackwardModel(NamedTuple):
    """P←(s̃, ã | s) over one step: a softmax row for each state s over the pairs s̃·A + ã that may precede it.

    The reward belongs to the pair (s̃, s) in prediction, r(s̃, s), and to the state s in control, r(s), as in the
    paper's experiments.

    rows: probabilities and, in prediction, rewards of the predecessors.
    state_reward: (S,), r(s), used in control.
    n_actions: A.
    by_pair: whether rewards belong to pairs.
    learns: False for a true model.
    forgets: rate at which a row decays before each update of it.
    target_policy: the policy of importance weights, see `importance`.
    restarts: for a true model, the terminal states that lead to each s; empty if not needed.
    step_size: step size of r(s).
    """

    rows: OutcomeRows
    state_reward: Vector
    n_actions: int
    by_pair: bool
    learns: bool
    forgets: float
    target_policy: Vector
    restarts: CountRows
    step_size: StepSizes = SCHEDULED

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Cross-entropy step for the row of s' towards (s, a); regression step for the reward."""
        if not self.learns:
            return
        alpha = rates[ALPHA_MODEL]
        mass = 1.0 if self.target_policy.size == 0 else importance(self.target_policy, values, step, rates)
        if self.forgets > 0.0:
            self.rows.forget(step.s2, self.forgets)
        if mass == 0.0:
            return
        place = self.rows.observe(step.s2, step.s * self.n_actions + step.a, alpha, mass)
        if self.by_pair:
            self.rows.reward[place] += self.rows.rate(place, alpha, 1.0) * (step.r - self.rows.reward[place])
        else:
            rate = self.step_size.of(step.s2, alpha, 1.0)
            self.state_reward[step.s2] += rate * (step.r - self.state_reward[step.s2])

    def prefetch_state(self, s: int, here: int) -> None:
        """Prefetch the data of s."""
        self.rows.prefetch_row(s, here)
        prefetch(self.state_reward, s)

    def describes(self, first: bool, back: int) -> bool:
        """True rows contain restarts; a softmax over the pairs that may precede s has no place for them."""
        return not first or not self.learns

    def ended_before(self, s: int, left: float) -> int:
        """The terminal state that led to s, for the remainder of a uniform number after the row, or −1."""
        return draw_restart(self.restarts, self.restarts.total, s, left)

    def base(self, s: int, best: float, discount: float) -> float:
        """r(s) + γ max_a q(s, a), with γ = 0 where s ends the episode."""
        return self.state_reward[s] + discount * best

    def target(self, place: int, base: float, best: float) -> float:
        """r(s̃, s) + r(s) + γ max_a q(s, a)."""
        return self.rows.reward[place] + base

    @in_python
    def predecessors(self, s: int) -> Known:
        """The pairs that lead to s; discounts are not stored: they are γ, or 0 at an end."""
        known = known_of(self.rows, s)
        return known._replace(reward=known.reward + self.state_reward[s], discount=None)

    @in_python
    def reward_by_state(self) -> Vector | None:
        """The reward r(s), in control."""
        return None if self.by_pair else self.state_reward

    @in_python
    def contains_restarts(self) -> bool:
        """Whether rows contain restarts: true rows do."""
        return self.rows.width == 0
