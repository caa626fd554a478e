"""The planner of an agent that only learns."""

from collections.abc import Iterator
from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import Step
from backcast.models.contract import Model
from backcast.planners.contract import AnyPlanner
from backcast.values.contract import Values


@part
class NoPlanner(NamedTuple):
    """Plans nothing."""

    unused: int = 0

    def plan(self, model: Model, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Do nothing; return 0 updates."""
        return 0

    @in_python
    def stages(self, model: Model) -> Iterator[tuple[AnyPlanner, Model]]:
        """None."""
        yield from ()
