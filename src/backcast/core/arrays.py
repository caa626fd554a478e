"""Array types shared by all modules, and the validation of arguments of public functions."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from backcast.core.errors import InputError, shown

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

# A numpy array or a scipy.sparse.csr_array. Both take `*` as the elementwise and `@` as the matrix
# product, so that one formula serves dense and sparse; no static type describes the two.
Matrix = Any

SUM_TOLERANCE = 1e-8
_LARGEST = float(np.finfo(np.float64).max)


def as_floats(field: str, values: ArrayLike) -> Vector:
    """Return a float64 copy of `values`; raise InputError if it is not numeric."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise TypeError(f"{given.dtype} given")
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{field}: expected an array of numbers ({error})") from error


def refuse_non_finite(field: str, values: Vector) -> None:
    """Raise InputError if an entry is NaN or infinite, naming the first and its index."""
    bad = ~np.isfinite(values)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = str(place[0]) if len(place) == 1 else str(place)
        raise InputError(f"{field}: entry {where} is {values[place]}; every entry must be finite")


def as_distribution(field: str, values: ArrayLike, size: int) -> Vector:
    """Return a probability distribution over `size` states; raise InputError if it is not one."""
    p = as_floats(field, values)
    if p.shape != (size,):
        raise InputError(f"{field}: shape {p.shape} given, expected ({size},), one probability per state")
    refuse_non_finite(field, p)
    if (p < 0).any():
        state = int(np.argmax(p < 0))
        raise InputError(f"{field}: entry {state} is {p[state]:g}; probabilities cannot be negative")
    if not p.any():
        raise InputError(f"{field}: it is empty (all entries are 0); at least one state needs a probability")
    if abs(p.sum() - 1) > SUM_TOLERANCE:
        raise InputError(f"{field}: the probabilities sum to {p.sum():.10g}; they must sum to 1")
    return p


def as_number(field: str, given: Any, low: float, high: float, expected: str) -> float:
    """Validate a finite number from low to high; `expected` describes it in the message."""
    number = float(given) if isinstance(given, np.floating) else given
    real = isinstance(number, (int, float, np.integer)) and not isinstance(number, bool)
    if real and low <= number <= high and abs(number) <= _LARGEST:
        return float(number)
    raise InputError(f"{field}: {shown(given)} given, expected {expected}")


def as_fraction(field: str, given: object, what: str = "a number") -> float:
    """Validate a number in [0, 1]."""
    return as_number(field, given, 0, 1, f"{what} in [0, 1]")


def as_whole(field: str, given: object, least: int, most: float = 2**63 - 1) -> int:
    """Validate an integer from `least` to `most`."""
    if isinstance(given, (float, np.floating)) and given == np.floor(given) and np.isfinite(given):
        given = int(given)
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, (int, np.integer)) or not least <= given <= most:
        too_large = isinstance(given, (int, np.integer)) and given > most
        raise InputError(
            f"{field}: {shown(given)} given, expected a whole number"
            + (f" from {least} to {most}" if too_large else f", {least} or more")
        )
    return int(given)


def frozen(array: Any) -> Any:
    """Make an array (or csr_array) read-only."""
    if sparse.issparse(array):
        for part in (array.data, array.indices, array.indptr):
            part.flags.writeable = False
    else:
        array.flags.writeable = False
    return array


def dense(matrix: Matrix) -> Vector:
    """Convert a matrix to a numpy array."""
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def ratio(numerator: Matrix, denominator: Matrix) -> Matrix:
    """Elementwise numerator / denominator, dense or sparse; 0 where the denominator is 0."""
    if sparse.issparse(numerator):
        rows, columns = numerator.nonzero()
        quotient = ratio(dense(numerator[rows, columns]), dense(denominator[rows, columns]))
        return sparse.csr_array((quotient, (rows, columns)), shape=numerator.shape)
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator != 0)
