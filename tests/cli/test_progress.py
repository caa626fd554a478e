"""What one sees while a study runs."""

import io
import json
import subprocess
import sys
import time
from collections import Counter

from rich.console import Console

from backcast.cli import progress as display
from backcast.studies import check_study
from backcast.studies.batches import Performed
from backcast.studies.runner import Progress
from backcast.studies.units import Failed, Finished, all_units
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


def test_machines_read_json(tmp_path):
    (tmp_path / "s.toml").write_text('episodes = 2\nseeds = 3\n[[worlds]]\nkind = "maze"\n[[agents]]\nkind = "q"\n')
    command = [sys.executable, "-m", "backcast", "sweep", "s.toml", "--out", "out", "--json"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.splitlines()
    first, last, claims, report = map(json.loads, lines)
    assert (first["done"], first["seconds_left"]) == (0, None)
    assert (last["done"], last["failed"], last["total"], last["workers"]) == (3, 0, 3, {"this process": 3})
    assert claims == []
    assert report == {"report": "out/report.html"}


def test_a_dry_run_says_what_there_is_to_do_and_does_nothing(tmp_path):
    (tmp_path / "s.toml").write_text('episodes = 2\nseeds = 30\n[[worlds]]\nkind = "maze"\n[[agents]]\nkind = "q"\n')
    command = [sys.executable, "-m", "backcast", "sweep", "s.toml", "--out", "out"]

    def told(*more):
        given = [*command, "--dry-run", *more]
        return subprocess.run(given, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert told() == "s: 1 combination of world, agent and settings, 30 seeds: 30 runs, of which 30 are to be made\n"
    assert not (tmp_path / "out").exists()
    subprocess.run([*command, "--seeds", "20", "--quiet"], check=True, cwd=tmp_path)
    assert "30 runs, of which 10 are to be made" in told()
    assert "30 runs, of which 0 in shard 1/2 are to be made" in told("--shard", "1/2")
    assert json.loads(told("--json"))["missing"] == 10
