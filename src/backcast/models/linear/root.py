"""Recursive least squares: the triangular root of Σ z zᵀ, updated by rotations.

(Storing the inverse would be simpler. But if features are redundant, as tiles are, it contains numbers as large as
1 / ridge that must cancel, and after 10⁵ steps they no longer do.)
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.errors import InputError
from backcast.core.numerics import dot
from backcast.values.linear import Features

MOST = 10**8  # most numbers of a root, 0.8 GB


@part
class Root(NamedTuple):
    """R of each action, upper triangular: RᵀR = ridge · I + Σ z zᵀ over all observed inputs z.

    Attributes:
        inputs: z(s), of width D.
        triangle: (A, D, D), R; empty without RLS.
        reach: (A, D), the last column of each row of R that may be nonzero.
        half: (A, D), R⁻ᵀz of the last observed input.
        newest: (A,), the state in which it was observed; −1 if none.
        gain: (D,), the last solution g; during a rotation, the rest of z.
    """

    inputs: Features
    triangle: Vector
    reach: Indices
    half: Vector
    newest: Indices
    gain: Vector

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """The numbers of these states are reused."""
        self.newest[np.isin(self.newest, states)] = -1


@kernel
def rotate(root: Root, s: int, a: int) -> None:
    """Observe z(s), RᵀR ← RᵀR + z zᵀ: rotate z into one row after the other until nothing is left.

    The rotations Q satisfy Q [R; zᵀ] = [R'; 0], so that z = R'ᵀ h, where h is their image of the last unit vector:
    h_i = sine_i · Π_{j<i} cosine_j. It need not be solved for.
    """
    half, left = root.half[a], root.gain
    write_inputs(root, s)
    last = 0
    for j in range(left.size):
        half[j] = 0.0
        last = j if left[j] != 0.0 else last
    rest = 1.0
    for i in range(left.size):
        if left[i] != 0.0:
            last = root.reach[a, i] = max(last, root.reach[a, i])
            row, beside = root.triangle[a, i, i : last + 1], left[i : last + 1]
            length = np.hypot(row[0], beside[0])
            cosine, sine = row[0] / length, beside[0] / length
            rotate_row(row, beside, cosine, sine)
            half[i] = rest * sine
            rest *= cosine
    root.newest[a] = s


@kernel
def rotate_row(row: Vector, left: Vector, cosine: float, sine: float) -> None:
    """Rotate the rest of z into a row."""
    for j in range(row.size):
        above, below = row[j], left[j]
        row[j] = cosine * above + sine * below
        left[j] = cosine * below - sine * above


@kernel
def find_gain(root: Root, s: int, a: int) -> None:
    """Solve RᵀR g = z(s) for an action: Rᵀ from the first row to the last, then R from the last to the first."""
    gain = root.gain
    if root.newest[a] == s:
        for i in range(gain.size):
            gain[i] = root.half[a, i]
    else:
        write_inputs(root, s)
        for i in range(gain.size):
            if gain[i] != 0.0:
                row, left = root.triangle[a, i, i : root.reach[a, i] + 1], gain[i : root.reach[a, i] + 1]
                left[0] /= row[0]
                add_multiple(left[1:], -left[0], row[1:])
    for i in range(gain.size - 1, -1, -1):
        row, left = root.triangle[a, i, i : root.reach[a, i] + 1], gain[i : root.reach[a, i] + 1]
        left[0] = (left[0] - dot(row[1:], left[1:])) / row[0]


@kernel
def add_multiple(total: Vector, factor: float, vector: Vector) -> None:
    """Add a multiple of one vector to another."""
    for j in range(vector.size):
        total[j] += factor * vector[j]


@kernel
def write_inputs(root: Root, s: int) -> None:
    """Write z(s) into `gain`."""
    root.gain[:] = 0.0
    for k in range(root.inputs.offset[s], root.inputs.offset[s + 1]):
        root.gain[root.inputs.which[k]] += root.inputs.size[k]


def empty_root(inputs: Features, n_inputs: int, n_actions: int, ridge: float | None) -> Root:
    """A root without observations; empty without a ridge."""
    if ridge is not None and n_actions * n_inputs**2 > MOST:
        raise InputError(
            f"learn_by: 'rls' keeps the root of a matrix of {n_inputs:,} × {n_inputs:,} features"
            f"{f' for each of {n_actions} actions' if n_actions > 1 else ''}, at most {MOST:,} numbers; use 'lms'"
        )
    kept = 0 if ridge is None else n_inputs
    return Root(
        inputs=inputs,
        triangle=np.zeros((n_actions, kept, kept)) + np.sqrt(ridge or 0.0) * np.eye(kept),
        reach=np.tile(np.arange(kept), (n_actions, 1)),
        half=np.zeros((n_actions, kept)),
        newest=np.full(n_actions, -1),
        gain=np.zeros(kept),
    )
