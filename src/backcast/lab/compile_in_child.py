"""Compile in another process, whose memory ends with it, as does a compilation that nobody waits for any more.

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
_LOOK = 0.1  # seconds between looks at the flag
_thread = threading.local()
_no_cache = threading.Event()  # what a child has compiled could not be loaded


class NotCompiledError(Exception):
    """A kernel is not in the cache; its name and the types of its arguments say which."""


class AbandonedError(Exception):
    """Nobody waits for it any more."""


class _RefuseCompiling(event.Listener):  # type: ignore[misc]
    """Stops compilations in threads that only load."""

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
    """The result of work whose kernels are loaded, after a child has compiled them where that is needed.

    What is lacking even then is compiled here; if that is what was lacking before, the cache cannot be used, and from
    now on all is compiled here.

    Args:
        what: name of the work, for the child.
        config: the scene, for the child.
        stop: raised when nobody waits any more: a child is then ended, and AbandonedError is raised.
        work: begun again from its beginning after a child was needed.
        tell: called in another thread, with words that say how far the child is.
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
    """The result of work that compiles nothing; NotCompiledError if it would have to."""
    _thread.only_loads = True
    try:
        return work()
    finally:
        _thread.only_loads = False


class _Compilation:
    """What a child compiles, for all who wait for it.

    Attributes:
        waiting: the flags of those who wait, and whom to tell how far it is.
        over: set when it has ended.
        succeeded: whether it has done all.
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
    """Let a child compile until it is done or nobody waits; whether it did. Who wants the same waits for the same."""
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

    Its input stays open all the time: when that ends, so does it, also if the lab is killed.
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
    except OSError:  # there is no such command, or it has ended before it was told
        return False
    return child.returncode == 0


def _pass_on(lines: "IO[bytes]", tell: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError):  # it was closed
        for line in lines:
            tell(line.decode().strip())


def _tell(child: "subprocess.Popen[bytes]", config: dict[str, Any]) -> None:
    assert child.stdin is not None
    child.stdin.write(json.dumps({"plugins": homes_of(config), "config": config}).encode() + b"\n")
    child.stdin.flush()
