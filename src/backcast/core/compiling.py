"""`@kernel` and `@part`: compiled by Numba, with the machine code kept on disk for the next process.

A *kernel* is a function on arrays. A *part* (a model, a planner, a world, …) is a NamedTuple of arrays and numbers
whose methods are kernels: `model.learn(…)` reads the same from Python and from a compiled loop, where the class of
the part decides while compiling which code is meant.

Numba's own cache notices edits only in the decorated function's own file, and two processes that compile
different signatures at once can overwrite each other's entries. Here a file holds one compiled signature, its
directory is named after the sources of the package that may hold kernels, and trouble with the disk means "compile it
again", never an exception. The files are machine code for this user alone, like any compiler's cache: they are read
only if nobody else can have written them, from a directory in which nobody else may write.
"""

import functools
import hashlib
import inspect
import os
import pickle
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from numba.core import caching, config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import overload_method
from numba.misc.appdirs import user_cache_dir

from backcast.core.files import atomic_path, is_private, read_own, remove_remains

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

types: Any = numba.types
_PACKAGE = Path(__file__).parents[1]
_KEPT_VERSIONS = 6
_WITH_KERNELS = (
    "core",
    "drivers",
    "exact",
    "learners",
    "models",
    "planners",
    "values",
    "worlds",
)  # editing others invalidates nothing

# _nrt: no reference counting. A kernel works on arrays that its caller owns and allocates none; counting references
# at every call of a helper made the fused loop five times slower. To allocate is then a compile-time error.
# forceinline: a part is a dozen arrays, and handing them to a helper costs more than what most helpers do.
OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "forceinline": True}


INTERPRETED = bool(config.DISABLE_JIT)  # NUMBA_DISABLE_JIT=1: kernels are plain Python, for debuggers and coverage


def kernel(function: F, wraps_around: bool = False, **options: Any) -> F:
    """Compile with Numba when first called; what belongs to Backcast is loaded if an earlier process compiled it.

    Args:
        function: on arrays, numbers and parts.
        wraps_around: whether its whole numbers are meant to overflow; interpreted, they do so without a warning.
        options: of `numba.njit`.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(function) if wraps_around else function
    compiled: Any = numba.njit(**OPTIONS, **options)(function)
    if _of_backcast(function):
        compiled._cache = _KernelCache(function)
    result: F = compiled
    return result


def intrinsic(interpreted: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: what generates machine code, and the function that computes the same where nothing is compiled."""

    def choose(generator: Callable[..., Any]) -> Any:
        return interpreted if INTERPRETED else numba.extending.intrinsic(generator)

    return choose


def in_python(method: F) -> F:
    """Decorator: a method of a part that is not compiled, because only Python asks for it."""
    method._in_python = True  # type: ignore[attr-defined]
    return method


_parts: list[type] = []
_methods: dict[str, dict[type, Callable[..., Any]]] = {}
_defaults: dict[str, Callable[..., Any]] = {}
_fields: dict[str, str] = {}


def part(cls: C) -> C:
    """Class decorator: the public methods of this NamedTuple become kernels, callable from Python and kernels.

    Methods of one name take the same parameters in every part; a part has at least one field. Numba knows the methods
    of all parts as methods of every NamedTuple, so that no field may have the name of a method.
    """
    if not cls.__annotations__:
        raise TypeError(
            f"{cls.__name__}: a part needs at least one field (Numba cannot call methods of an empty tuple)"
        )
    _fields.update(dict.fromkeys(cls.__annotations__, cls.__name__))
    _give_own_name(cls)
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and not name.startswith("_") and _is_compiled(method):
            if name not in _methods:
                _announce(name, method)
            _methods[name][cls] = method
            setattr(cls, name, kernel(method))
    _parts.append(cls)
    for name, default in _defaults.items():
        _complete(cls, name, default)
    for name in _fields.keys() & _methods.keys():
        raise TypeError(f"{cls.__name__}: {name!r} is a field of {_fields[name]} and a method of a part; rename one")
    return cls


def optional(name: str) -> Callable[[F], F]:
    """Decorator: what happens when this method is called of a part that has none."""

    def add(function: F) -> F:
        _defaults[name] = function
        if name not in _methods and _is_compiled(function):
            _announce(name, function)
        for cls in _parts:
            _complete(cls, name, function)
        return function

    return add


def _give_own_name(cls: type) -> None:
    """Number a part whose name another one has, such as that of a cell of a notebook that is executed again.

    Numba's dispatcher tells NamedTuples apart by their names and fields alone, and would run the code of the other.
    """
    taken = sum(other.__name__.partition("~")[0] == cls.__name__ for other in _parts)
    if taken:
        cls.__name__ = f"{cls.__name__}~{taken + 1}"


