"""A two-way model: the successors of each state and action, and the pairs that led to each state.

Both directions count the same transitions, so that P(s' | s, a) can be read from either end: a planner that comes
from s' needs no search in the row of (s, a).
"""

from typing import NamedTuple, cast

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import Step
from backcast.models.counts import CountRows
from backcast.models.readable import Known, LearnedForward, ReadableModel
from backcast.models.rows import connect, find, known_of
from backcast.values.contract import Values


@part
class TwoWayModel(NamedTuple):
    """The maximum-likelihood model of one step, forward and backward.

    Each entry has the mean reward and the mean discount of its transitions: γ, or 0 if the step ended the episode.
    There is nothing after a terminal state, and a state that only sometimes ends an episode is no special case.

    Attributes:
        rows: a row for each pair s·A + a over s'.
        led_here: a row for each s' over the pairs s·A + a; counts and means are those of the same entry in `rows`.
        n_actions: A.
        forgets: rate at which the counts of a pair decay before each observation of it.
    """

    rows: CountRows
    led_here: CountRows
    n_actions: int
    forgets: float

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Count the transition in both directions."""
        pair = step.s * self.n_actions + step.a
        if self.forgets > 0.0:
            _forget(self, pair)
        carried = 0.0 if step.ends else discount
        connect(self.rows, pair, step.s2, step.r, carried, 1.0, 1.0)
        connect(self.led_here, step.s2, pair, step.r, carried, 1.0, 1.0)

    def prefetch_state(self, s: int, here: int) -> None:
        """Prefetch the data of s."""
        self.rows.prefetch_row(s * self.n_actions, here * self.n_actions)
        self.led_here.prefetch_row(s, here)

    @in_python
    def successors(self, s: int, a: int) -> Known:
        """The states that followed (s, a)."""
        return known_of(self.rows, s * self.n_actions + a)

    @in_python
    def predecessors(self, s: int) -> Known:
        """The pairs that led to s."""
        return known_of(self.led_here, s)

    @in_python
    def readable(self, values: Values) -> LearnedForward:
        """The forward rows; the other direction has the same counts."""
        return LearnedForward(cast(ReadableModel, self), values.n_states, values.n_actions)


@kernel
def _forget(model: TwoWayModel, pair: int) -> None:
    """Decay the counts of a pair's successors, and write the new counts into the rows of those states.

    The expectation of the pair is unchanged, because all its counts shrink alike. Each successor costs a search through
    its predecessors.
    """
    rows, led_here = model.rows, model.led_here
    rows.forget(pair, model.forgets)
    first = rows.offset[pair]
    for k in range(first, first + rows.used[pair]):
        s = rows.key[k]
        led_here.weight[find(led_here, s, pair)] = rows.weight[k]
        _add_up(led_here, s)


@kernel
def _add_up(rows: CountRows, row: int) -> None:
    """Recompute the sum of a row's counts: subtracting would leave rounding errors where little is left."""
    total = 0.0
    for k in range(rows.offset[row], rows.offset[row] + rows.used[row]):
        total += rows.weight[k]
    rows.total[row] = total
    if total > 0.0:
        rows.share[row] = 1.0 / total


@kernel
def expect(model: TwoWayModel, values: Values, pair: int) -> float:
    """The full backup Σ_s' P(s' | s, a) (r(s, a, s') + γ max_a' q(s', a')) of a pair tried."""
    rows = model.rows
    first = rows.offset[pair]
    expected = 0.0
    for k in range(first, first + rows.used[pair]):
        expected += rows.weight[k] * (rows.reward[k] + rows.carried[k] * values.best(rows.key[k]))
    return expected * rows.share[pair]
