import subprocess
import sys

import pytest

MAKE = "assert gymnasium.make('backcast/Maze-v0').observation_space.n > 40"


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "imports",
    [
        "import backcast, gymnasium",
        "import gymnasium, backcast",
        "import backcast; import gymnasium.spaces; import gymnasium",
        "import backcast, importlib; gymnasium = importlib.import_module('gymnasium')",
    ],
)
def test_environments_are_known_to_gymnasium_whoever_is_imported_first(imports):
    done = python(f"{imports}; {MAKE}")
    assert (done.returncode, done.stderr) == (0, "")


def test_gymnasium_is_imported_for_those_who_need_it():
    use = "bc.run(bc.worlds.maze(), bc.agent('q'), 1, 1)"
    code = f"import sys, backcast as bc; {use}; assert 'gymnasium' not in sys.modules"
    assert python(code).returncode == 0


def test_a_package_that_is_not_there_is_looked_for_as_usual():
    code = "from backcast.core.importing import once_imported; once_imported('not_there', print); import not_there"
    assert "ModuleNotFoundError: No module named 'not_there'" in python(code).stderr
