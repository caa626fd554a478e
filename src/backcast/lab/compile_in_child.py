"""Compile in another process, which frees its memory, and which can be stopped when it is no longer needed.

An agent takes about 100 MB where it is compiled, and up to 20 MB where it is loaded from the cache of compiled kernels.
Numba frees neither. So the lab only loads: what is not in the cache yet is first compiled by a child, which leaves it
there.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any, Literal, TypeVar

import numpy as np
from numba.core import event
from numpy.typing import NDArray

from backcast.lab.config import homes_of

T = TypeVar("T")
What = Literal["open", "further"]
_LOOK = 0.1  # seconds between checks of the flag
_thread = threading.local()
_no_cache = threading.Event()  # set if kernels compiled by a child could not be loaded


class NotCompiledError(Exception):
    """A kernel is not in the cache; the message names it and the types of its arguments."""


class AbandonedError(Exception):
    """The result is no longer needed."""


class _RefuseCompiling(event.Listener):  # type: ignore[misc]
    """Stops compilations in threads that may only load."""

    def on_start(self, event: Any) -> None:
        if getattr(_thread, "only_loads", False):
            raise NotCompiledError(f"{event.data['dispatcher']} {event.data['args']}")

    def on_end(self, event: object) -> None:
        pass


event.register("numba:compile", _RefuseCompiling())


def with_kernels(
    what: What,
    config: dict[str, Any],
    stop: NDArray[np.uint8],
    work: Callable[[], T],
    tell: Callable[[str], None] = lambda words: None,
) -> T:
    """Do work with loaded kernels, after a child has compiled them if needed.

    Kernels that are missing even then are compiled here. If the same kernel was missing before, the cache cannot be
    used, and from now on everything is compiled here.

    Args:
        what: name of the work, for the child.
        config: the scene, for the child.
        stop: set when the result is no longer needed: a child is then ended, and AbandonedError is raised.
        work: the work; it is restarted after a child was needed.
        tell: called in another thread, with the progress of the child in words.
    """
    if _no_cache.is_set():
        return work()
    try:
        return loaded(work)
    except NotCompiledError as first:
        compiled, missing = compile_elsewhere(what, config, stop, tell), str(first)
    if stop[0]:
        raise AbandonedError
    if compiled:
        try:
            return loaded(work)
        except NotCompiledError as still:
            if str(still) == missing:
                _no_cache.set()
    return work()


def loaded(work: Callable[[], T]) -> T:
    """Do work without compiling; raise NotCompiledError if it would have to."""
    _thread.only_loads = True
    try:
        return work()
    finally:
        _thread.only_loads = False


class _Compilation:
    """A compilation in a child, shared by all that wait for it.

    Attributes:
        waiting: the flags of the waiting threads, and their functions to report progress.
        over: set when it has ended.
        succeeded: whether it has compiled everything.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[NDArray[np.uint8], Callable[[str], None]]] = []
        self.over, self.succeeded = threading.Event(), False

    @property
    def is_wanted(self) -> bool:
        return any(not stop[0] for stop, _ in self.waiting)

    def tell(self, words: str) -> None:
        for stop, tell in self.waiting:
            if not stop[0]:
                tell(words)


_compilations: dict[str, _Compilation] = {}
_lock = threading.Lock()


def compile_elsewhere(
    what: What, config: dict[str, Any], stop: NDArray[np.uint8], tell: Callable[[str], None] = lambda words: None
) -> bool:
    """Let a child compile until it is done or not needed; return whether it succeeded. Equal requests share a child."""
    key = json.dumps([what, config], sort_keys=True)
    with _lock:
        begins = key not in _compilations or not _compilations[key].is_wanted
        if begins:
            _compilations[key] = _Compilation()
        compilation = _compilations[key]
        compilation.waiting.append((stop, tell))
    if not begins:
        while not stop[0] and not compilation.over.wait(_LOOK):
            pass
        return compilation.succeeded
    try:
        compilation.succeeded = _compile(what, config, compilation)
    finally:
        compilation.over.set()
        with _lock:
            if _compilations.get(key) is compilation:
                del _compilations[key]
    return compilation.succeeded


def _compile(what: str, config: dict[str, Any], compilation: _Compilation) -> bool:
    """Let a child compile.

    Its input stays open: when that ends, so does the child, also if the lab is killed.
    """
    command = [sys.executable, "-P", "-m", "backcast.lab.compiler", what]
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    try:
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet) as child:
            try:
                threading.Thread(target=_pass_on, args=(child.stdout, compilation.tell), daemon=True).start()
                _tell(child, config)
                while compilation.is_wanted and child.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        child.wait(_LOOK)
            finally:
                child.kill()
    except OSError:  # the command is missing, or ended before it read its input
        return False
    return child.returncode == 0


def _pass_on(lines: "IO[bytes]", tell: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError):  # already closed
        for line in lines:
            tell(line.decode().strip())


def _tell(child: "subprocess.Popen[bytes]", config: dict[str, Any]) -> None:
    assert child.stdin is not None
    child.stdin.write(json.dumps({"plugins": homes_of(config), "config": config}).encode() + b"\n")
    child.stdin.flush()
