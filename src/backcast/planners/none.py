"""The planner of an agent that only learns."""

from typing import Any, NamedTuple

from backcast.arrays import Vector
from backcast.compiling import part
from backcast.interaction import Step
from backcast.values import Values


@part
class NoPlanner(NamedTuple):
    """Plans nothing."""

    unused: int = 0

    def plan(self, model: Any, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Nothing, in 0 updates."""
        return 0
