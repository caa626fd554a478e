"""The model of an agent that has none."""

from typing import NamedTuple

from backcast.arrays import Vector
from backcast.compiling import part
from backcast.interaction import Step
from backcast.values import Values


@part
class NoModel(NamedTuple):
    """Learns nothing."""

    unused: int = 0

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Nothing."""
