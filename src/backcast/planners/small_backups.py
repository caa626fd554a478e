"""Small backups (van Seijen and Sutton, ICML 2013): pass the change of a state's value on to its predecessors.

A table holds the full expected value of every pair tried,

    q(s, a) = r(s, a) + γ Σ_s' P(s' | s, a) U(s'),

where U(s') is the value of s' last passed on to its predecessors. It stays exact, up to rounding, when a transition is
counted and when U of one state changes, and each of these costs O(1) for every value that changes.
"""

from typing import NamedTuple, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import Step
from backcast.models.two_way import TwoWayModel
from backcast.planners.edges import Edges
from backcast.planners.queue import Queue, dequeue, note_observed, settle
from backcast.values.table import TableValues


class Urgency(Protocol):
    """A measure of the urgency of changes."""

    def cost_to_go(self, value: float, largest: float) -> float:
        """The divisor of the size of a change, for a state with this value."""

    def note_passed_on(self, value: float) -> None:
        """Record that a state with this value was taken off the queue."""


@part
class SmallBackups(NamedTuple):
    """Prioritized sweeping with small backups: the table of expected values is the agent's own.

    States are queued with priority |V(s) − U(s)|, V(s) = max_a q(s, a), modified by `urgency`. There are no step sizes,
    and nothing else may change the values. When the counts of (s, a) change, q(s, a) is corrected with U(s'), which the
    other terms of the sum also contain.

    Attributes:
        backups: number of states taken off the queue after each real step.
        told: (S,), U(s).
        queue: the states.
        urgency: `BySize`, or another measure of urgency.
        edges: edges touched.
    """

    backups: int
    told: Vector
    queue: Queue
    urgency: Urgency
    edges: Edges

    def plan(self, model: TwoWayModel, values: TableValues, step: Step, discount: float, rates: Vector) -> int:
        """Process the step, then pass on the most urgent changes; return the number of value updates."""
        note_observed(self.queue, take_in(values, self.told, model, step, discount))
        updates = 1
        _settle_state(self, values, step.s)
        for _ in range(self.backups):
            s = dequeue(self.queue)
            if s < 0:
                break
            value = values.best(s)
            self.urgency.note_passed_on(value)
            updates += pass_on(values, self.told, model, s, value)
            rows = model.led_here
            self.edges.touch(rows.used[s])
            for k in range(rows.offset[s], rows.offset[s] + rows.used[s]):
                _settle_state(self, values, rows.key[k] // values.n_actions)
        return updates


@part
class BySize(NamedTuple):
    """The larger change is the more urgent one (van Seijen and Sutton)."""

    unused: int = 0

    def cost_to_go(self, value: float, largest: float) -> float:
        """The same for all."""
        return 1.0

    def note_passed_on(self, value: float) -> None:
        """Do nothing."""


@kernel
def _settle_state(planner: SmallBackups, values: TableValues, s: int) -> None:
    value = values.best(s)
    cost = planner.urgency.cost_to_go(value, planner.queue.largest[0])
    settle(planner.queue, s, abs(value - planner.told[s]), cost)


@kernel
def take_in(expected: TableValues, told: Vector, model: TwoWayModel, step: Step, discount: float) -> float:
    """After (s, a) → r, s' was counted for the N-th time: q(s, a) ← q(s, a) + (r + γ U(s') − q(s, a)) / N.

    Returns:
        r + γ U(s'), or r where the episode ended.
    """
    seen = step.r if step.ends else step.r + discount * told[step.s2]
    old = expected.get(step.s, step.a)
    share = model.rows.share[step.s * model.n_actions + step.a]
    expected.put(step.s, step.a, old + share * (seen - old))
    return seen


@kernel
def pass_on(expected: TableValues, told: Vector, model: TwoWayModel, s: int, value: float) -> int:
    """For all (s̃, ã) that led to s: q(s̃, ã) ← q(s̃, ã) + γ P(s | s̃, ã) (V(s) − U(s)); then U(s) ← V(s).

    Returns:
        The number of updated values: 0 if V(s) has not changed.
    """
    change = value - told[s]
    if change == 0.0:
        return 0
    told[s] = value
    rows, share = model.led_here, model.rows.share
    first = rows.offset[s]
    last = first + rows.used[s]
    for k in range(first, last):
        pair = rows.key[k]
        expected.nudge(pair, rows.weight[k] * share[pair] * rows.carried[k] * change)
    return last - first
