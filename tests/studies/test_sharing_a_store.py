"""Several commands on one directory, parts of a study, and a disk that fills up."""

import contextlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import backcast as bc
from backcast.cli.run_studies import read_shard
from backcast.core.files import locked
from backcast.report.page import write_report
from backcast.studies import export, results
from backcast.studies.engines.local import LocalEngine
from backcast.studies.results import Results
from backcast.studies.runner import missing_units, run_study
from backcast.studies.store import Store
from cluster import corridor, outcome
from commands import held_up, started
from patience import PATIENCE, until

SPECIFICATION = """
    name = "corridor"
    episodes = 2
    seeds = {seeds}
    [[worlds]]
    kind = "maze"
    max_steps = 1000000000000000
    text = "S{cells}G"
    [[agents]]
    kind = "q"
    epsilon = 1.0
    [[agents]]
    kind = "backward"
    epsilon = 1.0
"""
TWO = [{"kind": "q", "epsilon": 1.0}, {"kind": "backward", "epsilon": 1.0}]


def written(tmp_path, cells, seeds):
    """A study of random walks as a file, and as it is read."""
    path = tmp_path / "corridor.toml"
    path.write_text(textwrap.dedent(SPECIFICATION.format(cells="." * cells, seeds=seeds)))
    return path, corridor(cells, seeds=seeds, agents=TWO)


def calm(study, tmp_path):
    """The table of an undisturbed run."""
    store = Store(tmp_path / "calm", create=True)
    run_study(store, study, engine=LocalEngine(patience=1e9))
    return outcome(store, study, tmp_path)


def waiting(directory, path):
    """Another command on the same directory, which says that it waits."""
    until(lambda: list((directory / "units").glob("*.json")) if directory.exists() else None)
    second = started("sweep", path, "--out", directory)
    while "another backcast is adding results" not in second.stderr.readline():
        assert second.poll() is None
    return second


@pytest.mark.slow
def test_two_commands_on_one_directory(tmp_path):
    """One waits for the other and then finds everything done."""
    path, study = written(tmp_path, 30, 60)
    with held_up("sweep", path, "--out", tmp_path / "out") as (first, let_go):
        second = waiting(tmp_path / "out", path)
        assert 0 < len(Store(tmp_path / "out").index().seed) < 120
        let_go()
        assert "another backcast" not in first.communicate(timeout=PATIENCE)[1]
    second.communicate(timeout=PATIENCE)
    assert (first.returncode, second.returncode) == (0, 0)
    assert outcome(Store(tmp_path / "out"), study, tmp_path) == calm(study, tmp_path)


def test_who_waits_takes_over_from_one_that_is_killed(tmp_path):
    path, study = written(tmp_path, 30, 60)
    with held_up("sweep", path, "--out", tmp_path / "out") as (first, _):
        second = waiting(tmp_path / "out", path)
        assert 0 < len(Store(tmp_path / "out").index().seed) < 120
        first.kill()
        second.communicate(timeout=PATIENCE)
    assert second.returncode == 0
    assert outcome(Store(tmp_path / "out"), study, tmp_path) == calm(study, tmp_path)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_shards_are_the_whole(order, tmp_path):
    study = corridor(20, seeds=75, agents=TWO)
    store = Store(tmp_path / "out", create=True)
    for number in order:
        run_study(store, study, shard=(number, 3))
        assert run_study(store, study, shard=(number, 3)).runs == 0
    assert outcome(store, study, tmp_path) == calm(study, tmp_path)


def test_a_shard_does_not_depend_on_what_is_done(tmp_path):
    study = corridor(3, seeds=100, agents=TWO)
    store = Store(tmp_path, create=True)
    before = {unit.key for unit in missing_units(store, study, 100, (2, 4))}
    assert len(before) == 3  # of ten units the second, the sixth and the tenth
    run_study(store, study, shard=(1, 4))
    run_study(store, study, shard=(3, 4))
    assert {unit.key for unit in missing_units(store, study, 100, (2, 4))} == before
    assert {unit.key for unit in missing_units(None, study, 100, (2, 4))} == before


@pytest.mark.slow
def test_shards_at_the_same_time_from_the_command_line(tmp_path):
    """One is done while the other is held up."""
    path, study = written(tmp_path, 30, 80)
    one, two = ([*("sweep", path, "--out", tmp_path / "out"), "--shard", f"{i}/2"] for i in (1, 2))
    with held_up(*one) as (first, let_go):
        until(lambda: list((tmp_path / "out").glob("units/*.json")))
        second = started(*two)
        output, errors = second.communicate(timeout=PATIENCE)
        assert "another backcast" not in errors
        assert "report" not in output
        assert first.poll() is None
        told = let_go()
        assert "another backcast" not in first.communicate(timeout=PATIENCE)[1]
    assert (first.returncode, second.returncode) == (0, 0)
    assert b"report" not in told
    assert outcome(Store(tmp_path / "out"), study, tmp_path) == calm(study, tmp_path)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", ""])
def test_what_is_no_shard(text):
    with pytest.raises(bc.InputError, match=r"--shard: .* expected I/N"):
        read_shard(text)
    assert read_shard(" 2/3 ") == (2, 3)


