"""Backward planning (the paper's Algorithms 1, 2 and 4): correct the states that lead to the reference state."""

from typing import Any, NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, optional, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.values.table import Values, fold

_SMALL = 1e-6


@part
class BackwardPlanner(NamedTuple):
    """Plans from s' (`current`) or from s; `pure` if there is no learning beside it; `how` says what is corrected.

    A state is planned from whenever the agent arrives there and the model's row describes that arrival. Then the
    corrections of a long run are in sum those of learning: Σ_s d(s) P←(s̃ | s) δ(s̃, s) = d(s̃) E[δ | s̃], which is 0 at
    v_π. In particular, the first state of an episode is planned from if and only if the rows contain restarts.

    Pure planning from s plans once more from the terminal state at the end of an episode; otherwise that state would
    never be planned from.
    """

    current: bool
    pure: bool
    how: Any

    def begin(self, model: Any, values: Values, s: int, discount: float, rates: Vector) -> int:
        """Plan from the first state of an episode; the number of value updates."""
        if self.current and model.describes(True, 0):
            return self.how.correct(model, values, s, discount, discount, rates[ALPHA_PLAN])
        return 0

    def plan(self, model: Any, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan from the reference state(s) of a step; the number of value updates."""
        alpha = rates[ALPHA_PLAN]
        updates = 0
        if not self.current and model.describes(step.first, 1):
            updates += self.how.correct(model, values, step.s, discount, discount, alpha)
        if (self.current or (self.pure and step.ends)) and model.describes(False, 0):
            updates += self.how.correct(model, values, step.s2, 0.0 if step.ends else discount, discount, alpha)
        return updates


@optional("describes")
def _describes_steps(self: Any, first: bool, back: int) -> bool:
    """Whether the row of a state describes how the agent arrived there. Most rows describe steps, not restarts.

    Args:
        self: the model.
        first: whether the state began the episode.
        back: 0 for the state that was arrived in last, 1 for the one before it.
    """
    return not first


@part
class AllPredecessors(NamedTuple):
    """Correct all predecessors, each in proportion to its probability: the expected update."""

    unused: int = 0

    def correct(self, model: Any, values: Values, s: int, discount: float, onward: float, alpha: float) -> int:
        """Corrections from s, with this discount of s itself; the number of value updates."""
        return correct_all(model, values, s, discount, alpha)


@kernel
def correct_all(model: Any, values: Values, s: int, discount: float, alpha: float) -> int:
    """For all s̃, ã: q(s̃, ã) ← q(s̃, ã) + α P←(s̃, ã | s) (r(s̃, s) + γ max_a q(s, a) − q(s̃, ã)).

    max_a q(s, a) is taken once, before any update. All pairs never observed before s have one probability and one
    target: their update is one map of the whole table, after which the observed pairs are put right. (A model that
    leaves probability to pairs never observed has one row for each s.)
    """
    rows = model.rows
    best = values.best(s)
    base = model.base(s, best, discount)
    updates = 0
    for row in range(model.first_row(s), model.last_row(s)):
        scale, shift = values.affine[0], values.affine[1]
        step = alpha * rows.share[row] * model.factor(row)
        unobserved = rows.unobserved(row)
        if unobserved > 0:
            values.affine[0] = (1.0 - step) * scale
            values.affine[1] = (1.0 - step) * shift + step * base
            values.affine[2] = 1.0 / values.affine[0]
        new_shift, inverse = values.affine[1], values.affine[2]
        first = rows.offset[row]
        last = first + rows.used[row]
        for k in range(first, last):
            pair = model.pair(row, rows.key[k])
            old = scale * values.u[pair] + shift
            new = old + step * rows.weight[k] * (model.target(k, base, best) - old)
            values.u[pair] = (new - new_shift) * inverse
        updates += unobserved + last - first
    if values.affine[0] < _SMALL:
        fold(values)
    return updates
