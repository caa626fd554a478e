"""The local engine, the processes it starts, and what may happen to them."""

import json
import os
import signal
import subprocess
import textwrap
import threading
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from types import SimpleNamespace

import pytest

import backcast as bc
from backcast.studies import check_study
from backcast.studies.engines import supervised
from backcast.studies.engines.interrupts import call_undisturbed
from backcast.studies.engines.local import LocalEngine
from backcast.studies.engines.supervised import Child
from backcast.studies.runner import run_study
from backcast.studies.store import Store
from backcast.studies.units import Failed, Finished, all_units
from cluster import corridor, outcome
from commands import a_command_line, started  # noqa: F401  a fixture
from patience import PATIENCE, until

STUDY = corridor(500, seeds=24)
ENDLESS = corridor(3000, episodes=1_000_000)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    store = Store(folder / "out", create=True)
    run_study(store, STUDY, engine=LocalEngine(1))
    return outcome(store, STUDY, folder)


def children_of(process_id):
    """Processes of the engine; a process may have others, such as Python's resource tracker."""
    command = ["pgrep", "-P", str(process_id), "-f", "backcast.studies.engines.child"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


def is_alive(process_id):
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def worked(process_id):
    """The processor time that a process has taken, in seconds."""
    numbers = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    "engine",
    [LocalEngine(), LocalEngine(2, patience=0), pytest.param(LocalEngine(3, time_limit=60), marks=pytest.mark.slow)],
)
def test_threads_and_processes_give_the_same_bytes(engine, tmp_path, undisturbed):
    store = Store(tmp_path / "out", create=True)
    summary = run_study(store, STUDY, engine=engine)
    assert (summary.runs, summary.failures) == (24, [])
    assert outcome(store, STUDY, tmp_path) == undisturbed


def test_small_work_starts_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(supervised, "_start", lambda: pytest.fail("a process was started"))
    run_study(Store(tmp_path, create=True), corridor(3, seeds=40))


def test_a_process_that_is_killed_in_the_midst_of_a_unit(tmp_path, undisturbed):
    killed = []

    def kill_both(progress):
        if progress.done and not killed:  # one has just finished a unit, the other is in the midst of one
            killed.extend(children_of(os.getpid()))
            for child in killed:
                os.kill(child, signal.SIGKILL)

    store = Store(tmp_path / "out", create=True)
    summary = run_study(store, STUDY, engine=LocalEngine(2, patience=0), watch=kill_both)
    assert len(killed) == 2
    assert (summary.runs, summary.failures) == (24, [])
    assert outcome(store, STUDY, tmp_path) == undisturbed


def faulty_worlds(folder, body):
    """A module with a world that does something in processes of the engine, but not where it is only looked at."""
    (folder / "faulty.py").write_text(
        textwrap.dedent(f"""
        import os, signal, sys, time
        import gymnasium
        from gymnasium.envs.toy_text import FrozenLakeEnv

        class Faulty(FrozenLakeEnv):
            def __init__(self, **given):
                super().__init__(**given)
                if "backcast.studies.engines.child" in str(sys.modules["__main__"].__spec__):
                    {body}

        gymnasium.register("Faulty-v0", entry_point=Faulty, max_episode_steps=20)
        """)
    )


def study_with(bad_world):
    given = {"name": "faults", "episodes": 3, "seeds": 2, "agents": [{"kind": "q"}]}
    return check_study({**given, "worlds": [bad_world, {"kind": "maze", "text": "S.G"}]}, "test")


HANGS = "open(f'hangs-{os.getpid()}', 'w').close(); time.sleep(10_000)"


class TimerOfWhatHangs(threading.Timer):
    """The time of a process is over as soon as it hangs; who works has all the time that it needs."""

    def run(self):
        process = self.function.__self__._process
        until(lambda: self.finished.is_set() or Path(f"hangs-{process.pid}").exists())
        self.interval = 0.0
        super().run()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "Died: the process that performed it ended with signal 11, 2 times"),
        pytest.param(
            "os._exit(7)",
            "Died: the process that performed it ended with exit code 7, 2 times",
            marks=pytest.mark.slow,
        ),
        pytest.param(HANGS, "TimeLimit: not finished after 1200 s, the time limit of a unit", marks=pytest.mark.slow),
        (
            "print('what a unit prints is no outcome'); raise ValueError('no')",
            "InputError: env: 'faulty:Faulty-v0' cannot be made (ValueError: no)",
        ),
    ],
    ids=["is killed", "ends", "hangs", "raises"],
)
def test_whatever_a_unit_does_the_others_finish(body, error, tmp_path, monkeypatch):
    faulty_worlds(tmp_path, body)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(supervised, "threading", SimpleNamespace(Lock=threading.Lock, Timer=TimerOfWhatHangs))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    study = study_with({"kind": "gymnasium", "id": "faulty:Faulty-v0"})
    store = Store(tmp_path / "out", create=True)
    summary = run_study(store, study, engine=LocalEngine(2, time_limit=10 * PATIENCE))
    assert summary.runs == 2
    assert {failed.error for failed in summary.failures} == {error}
    assert sum(len(failed.unit.seeds) for failed in summary.failures) == 2
    found = [json.loads(path.read_text()) for path in (tmp_path / "out" / "failures").iterdir()]
    assert {each["error"] for each in found} == {error}


@pytest.mark.slow
def test_a_run_that_never_ends_is_ended_by_the_time_limit():
    (unit,) = all_units(ENDLESS, 1)
    child = Child()
    try:
        failed = child.perform(unit, 0.5)
        assert isinstance(failed, Failed)
        assert "TimeLimit" in failed.error
        good = next(iter(all_units(corridor(3), 1)))
        assert isinstance(child.perform(good, PATIENCE), Finished)
    finally:
        child.end()
    assert "Stopped" in child.perform(good).error


