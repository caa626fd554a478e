"""One-step temporal differences: TD(0) for prediction (A = 1), Q-learning for control."""

from typing import NamedTuple

from backcast.arrays import Vector
from backcast.compiling import kernel, part
from backcast.interaction import ALPHA, Step
from backcast.values import Values


@part
class TD(NamedTuple):
    """TD(0), or Q-learning; nothing if `learns` is False (pure planning)."""

    learns: bool

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """One update of q(s, a); the number of value updates."""
        if not self.learns:
            return 0
        delta = td_error(values, step, discount)
        values.put(step.s, step.a, values.get(step.s, step.a) + rates[ALPHA] * delta)
        return 1


@kernel
def td_error(values: Values, step: Step, discount: float) -> float:
    """δ = r + γ max_a' q(s', a') − q(s, a), with γ = 0 where s' ends the episode (equation 1)."""
    target = step.r if step.ends else step.r + discount * values.best(step.s2)
    return target - values.get(step.s, step.a)
