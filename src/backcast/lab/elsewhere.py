"""Compile in another process, whose memory ends with it, as does a compilation that nobody waits for any more.

An agent takes about 100 MB where it is compiled, and 10 MB where it is loaded from the cache of compiled kernels. Numba
frees neither. So the lab only loads: what is not in the cache yet is first compiled by a child, which leaves it there.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import numpy as np
from numba.core import event
from numpy.typing import NDArray

T = TypeVar("T")
_LOOK = 0.1  # seconds between looks at the flag
_thread = threading.local()


class NotCompiledError(Exception):
    """A kernel is not in the cache."""


class AbandonedError(Exception):
    """Nobody waits for it any more."""


class _Watch(event.Listener):  # type: ignore[misc]
    """Stops compilations in threads that only load."""

    def on_start(self, event: Any) -> None:
        if getattr(_thread, "only_loads", False):
            raise NotCompiledError

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Watch())


def with_kernels(
    what: Literal["open", "further"], config: dict[str, Any], stop: NDArray[np.uint8], work: Callable[[], T]
) -> T:
    """The result of work whose kernels are loaded, after a child has compiled them where that is needed.

    Where the cache cannot be used, they are compiled here after all.

    Args:
        what: name of the work, for the child.
        config: the scene, for the child.
        stop: raised when nobody waits any more: a child is then ended, and AbandonedError is raised.
        work: begun again from its beginning after a child was needed.
    """
    try:
        with _only_loading():
            return work()
    except NotCompiledError:
        _compile(what, config, stop)
    if stop[0]:
        raise AbandonedError
    return work()


@contextlib.contextmanager
def _only_loading() -> Iterator[None]:
    _thread.only_loads = True
    try:
        yield
    finally:
        _thread.only_loads = False


def _compile(what: str, config: dict[str, Any], stop: NDArray[np.uint8]) -> None:
    """Let a child compile, until it is done or nobody waits; its input stays open, for when that ends, so does it."""
    command = [sys.executable, "-P", "-m", "backcast.lab.compiler", what]
    pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
    with contextlib.suppress(OSError), subprocess.Popen(command, stdin=pipe, stdout=quiet, stderr=quiet) as child:
        try:
            _tell(child, config)
            while not stop[0] and child.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK)
        finally:
            child.kill()


def _tell(child: "subprocess.Popen[bytes]", config: dict[str, Any]) -> None:
    assert child.stdin is not None
    child.stdin.write(json.dumps(config).encode() + b"\n")
    child.stdin.flush()
