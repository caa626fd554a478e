"""What one sees while a study runs."""

import io
import json
import time
from collections import Counter

import pytest
from rich.console import Console

from backcast.cli import study_progress as display
from backcast.studies import check_study
from backcast.studies.batches import Performed
from backcast.studies.runner import Progress
from backcast.studies.units import Failed, Finished, all_units
from commands import a_command_line  # noqa: F401  a fixture
from patience import until

STUDY = {"name": "s", "episodes": 2, "seeds": 50, "worlds": [{"kind": "maze"}], "agents": [{"kind": "q"}]}


def halfway():
    """Of 50 runs 20 are done and 20 failed after twenty seconds, made by one worker; another one is at work."""
    first, second, _ = all_units(check_study(STUDY, "test"), 50)
    progress = Progress(50, running=lambda: {"beta": "q in maze"}, started=time.monotonic() - 20)
    outcomes = Finished(first, {"steps": 10_000_000}, None), Failed(second, "no")
    progress.count(Performed(outcomes, "alpha", {}))
    return progress


def test_done_failed_running_rate_and_time_left():
    progress = halfway()
    assert (progress.done, progress.failed, progress.steps) == (20, 20, 10_000_000)
    assert display.in_words(progress) == "20 of 50 runs, 5 s left, 20 failed, 1 running, 1 runs/s, 0.5 million steps/s"
    assert progress.by == {"alpha": 40}
    assert Progress(10).seconds_left == float("inf")


def test_a_line_for_each_worker_and_a_word_on_the_rest():
    lines = display.by_worker(halfway())
    assert [line.split() for line in lines] == [["alpha", "40", "runs"], ["beta", "0", "runs", "q", "in", "maze"]]
    crowd = Progress(100, by=Counter({f"w{i}": i for i in range(12)}))
    lines = display.by_worker(crowd)
    assert [line.split()[0] for line in lines[:2]] == ["w11", "w10"]
    assert lines[-1] == "and 4 more workers"


def test_a_terminal_shows_a_bar_and_workers():
    screen = io.StringIO()
    with display._bar("study", Console(file=screen, force_terminal=True, width=100)) as watch:
        watch(halfway())
    shown = screen.getvalue()
    assert "study" in shown
    assert "20 of 50 runs, 5 s left, 20 failed" in shown
    assert "alpha" in shown
    assert "q in maze" in shown


def test_lines_come_also_while_nothing_is_finished(capsys, monkeypatch):
    monkeypatch.setattr(display, "EVERY", 0.05)
    with display.watching("study", False, False) as watch:
        watch(halfway())
        lines = []

        def three_of_them():
            lines.extend(capsys.readouterr().err.splitlines())
            return sum(line.startswith("study: 20 of 50 runs") for line in lines) >= 3

        until(three_of_them)
    assert "    beta                             0 runs  q in maze" in lines


@pytest.fixture
def sweep(tmp_path, monkeypatch, cli):
    """A study of 30 seeds, run with some options in a directory of its own; what the command tells."""
    text = 'episodes = 2\nseeds = 30\n[[worlds]]\nkind = "maze"\n[[agents]]\nkind = "q"\n'
    (tmp_path / "s.toml").write_text(text)
    monkeypatch.chdir(tmp_path)

    def run(*options):
        code, told, complaint = cli("sweep", "s.toml", "--out", "out", *options)
        assert (code, complaint) == (0, "")
        return told

    return run


def test_machines_read_json(sweep):
    first, last, claims, report = map(json.loads, sweep("--seeds", 3, "--json").splitlines())
    assert (first["done"], first["seconds_left"]) == (0, None)
    assert (last["done"], last["failed"], last["total"], last["workers"]) == (3, 0, 3, {"this process": 3})
    assert claims == []
    assert report == {"report": "out/report.html"}


def test_a_dry_run_says_what_there_is_to_do_and_does_nothing(tmp_path, sweep):
    expected = "s: 1 combination of world, agent and settings, 30 seeds: 30 runs, of which 30 are to be made\n"
    assert sweep("--dry-run") == expected
    assert not (tmp_path / "out").exists()
    sweep("--seeds", 20, "--quiet")
    assert "30 runs, of which 10 are to be made" in sweep("--dry-run")
    assert "30 runs, of which 0 in shard 1/2 are to be made" in sweep("--dry-run", "--shard", "1/2")
    assert json.loads(sweep("--dry-run", "--json"))["missing"] == 10
