"""Validation of the numbers that statistics get: by seed, by seed and position, in pairs, by run and episode."""

import numpy as np
from numpy.typing import ArrayLike

from backcast.core.arrays import Vector, as_floats, refuse_non_finite
from backcast.core.errors import InputError


def numbers(field: str, values: ArrayLike, or_infinite: bool = False) -> Vector:
    """Validate numbers (n,), finite or also +∞, at least one."""
    x = as_floats(field, values)
    if x.ndim != 1 or x.size == 0:
        raise InputError(f"{field}: shape {x.shape} given, expected (n,), at least one number")
    _refuse(field, x, or_infinite)
    return x


def numbers_along(axis: int, values: ArrayLike, ragged: bool = False) -> Vector:
    """Validate numbers of any shape, possibly +∞ or, if ragged, NaN; at least one along the axis."""
    x = as_floats("values", values)
    if not -x.ndim <= axis < x.ndim or x.shape[axis] == 0:
        raise InputError(f"values: shape {x.shape} given, expected at least one value along axis {axis}")
    _refuse("values", np.where(np.isnan(x), 0, x) if ragged else x, or_infinite=not ragged)
    return x


def _refuse(field: str, x: Vector, or_infinite: bool) -> None:
    """Raise InputError if x is not finite; +∞ is valid if `or_infinite`."""
    refuse_non_finite(field, np.where(x == np.inf, 0, x) if or_infinite else x)


def table(field: str, values: ArrayLike) -> Vector:
    """Validate finite numbers (n, m), at least one."""
    x = as_floats(field, values)
    if x.ndim != 2 or x.size == 0:
        raise InputError(f"{field}: shape {x.shape} given, expected (n, m), a row for each seed, at least one number")
    refuse_non_finite(field, x)
    return x


def in_pairs(
    field: str, values: ArrayLike, other: str, others: ArrayLike, or_infinite: bool = False
) -> tuple[Vector, Vector]:
    """Validate two paired arrays (n,)."""
    x, y = numbers(field, values, or_infinite), numbers(other, others, or_infinite)
    check_pairs(field, x, other, y)
    return x, y


def check_pairs(field: str, x: Vector, other: str, y: Vector) -> None:
    """Raise InputError unless both have as many numbers."""
    if x.shape != y.shape:
        raise InputError(f"{other}: {y.size} numbers given, expected {x.size}, one for each of {field}")


def by_episode(
    field: str, values: ArrayLike, other: str, others: ArrayLike, or_infinite: bool = False
) -> tuple[Vector, Vector]:
    """Validate two arrays (n, E), by run and episode, at least one entry; finite, the second possibly +∞."""
    x, y = as_floats(field, values), as_floats(other, others)
    if x.ndim != 2 or x.size == 0:
        raise InputError(f"{field}: shape {x.shape} given, expected (n, E), E episodes of n runs, at least one")
    if y.shape != x.shape:
        raise InputError(f"{other}: shape {y.shape} given, expected {x.shape}, as that of {field}")
    _refuse(field, x, or_infinite=False)
    _refuse(other, y, or_infinite)
    return x, y


def check_choice(field: str, given: str, allowed: tuple[str, ...]) -> None:
    """Raise InputError unless a word is one of those allowed."""
    if given not in allowed:
        raise InputError(f"{field}: {given!r} given, expected one of {', '.join(allowed)}")


def check_level(level: float) -> None:
    """Raise InputError unless a coverage lies between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level: {level!r} given, expected a number above 0 and below 1")
