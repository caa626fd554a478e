import json
import os
import subprocess
import sys

import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from commands import backcast


def test_version():
    result = backcast("--version")
    assert (result.returncode, result.stdout) == (0, f"backcast {bc.__version__}\n")


def test_list_names_every_closed_form():
    result = backcast("list")
    assert result.returncode == 0
    for name in bc.exact.__all__:
        assert f"  {name} " in result.stdout


def test_list_needs_no_environment_that_a_study_needs():
    """Later versions of Gymnasium may not have it any more."""
    leave_out = "import gymnasium; del gymnasium.registry['Taxi-v4']"
    code = f"{leave_out}; import sys; sys.argv[1:] = ['list']; from backcast.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "blend-held-out-updates" in done.stdout


def test_list_shows_what_a_kind_takes_and_what_it_means():
    shown = backcast("list", "td-lambda").stdout
    assert "  lam             λ of a λ-model or of traces\n" in shown
    assert "  alpha  " in shown
    assert "alpha_model" not in shown
    refused = backcast("list", "td-lamda")
    assert refused.returncode == 2
    assert "did you mean 'td-lambda'?" in refused.stderr


def test_help_has_an_example_and_bad_commands_exit_with_2():
    said = backcast("--help").stdout
    assert "Example: backcast reproduce" in said
    narrow = backcast("--help", env={**os.environ, "COLUMNS": "50"}).stdout
    for shown in (said, narrow):
        assert "..." not in shown.partition("Commands:")[2]  # no summary of a command is cut
    assert backcast("nonsense").returncode == 2


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['backcast', '--help']; import backcast.cli; "
        "print([name for name in ('numpy', 'scipy', 'numba') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.slow
def test_bench_measures_every_kind_next_to_its_twin():
    rows = json.loads(backcast("bench", "--quick", "--json").stdout)
    speed = {"kinds", "value updates", "linear", "growth", "cores", "start-up"}
    assert {row["section"] for row in rows} - {"dense C"} == speed | {"engines", "store", "a billion runs", "lab"}
    updates = [row for row in rows if row["section"] == "value updates"]
    own = {name for name, kind in KINDS.items() if kind.is_builtin}
    assert {row["agent"] for row in updates} == own
    assert all(row["nanoseconds_per_update"] > 0 and row["updates_per_step"] > 0 for row in updates)
    measured = {row["agent"] for row in rows if row["section"] == "kinds"}
    assert measured == {"td", "q", "forward", "backward", "true-forward", "true-backward"}
    assert all(row["steps_per_second"] > 0 and row["dense_numpy"] > 0 for row in rows if row["section"] == "kinds")


def test_bench_refuses_a_directory_without_the_c_programs(tmp_path):
    from backcast.cli.bench import against_c

    with pytest.raises(bc.InputError, match=r"anchors: no file .*dense_maze\.c"):
        list(against_c(tmp_path, 1))


def test_a_column_width_without_a_paper_is_refused(tmp_path):
    told = backcast("report", tmp_path, "--width", "5.5")
    assert told.returncode == 2
    assert told.stderr == "backcast: --width: it is the column width of figures for a paper; add --latex\n"
