"""Online linear regression on features, for very many outputs of which few are ever nonzero."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.models.linear.root import Root, empty_root, find_gain, rotate
from backcast.models.linear.sparse_rows import BLOCK, SparseRows, empty_blocks, with_blocks
from backcast.values.linear import Features


@part
class Regression(NamedTuple):
    """An estimate y(z) of E[Y | z], linear in z, for inputs z(s) and outputs Y of width K.

    Least mean squares (LMS): row j holds the weights of feature j, and a step moves y(z) by α or less towards the
    observation,

        y(z) = Σ_j z_j row_j        row_j ← row_j + α (Y − y(z)) z_j / max_s ‖z(s)‖².

    (Dividing by ‖z‖² of the step itself would converge to least squares that give small features more weight.)

    Recursive least squares (RLS): rows are sums over all observations,

        y(z) = Σ_j g_j row_j, RᵀR g = z    row_j ← row_j + z_j Y    RᵀR = ridge · I + Σ z zᵀ.

    With an action, inputs are z(s) at the rows of that action. To learn: `prepare(s, a)`, `subtract(key, Y_key)` for
    all nonzero keys, then `adjust(s, a, α)`.

    Attributes:
        inputs: z(s), of width D.
        rows: row a · D + j.
        y: (K,), the last estimate; while learning, the residual.
        touched: (K,), the keys where it is nonzero.
        listed: (K,), whether a key is among them.
        stamp: (K,), the last visit of a key.
        counter: (2,), number of keys touched, and of visits.
        root: R of each action; empty for LMS.
        n_inputs: D.
    """

    inputs: Features
    rows: SparseRows
    y: Vector
    touched: Indices
    listed: Mask
    stamp: Indices
    counter: Indices
    root: Root
    n_inputs: int

    def clear(self) -> None:
        """Clear the estimate: y ← 0."""
        for i in range(self.counter[0]):
            self.y[self.touched[i]] = 0.0
            self.listed[self.touched[i]] = False
        self.counter[0] = 0

    def subtract(self, key: int, observed: float) -> None:
        """Subtract the observation of one output: y[key] ← y[key] − observed."""
        if not self.listed[key]:
            self.listed[key] = True
            self.touched[self.counter[0]] = key
            self.counter[0] += 1
        self.y[key] -= observed

    def estimate(self, s: int, a: int) -> None:
        """Write y(z(s)) into y."""
        self.clear()
        if self.root.triangle.size == 0:
            for k in range(self.inputs.offset[s], self.inputs.offset[s + 1]):
                add_row(self, a * self.n_inputs + self.inputs.which[k], self.inputs.size[k])
            return
        find_gain(self.root, s, a)
        for j in range(self.n_inputs):
            if self.root.gain[j] != 0.0:
                add_row(self, a * self.n_inputs + j, self.root.gain[j])

    def prepare(self, s: int, a: int) -> None:
        """Begin to learn: from the current estimate (LMS), or from 0 (RLS)."""
        if self.root.triangle.size == 0:
            self.estimate(s, a)
        else:
            self.clear()

    def adjust(self, s: int, a: int, alpha: float) -> None:
        """Learn from the residual in y."""
        step = alpha / self.inputs.norm if self.root.triangle.size == 0 else 1.0
        for k in range(self.inputs.offset[s], self.inputs.offset[s + 1]):
            if self.inputs.size[k] != 0.0:
                change_row(self, a * self.n_inputs + self.inputs.which[k], -step * self.inputs.size[k])
        if self.root.triangle.size > 0:
            rotate(self.root, s, a)

    @in_python
    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> "Regression":
        """The same with room for everything it may learn when these states are its inputs."""
        return with_room_for(self, states)


@kernel
def add_row(fit: Regression, row: int, factor: float) -> None:
    """Add a row, times a factor, to y."""
    rows = fit.rows
    left, block = rows.used[row], rows.head[row]
    while left > 0:
        first = block * BLOCK
        for k in range(first, first + min(left, BLOCK)):
            fit.subtract(rows.key[k], -factor * rows.weight[k])
        left -= BLOCK
        block = rows.link[block]


@kernel
def change_row(fit: Regression, row: int, factor: float) -> None:
    """Add y, times a factor, to a row."""
    rows = fit.rows
    fit.counter[1] += 1
    visit = fit.counter[1]
    left, block = rows.used[row], rows.head[row]
    while left > 0:
        first = block * BLOCK
        for k in range(first, first + min(left, BLOCK)):
            key = rows.key[k]
            rows.weight[k] += factor * fit.y[key]
            fit.stamp[key] = visit
        left -= BLOCK
        block = rows.link[block]
    for i in range(fit.counter[0]):
        key = fit.touched[i]
        if fit.stamp[key] != visit and fit.y[key] != 0.0:
            rows.append(row, key, factor * fit.y[key])


def regression(
    inputs: Features, n_inputs: int, width: int, room: Indices, n_actions: int = 1, ridge: float | None = None
) -> Regression:
    """A regression without observations; room (A · D,) bounds the outputs of each row; RLS with a ridge, else LMS."""
    root = empty_root(inputs, n_inputs, n_actions, ridge)
    return Regression(
        inputs=inputs,
        rows=empty_blocks(room),
        y=np.zeros(width),
        touched=np.zeros(width, dtype=np.int64),
        listed=np.zeros(width, dtype=np.bool_),
        stamp=np.zeros(width, dtype=np.int64),
        counter=np.zeros(2, dtype=np.int64),
        root=root,
        n_inputs=n_inputs,
    )


def with_room_for(fit: Regression, states: Iterable[int]) -> Regression:
    """The same regression with room for everything it may learn when these states are its inputs."""
    x = fit.inputs
    active = np.unique(np.concatenate([x.which[x.offset[s] : x.offset[s + 1]] for s in states]))
    actions = len(fit.rows.used) // fit.n_inputs
    rows = (np.arange(actions)[:, None] * fit.n_inputs + active).ravel()
    left = (len(fit.y) + BLOCK - 1) // BLOCK - (fit.rows.used[rows] + BLOCK - 1) // BLOCK
    return fit._replace(rows=with_blocks(fit.rows, int(left.sum())))


def estimates(fit: Regression, n_states: int) -> Vector:
    """The estimates of all states for the first action, (S, K)."""
    found = np.zeros((n_states, len(fit.y)))
    for s in range(n_states):
        fit.estimate(s, 0)
        found[s] = fit.y
    return found
