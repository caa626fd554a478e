"""How each kind of feature is computed: a table of the states, or a code of the coordinates."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Matrix, Vector
from backcast.core.errors import InputError
from backcast.features.places import Scale

MOST_FEATURES = 1_000_000


class Code(NamedTuple):
    """Features of coordinates: of d features, at most k (the width) are nonzero at each point.

    `encode` gives for points (n, m) the indices (n, k) and the weights (n, k).
    """

    n_features: int
    width: int
    encode: Callable[[Vector], tuple[Indices, Vector]]


def refuse_too_many(name: str, number: int, what: str, most: int, advice: str) -> None:
    """Raise InputError if the number exceeds the limit; the message names both."""
    if number > most:
        raise InputError(f"{name}: {number:,} {what}, expected at most {most:,}; {advice}")


def csr(indices: Indices, weights: Vector, n_features: int) -> Matrix:
    """Rows of features (n, k) as csr (n, d), without explicit zeros."""
    offset = np.arange(len(indices) + 1) * indices.shape[1]
    rows = sparse.csr_array((weights.ravel(), indices.ravel(), offset), shape=(len(indices), n_features))
    rows.eliminate_zeros()
    return rows


def _marked(indices: Indices, n_features: int) -> Matrix:
    return csr(indices, np.ones(indices.shape), n_features)


def onehot_table(n_states: int, run_seed: int) -> Matrix:
    """A feature for each state: the identity."""
    return _marked(np.arange(n_states)[:, None], n_states)


def aggregate_table(n_states: int, run_seed: int, groups: int) -> Matrix:
    """State s belongs to group ⌊s · groups / S⌋."""
    if groups > n_states:
        raise InputError(f"groups: {groups} given for {n_states} states; expected at most one for each state")
    return _marked((np.arange(n_states) * groups // n_states)[:, None], groups)


def random_table(n_states: int, run_seed: int, d: int, active: int, seed: int | None) -> Matrix:
    """Each state has `active` of d features; all rows differ if there are at least twice as many choices as states."""
    key = np.random.SeedSequence(run_seed if seed is None else seed, spawn_key=(3,))  # used by no other stream of a run
    rng = np.random.default_rng(key)
    choices = math.lgamma(d + 1) - math.lgamma(active + 1) - math.lgamma(d - active + 1)  # log of d over `active`
    distinct = choices >= math.log(2 * n_states)
    rows: list[tuple[int, ...]] = []
    seen: set[tuple[int, ...]] = set()
    while len(rows) < n_states:
        row = tuple(np.sort(rng.choice(d, active, replace=False)).tolist())
        if row not in seen:
            rows.append(row)
        if distinct:
            seen.add(row)
    return _marked(np.array(rows, dtype=np.int64), d)


def given_table(n_states: int, run_seed: int, matrix: Any) -> Matrix:
    """Features given as a matrix."""
    if matrix.shape[0] != n_states:
        raise InputError(f"matrix: {matrix.shape[0]} rows given for {n_states} states; expected one per state")
    return matrix.rows.copy()


def tile_code(scale: Scale, tilings: int, bins: int | tuple[int, ...]) -> Code:
    """Tile coding (Sutton and Barto, 2018, section 9.5.4).

    A tile covers 1/bins of a coordinate's range. Tiling t is displaced by (1, 3, 5, …) · t / tilings of a tile, one
    odd number per coordinate. It has one tile more per dimension so that it still covers the whole range.
    """
    m = scale.dimensions
    counts = (bins,) * m if isinstance(bins, int) else bins
    if len(counts) != m:
        raise InputError(f"bins: {len(counts)} numbers given for {m} coordinates; expected one, or one for each")
    across = [count + (tilings > 1) for count in counts]
    size = math.prod(across)
    refuse_too_many("tiles", tilings * size, "features", MOST_FEATURES, "use fewer tilings or bins")
    strides = np.array([math.prod(across[j + 1 :]) for j in range(m)])
    first = np.arange(tilings) * size
    shifts = np.outer(np.arange(tilings), 2 * np.arange(m) + 1) % tilings
    steps = np.array(counts) * tilings  # crossing a tile takes `tilings` steps
    units, last = steps.astype(np.float64), steps - 1

    def encode(points: Vector) -> tuple[Indices, Vector]:
        step = np.minimum(scale.stretch(points, units).astype(np.int64), last)
        indices = ((step[:, None, :] + shifts) // tilings) @ strides + first
        return indices, np.ones(indices.shape)

    return Code(tilings * size, tilings, encode)


def fourier_code(scale: Scale, order: int) -> Code:
    """The cosines cos(π c·u) for all c in {0, …, order}^m, the last entry of c running fastest; u (m,) in [0, 1]."""
    m = scale.dimensions
    d = (order + 1) ** m
    refuse_too_many("fourier", d, "features", MOST_FEATURES, f"use a lower order, or fewer coordinates than {m}")
    frequencies = np.pi * np.indices((order + 1,) * m).reshape(m, -1)

    def encode(points: Vector) -> tuple[Indices, Vector]:
        weights = np.cos(scale.stretch(points, 1.0) @ frequencies)
        return np.tile(np.arange(d), (len(points), 1)), weights

    return Code(d, d, encode)


def hat_code(scale: Scale, knots: int) -> Code:
    """Between two equally spaced knots, the weight of each falls linearly with the distance."""

    def encode(points: Vector) -> tuple[Indices, Vector]:
        position = scale.stretch(points, knots - 1)[:, 0]
        left = np.minimum(position.astype(np.int64), knots - 2)
        share = np.minimum(position - left, 1.0)
        return np.stack([left, left + 1], axis=1), np.stack([1 - share, share], axis=1)

    return Code(knots, 2, encode)


TABLES: dict[str, Callable[..., Matrix]] = {
    "onehot": onehot_table,
    "aggregate": aggregate_table,
    "random_binary": random_table,
    "given": given_table,
}
CODES: dict[str, Callable[..., Code]] = {"tiles": tile_code, "fourier": fourier_code, "interpolate": hat_code}