@pytest.mark.slow
def test_compiling_does_not_count(tmp_path, monkeypatch):
    """What is compiled in an empty cache takes many seconds; the time limit is for what is then run."""
    monkeypatch.setenv("BACKCAST_CACHE_DIR", str(tmp_path))
    allowed = []

    class Timer(threading.Timer):
        def start(self):
            allowed.append((self.interval, kernels()))
            super().start()

    def kernels():
        return len(list(tmp_path.rglob("*.nbc")))

    monkeypatch.setattr(supervised, "threading", SimpleNamespace(Lock=threading.Lock, Timer=Timer))
    child = Child()
    try:
        (unit,) = all_units(corridor(3, seeds=1), 1)
        assert isinstance(child.perform(unit, PATIENCE), Finished)
    finally:
        child.end()
    assert kernels() > 0
    assert allowed == [(PATIENCE + supervised.COMPILING, 0), (PATIENCE, kernels())]


def test_an_agent_of_ones_own_is_run_where_it_is_known(tmp_path, monkeypatch):
    from backcast.agents.kinds import KINDS

    def build(setup, agent):
        return KINDS["q"].build(setup, agent)

    monkeypatch.setitem(KINDS, "mine", replace(KINDS["q"], build=build))
    study = corridor(3, agents=[{"kind": "mine"}])
    assert run_study(Store(tmp_path, create=True), study, engine=LocalEngine(2, patience=0)).failures == []


# the command


RAISES = """
    episodes = 6
    seeds = 3
    plots = ["steps-per-episode"]
    [[worlds]]
    kind = "maze"
    text = "S.G"
    [[agents]]
    kind = "q"
    [[agents]]
    kind = "true-backward"
"""


def test_a_unit_that_raises_is_reported_and_the_others_finish(tmp_path, cli):
    (tmp_path / "raises.toml").write_text(textwrap.dedent(RAISES))
    code, output, errors = cli("sweep", tmp_path / "raises.toml", "--out", tmp_path / "out")
    assert code == 1
    assert "true-backward in custom-maze: InputError: agent: 'true-backward' works in prediction worlds" in errors
    assert "Traceback (most recent call last)" in errors
    assert '"kind": "true-backward"' in errors
    assert '"seeds": [0, 1, 2]' in errors
    assert "1 unit failed, " in errors
    assert "report: " in output
    assert "Missing: true-backward in custom-maze" in (tmp_path / "out" / "report.html").read_text()
    (failure,) = (tmp_path / "out" / "failures").iterdir()
    assert json.loads(failure.read_text())["details"][0].startswith("Traceback")
    with pytest.warns(UserWarning, match="raises: 3 of 6 runs are missing"):
        table = bc.load(tmp_path / "out")
    assert set(table["agent"].to_pylist()) == {"q"}
    assert len(table) == 3 * 6 * 2
    (tmp_path / "raises.toml").write_text(textwrap.dedent(RAISES).replace("true-backward", "backward"))
    assert cli("sweep", tmp_path / "raises.toml", "--out", tmp_path / "out", "--quiet") == (0, "", "")


def test_everything_fails(tmp_path, cli):
    text = textwrap.dedent(RAISES).replace('[[agents]]\nkind = "q"\n', "")
    (tmp_path / "raises.toml").write_text(text)
    code, output, errors = cli("sweep", tmp_path / "raises.toml", "--out", tmp_path / "out", "--json")
    assert code == 1
    failed = [json.loads(line) for line in output.splitlines() if "error" in line]
    assert failed[0]["seeds"] == [0, 1, 2]
    assert "report" not in output
    assert "1 unit failed" in errors


@pytest.fixture
def long_study(tmp_path):
    path = tmp_path / "long.toml"
    text = 'episodes = 4\nseeds = 60\n[[worlds]]\nkind = "maze"\nmax_steps = 1000000000\ntext = "S{}G"\n'
    path.write_text(text.format("." * 3000) + '[[agents]]\nkind = "q"\nepsilon = 1.0\n')
    return path


@pytest.mark.parametrize(
    ("how", "code", "midst"),  # processor seconds of its processes: at once, and in the midst of a unit
    [
        (signal.SIGINT, 130, 0.0),
        pytest.param(signal.SIGINT, 130, 1.2, marks=pytest.mark.slow),
        (signal.SIGTERM, 143, 1.2),
        pytest.param(signal.SIGKILL, -9, 1.2, marks=pytest.mark.slow),
    ],
)
def test_stopped_it_leaves_nothing_behind(how, code, midst, tmp_path, long_study):
    process = started(
        *("sweep", long_study, "--out", tmp_path / "out", "--time-limit", 600, "--workers", 2), start_new_session=True
    )
    children = until(lambda: len(found := children_of(process.pid)) == 2 and found)
    until(lambda: all(worked(child) >= midst for child in children))
    os.killpg(process.pid, how)  # as a terminal does it
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert how == signal.SIGKILL or "run the same command again to continue" in errors
    until(lambda: not any(map(is_alive, children)))


def test_processes_start_although_the_resource_tracker_was_killed():
    """Python warns when it starts the tracker again, and here warnings are errors."""
    resource_tracker.ensure_running()
    tracker = resource_tracker._resource_tracker._pid
    os.kill(tracker, signal.SIGKILL)
    os.waitid(os.P_PID, tracker, os.WEXITED | os.WNOWAIT)  # until it is dead
    started = []
    call_undisturbed(lambda: started.append(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    assert started == [{signal.SIGINT}]
    assert resource_tracker._resource_tracker._check_alive()
