"""The command line in this process, for tests of very many commands."""

import sys

import pytest

from backcast.cli import main


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
