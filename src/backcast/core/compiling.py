"""`@kernel` and `@part`: compile with Numba, and cache the machine code on disk (`kernel_cache`).

A *kernel* is a function on arrays. A *part* (a model, a planner, a world, …) is a NamedTuple of arrays and numbers
whose methods are kernels: `model.learn(…)` looks the same in Python and in a compiled loop, where the class of the part
determines the code at compile time.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import config
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr
from numba.extending import register_model

from backcast.core.kernel_directory import cache_directory, cache_trouble, give_up

try:
    from backcast.core.lowering import Inlined, Whole

    _INLINED, _WHOLE = {"pipeline_class": Inlined}, {"pipeline_class": Whole}
except (ImportError, AttributeError):  # compiling takes longer, with the same result
    _INLINED = _WHOLE = {}

try:
    from backcast.core.kernel_cache import keep_on_disk
except (ImportError, AttributeError) as error:
    give_up(error)

    def keep_on_disk(compiled: Any, methods: Callable[[type], dict[str, Callable[..., Any]]]) -> None:
        """Without the Numba features that the cache needs, nothing is cached."""


__all__ = [
    "INTERPRETED",
    "cache_directory",
    "cache_trouble",
    "in_python",
    "intrinsic",
    "is_part",
    "kernel",
    "optional",
    "part",
    "types",
]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

types: Any = numba.types

# forceinline: a part is a dozen arrays, and passing them to a helper costs more than most helpers do.
# _nrt: no reference counting. A kernel works on arrays owned by its caller and allocates none; counting references
# at every call of a helper made the fused loop five times slower. Allocating is then a compile-time error. This option
# is not part of Numba's public API: without it, kernels are slower.
OPTIONS: dict[str, Any] = {"nogil": True, "forceinline": True}
if hasattr(getattr(getattr(numba.core, "cpu", None), "CPUTargetOptions", None), "_nrt"):
    OPTIONS["_nrt"] = False


INTERPRETED = bool(config.DISABLE_JIT)  # NUMBA_DISABLE_JIT=1: kernels are plain Python, for debuggers and coverage


def kernel(function: F, overflows: bool = False, **options: Any) -> F:
    """Compile with Numba on the first call, or load the code that an earlier process compiled.

    Args:
        function: a function of arrays, numbers and parts.
        overflows: whether integer overflow is intended; interpreted, it then causes no warning.
        options: options of `numba.njit`.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(function) if overflows else function
    compiled: Any = numba.njit(**OPTIONS, **options, **_WHOLE)(function)
    _inline_where_called(compiled, lambda: numba.njit(**OPTIONS, **options, **_INLINED)(function))
    keep_on_disk(compiled, compiled_methods)
    result: F = compiled
    return result


def _inline_where_called(compiled: Any, make: Callable[[], Any]) -> None:
    """Let kernels call a separate version of a kernel, which is compiled on demand."""
    inlined = functools.cache(make)
    compiled.get_call_template = lambda args, kws: inlined().get_call_template(args, kws)
    compiled.get_overload = lambda sig: inlined().get_overload(sig)


