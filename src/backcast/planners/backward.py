"""Backward planning (the paper's Algorithms 1, 2 and 4): correct the states that lead to the reference state."""

from typing import Any, NamedTuple, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.models.contract import BackwardRows
from backcast.planners.contract import Direction, M, Origins, V, plan_from_first, plan_from_origins
from backcast.planners.edges import UNCOUNTED, EdgeCount, observed_before
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.table import TableValues


class Correction(Protocol[M, V]):
    """How a backward planner corrects the predecessors of a state."""

    def correct(self, model: M, values: V, s: int, discount: float, onward: float, alpha: float) -> int:
        """Make corrections from s, with its discount and `onward` for earlier states; return the number of updates."""


@part
class BackwardPlanner(NamedTuple):
    """Plans from s' (`current`) or from s; `pure` means without learning; `how` defines the corrections.

    A state is planned from whenever the agent arrives there and the model's row describes that arrival. Over a long run
    the corrections then sum to those of learning: Σ_s d(s) P←(s̃ | s) δ(s̃, s) = d(s̃) E[δ | s̃], which is 0 at v_π. In
    particular, the first state of an episode is planned from if and only if the rows contain restarts.

    Pure planning from s also plans from the terminal state at the end of an episode; otherwise that state would
    never be planned from.
    """

    current: bool
    pure: bool
    how: Correction[Any, Any]

    def begin(self, model: BackwardRows, values: Values, s: int, discount: float, rates: Vector) -> int:
        """Plan from the first state of an episode; return the number of value updates."""
        return plan_from_first(self, model, values, s, discount, rates)

    def plan(self, model: BackwardRows, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan from the reference state(s) of a step; return the number of value updates."""
        return plan_from_origins(self, model, values, step, discount, rates)

    def origins(self, model: BackwardRows, step: Step) -> Origins:
        """Plan from s' or from s, and in pure planning from the terminal state as well."""
        current = (self.current or (self.pure and step.ends)) and model.describes(False, 0)
        return Origins(not self.current and model.describes(step.first, 1), current)

    def plans_first(self, model: BackwardRows) -> bool:
        """If and only if the rows contain restarts."""
        return self.current and model.describes(True, 0)

    def plan_from(self, model: BackwardRows, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Correct the predecessors of s; return the number of value updates."""
        return self.how.correct(model, values, s, 0.0 if ends else discount, discount, rates[ALPHA_PLAN])

    @in_python
    def direction(self) -> Direction:
        """From a state to those that lead to it."""
        return "backward"


@part
class AllPredecessors(NamedTuple):
    """Correct all predecessors, each in proportion to its probability: the expected update."""

    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def correct(
        self, model: BackwardRows, values: TableValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make corrections from s, with its discount; return the number of value updates."""
        self.edges.touch(observed_before(model, s))
        return correct_all(model, values, s, discount, alpha, self.step_size)

    @in_python
    def needs_table(self) -> bool:
        """Update all pairs never observed by one map of the table."""
        return True


@kernel
def correct_all(
    model: BackwardRows, values: TableValues, s: int, discount: float, alpha: float, step_size: StepSizes
) -> int:
    """For all s̃, ã: q(s̃, ã) ← q(s̃, ã) + α P←(s̃, ã | s) (r(s̃, s) + γ max_a q(s, a) − q(s̃, ã)).

    max_a q(s, a) is read once, before any update. All pairs never observed before s have the same probability and
    target: their update is one map of the whole table, after which the observed pairs are corrected. (A model that
    leaves probability to pairs never observed has one row for each s, and its step sizes are not averaged.)
    """
    rows = model.rows
    best = values.best(s)
    base = model.base(s, best, discount)
    updates = 0
    for row in range(model.first_row(s), model.last_row(s)):
        before = values.mapping()
        step, portion = alpha * rows.share[row] * model.factor(row), rows.share[row] * model.factor(row)
        unobserved = rows.unobserved(row)
        if unobserved > 0:
            values.blend(step, base)
        after = values.mapping()
        first = rows.offset[row]
        last = first + rows.used[row]
        for k in range(first, last):
            pair = model.pair(row, rows.key[k])
            old = values.read(before, pair)
            size = step_size.of(pair, step * rows.weight[k], portion * rows.weight[k])
            values.write(after, pair, old + size * (model.target(k, base, best) - old))
        updates += unobserved + last - first
    values.rescale()
    return updates
