"""One-step temporal differences: TD(0) for prediction (A = 1), Q-learning for control."""

from typing import Any, NamedTuple

from backcast.arrays import Vector
from backcast.compiling import kernel, part
from backcast.interaction import ALPHA, Step


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


@kernel
def td_target(values: Any, step: Step, discount: float) -> float:
    """The target r + γ max_a' q(s', a'), with γ = 0 where s' ends the episode (equation 1)."""
    return step.r if step.ends else step.r + discount * values.best(step.s2)


@kernel
def td_error(values: Any, step: Step, discount: float) -> float:
    """δ = r + γ max_a' q(s', a') − q(s, a)."""
    return td_target(values, step, discount) - values.get(step.s, step.a)
