"""The command line: in a process of its own, and in this one for tests of very many commands."""

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
