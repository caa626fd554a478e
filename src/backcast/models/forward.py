"""Forward models: which state follows this state and action?

Planners use all of them in the same way: `look_ahead(s')` is h(s'), the value of arriving in s', and `outlook` adds the
data of an entry of a row. Where states never observed have probability, models store h of all states and its sum.
"""

import math
from typing import NamedTuple, Protocol

from backcast.core.arrays import Mask, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.core.locality import prefetch
from backcast.models.contract import BackwardRows, HasRows, OutcomeRows, ProbabilityRows
from backcast.models.readable import Known
from backcast.models.rows import known_of
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes


@part
class ForwardModel(NamedTuple):
    """P(s' | s, a): a row for each pair s·A + a over the next states, with rewards and, in control, terminations.

    The expectation over next states also needs h(s') = r(s') + γ̄(s') max_a' q(s', a') for all states never observed,
    which share one probability in a softmax. Their sum is stored: only the states of the current step change it.

    All data of a state are adjacent in memory.

    Attributes:
        rows: probabilities and, if they belong to pairs, rewards of the next states.
        state_reward: (S,), r(s'), used in control.
        goes_on: (S,), logit(s' is not terminal) − logit(s' is terminal); γ̄(s') = γ if it is above 0, else 0.
        ahead: (S,), h(s') as last refreshed.
        sum_ahead: (2,), Σ_s' h(s'), and the number of refreshes since it was last recomputed.
        n_actions: A.
        by_pair: whether rewards belong to pairs.
        learns_ends: whether terminations are learned (control).
        learns: False for a true model.
        forgets: rate at which a row decays before each update of it.
        step_size: step size of r(s').
    """

    rows: OutcomeRows
    state_reward: Vector
    goes_on: Vector
    ahead: Vector
    sum_ahead: Vector
    n_actions: int
    by_pair: bool
    learns_ends: bool
    learns: bool
    forgets: float
    step_size: StepSizes = SCHEDULED

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Update the row of (s, a) towards s', and the reward and the termination of s'."""
        if not self.learns:
            return
        alpha, s2 = rates[ALPHA_MODEL], step.s2
        row = step.s * self.n_actions + step.a
        if self.forgets > 0.0:
            self.rows.forget(row, self.forgets)
        place = self.rows.observe(row, s2, alpha, 1.0)
        if self.by_pair:
            self.rows.reward[place] += self.rows.rate(place, alpha, 1.0) * (step.r - self.rows.reward[place])
        else:
            self.state_reward[s2] += self.step_size.of(s2, alpha, 1.0) * (step.r - self.state_reward[s2])
        if self.learns_ends:
            going = 1.0 / (1.0 + math.exp(-self.goes_on[s2]))
            # both logits of the two-way softmax move by the same amount, in opposite directions
            self.goes_on[s2] += 2.0 * alpha * ((0.0 if step.ends else 1.0) - going)

    def prefetch_state(self, s: int, here: int) -> None:
        """Prefetch the data of s."""
        self.rows.prefetch_row(s * self.n_actions, here * self.n_actions)
        self.prefetch_ahead(s)

    def prefetch_ahead(self, s: int) -> None:
        """Prefetch the data of s that `arriving` needs, besides its values."""
        prefetch(self.goes_on, s)

    def arriving(self, values: Values, s: int, discount: float) -> float:
        """h(s) = r(s) + γ̄(s) max_a q(s, a)."""
        h = self.state_reward[s]
        if self.goes_on[s] > 0.0:
            h += discount * values.best(s)
        return h

    def look_ahead(self, values: Values, s: int, discount: float) -> float:
        """h(s), stored or computed."""
        return self.ahead[s] if self.rows.width > 0 else self.arriving(values, s, discount)

    def refresh(self, values: Values, s: int, discount: float) -> None:
        """Update h(s) and the sum after the values, the reward or the termination of s changed."""
        if self.rows.width > 0:
            store_ahead(self, s, self.arriving(values, s, discount))

    def outlook(self, place: int, h: float) -> float:
        """r(s, s') + h(s')."""
        return self.rows.reward[place] + h

    def unseen(self, h: float) -> float:
        """The expected return of successors never observed, given the sum of their h."""
        return h

    def all_unseen(self, seen: float) -> float:
        """The expected return of all successors never observed, given the sum of h of the others."""
        return self.sum_ahead[0] - seen

    @in_python
    def successors(self, s: int, a: int) -> Known:
        """The states that follow (s, a); discounts are not stored: they are γ, or 0 if they end an episode."""
        known = known_of(self.rows, s * self.n_actions + a)
        reward, ends = known.reward + self.state_reward[known.keys], self.goes_on[known.keys] <= 0
        return known._replace(reward=reward, discount=None, ends=ends)

    @in_python
    def reward_by_state(self) -> Vector | None:
        """The reward r(s'), in control."""
        return None if self.by_pair else self.state_reward

    @in_python
    def ends_by_state(self) -> Mask:
        """Whether a state is more likely to end the episode than not."""
        ends: Mask = self.goes_on <= 0
        return ends


@part
class ExtendedForward(NamedTuple):
    """P(s | s̃, ã) over several steps, learned along the same paths as the backward models; h(s) is max_a q(s, a).

    Attributes:
        ways: the learned paths, an `ExtendedModel` or a `LambdaModel` that looks forward.
        rows: its rows.
        ahead: (S,), h(s) as last refreshed; empty if states never observed have no probability.
        sum_ahead: (2,), Σ_s h(s), and the number of refreshes since it was last recomputed; empty likewise.
    """

    ways: BackwardRows
    rows: ProbabilityRows
    ahead: Vector
    sum_ahead: Vector

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Remember the step and look back along the trajectory."""
        self.ways.learn(values, step, discount, rates)

    def restart(self, s: int, rates: Vector) -> None:
        """Remember the restart and look back along the trajectory."""
        self.ways.restart(s, rates)

    def look_ahead(self, values: Values, s: int, discount: float) -> float:
        """The value of s, stored or computed; the entries hold the discount."""
        return self.ahead[s] if self.rows.width > 0 else values.best(s)

    def refresh(self, values: Values, s: int, discount: float) -> None:
        """Update h(s) and the sum after the values of s changed."""
        if self.rows.width > 0:
            store_ahead(self, s, values.best(s))

    def outlook(self, place: int, h: float) -> float:
        """The reward on the path, plus h(s) times the discount of the path."""
        return self.ways.target(place, 0.0, h)

    def unseen(self, h: float) -> float:
        """The expected return of states never observed, given the sum of their h: γⁿ h."""
        return self.ways.base(0, h, 1.0)

    def all_unseen(self, seen: float) -> float:
        """The expected return of all states never observed, given the sum of h of the others."""
        return self.unseen(self.sum_ahead[0] - seen)

    @in_python
    def successors(self, s: int, a: int) -> Known | None:
        """The states that follow (s, a) after as many steps as the model looks ahead."""
        known: Known | None = self.ways.successors(s, a)
        return known


class StoresAhead(HasRows, Protocol):
    """A model that stores h of all states, and its sum."""

    @property
    def ahead(self) -> Vector:
        """(S,), h(s) as last refreshed."""

    @property
    def sum_ahead(self) -> Vector:
        """(2,), Σ_s h(s), and the number of refreshes since it was last recomputed."""


@kernel
def store_ahead(model: StoresAhead, s: int, h: float) -> None:
    """Store h(s), and correct the sum."""
    model.sum_ahead[0] += h - model.ahead[s]
    model.ahead[s] = h
    model.sum_ahead[1] += 1.0
    if model.sum_ahead[1] > 16 * model.ahead.size:  # so that rounding errors do not accumulate
        model.sum_ahead[0] = model.sum_ahead[1] = 0.0
        for h in model.ahead:
            model.sum_ahead[0] += h
