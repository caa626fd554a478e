"""Prioritized sweeping in three versions: full backups of a learned model, the most urgent ones first.

The first two keep the expected values of all pairs separately from the agent's own values, updated by small backups
(`backcast.planners.small_backups`). A full backup then copies an expected value, in O(1) instead of a sum over all
successors; the result is the same. V(s) in these expectations is the value last passed on to the predecessors of s:
learning from a real step changes values without passing them on, which happens with the next backup of s.
"""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.models.two_way import TwoWayModel
from backcast.planners.edges import UNCOUNTED, EdgeCount, Edges
from backcast.planners.queue import Queue, dequeue, note_observed, promote, settle, withdraw
from backcast.planners.small_backups import pass_on, take_in
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.table import TableValues

NEAR = 1e-6  # relative to the largest observed value: the cost to go of the best known state, which must not be 0


@part
class MooreAtkeson(NamedTuple):
    """Moore and Atkeson: when V(s) changed by Δ, each s̃ that led to s is queued with priority P(s | s̃, ã) |Δ|.

    A priority only rises while a state is queued. A backup of s sets q(s, a) of all actions tried to their expected
    values (its step size is always 1); V(s) is the largest q(s, a), untried actions included. The state of the last
    real step always comes first, so that what was learned there from the step alone is overwritten at once.

    Attributes:
        backups: number of states backed up after each real step, that of the step included.
        expected: the expected value of each pair.
        told: (S,), V(s).
        queue: the states.
        edges: edges touched.
    """

    backups: int
    expected: TableValues
    told: Vector
    queue: Queue
    edges: Edges

    def plan(self, model: TwoWayModel, values: TableValues, step: Step, discount: float, rates: Vector) -> int:
        """Back up the state of the step, then the most urgent ones; return the number of value updates."""
        note_observed(self.queue, take_in(self.expected, self.told, model, step, discount))
        withdraw(self.queue, step.s)
        updates = 0
        for number in range(self.backups):
            s = step.s if number == 0 else dequeue(self.queue)
            if s < 0:
                break
            updates += back_up(self.expected, model, values, s)
            value = values.best(s)
            change = abs(value - self.told[s])
            updates += pass_on(self.expected, self.told, model, s, value)
            rows = model.led_here
            self.edges.touch(rows.used[s])
            for k in range(rows.offset[s], rows.offset[s] + rows.used[s]):
                pair = rows.key[k]
                promote(self.queue, pair // values.n_actions, rows.weight[k] * model.rows.share[pair] * change)
        return updates


@part
class PengWilliams(NamedTuple):
    """Peng and Williams (Queue-Dyna): pairs are queued by their prediction difference |expected − q(s, a)|.

    A backup moves q(s, a) by the step size α of planning; if this changed V(s), all pairs that led to s get their new
    differences. Learning from a real step may have changed V(s) before; this is passed on first.

    Attributes:
        backups: number of pairs backed up after each real step.
        expected: the expected value of each pair.
        told: (S,), V(s).
        queue: the pairs.
        pure: whether there is no learning from real steps.
        step_size: step size of a backup of a pair.
        edges: edges touched.
    """

    backups: int
    expected: TableValues
    told: Vector
    queue: Queue
    pure: bool
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def plan(self, model: TwoWayModel, values: TableValues, step: Step, discount: float, rates: Vector) -> int:
        """Back up the pairs that differ most from their expected values; return the number of value updates."""
        own = step.s * values.n_actions + step.a
        note_observed(self.queue, take_in(self.expected, self.told, model, step, discount))
        updates = _tell(self, model, values, step.s)
        _settle_pair(self, values, own)
        alone = self.pure  # whether the pair of the step has a new expected value, but no other new value
        for _ in range(self.backups):
            pair = dequeue(self.queue)
            if pair < 0:
                break
            values.nudge(pair, self.step_size.of(pair, rates[ALPHA_PLAN], 1.0) * _difference(self, values, pair))
            alone = alone and pair != own
            updates += 1 + _tell(self, model, values, pair // values.n_actions)
        return updates + alone


@kernel
def _tell(planner: PengWilliams, model: TwoWayModel, values: TableValues, s: int) -> int:
    """If V(s) changed, pass it on to all pairs that led to s, and requeue them; return the number of value updates."""
    updates = pass_on(planner.expected, planner.told, model, s, values.best(s))
    planner.edges.touch(updates)
    if updates > 0:
        rows = model.led_here
        for k in range(rows.offset[s], rows.offset[s] + rows.used[s]):
            _settle_pair(planner, values, rows.key[k])
    return updates


@kernel
def _settle_pair(planner: PengWilliams, values: TableValues, pair: int) -> None:
    settle(planner.queue, pair, abs(_difference(planner, values, pair)), 1.0)


@kernel
def _difference(planner: PengWilliams, values: TableValues, pair: int) -> float:
    """The expected value of a pair minus q(s, a); read by pair, as if all pairs were actions of one state."""
    return planner.expected.get(0, pair) - values.get(0, pair)


@part
class ByCostToGo(NamedTuple):
    """McMahan and Gordon (improved prioritized sweeping): the residual of a state, divided by its cost to go.

    When a state is taken off the queue, the values of all pairs that led to it are updated, and the residual of a state
    is the difference of its best pair from the value last passed on: `SmallBackups` with another priority.

    Their worlds have positive costs until a goal is reached; ours have rewards. The cost to go of s is therefore taken
    as its distance from the best known state: the largest value passed on so far, minus the new value of s (for the
    best state itself, a millionth of the largest observed value). If values begin at 0 and a goal is found, the nearest
    queued state then comes first: Dijkstra's order, which solves a deterministic world by taking every state once.
    Priorities are not revised when the best known state changes, only when the state's own values do.

    Attributes:
        largest: (1,), the largest value passed on so far.
    """

    largest: Vector

    def cost_to_go(self, value: float, largest: float) -> float:
        """The largest value passed on so far, minus this one; `largest` is the largest observed value."""
        return max(self.largest[0], value) - value + NEAR * largest

    def note_passed_on(self, value: float) -> None:
        """Record a value that was passed on."""
        self.largest[0] = max(self.largest[0], value)


@kernel
def back_up(expected: TableValues, model: TwoWayModel, values: TableValues, s: int) -> int:
    """For all a tried in s: q(s, a) ← Σ_s' P(s' | s, a) (r(s, a, s') + γ V(s')); return their number."""
    updates = 0
    for a in range(values.n_actions):
        if model.rows.used[s * values.n_actions + a] > 0:
            values.put(s, a, expected.get(s, a))
            updates += 1
    return updates
