"""What the loop, and those who watch it, may ask of a planner.

A planner that plans from states, `s` or `s'` of a step, says from which (`origins`, `plans_first`) and plans from one
of them at a time (`plan_from`); then `plan_from_origins` is all it needs for `plan`, and the lab shows where it plans
from without knowing it. Any other planner has `plan` alone.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, optional
from backcast.core.interaction import Step
from backcast.models.contract import Model
from backcast.values.contract import Values

Direction = Literal["forward", "backward", "elsewhere", "values"]


class Origins(NamedTuple):
    """Which states of a step s, a → s' are planned from."""

    previous: bool
    current: bool


class Turn(NamedTuple):
    """A state of a step: whether it ends the episode, and whether it is planned from."""

    s: int
    ends: bool
    planned: bool


M = TypeVar("M", contravariant=True)  # the model and the values that a planner works with
V = TypeVar("V", contravariant=True)
OwnModel = TypeVar("OwnModel")
OwnValues = TypeVar("OwnValues")


class PlannerPart(Protocol[M, V]):
    """What an author writes: it plans after each step, with the model and the values that its kind gives it."""

    def plan(self, model: M, values: V, step: Step, discount: float, rates: Vector) -> int:
        """Plan after a step; the number of value updates."""


class Planner(PlannerPart[M, V], Protocol[M, V]):
    """What may be asked of a planner; `part` has added the defaults."""

    def begin(self, model: M, values: V, s: int, discount: float, rates: Vector) -> int:
        """Plan when an episode begins in s; the number of value updates."""

    def finish(self, model: M, values: V, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Plan when an episode is over; the number of value updates."""

    def note_step(self, model: M, values: V, step: Step, discount: float) -> None:
        """Note what a step has changed, before states are planned from."""

    def prefetch_state(self, s: int, here: int) -> None:
        """Ask memory for what is kept of s, where the agent, which is `here`, may be next; asked in large worlds."""

    def direction(self) -> Direction:
        """How arrows are drawn.

        "forward" or "backward" from the states of a step; "elsewhere", if it updates whatever pairs it likes; "values",
        if it gives states new values, which their actions follow.
        """

    def explain(self, name_of: Callable[[int], str]) -> str:
        """Why it planned after the last step as it did, in words for those who watch; empty if it does not say."""

    def stages(self, model: M) -> "Iterator[tuple[AnyPlanner, Model]]":
        """The planners that it is made of, in the order in which they plan, each with its model."""

    def step_taken(self, pair: int, alpha: float) -> float:
        """How far the last update of a pair went, where α is the step size of planning."""


class StatePlanner(PlannerPart[M, V], Protocol[M, V]):
    """Plans from states of a step."""

    def origins(self, model: M, step: Step) -> Origins:
        """Which states of a step are planned from."""

    def plans_first(self, model: M) -> bool:
        """Whether the first state of an episode is planned from when the episode begins."""

    def plan_from(self, model: M, values: V, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Plan from s, which `ends` the episode or not; the number of value updates."""


class CompleteStatePlanner(Planner[M, V], StatePlanner[M, V], Protocol[M, V]):
    """The same with all that may be asked of a planner."""


AnyPlanner = Planner[Any, Any]


@kernel
def turns(
    planner: StatePlanner[OwnModel, OwnValues], model: OwnModel, values: OwnValues, step: Step, discount: float
) -> tuple[Turn, Turn]:
    """The states of a step in the order in which a planner may plan from them; it is told of the step before."""
    planner.note_step(model, values, step, discount)  # type: ignore[attr-defined]  # every part has it
    origins = planner.origins(model, step)
    return Turn(step.s, False, origins.previous), Turn(step.s2, step.ends, origins.current)


@kernel
def plan_from_origins(
    planner: StatePlanner[OwnModel, OwnValues],
    model: OwnModel,
    values: OwnValues,
    step: Step,
    discount: float,
    rates: Vector,
) -> int:
    """Plan from the states of a step that a planner names, the earlier one first; the number of value updates."""
    first, second = turns(planner, model, values, step, discount)
    updates = 0
    if first.planned:
        updates += planner.plan_from(model, values, first.s, first.ends, discount, rates)
    if second.planned:
        updates += planner.plan_from(model, values, second.s, second.ends, discount, rates)
    return updates


@kernel
def plan_from_first(
    planner: StatePlanner[OwnModel, OwnValues],
    model: OwnModel,
    values: OwnValues,
    s: int,
    discount: float,
    rates: Vector,
) -> int:
    """Plan from the first state of an episode, if the planner does; the number of value updates."""
    return planner.plan_from(model, values, s, False, discount, rates) if planner.plans_first(model) else 0


@optional("begin")
def _begins_without_planning(self: object, model: Model, values: Values, s: int, discount: float, rates: Vector) -> int:
    """Most planners do nothing when an episode begins."""
    return 0


@optional("finish")
def _ends_without_planning(
    self: object, model: Model, values: Values, s: int, ends: bool, discount: float, rates: Vector
) -> int:
    """Most planners do nothing when an episode is over."""
    return 0


@optional("note_step")
def _needs_not_be_told(self: object, model: Model, values: Values, step: Step, discount: float) -> None:
    """Most planners need not be told what a step has changed before they plan."""


@optional("direction")
@in_python
def _plans_elsewhere(self: object) -> Direction:
    """Most planners choose for themselves what to update."""
    return "elsewhere"


@optional("step_taken")
@in_python
def _as_counted(self: Any, pair: int, alpha: float) -> float:
    """As far as the part's step sizes say; α if it has none."""
    return float(self.step_size.of(pair, alpha, 0.0)) if "step_size" in self._fields else alpha


@optional("explain")
@in_python
def _does_not_say(self: object, name_of: Callable[[int], str]) -> str:
    """Most planners always plan alike."""
    return ""


@optional("stages")
@in_python
def _is_one(self: AnyPlanner, model: Model) -> Iterator[tuple[AnyPlanner, Model]]:
    """Most planners are not made of others."""
    yield self, model