def test_what_is_compared_are_seeds_that_all_agents_have(tmp_path):
    """Units finish in any order: an interrupted study may have other seeds of one agent than of another."""
    study = corridor(3, seeds=60, agents=TWO)
    store = Store(tmp_path, create=True)
    run_study(store, study, shard=(1, 4))  # the first and the fifth unit: seeds 0 … 19 and 40 … 59 of q
    run_study(store, study, shard=(2, 4))  # the second and the sixth: the same of backward
    run_study(store, study, shard=(4, 4))  # the fourth: seeds 20 … 39 of backward
    result = Results(store, study)
    assert (result.seeds, result.complete, result.missing) == (40, False, [])
    whole = bc.run(study.worlds[0].build(), study.runs()[1].agent, 2, 60)
    seen = result.curves("custom-maze", "backward", "steps")
    assert (seen == whole.steps[[*range(20), *range(40, 60)]]).all()
    assert (result.means("custom-maze", "backward", "steps") == seen.mean(axis=1)).all()
    assert [each.name for each in results(tmp_path)] == ["corridor"]


def test_runs_that_cannot_be_compared_are_there_all_the_same(tmp_path):
    """Of one agent the first half of the seeds is done, of the other the second."""
    study = corridor(3, seeds=40, agents=TWO)
    store = Store(tmp_path / "out", create=True)
    run_study(store, study, shard=(1, 4))
    run_study(store, study, shard=(4, 4))
    with pytest.warns(UserWarning, match="corridor: 40 of 80 runs are missing"):
        assert len(bc.load(tmp_path / "out")) == 2 * 20 * 2 * 2
    with pytest.raises(bc.InputError, match="runs are there, but no seed yet that all agents have"):
        results(tmp_path / "out")


def test_what_another_machine_half_wrote_is_removed_after_an_hour(tmp_path):
    """Its locks may be invisible here; names without a machine are of earlier versions, which did not lock."""
    store = Store(tmp_path, create=True)
    names = (".a.json.01234567.part", ".a.json.0123456789abcdef.part", ".kept.part")
    old, new = ([tmp_path / "units" / f"{age}{name}" for name in names] for age in (".old", ".new"))
    for path in (*old, *new):
        path.write_text("{")
    for path in old:
        os.utime(path, (0, 0))
    run_study(store, corridor(3, seeds=1))
    assert [path.exists() for path in old] == [False, False, True]  # the last is not of Backcast's making
    assert [path.exists() for path in new] == [True, True, True]


WRITING = """
import sys, time
from pathlib import Path
from backcast.core.files import atomic_path
with atomic_path(Path(sys.argv[1])) as part:
    part.write_text("half")
    print(part, flush=True)
    time.sleep(3600)
"""


@contextlib.contextmanager
def being_written(target):
    """A process that is writing a file, and the path of what it has written."""
    command = [sys.executable, "-c", WRITING, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().rstrip())
        process.kill()


def run_a_shard(directory):
    run_study(Store(directory), corridor(3, seeds=1), shard=(1, 2))


def run_all(directory):
    run_study(Store(directory), corridor(3, seeds=1))


def write_table(directory):
    export(directory, directory / "table.csv")


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("units/a.parquet", run_all),
        ("studies/a.json", run_a_shard),
        ("failures/a.json", run_all),
        ("figures/a.svg", run_all),
        ("report.html", run_a_shard),
        ("figures/b.svg", write_report),
        ("table.csv", write_table),
    ],
)
def test_the_next_command_removes_what_one_that_was_killed_half_wrote(target, command, tmp_path):
    run_study(Store(tmp_path, create=True), corridor(3, seeds=2, agents=TWO))
    (tmp_path / "figures").mkdir()
    with being_written(tmp_path / target) as (killed, its_part), being_written(tmp_path / target) as (_, part):
        killed.kill()
        killed.wait()
        assert its_part.read_text() == part.read_text() == "half"
        command(tmp_path)
        assert not its_part.exists()
        assert part.read_text() == "half"  # the other is still writing


def test_a_lock_is_held_alone_or_shared(tmp_path):
    waited = []
    with locked(tmp_path / "a", lambda: waited.append(1), shared=True), locked(tmp_path / "a", waited.clear, True):
        assert waited == []
    held = "import sys, time\nfrom pathlib import Path\nfrom backcast.core.files import locked\n"
    held += "with locked(Path(sys.argv[1]), lambda: None):\n    print('held', flush=True)\n    sys.stdin.read()"
    command, pipe = [sys.executable, "-c", held, str(tmp_path / "a")], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        other.stdout.readline()

        def let_go():
            waited.append(other.poll())
            other.stdin.close()

        with locked(tmp_path / "a", let_go):
            assert waited == [None]  # it was held when this one began to wait


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with very little room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", disk], check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip("mounting a file system is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_up(tmp_path, small_disk):
    """It ends with a sentence; when there is room again the same command goes on, and nothing is lost or twice."""
    path, study = written(tmp_path, 30, 1000)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(120_000))
    process = started("sweep", path, "--out", small_disk / "out", env=environment)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "No space left on device; finished runs are kept" in errors
    kept = len(Store(small_disk / "out").index().seed)
    assert kept < 2000
    assert not list((small_disk / "out" / "units").glob("*.part"))
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)
    process = started("sweep", path, "--out", small_disk / "out", "--quiet", env=environment)
    assert process.communicate(timeout=PATIENCE) == ("", "")
    assert process.returncode == 0
    assert outcome(Store(small_disk / "out"), study, tmp_path) == calm(study, tmp_path)


def test_parts_that_were_made_apart_are_copied_together(tmp_path):
    """As docs/scaling.md says."""
    study = corridor(20, seeds=75, agents=TWO)
    for number in (1, 2):
        run_study(Store(tmp_path / f"part-{number}", create=True), study, shard=(number, 2))
    script = "mkdir -p whole && cp -r part-1/units part-1/studies whole/ && cp -n part-2/units/* whole/units/"
    subprocess.run(script, shell=True, check=True, cwd=tmp_path)
    assert outcome(Store(tmp_path / "whole"), study, tmp_path) == calm(study, tmp_path)
