"""TD targets and TD errors of a real step."""

from backcast.core.compiling import kernel
from backcast.core.interaction import Step
from backcast.values.contract import Values


@kernel
def td_target(values: Values, step: Step, discount: float) -> float:
    """The target r + γ max_a' q(s', a'), with γ = 0 where s' ends the episode (equation 1)."""
    return step.r if step.ends else step.r + discount * values.best(step.s2)


@kernel
def td_error(values: Values, step: Step, discount: float) -> float:
    """δ = r + γ max_a' q(s', a') − q(s, a)."""
    return td_target(values, step, discount) - values.get(step.s, step.a)
