"""Eligibility traces, online: TD(λ) for prediction (A = 1), Watkins's Q(λ) for control.

    δ_t = R_{t+1} + γ max_a q(S_{t+1}, a) − q(S_t, A_t)
    e_t(s, a) = γλ e_{t−1}(s, a), and at (S_t, A_t) one more (accumulating traces) or just 1 (replacing traces)
    q(s, a) ← q(s, a) + α δ_t e_t(s, a)   for all pairs

with e_{t−1} = 0 at the first step of an episode and, in Watkins's Q(λ), if A_t is not greedy: what follows then says
nothing about the greedy policy at earlier pairs (Sutton, 1988; Watkins, 1989; Singh and Sutton, 1996).

With averaged step sizes a visit is one update, including everything that follows it: α is divided by the number of
visits to (s, a). Then λ = 1 gives the mean of the returns if no pair is visited twice. (The sum of all traces of a pair
would count one return as 1 / (1 − γλ) updates.)
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA, Step
from backcast.values.contract import Values
from backcast.values.policies import greedy_chance
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.targets import td_error

# Smaller traces are dropped. They would change a value by less than this fraction of a TD error, which no reported
# digit shows, and keeping them would cost as much as keeping large ones.
SMALLEST = 1e-8


@part
class Traces(NamedTuple):
    """Rows of traces over N pairs, each a list of the nonzero ones; row i has the places i · N … (i + 1) · N − 1.

    Attributes:
        used: (rows,), the number of nonzero traces of each row.
        key: (rows · N,), the pair s·A + a.
        weight: (rows · N,), its trace.
        where: (rows · N,), one more than the place of each pair in its row; 0 if its trace is 0.
        width: N.
    """

    used: Indices
    key: Indices
    weight: Vector
    where: Indices
    width: int

    def place_of(self, row: int, key: int) -> int:
        """The place of a pair in a row, made if it is new."""
        first = row * self.width
        if self.where[first + key] == 0:
            place = first + self.used[row]
            self.key[place], self.weight[place] = key, 0.0
            self.used[row] += 1
            self.where[first + key] = self.used[row]
        return first + self.where[first + key] - 1

    def fade(self, row: int, factor: float) -> None:
        """Multiply all traces of a row by a factor; drop those that become too small, filling the gap with the last."""
        first = row * self.width
        k, last = first, first + self.used[row]
        while k < last:
            weight = self.weight[k] * factor
            if weight >= SMALLEST:
                self.weight[k] = weight
                k += 1
                continue
            last -= 1
            dropped, moved = self.key[k], self.key[last]
            self.key[k], self.weight[k] = moved, self.weight[last]
            self.where[first + moved] = k - first + 1
            self.where[first + dropped] = 0
        self.used[row] = last - first

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Set the traces of these states to 0, because their numbers are reused."""
        for row in range(len(self.used)):
            first = row * self.width
            kept = [k for k in range(first, first + self.used[row]) if self.key[k] // n_actions not in states]
            key, weight = self.key[kept], self.weight[kept]
            self.wipe(row)
            for one, size in zip(key.tolist(), weight.tolist(), strict=True):
                self.weight[self.place_of(row, one)] = size

    def wipe(self, row: int) -> None:
        """Set all traces of a row to 0."""
        first = row * self.width
        for k in range(first, first + self.used[row]):
            self.where[first + self.key[k]] = 0
        self.used[row] = 0


def no_traces(rows: int, pairs: int) -> Traces:
    """Rows in which all traces are 0; memory is allocated as it is written to."""
    places = rows * pairs
    key, where = np.zeros(places, dtype=np.int64), np.zeros(places, dtype=np.int64)
    return Traces(np.zeros(rows, dtype=np.int64), key, np.zeros(places), where, pairs)


@kernel
def visit(traces: Traces, values: Values, step: Step, decay: float, replacing: bool) -> None:
    """Update e_{t−1} to e_t, in a single row.

    An action counts as greedy by the values with which it was chosen, before this step is learned from; ties with the
    best are greedy.
    """
    if step.first or greedy_chance(values, step.s, step.a) == 0.0:
        traces.wipe(0)
    else:
        traces.fade(0, decay)
    place = traces.place_of(0, step.s * values.n_actions + step.a)
    traces.weight[place] = 1.0 if replacing else traces.weight[place] + 1.0


@kernel
def credit(values: Values, traces: Traces, row: int, change: float, step_size: StepSizes) -> int:
    """Move each pair with a trace in this row by change · trace: q ← q + α δ e; return their number."""
    first = row * traces.width
    for k in range(first, first + traces.used[row]):
        values.nudge(traces.key[k], step_size.of(traces.key[k], change * traces.weight[k], 0.0))
    return traces.used[row]


@part
class TraceLearner(NamedTuple):
    """TD(λ) or Watkins's Q(λ).

    Attributes:
        traces: one row, e_t.
        lam: λ.
        replacing: whether a visit sets a trace to 1 instead of adding 1. Traces of other actions in the state stay.
        step_size: step size of a visit to a pair.
    """

    traces: Traces
    lam: float
    replacing: bool
    step_size: StepSizes = SCHEDULED

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Make one update for each pair that has a trace."""
        delta = td_error(values, step, discount)
        visit(self.traces, values, step, discount * self.lam, self.replacing)
        self.step_size.of(step.s * values.n_actions + step.a, 0.0, 1.0)
        return credit(values, self.traces, 0, rates[ALPHA] * delta, self.step_size)