def intrinsic(interpreted: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: an intrinsic that generates machine code, and its equivalent in interpreted mode."""

    def choose(generator: Callable[..., Any]) -> Any:
        return interpreted if INTERPRETED else numba.extending.intrinsic(generator)

    return choose


def in_python(method: F) -> F:
    """Decorator: a method of a part that is not compiled, because only Python calls it."""
    method._in_python = True  # type: ignore[attr-defined]
    return method


_parts: list[type] = []
_methods: dict[str, dict[type, Callable[..., Any]]] = {}
_defaults: dict[str, Callable[..., Any]] = {}
_fields: dict[str, str] = {}


class _Method:
    """A method of a part, which becomes a kernel when Python first accesses it; most are never accessed."""

    def __init__(self, owner: type, name: str, function: Callable[..., Any]) -> None:
        self.owner, self.name, self.function = owner, name, function

    def __get__(self, instance: Any, owner: type) -> Any:
        compiled: Any = kernel(self.function)
        setattr(self.owner, self.name, compiled)
        return compiled.__get__(instance, owner)


def compiled_methods(cls: type) -> dict[str, Callable[..., Any]]:
    """The methods of a part that kernels may call, by name; empty for other classes."""
    if cls not in _parts:
        return {}
    chosen = {name: bodies.get(cls) or _defaults.get(name) for name, bodies in _methods.items()}
    return {name: method for name, method in chosen.items() if method is not None}


def part(cls: C) -> C:
    """Class decorator: compile the public methods of a NamedTuple to kernels, callable from Python and from kernels.

    Methods with the same name take the same parameters in every part; a part has at least one field. To Numba, methods
    of parts are methods of every NamedTuple, so that no field may have the name of a method.
    """
    if not cls.__annotations__:
        raise TypeError(
            f"{cls.__name__}: a part needs at least one field (Numba cannot call methods of an empty tuple)"
        )
    _fields.update(dict.fromkeys(cls.__annotations__, cls.__name__))
    _give_own_name(cls)
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_") and _is_compiled(method):
            _methods.setdefault(name, {})[cls] = method
            setattr(cls, name, _Method(cls, name, method))
    _parts.append(cls)
    for name, default in _defaults.items():
        _complete(cls, name, default)
    for name in _fields.keys() & _methods.keys():
        raise TypeError(f"{cls.__name__}: {name!r} is a field of {_fields[name]} and a method of a part; rename one")
    return cls


def is_part(given: object) -> bool:
    """Whether an object is a part, which has the defaults of all methods."""
    return type(given) in _parts


def optional(name: str) -> Callable[[F], F]:
    """Decorator: the default of a method, for parts that do not define it."""

    def add(function: F) -> F:
        _defaults[name] = function
        if _is_compiled(function):
            _methods.setdefault(name, {})
        for cls in _parts:
            _complete(cls, name, function)
        return function

    return add


def _give_own_name(cls: type) -> None:
    """Number a part whose name is taken, for example in a notebook cell that is executed again.

    Numba's dispatcher distinguishes NamedTuples only by name and fields, and would run the other part's code.
    """
    taken = sum(other.__name__.partition("~")[0] == cls.__name__ for other in _parts)
    if taken:
        cls.__name__ = f"{cls.__name__}~{taken + 1}"


def _is_compiled(method: Callable[..., Any]) -> bool:
    return not hasattr(method, "_in_python")


def _complete(cls: type, name: str, default: Callable[..., Any]) -> None:
    """Add the default of a method that a part does not define, for callers in Python."""
    if inspect.getattr_static(cls, name, None) is None:
        setattr(cls, name, _Method(cls, name, default) if _is_compiled(default) else default)


class _BoundMethod(types.BoundFunction):  # type: ignore[misc]
    """The type of `part.method` in a kernel; the code of a call is that of the method's own dispatcher."""

    def get_impl_key(self, sig: Any) -> Any:
        return self.template.dispatcher.get_overload(sig.args)


register_model(_BoundMethod)(lambda manager, bound: manager[bound.this])


@infer_getattr
class _MethodsOfParts(AttributeTemplate):  # type: ignore[misc]
    """Resolves the methods of parts for Numba: one template for all, because Numba tries every template.

    Numba's own `overload_method` makes two templates for each method name, which takes a large part of the time to
    compile, and to load, a kernel.
    """

    key = types.BaseNamedTuple

    def generic_resolve(self, part: Any, name: str) -> Any:
        """The method of a part with this name, or None."""
        method = _methods.get(name, {}).get(part.instance_class) or _defaults.get(name)
        if method is None or not _is_compiled(method):
            return None
        return _BoundMethod(_method_template(method), part)


@functools.cache
def _method_template(method: Callable[..., Any]) -> type:
    compiled = numba.njit(**OPTIONS, **_INLINED)(method)

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = method
        dispatcher = compiled

        def generic(self, args: Any, kws: Any) -> Any:
            return types.Dispatcher(compiled).get_call_type(self.context, (self.this, *args), kws).as_method()

    return Template
