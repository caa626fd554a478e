"""The command line: in a process of its own, and in this one for tests of very many commands."""

import contextlib
import fcntl
import os
import subprocess
import sys

import pytest

from backcast.cli import main


def backcast(*arguments, **options):
    """Run a command to its end: its exit code, what it printed and what it complained of."""
    command = [sys.executable, "-m", "backcast", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def started(*arguments, **options):
    """Start a command: its process."""
    command = [sys.executable, "-m", "backcast", *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen(command, **options)


@contextlib.contextmanager
def held_up(*arguments):
    """A command that tells machines how far it is, and nobody reads more than its first line, of 0 runs.

    It waits in the midst of its study, after what it stored first, however fast or slow it is. Its process, and what
    lets it go on.
    """
    listening, telling = os.pipe()
    size, line = fcntl.fcntl(telling, fcntl.F_SETPIPE_SZ, 4096), 300  # one line has room, two have not
    os.write(telling, bytes(size - line))
    with os.fdopen(listening, "rb") as heard, started(*arguments, "--json", stdout=telling) as process:
        os.close(telling)
        yield process, heard.read
        process.kill()


@pytest.fixture(name="cli")
def a_command_line(capsys, monkeypatch):
    """Run a command in this process: its exit code, what it printed and what it complained of."""
    monkeypatch.setattr("signal.signal", lambda *_: None)  # what ends these tests is not the command's business

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["backcast", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return run
