"""Memory layout and prefetching.

In a world of a million states most of the time is spent waiting for memory, which is read in lines of 64 bytes. So data
that are used together are adjacent (`side_by_side`), and data needed soon are prefetched (`prefetch`).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from backcast.core.compiling import intrinsic, types

LINE = 64  # bytes
_READ, _KEEP, _DATA = 0, 3, 1  # arguments of LLVM's prefetch: read, keep in all caches, data


def zeros(n: int, kind: Any = np.float64) -> NDArray[Any]:
    """As `np.zeros`, but aligned to a cache line; pages that are never written cost nothing."""
    kind = np.dtype(kind)
    room = np.zeros(n * kind.itemsize + LINE, dtype=np.uint8)
    start = -room.__array_interface__["data"][0] % LINE
    return room[start : start + n * kind.itemsize].view(kind)


def side_by_side(n: int, *kinds: Any) -> list[NDArray[Any]]:
    """Arrays (n,) of zeros of these dtypes, whose i-th entries are adjacent, in one cache line if possible."""
    whole = np.dtype([(f"column {place}", kind) for place, kind in enumerate(kinds)])
    size = 1 << (whole.itemsize - 1).bit_length() if whole.itemsize < LINE else whole.itemsize
    block = zeros(n * size, np.uint8)
    places = (whole.fields[name] for name in whole.names)  # type: ignore[index,union-attr]
    return [np.ndarray((n,), place[0], block, place[1], (size,)) for place in places]


def _leave(array: NDArray[Any], index: int) -> None:
    """Interpreted, nothing is prefetched."""


@intrinsic(interpreted=_leave)
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of array[index]; any index is allowed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(of.strides, 0)
        place = cgutils.pointer_add(builder, of.data, builder.mul(arguments[1], stride))
        address = builder.bitcast(place, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(fetch, [address, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    if isinstance(array, types.Array) and array.ndim == 1 and isinstance(index, types.Integer):
        return types.void(array, types.intp), generate
    return None
