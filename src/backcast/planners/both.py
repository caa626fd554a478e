"""Forward and backward planning in one step, with a model of each direction."""

from collections.abc import Iterator
from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import Step
from backcast.models.contract import Model
from backcast.models.side_by_side import BothModels
from backcast.planners.backward import BackwardPlanner
from backcast.planners.contract import AnyPlanner
from backcast.planners.forward import ForwardPlanner
from backcast.values.contract import Values


@part
class BothPlanners(NamedTuple):
    """First re-evaluate a state from its successors, then correct the predecessors of a state."""

    forward: ForwardPlanner
    backward: BackwardPlanner

    def begin(self, model: BothModels, values: Values, s: int, discount: float, rates: Vector) -> int:
        """Begin an episode in both planners."""
        updates = self.forward.begin(model.forward, values, s, discount, rates)
        return updates + self.backward.begin(model.backward, values, s, discount, rates)

    def plan(self, model: BothModels, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan forward, then backward; return the number of value updates of both."""
        updates = self.forward.plan(model.forward, values, step, discount, rates)
        return updates + self.backward.plan(model.backward, values, step, discount, rates)

    @in_python
    def stages(self, model: BothModels) -> Iterator[tuple[AnyPlanner, Model]]:
        """The planners: forward, then backward."""
        yield from zip(self, model, strict=True)
