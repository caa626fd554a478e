"""Compiled kernels are kept on disk for the next process, by way of Numba's insides.

Numba's own cache notices edits only in the decorated function's own file, and two processes that compile
different signatures at once can overwrite each other's entries. Here a file holds one compiled signature, its
directory is named after the sources (`kernel_directory`), and trouble with the disk means "compile it again", never
an exception.

Numba promises none of what this module takes from it. What is missing makes the import fail with an ImportError or an
AttributeError, what fails later gives the cache up: either way kernels are compiled without it.
"""

import contextlib
import hashlib
import inspect
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from backcast.core.files import atomic_path, read_own
from backcast.core.kernel_directory import (
    WITH_KERNELS,
    cache_directory,
    give_up,
    is_used,
    of_backcast,
    prepare_directory,
)

types: Any = numba.types
_rebuild, _reduce = CompileResult._rebuild, CompileResult._reduce


def keep_on_disk(compiled: Any, function: Callable[..., Any]) -> None:
    """Let a dispatcher look for compiled code on the disk, and leave there what it compiles."""
    if hasattr(compiled, "_cache"):
        compiled._cache = _KernelCache(function)
    else:
        give_up(AttributeError("dispatchers have no _cache"))


class _KernelCache(NullCache):
    """One file per function, signature and processor; a NullCache whenever the disk fails."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if function.__closure__:
            raise TypeError(f"{function.__qualname__} is a closure; a kernel takes what it needs as arguments")
        if function.__module__.split(".")[1] not in WITH_KERNELS:
            raise TypeError(f"{function.__module__} may have no kernels: the cache does not notice when it is edited")
        self._name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}"

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not _known_by_our_sources(sig) or not is_used():
            return None
        with _or_compile():
            target_context.refresh()  # without it, loaded code lacks the functions it calls
            stored, payload = _read(self._file(sig, target_context.codegen()))
            if stored == sig:
                return _rebuild(target_context, *payload)
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        if not _known_by_our_sources(sig) or not is_used():
            return
        with _or_compile():
            if cres.library.has_dynamic_globals:
                return
            content = dumps((sig, _reduce(cres)))
            prepare_directory()
            with atomic_path(self._file(sig, cres.codegen)) as part:
                part.chmod(0o600)
                part.write_bytes(content)

    def _file(self, sig: Any, codegen: Any) -> Path:
        parts = [f"{cls.__module__}.{cls.__qualname__}" for cls in _classes(_arguments(sig))]
        key = (self._name, str(sig), parts, codegen.magic_tuple(), config.OPT, config.BOUNDSCHECK)
        return cache_directory() / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


for _name in ("load_overload", "save_overload"):
    _asked = inspect.signature(getattr(NullCache, _name))
    if _asked.parameters.keys() != inspect.signature(getattr(_KernelCache, _name)).parameters.keys():
        raise AttributeError(f"NullCache.{_name} takes {_asked}")


@contextlib.contextmanager
def _or_compile() -> Iterator[None]:
    """Trouble with a file is no trouble; where Numba's insides are not as we know them, there is no cache."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        give_up(error)
    except Exception:
        pass


def _read(path: Path) -> tuple[Any, Any]:
    """The signature and the code in a file; nothing if they cannot be read."""
    try:
        stored, payload = pickle.loads(read_own(path))
    except Exception:
        return None, None
    return stored, payload


def _known_by_our_sources(sig: Any) -> bool:
    """A part from a user's own module brings code that the directory's name does not know: never cached."""
    return all(map(of_backcast, _classes(_arguments(sig)))) and not any(map(_has_function, _arguments(sig)))


def _arguments(sig: Any) -> tuple[Any, ...]:
    return getattr(sig, "args", sig)


def _classes(numba_types: Iterable[Any]) -> Iterator[type]:
    """The classes of all NamedTuples among these types, and within them."""
    for each in numba_types:
        if isinstance(each, types.BaseNamedTuple):
            yield each.instance_class
        if isinstance(each, types.BaseTuple):
            yield from _classes(each)


def _has_function(numba_type: Any) -> bool:
    if isinstance(numba_type, types.BaseTuple):
        return any(map(_has_function, numba_type))
    return isinstance(numba_type, types.Callable)
