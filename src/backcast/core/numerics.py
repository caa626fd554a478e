"""Arithmetic that is fast in compiled loops and bitwise reproducible wherever it is inlined."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.np.arrayobj import make_array

from backcast.core.arrays import Vector
from backcast.core.compiling import intrinsic, kernel, types

E = 2.718281828459045
_EIGHT = ir.VectorType(ir.DoubleType(), 8)
Term = Callable[[ir.Value, ir.Value], ir.Value]
T = TypeVar("T")


def _fma(a: float, b: float, c: float) -> float:
    (p, q), (r, s), (t, u) = (x.as_integer_ratio() for x in (a, b, c))
    return (p * r * u + t * q * s) / (q * s * u)  # whole numbers, whose quotient is rounded once


@intrinsic(interpreted=_fma)
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """The sum a · b + c, rounded once. Unlike a contraction by the compiler, this is guaranteed."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    return np.uint64(int(a) * int(b) >> 64)


@intrinsic(interpreted=_high_product)
def high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two unsigned 64-bit integers."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        a, b = (builder.zext(argument, ir.IntType(128)) for argument in arguments)
        return builder.trunc(builder.lshr(builder.mul(a, b), ir.IntType(128)(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


def sum_in_eight(terms: Vector) -> float:
    """The sum of all terms in eight parallel sums: the k-th is of terms k, k + 8, …; the first also of what is left."""
    whole = terms.size - terms.size % 8
    sums = np.zeros(8)
    for k in range(0, whole, 8):
        sums += terms[k : k + 8]
    for k in range(whole, terms.size):
        sums[0] += terms[k]
    return float(_total(sums.tolist(), operator.add))


def dot_in_order(x: Vector, y: Vector) -> float:
    """The interpreted version of `dot`."""
    return sum_in_eight(x * y)


@intrinsic(interpreted=dot_in_order)
def dot(typing_context: Any, x: Any, y: Any) -> Any:
    """The product xᵀy, summed as in `sum_in_eight`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        (total,) = _sums_in_eight(context, builder, signature, arguments, (builder.fmul,))
        return total

    return (types.float64(x, y), generate) if _hold_floats(x, y) else None


def squares_in_order(x: Vector, weight: Vector) -> tuple[float, float]:
    """The interpreted version of `squares`."""
    return sum_in_eight(x * x), sum_in_eight(weight * (x * x))


@intrinsic(interpreted=squares_in_order)
def squares(typing_context: Any, x: Any, weight: Any) -> Any:
    """The sums Σ x² and Σ weight · x², each summed as in `sum_in_eight`."""

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value]) -> ir.Value:
        terms: tuple[Term, Term] = (
            lambda x, weight: builder.fmul(x, x),
            lambda x, weight: builder.fmul(weight, builder.fmul(x, x)),
        )
        sums = _sums_in_eight(context, builder, signature, arguments, terms)
        return context.make_tuple(builder, signature.return_type, sums)

    return (types.UniTuple(types.float64, 2)(x, weight), generate) if _hold_floats(x, weight) else None


def _hold_floats(*kinds: object) -> bool:
    return all(isinstance(kind, types.Array) and kind.layout == "C" and kind.dtype == types.float64 for kind in kinds)


def _sums_in_eight(
    context: Any, builder: ir.IRBuilder, signature: Any, arguments: Sequence[ir.Value], terms: Sequence[Term]
) -> list[ir.Value]:
    """Generate code for the sum over k of each term, a function of the k-th elements of the arrays.

    A single sum would wait for each addition before the next. The eight sums form one vector, whatever the machine's
    vector size: the order of additions is fixed.
    """
    arrays = [make_array(kind)(context, builder, each) for kind, each in zip(signature.args, arguments, strict=True)]
    size = builder.extract_value(arrays[0].shape, 0)
    whole = builder.and_(size, size.type(-8))
    eight = [cgutils.alloca_once_value(builder, _EIGHT([0.0] * 8)) for _ in terms]
    first = [builder.bitcast(sums, _EIGHT.element.as_pointer()) for sums in eight]

    def add(k: ir.Value, kind: ir.Type, sums: Sequence[ir.Value]) -> None:
        places = [builder.bitcast(builder.gep(array.data, [k]), kind.as_pointer()) for array in arrays]
        elements = [builder.load(place, align=8) for place in places]
        for place, term in zip(sums, terms, strict=True):
            builder.store(builder.fadd(builder.load(place), term(*elements)), place)

    with cgutils.for_range_slice(builder, size.type(0), whole, size.type(8), size.type) as (k, _):
        add(k, _EIGHT, eight)
    with cgutils.for_range_slice(builder, whole, size, size.type(1), size.type) as (k, _):
        add(k, _EIGHT.element, first)
    lanes = ([builder.extract_element(builder.load(sums), ir.IntType(32)(k)) for k in range(8)] for sums in eight)
    return [_total(lane, builder.fadd) for lane in lanes]


def _total(numbers: list[T], add: Callable[[T, T], T]) -> T:
    """The sum of eight numbers, added in pairs."""
    while len(numbers) > 1:
        numbers = [add(*numbers[k : k + 2]) for k in range(0, len(numbers), 2)]
    return numbers[0]


@kernel
def exp_of_fraction(x: float) -> float:
    """exp(x) for −1 ≤ x ≤ 0, to three units in the last place, and exactly 1 for 0.

    The square of a Taylor polynomial of x / 2, evaluated in a tree: no call, no branch, half the work of a library's
    exp, which dominates loops over the few entries of a row.
    """
    y = 0.5 * x
    y2 = y * y
    y4 = y2 * y2
    y8 = y4 * y4
    a = fma(fma(1 / 6, y, 1 / 2), y2, 1.0 + y)
    b = fma(fma(1 / 5040, y, 1 / 720), y2, fma(1 / 120, y, 1 / 24))
    c = fma(fma(1 / 39916800, y, 1 / 3628800), y2, fma(1 / 362880, y, 1 / 40320))
    d = fma(1 / 87178291200, y2, fma(1 / 6227020800, y, 1 / 479001600))
    root = fma(fma(d, y4, c), y8, fma(b, y4, a))
    return root * root
