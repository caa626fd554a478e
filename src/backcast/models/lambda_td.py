"""λ-models learned by temporal differences: a row bootstraps from the row of the previous state (appendix A.3).

    P←_λ(· | s_t) ← P←_λ(· | s_t) + α ((1 − λ(s_{t−1})) 1_{s_{t−1}} + λ(s_{t−1}) P←_λ(· | s_{t−1}) − P←_λ(· | s_t))

and likewise for the reward on the path and the discount of its later end. Looking forward, the row of s_{t−1}
bootstraps from that of s_t.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.models.readable import Known
from backcast.models.rows import places_of
from backcast.values.contract import Values
from backcast.values.step_sizes import StepSizes


@part
class Mixtures(NamedTuple):
    """Rows that move towards mixtures of each other; any outcome may be in any row.

    Attributes:
        offset: (rows + 1,), where the places of each row begin.
        used: (rows,), the number of places in use.
        key: (places,), the outcome.
        weight: (places,), its probability.
        reward: (places,), E[reward on the path; outcome].
        carried: (places,), E[discount on the path; outcome].
        share: (rows,), 1.
        where: (rows · N,), the place of each outcome in each row, −1 if it has none.
        step_size: step size of a row.
        width: 0: nothing is left for the unobserved.
    """

    offset: Indices
    used: Indices
    key: Indices
    weight: Vector
    reward: Vector
    carried: Vector
    share: Vector
    where: Indices
    step_size: StepSizes
    width: int

    def place_of(self, row: int, key: int) -> int:
        """The place of an outcome in a row, made if it is new."""
        first = self.offset[row]
        at = first + key  # a row has as many places as there are outcomes
        if self.where[at] < 0:
            place = first + self.used[row]
            self.where[at] = place
            self.key[place], self.weight[place], self.reward[place], self.carried[place] = key, 0.0, 0.0, 0.0
            self.used[row] += 1
        return self.where[at]

    def add(self, row: int, key: int, weight: float, reward: float, carried: float) -> None:
        """Add to all three quantities of an outcome."""
        if weight == 0.0:
            return
        place = self.place_of(row, key)
        self.weight[place] += weight
        self.reward[place] += reward
        self.carried[place] += carried

    def unobserved(self, row: int) -> int:
        """None."""
        return 0


def empty_mixtures(rows: int, outcomes: int, step_size: StepSizes) -> Mixtures:
    """Rows that hold nothing yet, with a place for each outcome."""
    places = rows * outcomes
    return Mixtures(
        np.arange(rows + 1) * outcomes,
        np.zeros(rows, dtype=np.int64),
        np.zeros(places, dtype=np.int64),
        np.zeros(places),
        np.zeros(places),
        np.zeros(places),
        np.ones(rows),
        np.full(places, -1),
        step_size,
        0,
    )


@part
class LambdaModel(NamedTuple):
    """Looking back: P←_λ(s̃, ã | s). Looking ahead (`forward`, in prediction): P_λ(s | s̃).

    Attributes:
        rows: a row for each s over the pairs s̃·A + ã; `forward`: for each s̃ over s.
        lam: (S,), λ.
        ended: (1,), the terminal state that the last step ended in, or −1: it leads to the next start.
        told: (1,), whether the row of the first state of the episode was updated for its restart.
        n_actions: A.
        forward: whether it looks forward.
    """

    rows: Mixtures
    lam: Vector
    ended: Indices
    told: Mask
    n_actions: int
    forward: bool

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Learn from the step."""
        bootstrap(self, step.s, step.a, step.r, 0.0 if step.ends else discount, step.s2, rates[ALPHA_MODEL])
        self.ended[0] = step.s2 if step.ends else -1

    def restart(self, s: int, rates: Vector) -> None:
        """Learn from the restart, if the last episode ended."""
        self.told[0] = self.ended[0] >= 0
        if self.told[0]:
            bootstrap(self, self.ended[0], -1, 0.0, 0.0, s, rates[ALPHA_MODEL])

    def describes(self, first: bool, back: int) -> bool:
        """Rows describe all steps, and restarts after the end of an episode."""
        return not first or self.told[0]

    def target(self, place: int, base: float, best: float) -> float:
        """The mean reward on the path, plus the value of s times the mean discount on the path."""
        rows = self.rows
        weight = rows.weight[place]
        return (rows.reward[place] + rows.carried[place] * best) / weight if weight > 0.0 else 0.0

    @in_python
    def predecessors(self, s: int) -> Known | None:
        """The pairs with which paths to s began; a restart counts for all actions of the terminal state."""
        return None if self.forward else known_of_mixture(self.rows, s)

    @in_python
    def successors(self, s: int, a: int) -> Known | None:
        """The states in which paths from s stopped."""
        return known_of_mixture(self.rows, s) if self.forward else None

    @in_python
    def contains_restarts(self) -> bool:
        """Whether rows contain restarts: they do."""
        return True


def known_of_mixture(rows: Mixtures, row: int) -> Known:
    """The content of a row, whose rewards and discounts are stored multiplied by their probabilities."""
    places = places_of(rows, row)
    weight = rows.weight[places]
    given = np.where(weight > 0.0, weight, 1.0)
    return Known(rows.key[places].copy(), weight.copy(), rows.reward[places] / given, rows.carried[places] / given)


@kernel
def bootstrap(model: LambdaModel, s: int, a: int, r: float, discount: float, s2: int, alpha: float) -> None:
    """Move one row towards a mixture of one step and of the other row, after s, a led to s2 (a = −1: a restart).

    The step size is α, but at least large enough to make the row begin as a mean.
    """
    rows = model.rows
    row, other = (s, s2) if model.forward else (s2, s)
    alpha = rows.step_size.of(row, alpha, 1.0)
    # without a row to bootstrap from, the share λ would be lost
    lam = model.lam[s] if rows.used[other] > 0 else 0.0
    kept = 1.0 - alpha
    loop = row == other
    first = rows.offset[row]
    if not loop:
        for k in range(first, first + rows.used[row]):
            rows.weight[k] *= kept
            rows.reward[k] *= kept
            rows.carried[k] *= kept
    first = rows.offset[other]
    for k in range(first, first + rows.used[other]):
        weight, reward, carried = rows.weight[k], rows.reward[k], rows.carried[k]
        earned = weight * r + discount * reward if model.forward else reward + carried * r
        step = alpha * lam
        if loop:
            rows.weight[k] = kept * weight + step * weight
            rows.reward[k] = kept * reward + step * earned
            rows.carried[k] = kept * carried + step * discount * carried
        else:
            rows.add(row, rows.key[k], step * weight, step * earned, step * discount * carried)
    step = alpha * (1.0 - lam)
    if model.forward:
        rows.add(row, s2, step, step * r, step * discount)
    elif a >= 0:
        rows.add(row, s * model.n_actions + a, step, step * r, step * discount)
    else:
        for pair in range(s * model.n_actions, (s + 1) * model.n_actions):  # a restart has no action: all of them
            rows.add(row, pair, step / model.n_actions, 0.0, 0.0)
