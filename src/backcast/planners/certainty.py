"""Certainty equivalence: solve the learned model as if it were the world."""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import Step
from backcast.models.two_way import TwoWayModel, expect
from backcast.planners.dyna import Pairs, enlist
from backcast.planners.edges import Edges
from backcast.values.table import TableValues

_TOLERANCE = 1e-9  # of the largest value
_SWEEPS = 5_000  # at most after one episode: a model with discount 1 may have no solution


@part
class CertaintyEquivalence(NamedTuple):
    """Value iteration in place after each episode, until nothing changes any more: what planning can at most achieve.

    Sweeps go over the pairs tried so far, in the order in which they were first tried: back from the last to the first,
    for values flow backward, then forward, and so on. What is learned beside it lasts until the episode is over; in a
    random world, large step sizes disturb the solution meanwhile, and learn=False keeps it.

    Attributes:
        tried: the pairs in the order of their first trial.
        edges: those touched.
    """

    tried: Pairs
    edges: Edges

    def plan(self, model: TwoWayModel, values: TableValues, step: Step, discount: float, rates: Vector) -> int:
        """Remember a pair that was tried for the first time; nothing is planned during an episode."""
        enlist(self.tried, step.s * values.n_actions + step.a)
        return 0

    def finish(
        self, model: TwoWayModel, values: TableValues, s: int, ends: bool, discount: float, rates: Vector
    ) -> int:
        """Solve the model; the number of value updates."""
        for sweeps in range(1, _SWEEPS + 1):
            change, largest = _sweep(self, model, values, sweeps & 1 == 1)
            if change <= _TOLERANCE * largest:
                return sweeps * self.tried.length[0]
        return _SWEEPS * self.tried.length[0]


@kernel
def _sweep(
    planner: CertaintyEquivalence, model: TwoWayModel, values: TableValues, backward: bool
) -> tuple[float, float]:
    """For all pairs tried: q(s, a) ← what is expected of it; the largest change and the largest |q(s, a)|."""
    change, largest = 0.0, 0.0
    last = planner.tried.length[0] - 1
    for k in range(last + 1):
        pair = planner.tried.pairs[last - k if backward else k]
        s, a = pair // values.n_actions, pair % values.n_actions
        new = expect(model, values, pair)
        planner.edges.touch(model.rows.used[pair])
        change = max(change, abs(new - values.get(s, a)))
        largest = max(largest, abs(new))
        values.put(s, a, new)
    return change, largest
