"""Cache of compiled kernels on disk, through Numba internals.

A file holds the machine code of one kernel for one signature. Its name contains a hash of everything the code was made
of (`fingerprints`), so that an edit never runs stale code and recompiles no other kernels; third-party parts are cached
likewise. The file is a line of JSON and an object file, without pickle. Disk errors mean "recompile", never an
exception.

This module uses Numba internals. If they are missing, the import fails with an ImportError or an AttributeError; if
they fail later, the cache is disabled: either way kernels are compiled without it.
"""

import contextlib
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import compile_result
from numba.core.environment import Environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.runtime import rtsys
from numba.core.typing import signature

from backcast.core import waiting
from backcast.core.files import atomic_path, read_own
from backcast.core.fingerprints import IndescribableError, Methods, fingerprint
from backcast.core.kernel_directory import cache_directory, give_up, is_used, prepare_directory

types: Any = numba.types
_VERSIONS = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__


def keep_on_disk(compiled: Any, methods: Methods) -> None:
    """Let a dispatcher load compiled code from disk, and save what it compiles.

    Args:
        compiled: the dispatcher.
        methods: the compiled methods of a part by name.
    """
    if hasattr(compiled, "_cache"):
        compiled._cache = _KernelCache(compiled.py_func, methods)
    else:
        give_up(AttributeError("dispatchers have no _cache"))


class _KernelCache(NullCache):
    """One file per function, signature and processor; a NullCache whenever the disk fails."""

    def __init__(self, function: Callable[..., Any], methods: Methods) -> None:
        self._function, self._methods, self._functions = function, methods, 1

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        with _or_compile():
            path = self._file(sig, target_context.codegen())
            if path is not None and path.exists():
                rtsys.initialize(target_context)  # without it, loaded code lacks the functions it calls
                found = _loaded(path, self._function, _arguments(sig), target_context)
        if found is None:
            waiting.begin(self._function.__qualname__, self._functions)
        return found

    def save_overload(self, sig: Any, cres: Any) -> None:
        with _or_compile():
            path = self._file(sig, cres.codegen)
            if path is not None and not cres.library.has_dynamic_globals and not cres.environment.consts:
                prepare_directory()
                _save(path, cres)

    def _file(self, sig: Any, codegen: Any) -> Path | None:
        """The path of the code for a signature; None if it is not cached."""
        arguments = _arguments(sig)
        if not is_used() or any(map(_has_function, arguments)):
            return None
        classes = list(dict.fromkeys(_classes(arguments)))
        try:
            code, self._functions = fingerprint(self._function, classes, self._methods)
        except IndescribableError:
            return None
        parts = [f"{cls.__module__}.{cls.__qualname__}" for cls in classes]
        versions = _VERSIONS, _compiler(), codegen.magic_tuple(), config.OPT, config.BOUNDSCHECK
        key = hashlib.sha256(repr((code, str(sig), parts, versions)).encode()).hexdigest()
        return cache_directory() / f"{self._function.__module__}.{self._function.__qualname__}-{key[:32]}.nbc"


for _name in ("load_overload", "save_overload"):
    _asked = inspect.signature(getattr(NullCache, _name))
    if _asked.parameters.keys() != inspect.signature(getattr(_KernelCache, _name)).parameters.keys():
        raise AttributeError(f"NullCache.{_name} takes {_asked}")


def _save(path: Path, cres: Any) -> None:
    code = cres.library._get_compiled_object()
    header = {
        "library": cres.library.name,
        "function": cres.fndesc.mangled_name,
        "environment": cres.fndesc.env_name,
        "sha256": hashlib.sha256(code).hexdigest(),
    }
    with atomic_path(path) as part:
        part.chmod(0o600)
        part.write_bytes(json.dumps(header).encode() + b"\n" + code)


def _loaded(path: Path, function: Callable[..., Any], arguments: tuple[Any, ...], target_context: Any) -> Any:
    """The compiled kernel in a file; None if the file is damaged."""
    line, _, code = read_own(path).partition(b"\n")
    header = json.loads(line)
    if hashlib.sha256(code).hexdigest() != header["sha256"]:
        return None
    library = target_context.codegen().create_library(header["library"])
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    described = _descriptor(function, arguments, header)
    library.codegen._engine._defined_symbols.add(described.llvm_cpython_wrapper_name)
    environment = Environment.from_fndesc(described)
    return compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=target_context.get_executable(library, described, environment),
        fndesc=described,
        signature=signature(types.undefined, *arguments),  # the return type is not needed: kernels call another version
        objectmode=False,
    )


def _descriptor(function: Callable[..., Any], arguments: tuple[Any, ...], header: dict[str, str]) -> Any:
    """Numba's description of the function, with its names in the object file."""
    described = PythonFunctionDescriptor(
        native=True,
        modname=function.__module__,
        qualname=function.__qualname__,
        unique_name=function.__qualname__,
        doc="",
        typemap=None,
        restype=types.undefined,
        calltypes=None,
        args=(),
        kws=(),
        argtypes=arguments,
        env_name=header["environment"],
    )
    described.mangled_name = header["function"]
    return described


@contextlib.contextmanager
def _or_compile() -> Iterator[None]:
    """Ignore disk errors; disable the cache if Numba's internals differ from what is expected."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        give_up(error)
    except Exception:
        pass


@functools.cache
def _compiler() -> str:
    """A hash of the sources that determine how kernels are compiled."""
    here = Path(__file__).parent
    return hashlib.sha256(
        b"\0".join((here / name).read_bytes() for name in ("compiling.py", "lowering.py", "shortcuts.py"))
    ).hexdigest()


def _arguments(sig: Any) -> tuple[Any, ...]:
    return tuple(getattr(sig, "args", sig))


def _classes(numba_types: Iterable[Any]) -> Iterator[type]:
    """The classes of all NamedTuples among these types, also nested ones."""
    for each in numba_types:
        if isinstance(each, types.BaseNamedTuple):
            yield each.instance_class
        if isinstance(each, types.BaseTuple):
            yield from _classes(each)


def _has_function(numba_type: Any) -> bool:
    if isinstance(numba_type, types.BaseTuple):
        return any(map(_has_function, numba_type))
    return isinstance(numba_type, types.Callable)
