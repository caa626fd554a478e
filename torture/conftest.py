"""Torture: long tests that try to lose results, to run what nobody asked for, to fill the machine. `make torture`.

Each tells what it tried and what came of it; the table is printed at the end. Everything stays on this machine.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # whose helpers they use

_told: list[tuple[str, str, str]] = []


@pytest.fixture
def tell():
    """Add a line to the table: what was tortured, what was tried, and what came of it."""
    return lambda *line: _told.append(tuple(map(str, line)))


def pytest_terminal_summary(terminalreporter):
    """The table, as docs/trust.md has it."""
    if _told:
        rows = [("what", "tried", "came of it"), ("---",) * 3, *_told]
        terminalreporter.write_line("\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows))
