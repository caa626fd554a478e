"""Agents that run interpreted in another process until their kernels are compiled, with the same numbers.

One process is kept ready for the next scene that has to be compiled. The number of processes is limited: a page without
one shows its world and waits for the compiler.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from backcast.core.compiling import INTERPRETED
from backcast.core.errors import InputError
from backcast.lab.config import homes_of
from backcast.lab.interpreter import HEAD
from backcast.lab.pair import Moment

MOST = 4  # the most processes, including the one kept ready
_lock = threading.Lock()
_waiting: list["Process"] = []  # at most one; none if the lab is not serving
_running: set["Process"] = set()
_keeps_one = threading.Event()


class StandInEndedError(Exception):
    """The process has ended; the compiled agents will continue."""


def prepare() -> None:
    """Keep one process ready for the next scene from now on."""
    _keeps_one.set()
    _refill()


def end_all() -> None:
    """End all processes, because the lab ends."""
    _keeps_one.clear()
    with _lock:
        processes = [*_waiting, *_running]
    for process in processes:
        process.end()


def take(config: dict[str, Any]) -> "StandIn | None":
    """Return the interpreted agents of a scene before their first step; None if no process is available."""
    with _lock:
        process = _waiting.pop() if _waiting else _start()
    _refill()
    if process is None:
        return None
    try:
        return StandIn(process, config)
    except (StandInEndedError, InputError):
        process.end()
        return None


def _refill() -> None:
    with _lock:
        if _keeps_one.is_set() and not _waiting and (process := _start()) is not None:
            _waiting.append(process)


def _start() -> "Process | None":
    """Start a process that waits for a scene; None if there are too many. The caller holds the lock."""
    if INTERPRETED or len(_running) >= MOST:
        return None
    try:
        return Process()
    except OSError:
        return None


class Process:
    """A process that answers requests; it is started by a holder of this module's lock."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "backcast.lab.interpreter"]
        pipe, environment = subprocess.PIPE, {**os.environ, "NUMBA_DISABLE_JIT": "1"}
        self._asking = threading.Lock()
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)
        _running.add(self)

    def ask(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return its answer, JSON text and bytes; raise StandInEndedError if it has ended or ends meanwhile."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        with self._asking:
            try:
                self._process.stdin.write(json.dumps(asked).encode() + b"\n")
                self._process.stdin.flush()
                length, of_text = HEAD.unpack(_read(self._process.stdout, HEAD.size))
                content = _read(self._process.stdout, length)
            except (OSError, ValueError) as error:
                raise StandInEndedError from error
        return json.loads(content[:of_text]), content[of_text:]

    def end(self) -> None:
        """Kill it, which makes room for another."""
        self._process.kill()
        with self._asking, self._process, contextlib.suppress(OSError):
            pass  # the waiting caller gets an error, then the pipes are closed
        with _lock:
            _running.discard(self)
            if self in _waiting:
                _waiting.remove(self)
        _refill()


class StandIn:
    """Two agents in another process.

    Args:
        process: a process that waits for a scene.
        config: the scene, as plain data.

    Attributes:
        moment: their position.
    """

    def __init__(self, process: Process, config: dict[str, Any]) -> None:
        self._process = process
        self._ask(plugins=homes_of(config), config=config)

    def play(self, ticks: int, seconds: float) -> None:
        """Make a number of ticks, or as many as there is time for; the last one is watched."""
        self._ask(do="play", ticks=ticks, seconds=seconds)

    def way_to(self, at: int, episode: int) -> Callable[[float], bool]:
        """Go to a moment: call it with the seconds to spend until it returns True."""
        aimed = False

        def go_on(seconds: float) -> bool:
            nonlocal aimed
            if not aimed:
                self._ask(do="aim", at=at, episode=episode)
                aimed = True
            return bool(self._ask(do="go", seconds=seconds)[0]["there"])

        return go_on

    def frame(self, state: dict[str, Any], known_episodes: int) -> tuple[bytes, int]:
        """The frame to draw, with the session's state; and the number of episodes that the page then knows."""
        told, content = self._ask(do="frame", state=state, known=known_episodes)
        return content, told["known"]

    def answer(self, s: int) -> dict[str, Any]:
        """The page's data on a state."""
        told: dict[str, Any] = self._ask(do="answer", s=s)[0]["answer"]
        return told

    def close(self) -> None:
        """Kill the process; the next scene needs another one."""
        self._process.end()

    def _ask(self, **asked: object) -> tuple[dict[str, Any], bytes]:
        told, content = self._process.ask(asked)
        if "refused" in told:
            raise InputError(told["refused"])
        self.moment = Moment(*told["moment"])
        return told, content


def _read(source: "IO[bytes]", length: int) -> bytes:
    content = source.read(length)
    if len(content) < length:
        raise ValueError("it has ended")
    return content
