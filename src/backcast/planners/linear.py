"""Planning with linear values: how a model corrects the weights when a state is planned from.

The planners of tables say *when* and from which state to plan; these parts take the place of their `how`.
"""

from typing import Any, NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import part
from backcast.core.interaction import Step
from backcast.values.linear import LinearValues


@part
class ByModel(NamedTuple):
    """Leave the update to the model."""

    unused: int = 0

    def correct(self, model: Any, values: Any, s: int, discount: float, onward: float, alpha: float) -> int:
        """A backward update from s; the number of updates of the weights."""
        return model.improve(values, s, discount, alpha)

    def renew(self, model: Any, values: Any, step: Step, discount: float) -> None:
        """There is nothing to keep up to date."""

    def reevaluate(self, model: Any, values: Any, s: int, discount: float, alpha: float) -> int:
        """A forward update of s; the number of updates of the weights."""
        return model.improve(values, s, discount, alpha)


@part
class WeighedPredecessors(NamedTuple):
    """The distributional update of tabular rows: Σ_s̃ P←(s̃, ã | s) δ(s̃, s) φ(s̃, ã), then one step along it.

    Attributes:
        amount: (S·A,) how far to go along the features of each pair, before anything is corrected.
    """

    amount: Vector

    def correct(self, model: Any, values: LinearValues, s: int, discount: float, onward: float, alpha: float) -> int:
        """A backward update from s; the number of updates of the weights."""
        rows = model.rows
        best = values.best(s)
        base = model.base(s, best, discount)
        for row in range(model.first_row(s), model.last_row(s)):
            step = rows.share[row] * model.factor(row)
            for k in range(rows.offset[row], rows.offset[row] + rows.used[row]):
                pair = model.pair(row, rows.key[k])
                old = values.get(pair // values.n_actions, pair % values.n_actions)
                self.amount[pair] = step * rows.weight[k] * (model.target(k, base, best) - old)
        for row in range(model.first_row(s), model.last_row(s)):
            for k in range(rows.offset[row], rows.offset[row] + rows.used[row]):
                pair = model.pair(row, rows.key[k])
                values.nudge(pair, alpha * self.amount[pair])
        return 1
