"""One-step temporal differences: TD(0) for prediction (A = 1), Q-learning for control."""

from backcast.compiling import kernel
from backcast.values import Values


@kernel
def td_update(values: Values, s: int, a: int, r: float, s2: int, ends: bool, discount: float, alpha: float) -> None:
    """q(s, a) ← q(s, a) + α (r + γ max_a' q(s', a') − q(s, a)), with γ = 0 where s' ends the episode (equation 1)."""
    target = r if ends else r + discount * values.best(s2)
    old = values.get(s, a)
    values.put(s, a, old + alpha * (target - old))