def _is_compiled(method: Callable[..., Any]) -> bool:
    return not hasattr(method, "_in_python")


def _complete(cls: type, name: str, default: Callable[..., Any]) -> None:
    """Give a part the default of a method that it does not have, for callers in Python."""
    if not hasattr(cls, name):
        setattr(cls, name, kernel(default) if _is_compiled(default) else default)


def _announce(name: str, example: Callable[..., Any]) -> None:
    """Tell Numba that NamedTuples may have a method of this name."""
    bodies = _methods[name] = {}

    def resolve(self: Any, *arguments: Any) -> Any:
        return bodies.get(self.instance_class) or _defaults.get(name)

    resolve.__signature__ = inspect.signature(example)  # type: ignore[attr-defined]
    for base in (types.NamedTuple, types.NamedUniTuple):
        overload_method(base, name, strict=False, jit_options=OPTIONS)(resolve)


@functools.cache
def cache_directory() -> Path:
    """BACKCAST_CACHE_DIR or the user's cache directory; below it a directory named by the sources' hash."""
    base = Path(os.environ.get("BACKCAST_CACHE_DIR") or user_cache_dir("backcast"))
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE)
        if name.parts[0] in _WITH_KERNELS:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return base / f"kernels-{digest.hexdigest()[:16]}"


def cache_trouble() -> str:
    """Why the cache directory is not used, and what to do about it; empty if it is used, or if it is not there yet.

    Who may write a directory above it could put another in its place, but no files that this user owns.
    """
    try:
        found = cache_directory().lstat()
    except OSError:
        return ""
    advice = "remove it, or set BACKCAST_CACHE_DIR to a directory of your own"
    if stat.S_ISLNK(found.st_mode):
        return f"it is a symbolic link; {advice}"
    if not is_private(found):
        return f"somebody else owns it or may write in it; {advice}"
    return ""


@functools.cache
def _is_used() -> bool:
    """Whether there is no trouble with the cache directory; if there is, it is said, once."""
    trouble = cache_trouble()
    if trouble:
        print(f"backcast: the cache {cache_directory()} is not used: {trouble}", file=sys.stderr, flush=True)
    return not trouble


class _KernelCache(caching.NullCache):
    """One file per function, signature and processor; a NullCache whenever the disk fails."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if function.__closure__:
            raise TypeError(f"{function.__qualname__} is a closure; a kernel takes what it needs as arguments")
        if function.__module__.split(".")[1] not in _WITH_KERNELS:
            raise TypeError(f"{function.__module__} may have no kernels: the cache does not notice when it is edited")
        self._name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}"

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        if not _known_by_our_sources(signature) or not _is_used():
            return None
        target_context.refresh()  # without it, loaded code lacks the functions it calls
        try:
            stored, payload = pickle.loads(read_own(self._file(signature, target_context.codegen())))
            return CompileResult._rebuild(target_context, *payload) if stored == signature else None
        except Exception:
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        if not _known_by_our_sources(signature) or result.library.has_dynamic_globals or not _is_used():
            return
        try:
            _prepare_directory()
            with atomic_path(self._file(signature, result.codegen)) as part:
                part.chmod(0o600)
                part.write_bytes(dumps((signature, result._reduce())))
        except OSError:
            pass

    def _file(self, signature: Any, codegen: Any) -> Path:
        key = (self._name, str(signature), codegen.magic_tuple(), config.OPT._raw_value, config.BOUNDSCHECK)
        return cache_directory() / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def _known_by_our_sources(signature: Any) -> bool:
    """A part from a user's own module brings code that the directory's name does not know: never cached."""
    return all(map(_is_ours, getattr(signature, "args", signature)))


def _of_backcast(thing: Any) -> bool:
    return (thing.__module__ or "").partition(".")[0] == _PACKAGE.name


def _is_ours(numba_type: Any) -> bool:
    if isinstance(numba_type, types.BaseNamedTuple) and not _of_backcast(numba_type.instance_class):
        return False
    if isinstance(numba_type, types.BaseTuple):
        return all(map(_is_ours, numba_type))
    return not isinstance(numba_type, types.Callable)


@functools.cache
def _prepare_directory() -> None:
    """Make the cache directory, or remove what processes that were killed left there."""
    current = cache_directory()
    if current.exists():
        remove_remains(current)
        return
    current.mkdir(parents=True, exist_ok=True, mode=0o700)
    mine = [path for path in current.parent.glob("kernels-*") if is_private(path.lstat())]
    for old in sorted(mine, key=lambda path: path.lstat().st_mtime)[:-_KEPT_VERSIONS]:
        shutil.rmtree(old, ignore_errors=True)
