"""Expected eligibility traces: credit for all pairs that may have led here, not only those of this episode.

ET(λ) of van Hasselt et al. (2021) in tables: the accumulating trace e_t of TD(λ) is replaced by its expectation,
learned by Monte Carlo,

    z(S_t, A_t) ← z(S_t, A_t) + β (e_t − z(S_t, A_t))        z(s, a) ≈ E[e_t | S_t = s, A_t = a]
    q ← q + α δ_t z(S_t, A_t)

In prediction z(s)[s̃] becomes Σ_k (γλ)^k P←⁽ᵏ⁾(s̃ | s) over paths that begin within the episode: a discounted backward
model, summed over all numbers of steps. In control e_t is cut as in Watkins's Q(λ).
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import ALPHA, ALPHA_MODEL, Step
from backcast.learners.traces import Traces, credit, no_traces, visit
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.targets import td_error


@part
class ExpectedTraces(NamedTuple):
    """Expected traces: a row z(s, a) for each pair.

    Attributes:
        current: one row, e_t.
        expected: a row for each pair s·A + a over the pairs before it, z(s, a).
        step_size: β of a visit to a pair.
        lam: λ.
    """

    current: Traces
    expected: Traces
    step_size: StepSizes
    lam: float

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Update e_{t−1} to e_t, which includes this visit; then move z(s, a) towards it.

        The step size is that of the model, but at least large enough to make the row begin as a mean.
        """
        visit(self.current, values, step, discount * self.lam, False)
        row = step.s * values.n_actions + step.a
        blend(self.expected, row, self.current, self.step_size.of(row, rates[ALPHA_MODEL], 1.0))

    @property
    def matrix(self) -> Vector:
        """The expected traces z(s, a)[s̃, ã], (S·A, S·A) [s·A + a, s̃·A + ã]; 0 in rows never visited."""
        rows = self.expected
        full = np.zeros((rows.width, rows.width))
        for row, used in enumerate(rows.used):
            places = slice(row * rows.width, row * rows.width + used)
            full[row, rows.key[places]] = rows.weight[places]
        return full


@kernel
def blend(rows: Traces, row: int, towards: Traces, beta: float) -> None:
    """Row ← (1 − β) row + β towards."""
    rows.fade(row, 1.0 - beta)
    for k in range(towards.used[0]):
        rows.weight[rows.place_of(row, towards.key[k])] += beta * towards.weight[k]


def expected_traces(pairs: int, lam: float, step_size: StepSizes) -> ExpectedTraces:
    """Nothing is expected yet."""
    return ExpectedTraces(no_traces(1, pairs), no_traces(pairs, pairs), step_size, lam)


@part
class ExpectedTraceLearner(NamedTuple):
    """Gives credit by the expected trace of the pair.

    Attributes:
        model: the agent's, which learns before it.
        step_size: of a visit to a pair.
    """

    model: ExpectedTraces
    step_size: StepSizes = SCHEDULED

    def update(self, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """One update for each pair with an expected trace."""
        delta = td_error(values, step, discount)
        row = step.s * values.n_actions + step.a
        self.step_size.of(row, 0.0, 1.0)
        return credit(values, self.model.expected, row, rates[ALPHA] * delta, self.step_size)
