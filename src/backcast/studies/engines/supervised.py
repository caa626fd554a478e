"""Units performed in a separate process, which may hang or die without affecting others."""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from backcast.agents.kinds import KINDS
from backcast.studies.engines.child import COMPILED
from backcast.studies.units import Failed, Outcome, Unit

COMPILING = 300.0  # additional seconds allowed for compiling
ATTEMPTS = 2  # attempts at a unit whose process dies: the first death may have another cause


class Child:
    """A process that performs one unit at a time (`engines.child`); started on demand."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._ended = False

    def perform(
        self, unit: Unit, time_limit: float | None = None, tell: Callable[[str], None] = lambda words: None
    ) -> Outcome:
        """Perform a unit in the process, which is killed if the time limit is exceeded.

        Args:
            unit: some seeds of an agent in a world.
            time_limit: in seconds, without compiling.
            tell: called with the progress of compilation.
        """
        code = 0
        for _ in range(ATTEMPTS):
            process = self._running()
            if process is None:
                return Failed(unit, "Stopped: the result is no longer needed")
            deadline = _Deadline(process, time_limit)
            try:
                return _ask(process, unit, deadline, tell)
            except (EOFError, OSError, pickle.UnpicklingError):  # the process is gone
                code = process.wait()
            if deadline.passed:
                return Failed(unit, f"TimeLimit: not finished after {time_limit:g} s, the time limit of a unit")
        return Failed(unit, f"Died: the process that performed it ended with {_in_words(code)}, {ATTEMPTS} times")

    def end(self) -> None:
        """Kill the process, and start no other."""
        with self._starting:
            self._ended = True
            self._kill()

    def _running(self) -> "subprocess.Popen[bytes] | None":
        """The process, started if there is none; None after the end."""
        with self._starting:
            if self._ended:
                return None
            if self._process is None or self._process.poll() is not None:
                self._kill()
                self._process = _start()
            return self._process

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in filter(None, (self._process.stdin, self._process.stdout)):
                with contextlib.suppress(OSError):  # unwritten data has no reader
                    pipe.close()
            self._process = None


def known_elsewhere(unit: Unit) -> bool:
    """Whether other processes know this kind of agent: it is Backcast's own, or the study names plugins to import.

    Other kinds are known to this process only.
    """
    return bool(unit.cell.plugins) or KINDS[unit.cell.agent.kind].is_builtin


class _Deadline:
    """Kills a process if its work takes longer than the given seconds; None: never."""

    def __init__(self, process: "subprocess.Popen[bytes]", seconds: float | None) -> None:
        self.passed = False
        self._process, self._seconds = process, seconds

    @contextlib.contextmanager
    def watching(self, more: float = 0.0) -> Iterator[None]:
        """Count time within the context, with `more` seconds allowed."""
        timer = threading.Timer((self._seconds or 0.0) + more, self._pass)
        if self._seconds is not None:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _pass(self) -> None:
        self.passed = True
        self._process.kill()


def _start() -> Any:
    command = [sys.executable, "-P", "-m", "backcast.studies.engines.child"]
    home = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    apart: Any = {"process_group": 0} if os.name == "posix" else {}  # Ctrl-C is for the parent
    process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **apart)
    with contextlib.suppress(EOFError):  # the caller will notice that it is gone
        pickle.load(process.stdout)  # wait until ready, so that start-up does not count for a unit
    return process


def _ask(process: Any, unit: Unit, deadline: _Deadline, tell: Callable[[str], None]) -> Outcome:
    with deadline.watching(COMPILING):
        pickle.dump(unit, process.stdin)
        process.stdin.flush()
        while (words := pickle.load(process.stdout)) != COMPILED:
            tell(words)
        tell(unit.label)
    with deadline.watching():
        outcome: Outcome = pickle.load(process.stdout)
    return outcome


def _in_words(code: int) -> str:
    """Describe an exit code, or the signal of a negative one."""
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
