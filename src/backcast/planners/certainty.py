"""Certainty equivalence: solve the learned model as if it were the world."""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import Step
from backcast.models.two_way import TwoWayModel, expect
from backcast.planners.dyna import Pairs, enlist
from backcast.planners.edges import Edges
from backcast.values.table import TableValues

_TOLERANCE = 1e-9  # relative to the largest value
_ERROR = 1e-6  # relative to the largest value, however slowly values converge
_ROUNDING = 16 * float(np.finfo(float).eps)
_SWEEPS = 5_000  # most sweeps after one episode: a model with discount 1 may have no solution
_PATIENCE, _BETWEEN = 1_000, 50  # sweeps before values are extrapolated, and between two times


@part
class CertaintyEquivalence(NamedTuple):
    """Value iteration in place after each episode, until convergence: the most that planning can achieve.

    Sweeps go over the pairs tried so far, in the order of their first trial: from the last to the first, because values
    propagate backward, then forward, and so on. Learning from real steps changes values until the episode is over; in a
    random world, large step sizes disturb the solution in the meantime, and learn=False keeps it.

    A sweep that changes no value by more than ε leaves an error of at most γ ε / (1 − γ). So sweeps end when ε is at
    most 10⁻⁹ and 10⁻⁶ (1 − γ) of the largest value. With γ near 1 this would take very many sweeps. Their changes then
    shrink by nearly the same factor ρ each time. After a thousand sweeps the rest of the geometric series is added at
    once (Aitken), at intervals; whatever this does, the following sweeps decide. With discount 1, in a model that may
    continue for ever, there may be no solution: sweeps end after 5,000.

    Attributes:
        tried: the pairs in the order of their first trial.
        edges: edges touched.
        before: (S·A,), the values of these pairs two sweeps ago, if needed.
        earlier: (S·A,), their values four sweeps ago.
    """

    tried: Pairs
    edges: Edges
    before: Vector
    earlier: Vector

    def plan(self, model: TwoWayModel, values: TableValues, step: Step, discount: float, rates: Vector) -> int:
        """Remember a pair that was tried for the first time; nothing is planned during an episode."""
        enlist(self.tried, step.s * values.n_actions + step.a)
        return 0

    def finish(
        self, model: TwoWayModel, values: TableValues, s: int, ends: bool, discount: float, rates: Vector
    ) -> int:
        """Solve the model; return the number of value updates."""
        tolerance = max(min(_TOLERANCE, _ERROR * (1.0 - discount)), _ROUNDING)
        n = self.tried.length[0]
        for sweeps in range(1, _SWEEPS + 1):
            since = sweeps - _PATIENCE
            if since >= 0 and since % _BETWEEN in (0, 2):
                _write_down(self, values)
            change, largest = _sweep(self, model, values, sweeps & 1 == 1)
            if change <= tolerance * largest:
                return sweeps * n
            if since >= 0 and since % _BETWEEN == 3:
                _extrapolate(self, values, discount)
        return _SWEEPS * n


@kernel
def _write_down(planner: CertaintyEquivalence, values: TableValues) -> None:
    """Save the values of the pairs tried, and keep those saved before."""
    for k in range(planner.tried.length[0]):
        planner.earlier[k] = planner.before[k]
        planner.before[k] = values.get(0, planner.tried.pairs[k])


@kernel
def _extrapolate(planner: CertaintyEquivalence, values: TableValues, discount: float) -> None:
    """Add ρ / (1 − ρ) of the change of two sweeps, with ρ its size against that of the two before, at most γ²."""
    before, n = planner.before, planner.tried.length[0]
    both, squares = 0.0, 0.0
    for k in range(n):
        old = before[k] - planner.earlier[k]
        both += old * (values.get(0, planner.tried.pairs[k]) - before[k])
        squares += old * old
    rate = min(both / squares, discount * discount) if squares > 0.0 else 0.0
    if 0.0 < rate < 1.0:
        for k in range(n):
            pair = planner.tried.pairs[k]
            values.nudge(pair, rate / (1.0 - rate) * (values.get(0, pair) - before[k]))


@kernel
def _sweep(
    planner: CertaintyEquivalence, model: TwoWayModel, values: TableValues, backward: bool
) -> tuple[float, float]:
    """For all pairs tried: set q(s, a) to its expectation; return the largest change and the largest |q(s, a)|."""
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
