"""The planner of an agent that only learns."""

from typing import Any, NamedTuple

from backcast.compiling import part
from backcast.values import Values


@part
class NoPlanner(NamedTuple):
    """Plans nothing."""

    unused: int = 0

    def begin(self, model: Any, values: Values, s: int, discount: float, alpha: float) -> int:
        """Nothing, in 0 updates."""
        return 0

    def plan(
        self, model: Any, values: Values, s: int, s2: int, ends: bool, first: bool, discount: float, alpha: float
    ) -> int:
        """Nothing, in 0 updates."""
        return 0
