"""The interface of planners for the loop and for observers.

A planner that plans from states of a step, `s` or `s'`, says from which (`origins`, `plans_first`) and plans from one
of them at a time (`plan_from`). Its `plan` is then `plan_from_origins`, and the lab can show where it plans from. Any
other planner only has `plan`.
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
    """The states of a step s, a → s' that are planned from."""

    previous: bool
    current: bool


class Turn(NamedTuple):
    """A state of a step: whether it ends the episode, and whether it is planned from."""

    s: int
    ends: bool
    planned: bool


M = TypeVar("M", contravariant=True)  # the model and the values of a planner
V = TypeVar("V", contravariant=True)
OwnModel = TypeVar("OwnModel")
OwnValues = TypeVar("OwnValues")


class PlannerPart(Protocol[M, V]):
    """The methods an author writes: plan after each step, with the model and the values given by the kind."""

    def plan(self, model: M, values: V, step: Step, discount: float, rates: Vector) -> int:
        """Plan after a step; return the number of value updates."""


class Planner(PlannerPart[M, V], Protocol[M, V]):
    """The full interface of a planner; `part` adds the defaults."""

    def begin(self, model: M, values: V, s: int, discount: float, rates: Vector) -> int:
        """Plan when an episode begins in s; return the number of value updates."""

    def finish(self, model: M, values: V, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Plan when an episode is over; return the number of value updates."""

    def note_step(self, model: M, values: V, step: Step, discount: float) -> None:
        """Note what a step has changed, before states are planned from."""

    def prefetch_state(self, s: int, here: int) -> None:
        """Prefetch the data of s, a possible next state of the agent, which is `here`; called in large worlds."""

    def direction(self) -> Direction:
        """How arrows are drawn.

        "forward" or "backward" from the states of a step; "elsewhere" if it updates arbitrary pairs; "values" if it
        assigns new values to states, which their actions follow.
        """

    def explain(self, name_of: Callable[[int], str]) -> str:
        """Explain the planning after the last step in words; empty if there is no explanation."""

    def stages(self, model: M) -> "Iterator[tuple[AnyPlanner, Model]]":
        """The planners it consists of, in the order in which they plan, each with its model."""

    def step_taken(self, pair: int, alpha: float) -> float:
        """The step size of the last update of a pair, where α is the step size of planning."""


class StatePlanner(PlannerPart[M, V], Protocol[M, V]):
    """Plans from states of a step."""

    def origins(self, model: M, step: Step) -> Origins:
        """Which states of a step are planned from."""

    def plans_first(self, model: M) -> bool:
        """Whether the first state of an episode is planned from when the episode begins."""

    def plan_from(self, model: M, values: V, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Plan from s, which `ends` the episode or not; return the number of value updates."""


class CompleteStatePlanner(Planner[M, V], StatePlanner[M, V], Protocol[M, V]):
    """A state planner with the full interface."""


AnyPlanner = Planner[Any, Any]


@kernel
def turns(
    planner: StatePlanner[OwnModel, OwnValues], model: OwnModel, values: OwnValues, step: Step, discount: float
) -> tuple[Turn, Turn]:
    """Tell the planner of the step, and return its states in the order in which they may be planned from."""
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
    """Plan from the origins of a step, the earlier one first; return the number of value updates."""
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
    """Plan from the first state of an episode, if the planner does so; return the number of value updates."""
    return planner.plan_from(model, values, s, False, discount, rates) if planner.plans_first(model) else 0


@optional("begin")
def _begins_without_planning(self: object, model: Model, values: Values, s: int, discount: float, rates: Vector) -> int:
    """By default, nothing happens when an episode begins."""
    return 0


@optional("finish")
def _ends_without_planning(
    self: object, model: Model, values: Values, s: int, ends: bool, discount: float, rates: Vector
) -> int:
    """By default, nothing happens when an episode is over."""
    return 0


@optional("note_step")
def _needs_not_be_told(self: object, model: Model, values: Values, step: Step, discount: float) -> None:
    """By default, planners ignore what a step has changed before they plan."""


@optional("direction")
@in_python
def _plans_elsewhere(self: object) -> Direction:
    """By default, planners choose what to update."""
    return "elsewhere"


@optional("step_taken")
@in_python
def _as_counted(self: Any, pair: int, alpha: float) -> float:
    """By default, the step size of the part; α if it has none."""
    return float(self.step_size.of(pair, alpha, 0.0)) if "step_size" in self._fields else alpha


@optional("explain")
@in_python
def _does_not_say(self: object, name_of: Callable[[int], str]) -> str:
    """By default, there is no explanation."""
    return ""


@optional("stages")
@in_python
def _is_one(self: AnyPlanner, model: Model) -> Iterator[tuple[AnyPlanner, Model]]:
    """By default, a planner consists of no others."""
    yield self, model
