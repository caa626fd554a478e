"""Fingerprints of compiled kernels: a hash of the code of all functions they may reach, and of their constants.

Two processes with the same fingerprint compile the same machine code. Editing a function changes the fingerprint of the
kernels that reach it, and of no others. Docstrings, comments and the positions of functions in their files do not
matter. What cannot be described has no fingerprint.
"""

import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Function = Callable[..., Any]
Methods = Callable[[type], dict[str, Function]]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, np.dtype)
_HAS_DOCSTRING = getattr(inspect, "CO_HAS_DOCSTRING", 0)
# Objects of these are described by name: Numba compiles them, and its version is part of a kernel's key.
_LIBRARIES = ("numpy", "math", "cmath", "operator", "builtins", "numba", "llvmlite", "typing")


class IndescribableError(Exception):
    """An object that may differ in the next process."""


def fingerprint(function: Function, classes: Iterable[type], methods: Methods) -> tuple[str, int]:
    """The hash of everything that a kernel may reach, and the number of functions.

    Args:
        function: the kernel.
        classes: the classes of parts among its arguments, also nested ones.
        methods: the compiled methods of a class by name, defaults included.

    Raises:
        IndescribableError: if it reaches something that cannot be described.
    """
    found = _Reach(methods)
    for cls in classes:
        found.add_class(cls)
    found.add(function)
    return found.digest(), len(found.functions)


class _Reach:
    """All functions that a kernel may reach: those it names, and the methods of these names of all parts."""

    def __init__(self, methods: Methods) -> None:
        self.functions: dict[Function, str] = {}
        self._methods_of = methods
        self._named: set[str] = set()
        self._classes: dict[type, dict[str, Function]] = {}

    def digest(self) -> str:
        """The hash of all descriptions, in a reproducible order."""
        classes = [f"{_name(cls)}({', '.join(getattr(cls, '_fields', ()))})" for cls in self._classes]
        described = sorted([*self.functions.values(), *classes])
        return hashlib.sha256("\n".join(described).encode()).hexdigest()

    def add(self, function: Function, options: object = None) -> None:
        """Add a function and everything it reaches."""
        if function in self.functions:
            return
        self.functions[function] = ""
        code, around = function.__code__, _surroundings(function)
        names = sorted({name for each in _codes(code) for name in (*each.co_names, *each.co_freevars)})
        constants = [f"{name}={self._describe(around[name])}" for name in names if name in around]
        described = [_name(function), repr(function.__defaults__), repr(options), *map(_text, _codes(code)), *constants]
        self.functions[function] = " ".join(described)
        for name in set(names) - self._named:
            self._named.add(name)
            for methods in list(self._classes.values()):
                self._add_method(methods, name)

    def add_class(self, cls: type) -> None:
        """Add a class and those of its methods that are called."""
        if cls not in self._classes:
            self._classes[cls] = self._methods_of(cls)
            for name in list(self._named):
                self._add_method(self._classes[cls], name)

    def _add_method(self, methods: dict[str, Function], name: str) -> None:
        if name in methods:
            self.add(methods[name])

    def _describe(self, value: object) -> str:
        """Add the object that a name refers to in a function."""
        if isinstance(value, _PLAIN):
            return f"{type(value).__name__} {value!r}"
        if type(value) is tuple:
            return f"({', '.join(map(self._describe, value))})"
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, types.ModuleType):
            return value.__name__ if _is_library(value.__name__) else f"{value.__name__} {_content(value)}"
        return self._describe_callable(value)

    def _describe_callable(self, value: Any) -> str:
        inner = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # of a kernel; of an intrinsic
        if inner is not None or isinstance(value, types.FunctionType):
            self.add(inner or value, _options(value))
        elif isinstance(value, type) and hasattr(value, "_fields"):
            self.add_class(value)
        elif not _is_library(getattr(value, "__module__", None) or "") and not _is_known_class(value):
            raise IndescribableError(f"{value!r}")
        return _name(value)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _text(code: types.CodeType) -> str:
    """Describe a code object, independent of its position and docstring."""
    first = 1 if _HAS_DOCSTRING & code.co_flags or sys.version_info < (3, 13) else 0  # before, it may have been None
    constants = [each for each in code.co_consts[first:] if not isinstance(each, types.CodeType)]
    described = [sorted(map(repr, each)) if isinstance(each, frozenset) else each for each in constants]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_HAS_DOCSTRING
    return f"{code.co_code.hex()} {described!r} {names!r} {counts!r} {getattr(code, 'co_exceptiontable', b'').hex()}"


def _surroundings(function: Function) -> dict[str, Any]:
    """The namespace of a function: its closure, then its globals."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def _options(dispatcher: object) -> list[str]:
    return sorted(f"{name}={value!r}" for name, value in getattr(dispatcher, "targetoptions", {}).items())


def _content(module: types.ModuleType) -> str:
    """The hash of a module's source, because a function may use anything in it."""
    path = Path(getattr(module, "__file__", None) or "")
    if not path.is_file():
        raise IndescribableError(f"the module {module.__name__}")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_known_class(value: object) -> bool:
    """Whether this is an exception, or a class of Python's own, as annotations of inner functions mention."""
    if not isinstance(value, type):
        return False
    return issubclass(value, BaseException) or value.__module__.partition(".")[0] in sys.stdlib_module_names


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


def _name(thing: object) -> str:
    return f"{thing.__module__}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
