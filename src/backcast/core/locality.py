"""Where numbers lie in memory, and when they are fetched.

In a world of a million states most of the time is spent waiting for memory, which hands out lines of 64 bytes. So what
is used together lies side by side (`side_by_side`), and what will be needed soon is asked for before (`prefetch`).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from backcast.core.compiling import intrinsic, types

LINE = 64  # bytes
_READ, _KEEP, _DATA = 0, 3, 1  # of LLVM's prefetch: to read, to keep in all caches, data rather than code


def zeros(n: int, kind: Any = np.float64) -> NDArray[Any]:
    """As `np.zeros`, but the first entry begins a line of memory; pages that nobody writes to cost nothing."""
    kind = np.dtype(kind)
    room = np.zeros(n * kind.itemsize + LINE, dtype=np.uint8)
    start = -room.__array_interface__["data"][0] % LINE
    return room[start : start + n * kind.itemsize].view(kind)


def side_by_side(n: int, *kinds: Any) -> list[NDArray[Any]]:
    """Arrays (n,) of zeros of these types, whose entries number i lie side by side, and if possible in one line."""
    whole = np.dtype([(f"column {place}", kind) for place, kind in enumerate(kinds)])
    size = 1 << (whole.itemsize - 1).bit_length() if whole.itemsize < LINE else whole.itemsize
    block = zeros(n * size, np.uint8)
    places = (whole.fields[name] for name in whole.names)  # type: ignore[index,union-attr]
    return [np.ndarray((n,), place[0], block, place[1], (size,)) for place in places]


def _leave(array: NDArray[Any], index: int) -> None:
    """Where nothing is compiled nothing is fetched before it is needed."""


@intrinsic(interpreted=_leave)
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask memory for the line that array[index] is in, and do not wait for it; any index is allowed."""

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
