"""What the loop, and those who watch it, may ask of a planner.

A planner that plans from states, `s` or `s'` of a step, says from which (`origins`, `plans_first`) and plans from one
of them at a time (`plan_from`); then `plan_from_origins` is all it needs for `plan`, and the lab shows where it plans
from without knowing it. Any other planner has `plan` alone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, optional
from backcast.core.interaction import Step
from backcast.values.contract import Values


class Origins(NamedTuple):
    """Which states of a step s, a → s' are planned from."""

    previous: bool
    current: bool


class Planner(Protocol):
    """Plans after each step; whatever else is asked has a default."""

    def plan(self, model: Any, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan after a step; the number of value updates."""

    def begin(self, model: Any, values: Values, s: int, discount: float, rates: Vector) -> int:
        """Plan when an episode begins in s; the number of value updates."""

    def finish(self, model: Any, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Plan when an episode is over; the number of value updates."""

    def direction(self) -> str:
        """Whether it plans "forward" or "backward" from the states of a step, "elsewhere", or not at all ("")."""

    def stages(self, model: Any) -> "Iterator[tuple[Planner, Any]]":
        """The planners that it is made of, in the order in which they plan, each with its model."""


class StatePlanner(Planner, Protocol):
    """Plans from states of a step."""

    def origins(self, model: Any, step: Step) -> Origins:
        """Which states of a step are planned from."""

    def plans_first(self, model: Any) -> bool:
        """Whether the first state of an episode is planned from when the episode begins."""

    def plan_from(self, model: Any, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Plan from s, which `ends` the episode or not; the number of value updates."""


@kernel
def plan_from_origins(planner: Any, model: Any, values: Values, step: Step, discount: float, rates: Vector) -> int:
    """Plan from the states of a step that a planner names, the earlier one first; the number of value updates."""
    origins = planner.origins(model, step)
    updates = 0
    if origins.previous:
        updates += planner.plan_from(model, values, step.s, False, discount, rates)
    if origins.current:
        updates += planner.plan_from(model, values, step.s2, step.ends, discount, rates)
    return updates


@kernel
def plan_from_first(planner: Any, model: Any, values: Values, s: int, discount: float, rates: Vector) -> int:
    """Plan from the first state of an episode, if the planner does; the number of value updates."""
    return planner.plan_from(model, values, s, False, discount, rates) if planner.plans_first(model) else 0


@optional("begin")
def _begins_without_planning(self: Any, model: Any, values: Values, s: int, discount: float, rates: Vector) -> int:
    """Most planners do nothing when an episode begins."""
    return 0


@optional("finish")
def _ends_without_planning(
    self: Any, model: Any, values: Values, s: int, ends: bool, discount: float, rates: Vector
) -> int:
    """Most planners do nothing when an episode is over."""
    return 0


@optional("attend")
def _needs_not_be_told(self: Any, model: Any, values: Values, step: Step, discount: float) -> None:
    """Most planners need not be told what a step has changed before they plan."""


@optional("direction")
@in_python
def _plans_elsewhere(self: Any) -> str:
    """Most planners choose for themselves what to update."""
    return "elsewhere"


@optional("stages")
@in_python
def _is_one(self: Any, model: Any) -> Iterator[tuple[Any, Any]]:
    """Most planners are not made of others."""
    yield self, model
