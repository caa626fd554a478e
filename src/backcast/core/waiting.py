"""Progress of compilation, for those who wait for it.

After a second, and then every second, a line goes to the logger `backcast.compiling` and to listeners.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

PATIENCE = 1.0  # seconds before the first message, and between messages
_logger = logging.getLogger("backcast.compiling")
_here = threading.local()
_listeners: list[Callable[["Compilation"], None]] = []


class Compilation(NamedTuple):
    """A kernel that is being compiled.

    Attributes:
        what: what it is compiled for, such as an agent in a world; by default the kernel's name.
        done: number of functions compiled so far.
        of: approximate number of functions.
        seconds: seconds since the start.
    """

    what: str
    done: int
    of: int
    seconds: float

    def __str__(self) -> str:
        return f"compiling {self.what}: {min(self.done, self.of)} of {self.of} functions"


@contextlib.contextmanager
def compiling_for(what: str) -> Iterator[None]:
    """Name what this thread compiles within the context."""
    before = getattr(_here, "what", None)
    _here.what = what
    try:
        yield
    finally:
        _here.what = before


@contextlib.contextmanager
def listening(listener: Callable[[Compilation], None]) -> Iterator[None]:
    """Call a function about compilations, in any thread, within the context."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def begin(kernel: str, functions: int) -> None:
    """Start the compilation of a kernel with about `functions` functions in this thread."""
    _here.kernel, _here.of, _here.done = kernel, functions, 0
    _here.since = _here.told = time.monotonic()


def count() -> None:
    """Record that one of its functions has been compiled."""
    if not hasattr(_here, "since"):
        return
    _here.done += 1
    now = time.monotonic()
    if now - _here.told < PATIENCE:
        return
    _here.told = now
    compilation = Compilation(getattr(_here, "what", None) or _here.kernel, _here.done, _here.of, now - _here.since)
    _logger.info("%s", compilation)
    for listener in list(_listeners):
        listener(compilation)
