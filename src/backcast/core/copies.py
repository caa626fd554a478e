"""Copies of an agent for many seeds, in one block of memory at equal distances.

An agent is a tree: a tuple of arrays, numbers and tuples. Making one takes Python as many calls as it has arrays, and
passing it to a kernel as many conversions. So one agent is made and its bytes are copied; a kernel that is given the
first copy finds the others by adding the same distance to all addresses (`shifted`).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from backcast.core.compiling import intrinsic, types
from backcast.core.locality import LINE


class Copies(NamedTuple):
    """Copies of a tree of arrays, at equal distances in memory.

    Attributes:
        first: the first copy.
        number: the number of copies.
        distance: bytes from one copy to the next; 0 if there is only one.
    """

    first: Any
    number: int
    distance: int

    def stacked(self, of: Any) -> Any:
        """A part of the first tree with each array stacked over all copies, (number, …)."""
        return _replaced(of, lambda array: _stacked(array, self.number, self.distance))


class Layout:
    """How to copy a tree. Arrays that share memory in the tree do so in each copy; alignment to cache lines is kept.

    Arrays of zeros come last in a copy: pages of zeros that are never written cost nothing.

    Attributes:
        size: bytes of a copy.
    """

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        arrays = list(arrays_of(tree))
        begins, self._written, self.size = _begins(arrays)
        self._places = [_Place(begin, array) for begin, array in zip(begins, arrays, strict=True)]
        self._bytes = np.zeros(self.size, dtype=np.uint8)
        for place, array in zip(self._places, arrays, strict=True):
            place.within(self._bytes)[...] = array

    def copies(self, number: int) -> Copies:
        """Make copies in newly allocated memory."""
        room = np.zeros(number * self.size + LINE, dtype=np.uint8)
        start = -room.__array_interface__["data"][0] % LINE
        memory = room[start : start + number * self.size]
        memory.reshape(number, self.size)[:, : self._written] = self._bytes[: self._written]
        arrays = (place.view(memory) for place in self._places)
        return Copies(_replaced(self._tree, lambda _: next(arrays)), number, self.size)


class _Place:
    """The position and shape of an array in a copy."""

    def __init__(self, begin: int, array: NDArray[Any]) -> None:
        self._as = array.shape, array.dtype, begin, array.strides
        self._writeable = array.flags.writeable

    def within(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """The array in a copy that begins where `memory` does."""
        shape, dtype, begin, strides = self._as
        return np.ndarray(shape, dtype, memory, begin, strides)

    def view(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        """The same, read-only if the original is, because Numba gives read-only arrays another type."""
        array = self.within(memory)
        if not self._writeable:
            array.flags.writeable = False
        return array


def _begins(arrays: list[NDArray[Any]]) -> tuple[list[int], int, int]:
    """The start of each array in a copy, its number of nonzero bytes, and its size."""
    begins, written, size = [0] * len(arrays), 0, 0
    groups = _overlapping(arrays)
    for group in sorted(groups, key=lambda group: not any(arrays[place].any() for place in group)):
        low = min(byte_bounds(arrays[place])[0] for place in group)
        begin = size + (low - size) % LINE
        for place in group:
            begins[place] = arrays[place].__array_interface__["data"][0] - low + begin
        size = begin + max(byte_bounds(arrays[place])[1] for place in group) - low
        written = size if any(arrays[place].any() for place in group) else written
    return begins, written, size + -size % LINE


def _overlapping(arrays: list[NDArray[Any]]) -> list[list[int]]:
    """The arrays, by their numbers, in groups that share memory."""
    groups: list[list[int]] = []
    end = -1
    for (low, high), place in sorted((byte_bounds(array), place) for place, array in enumerate(arrays)):
        if low >= end:
            groups.append([])
        groups[-1].append(place)
        end = max(end, high)
    return groups


def arrays_of(tree: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a tree."""
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, tuple):
        for each in tree:
            yield from arrays_of(each)


def _replaced(tree: Any, new: Callable[[NDArray[Any]], Any]) -> Any:
    """The same tree with other arrays, taken in the order of `arrays_of`."""
    if isinstance(tree, np.ndarray):
        return new(tree)
    if not isinstance(tree, tuple):
        return tree
    children = [_replaced(each, new) for each in tree]
    return tree._make(children) if hasattr(tree, "_make") else tuple(children)


def picked(stacked: Any, place: int) -> Any:
    """One of the stacked trees."""
    return _replaced(stacked, lambda array: array[place, ...])


def _stacked(array: NDArray[Any], number: int, distance: int) -> NDArray[Any]:
    if number == 1:
        return array[None]
    return np.lib.stride_tricks.as_strided(array, (number, *array.shape), (distance, *array.strides))


def _shifted(tree: Any, distance: int) -> Any:
    if distance == 0:
        return tree
    return _replaced(tree, lambda array: _stacked(array, 2, distance)[1, ...])


@intrinsic(interpreted=_shifted)
def shifted(typing_context: Any, tree: Any, distance: Any) -> Any:
    """The same tree with all array addresses shifted by a number of bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, distance = arguments
        for path in _addresses(context, signature.args[0]):
            address = cgutils.pointer_add(builder, builder.extract_value(value, path), distance)
            value = builder.insert_value(value, address, path)
        return value

    return tree(tree, types.intp), generate


def _addresses(context: Any, kind: Any) -> Iterator[list[int]]:
    """The positions of array addresses in a value of this type: the index at each level."""
    if isinstance(kind, types.Array):
        yield [context.data_model_manager[kind].get_field_position("data")]
    elif isinstance(kind, types.BaseTuple):
        for place, inside in enumerate(kind.types):
            yield from ([place, *path] for path in _addresses(context, inside))
