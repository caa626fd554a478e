"""Backward planning (the paper's Algorithms 2 and 4): correct all states that lead to the reference state."""

from typing import NamedTuple

from backcast.compiling import kernel, part
from backcast.models.backward import BackwardModel
from backcast.values import Values, fold

_SMALL = 1e-6


@part
class BackwardPlanner(NamedTuple):
    """Plans from s' (`current`) or from s; `pure` if there is no learning beside it.

    Planning from s is skipped in the first step of an episode, when nothing led there. Pure planning from s plans
    once more from the terminal state at the end of an episode, which would else never be planned from.
    """

    current: bool
    pure: bool

    def begin(self, model: BackwardModel, values: Values, s: int, discount: float, alpha: float) -> int:
        """Nothing led to the first state of an episode."""
        return 0

    def plan(
        self,
        model: BackwardModel,
        values: Values,
        s: int,
        s2: int,
        ends: bool,
        first: bool,
        discount: float,
        alpha: float,
    ) -> int:
        """Plan from the reference state(s) of a step; the number of value updates."""
        if self.current:
            return plan_backward(model, values, s2, 0.0 if ends else discount, alpha)
        updates = 0
        if not first:
            updates += plan_backward(model, values, s, discount, alpha)
        if ends and self.pure:
            updates += plan_backward(model, values, s2, 0.0, alpha)
        return updates


@kernel
def plan_backward(model: BackwardModel, values: Values, s: int, discount: float, alpha: float) -> int:
    """For all s̃, ã: q(s̃, ã) ← q(s̃, ã) + α P←(s̃, ã | s) (r(s̃, s) + γ max_a q(s, a) − q(s̃, ã)).

    max_a q(s, a) is taken once, before any update. All pairs never observed before s have one probability and one
    target: their update is one map of the whole table, after which the observed pairs are put right.
    """
    rows = model.rows
    target = model.state_reward[s] + discount * values.best(s)
    scale, shift = values.affine[0], values.affine[1]
    step = alpha * rows.share[s]
    unobserved = rows.unobserved(s)
    if unobserved > 0:
        values.affine[0] = (1.0 - step) * scale
        values.affine[1] = (1.0 - step) * shift + step * target
        values.affine[2] = 1.0 / values.affine[0]
    new_shift, inverse = values.affine[1], values.affine[2]
    first = rows.offset[s]
    last = first + rows.used[s]
    for k in range(first, last):
        pair = rows.key[k]
        old = scale * values.u[pair] + shift
        new = old + step * rows.weight[k] * (rows.reward[k] + target - old)
        values.u[pair] = (new - new_shift) * inverse
    if values.affine[0] < _SMALL:
        fold(values)
    return unobserved + last - first
