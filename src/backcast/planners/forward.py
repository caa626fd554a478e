"""Forward planning (the paper's Algorithm 3): re-evaluate the reference state from its imagined successors."""

from typing import NamedTuple

from backcast.compiling import kernel, part
from backcast.models.forward import ForwardModel, refresh
from backcast.values import Values


@part
class ForwardPlanner(NamedTuple):
    """Plans from s' (`current`) or from s; `pure` if there is no learning beside it.

    Planning from a terminal state is skipped. Pure planning from s' plans also from the first state of an episode,
    which would else never be planned from.
    """

    current: bool
    pure: bool

    def begin(self, model: ForwardModel, values: Values, s: int, discount: float, alpha: float) -> int:
        """Plan from the first state of an episode, if nothing else will."""
        if self.current and self.pure:
            return plan_forward(model, values, s, discount, alpha)
        return 0

    def plan(
        self,
        model: ForwardModel,
        values: Values,
        s: int,
        s2: int,
        ends: bool,
        first: bool,
        discount: float,
        alpha: float,
    ) -> int:
        """Plan from the reference state of a step; the number of value updates."""
        refresh(model, values, s, discount)
        refresh(model, values, s2, discount)
        if not self.current:
            return plan_forward(model, values, s, discount, alpha)
        if ends:
            return 0
        return plan_forward(model, values, s2, discount, alpha)


@kernel
def plan_forward(model: ForwardModel, values: Values, s: int, discount: float, alpha: float) -> int:
    """For all a: q(s, a) ← q(s, a) + α (Σ_s' P(s' | s, a) (r(s, s') + γ̄(s') max_a' q(s', a')) − q(s, a)).

    One action after the other, as the algorithm is printed: where s may follow itself, later actions see the update of
    earlier ones.
    """
    rows = model.rows
    n_actions = values.n_actions
    for a in range(n_actions):
        row = s * n_actions + a
        first = rows.offset[row]
        expected = 0.0
        seen = 0.0
        for k in range(first, first + rows.used[row]):
            ahead = model.ahead[rows.key[k]]
            expected += rows.weight[k] * (rows.reward[k] + ahead)
            seen += ahead
        if rows.unobserved(row) > 0:
            expected += model.sum_ahead[0] - seen
        old = values.get(s, a)
        values.put(s, a, old + alpha * (expected * rows.share[row] - old))
        refresh(model, values, s, discount)
    return n_actions
