"""Forward planning (the paper's Algorithms 1 and 3): re-evaluate the reference state from its imagined successors."""

from typing import Any, NamedTuple, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, optional, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.core.randomness import Stream, uniform
from backcast.models.contract import ForwardRows, ProbabilityRows
from backcast.models.rows import draw_unobserved
from backcast.planners.contract import Direction, M, Origins, V, plan_from_first, plan_from_origins
from backcast.planners.edges import UNCOUNTED, EdgeCount
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes


class Reevaluation(Protocol[M, V]):
    """How a forward planner re-evaluates a state; `renew(model, values, step, discount)` is called first."""

    def reevaluate(self, model: M, values: V, s: int, discount: float, alpha: float) -> int:
        """Update q(s, a) for all a, or for some; return the number of updates."""


@part
class ForwardPlanner(NamedTuple):
    """Plans from s' (`current`) or from s; `pure` means without learning; `how` defines the successors.

    Planning from a terminal state is skipped. Pure planning from s' plans also from the first state of an episode;
    otherwise it would never be planned from.
    """

    current: bool
    pure: bool
    how: Reevaluation[Any, Any]

    def begin(self, model: ForwardRows, values: Values, s: int, discount: float, rates: Vector) -> int:
        """Plan from the first state of an episode, if it would not be planned from otherwise."""
        return plan_from_first(self, model, values, s, discount, rates)

    def plan(self, model: ForwardRows, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan from the reference state of a step; return the number of value updates."""
        return plan_from_origins(self, model, values, step, discount, rates)

    def note_step(self, model: ForwardRows, values: Values, step: Step, discount: float) -> None:
        """Update the data that is kept for all states."""
        self.how.renew(model, values, step, discount)  # type: ignore[attr-defined]  # every part has it

    def origins(self, model: ForwardRows, step: Step) -> Origins:
        """Plan from s' unless it ends the episode, or from s."""
        return Origins(not self.current, self.current and not step.ends)

    def plans_first(self, model: ForwardRows) -> bool:
        """In pure planning from s'."""
        return self.current and self.pure

    def plan_from(self, model: ForwardRows, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Re-evaluate s; return the number of value updates."""
        return self.how.reevaluate(model, values, s, discount, rates[ALPHA_PLAN])

    @in_python
    def direction(self) -> Direction:
        """From what follows a state to the state."""
        return "forward"

    @in_python
    def step_taken(self, pair: int, alpha: float) -> float:
        """The step size of the last update of a pair."""
        return float(self.how.step_taken(pair, alpha))  # type: ignore[attr-defined]  # every part has it


@optional("renew")
def _renew_sums(self: object, model: ForwardRows, values: Values, step: Step, discount: float) -> None:
    """Update a model of states, which keeps a sum over all of them, after a step."""
    model.refresh(values, step.s, discount)
    model.refresh(values, step.s2, discount)


@part
class AllSuccessors(NamedTuple):
    """Expected update over all successors; with `top` above 0, over the most probable ones only."""

    top: int = 0
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def reevaluate(self, model: ForwardRows, values: Values, s: int, discount: float, alpha: float) -> int:
        """For all a: q(s, a) ← q(s, a) + α (Σ_s' P(s' | s, a) (r(s, s') + γ̄(s') max_a' q(s', a')) − q(s, a)).

        Actions are updated one after the other, as the algorithm is printed: if s may follow itself, later actions see
        the updates of earlier ones. If a row of counts is empty, nothing is known and nothing is updated.
        """
        updates = 0
        for a in range(values.n_actions):
            row = s * values.n_actions + a
            if model.rows.width > 0 or model.rows.used[row] > 0:
                if self.top > 0:
                    expected = expect_top(model, values, row, discount, self.top)
                else:
                    expected = expect(model, values, row, discount)
                values.move(row, expected, self.step_size.of(row, alpha, 1.0))
                self.edges.touch(model.rows.used[row])
                model.refresh(values, s, discount)
                updates += 1
        return updates


@kernel
def expect(model: ForwardRows, values: Values, row: int, discount: float) -> float:
    """Σ_s' P(s' | row) (r + h(s')) over all successors, observed or not."""
    rows = model.rows
    first = rows.offset[row]
    expected, seen = 0.0, 0.0
    for k in range(first, first + rows.used[row]):
        h = model.look_ahead(values, rows.key[k], discount)
        expected += rows.weight[k] * model.outlook(k, h)
        seen += h
    if rows.unobserved(row) > 0:
        expected += model.all_unseen(seen)
    return expected * rows.share[row]


@kernel
def expect_top(model: ForwardRows, values: Values, row: int, discount: float, top: int) -> float:
    """The expectation over the `top` most probable observed successors, as if there were no others."""
    rows = model.rows
    first = rows.offset[row]
    last = first + rows.used[row]
    expected, total, bound, after = 0.0, 0.0, 0.0, -1
    for taken in range(top):
        found = -1
        for k in range(first, last):
            comes_next = taken == 0 or rows.weight[k] < bound or (rows.weight[k] == bound and k > after)
            if comes_next and (found < 0 or rows.weight[k] > rows.weight[found]):
                found = k
        if found < 0:
            break
        bound, after = rows.weight[found], found
        total += bound
        expected += bound * model.outlook(found, model.look_ahead(values, rows.key[found], discount))
    return expected / total if total > 0.0 else expect(model, values, row, discount)


@part
class SampledSuccessors(NamedTuple):
    """Algorithm 1 looking forward: `samples` times, an action of s, s' ~ P(s, a), and an update of q(s, a)."""

    samples: int
    stream: Stream
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def reevaluate(self, model: ForwardRows, values: Values, s: int, discount: float, alpha: float) -> int:
        """Make sampled updates of s, with uniform actions; return the number of value updates."""
        updates = 0
        for _ in range(self.samples):
            a = int(uniform(self.stream) * values.n_actions) if values.n_actions > 1 else 0
            row = s * values.n_actions + a
            if model.rows.width > 0 or model.rows.used[row] > 0:
                target = draw_outlook(model, values, row, discount, self.stream)
                values.move(row, target, self.step_size.of(row, alpha, 1.0))
                self.edges.touch(1)
                model.refresh(values, s, discount)
                updates += 1
        return updates


@kernel
def draw_outlook(model: ForwardRows, values: Values, row: int, discount: float, stream: Stream) -> float:
    """The target r + h(s') for a successor s' drawn from the row."""
    rows = model.rows
    place = draw_place(rows, row, uniform(stream))
    if place >= 0:
        return model.outlook(place, model.look_ahead(values, rows.key[place], discount))
    first = rows.offset[row]
    s2 = draw_unobserved(rows, first, first + rows.used[row], stream)
    return model.unseen(model.look_ahead(values, s2, discount))


@kernel
def draw_place(rows: ProbabilityRows, row: int, u: float) -> int:
    """Draw the place of an outcome of a row, for a uniform u; −1 for an outcome never observed."""
    first = rows.offset[row]
    last = first + rows.used[row]
    left = u
    for k in range(first, last):
        left -= rows.weight[k] * rows.share[row]
        if left < 0.0:
            return k
    return -1 if rows.unobserved(row) > 0 else last - 1
