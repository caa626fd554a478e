"""Shortcuts in Numba's compilation: work that our kernels do not need.

Compiling is nearly all Python, and these four steps were a large part of the time to a first result. This module uses
Numba internals; see `lowering`.
"""

import contextlib
import functools
import gc
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import cpu_target
from numba.cpython.builtins import cast_int, do_minmax
from numba.extending import intrinsic, models, register_model


def is_ours(module: str) -> bool:
    """Whether a module is Backcast's own."""
    return module.partition(".")[0] == __name__.partition(".")[0]


@contextlib.contextmanager
def less_of_the_same(typing_context: Any) -> Iterator[None]:
    """Within the context, load registries once, and collect garbage only at the end."""
    with _registries_loaded_once(typing_context, cpu_target.target_context), _no_collection():
        yield


@contextlib.contextmanager
def _registries_loaded_once(*contexts: Any) -> Iterator[None]:
    """Let Numba load its registries now, and later only look for new entries.

    Otherwise it would load them some 700 times before its first kernel.
    """
    try:
        for context in contexts:
            context.load_additional_registries = functools.partial(_look_for_news, context)
        for context in contexts:
            type(context).load_additional_registries(context)
        yield
    finally:
        for context in contexts:
            context.__dict__.pop("load_additional_registries", None)


def _look_for_news(context: Any) -> None:
    for registry in list(context._registries):
        context.install_registry(registry)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Disable garbage collection, which would repeatedly scan all of Numba's types and functions."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _PassedWhole:
    """Passes a part between kernels as one LLVM value.

    Numba would split it into all its numbers, several hundred for an agent, and reassemble it at every call, which is
    pointless because all calls are inlined.
    """

    def get_argument_type(self) -> Any:
        return self.get_value_type()  # type: ignore[attr-defined]

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    get_return_type = get_argument_type
    from_argument = as_return = from_return = as_argument


class _WholeTuple(_PassedWhole, models.TupleModel):  # type: ignore[misc]
    pass


class _WholeUniTuple(_PassedWhole, models.UniTupleModel):  # type: ignore[misc]
    pass


def _passed_whole(whole: type, usual: type) -> Callable[[Any, Any], Any]:
    """The data model of a NamedTuple type: the usual one for third-party types, which may be compiled elsewhere."""
    return lambda manager, given: (whole if is_ours(given.instance_class.__module__) else usual)(manager, given)


register_model(numba.types.NamedTuple)(_passed_whole(_WholeTuple, models.TupleModel))
register_model(numba.types.NamedUniTuple)(_passed_whole(_WholeUniTuple, models.UniTupleModel))


def _one_of_two(comparison: Any) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def choose(typing_context: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values = [context.cast(builder, *given, both) for given in zip(arguments, signature.args, strict=True)]
            return do_minmax(context, builder, [both, both], values, comparison)

        both = typing_context.unify_types(x, y)
        return None if both is None else (both(x, y), generate)

    return choose


_OWN = {id(max): _one_of_two(operator.gt), id(min): _one_of_two(operator.lt), id(int): cast_int}


@register_pass(mutates_CFG=False, analysis_only=False)
class OwnBuiltins(FunctionPass):  # type: ignore[misc]
    """Replaces `max`, `min` and `int`, for which Numba would compile functions, by their code."""

    _name = "own_builtins"

    def __init__(self) -> None:  # the one of FunctionPass is abstract
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Replace them wherever the function refers to them."""
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                named = statement.value
                if isinstance(named, ir.Global) and id(named.value) in _OWN:
                    statement.value = ir.Global(named.name, _OWN[id(named.value)], named.loc)
        return True
