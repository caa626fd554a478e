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
    what: Literal["open", "further"],
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
        return _loaded(work)
    except NotCompiledError as first:
        compiled, missing = _compile(what, config, stop, tell), str(first)
    if stop[0]:
        raise AbandonedError
    if compiled:
        try:
            return _loaded(work)
        except NotCompiledError as still:
            if str(still) == missing:
                _no_cache.set()
    return work()


def _loaded(work: Callable[[], T]) -> T:
    """The result of work that compiles nothing."""
    _thread.only_loads = True
    try:
        return work()
    finally:
        _thread.only_loads = False


def _compile(what: str, config: dict[str, Any], stop: NDArray[np.uint8], tell: Callable[[str], None]) -> bool:
    """Let a child compile until it is done or nobody waits; whether it did.

    Its input stays open all the time: when that ends, so does it, also if the lab is killed.
    """
    command = [sys.executable, "-P", "-m", "backcast.lab.compiler", what]
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    try:
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet) as child:
            try:
                threading.Thread(target=_pass_on, args=(child.stdout, tell), daemon=True).start()
                _tell(child, config)
                while not stop[0] and child.poll() is None:
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
