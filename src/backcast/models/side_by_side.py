"""A model of each direction."""

from typing import Any, NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import Step
from backcast.values.table import Values


@part
class BothModels(NamedTuple):
    """A forward and a backward model, learned side by side."""

    forward: Any
    backward: Any

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Both learn from the step."""
        self.forward.learn(values, step, discount, rates)
        self.backward.learn(values, step, discount, rates)

    def restart(self, s: int, rates: Vector) -> None:
        """Both are told where an episode begins."""
        self.forward.restart(s, rates)
        self.backward.restart(s, rates)
