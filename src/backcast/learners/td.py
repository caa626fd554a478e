"""One-step temporal differences: TD(0) for prediction (A = 1), Q-learning for control."""

from typing import Any, NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import ALPHA, Step
from backcast.values.targets import td_target


@part
class TD(NamedTuple):
    """TD(0), or Q-learning; nothing if `learns` is False (pure planning)."""

    learns: bool

    def update(self, values: Any, step: Step, discount: float, rates: Vector) -> int:
        """One update of q(s, a); the number of value updates."""
        if not self.learns:
            return 0
        values.move(step.s * values.n_actions + step.a, td_target(values, step, discount), rates[ALPHA])
        return 1
