import subprocess
import sys

import backcast as bc


def backcast(*arguments):
    command = [sys.executable, "-m", "backcast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version():
    result = backcast("--version")
    assert (result.returncode, result.stdout) == (0, f"backcast {bc.__version__}\n")


def test_list_names_every_closed_form():
    result = backcast("list")
    assert result.returncode == 0
    for name in bc.exact.__all__:
        assert f"  {name} " in result.stdout


def test_help_has_an_example_and_bad_commands_exit_with_2():
    assert "Example: backcast reproduce" in backcast("--help").stdout
    assert backcast("nonsense").returncode == 2


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['backcast', '--help']; import backcast.cli; "
        "print([name for name in ('numpy', 'scipy', 'numba') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
