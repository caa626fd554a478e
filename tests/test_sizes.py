"""No file is too long to be read at once: not a module of the package, and not a file of tests."""

from pathlib import Path

import pytest

import backcast

MOST = 450  # lines
TESTS = Path(__file__).parent
FOLDERS = {"package": Path(backcast.__file__).parent, "tests": TESTS, "torture": TESTS.parent / "torture"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_can_be_read_at_once(folder):
    lengths = {path: len(path.read_text().splitlines()) for path in FOLDERS[folder].rglob("*.py")}
    assert {str(path): lines for path, lines in lengths.items() if lines > MOST} == {}
