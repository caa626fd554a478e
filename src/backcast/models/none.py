"""The model of an agent that has none."""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import Step
from backcast.values.contract import Values


@part
class NoModel(NamedTuple):
    """Learns nothing."""

    unused: int = 0

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Nothing."""
