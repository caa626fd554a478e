"""One-step temporal differences: TD(0) for prediction (A = 1), Q-learning for control."""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import ALPHA, Step
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.targets import td_target


@part
class TD(NamedTuple):
    """TD(0), or Q-learning; nothing if `learns` is False (pure planning)."""

    learns: bool
    step_size: StepSizes = SCHEDULED

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Make one update of q(s, a); return the number of value updates."""
        if not self.learns:
            return 0
        pair = step.s * values.n_actions + step.a
        values.move(pair, td_target(values, step, discount), self.step_size.of(pair, rates[ALPHA], 1.0))
        return 1
