"""Jobs of submitit as real processes, which are killed, run out of time, hang and fail."""

import contextlib
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from textwrap import dedent

import psutil
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.studies.batches import Batches
from backcast.studies.engines import on_slurm, queues
from backcast.studies.engines.local import LocalEngine
from backcast.studies.engines.on_slurm import Missing, SlurmEngine, SlurmJob
from backcast.studies.engines.queues import jobs_at_work, refuse_jobs_at_work
from backcast.studies.engines.versions import versions
from backcast.studies.runner import missing_units, run_study
from backcast.studies.store import Store
from backcast.studies.units import Failed, Unit, all_units
from cluster import corridor, outcome
from patience import until

pytest.importorskip("submitit")

TWO = [{"kind": "q", "epsilon": 1.0}, {"kind": "q", "epsilon": 1.0, "label": "slow", "alpha": 0.5}]
RAISES = {"kind": "q", "label": "raises", "alpha": [0.1, 0.2, 0.3]}  # but there are two episodes
HANGS = {"kind": "maze", "text": f"S{'.' * 50_000}G", "max_steps": 10**15}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store, which is looked at often; what jobs are still at work for it at the end is killed."""
    monkeypatch.setattr(on_slurm, "POLL", 0.05)
    directory = tmp_path / "store"
    yield Store(directory, create=True)
    for process in at_work(directory):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def at_work(directory):
    """Processes that submitit started for a store: those that perform jobs, and those that watch their time."""
    folder = str(directory / "jobs")
    return [each for each in psutil.process_iter(["cmdline"]) if folder in " ".join(each.info["cmdline"] or ())]


def performing(now):
    """Processes that perform units for local jobs."""
    below = [psutil.Process(int(job.removeprefix("job "))).children(recursive=True) for job in now.running()]
    return [process for each in below for process in each if "backcast.studies.engines.child" in process.cmdline()]


def undisturbed(study, tmp_path):
    calm = Store(tmp_path / "calm", create=True)
    run_study(calm, study, engine=LocalEngine(1))
    return outcome(calm, study, tmp_path)


def files_of_jobs(store):
    return sorted(path.name for path in (store.directory / "jobs").rglob("*") if path.is_file())


# without SLURM


def test_it_is_refused_without_slurm_and_without_submitit(store, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(bc.InputError, match=r"no SLURM here \(sbatch not found\); add --slurm-local"):
        SlurmEngine(store)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(bc.InputError, match=r"submitit is not installed; pip install 'backcast\[cluster\]'"):
        SlurmEngine(store, local=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": {"acount": "x"}}, r"--slurm-option: 'acount' given, expected one of account,.*'account'\?"),
        ({"options": {"time": "3"}}, r"--slurm-option: 'time' given, expected one of"),
        ({"jobs": 0}, "--slurm-jobs: 0 given, expected a whole number, 1 or more"),
        ({"wall_time": 0}, "--slurm-time: 0 given, expected minutes, more than 0"),
    ],
)
def test_settings_are_refused_with_what_is_allowed(store, given, message):
    with pytest.raises(bc.InputError, match=message):
        SlurmEngine(store, local=True, **given)


def test_what_is_missing_is_crossed_off_once():
    units = list(all_units(corridor(3, seeds=25), 25))
    missing = Missing(units)
    (group,) = missing.groups
    assert (missing.runs, missing.units()) == (25, units)
    assert missing.cross_off(group, [3, 24, 99]).seeds == (3, 24)
    assert missing.cross_off(group, [24]) is None
    assert missing.cross_off("another", [1]) is None
    (failed,) = missing.cross_off_failed([Failed(Unit(units[0].cell, (2, 3, 4)), "why")])
    assert (failed.unit.seeds, failed.error) == ((2, 4), "why")
    (finished,) = missing.cross_off_finished([{"group": group, "seeds": [0, 1, 2], "steps": 7}])
    assert (finished.unit.seeds, finished.record["steps"]) == ((0, 1), 7)
    assert [unit.seeds for unit in missing.units()] == [tuple(range(5, 20)), (20, 21, 22, 23)]
    assert missing.runs == 19


def test_agents_of_this_process_alone_are_refused(store, monkeypatch):
    own = replace(KINDS["q"], build=lambda *given: None)
    study = corridor(3)
    monkeypatch.setitem(KINDS, "q", own)
    with pytest.raises(bc.InputError, match="only this process knows the agent 'q'"):
        run_study(store, study, engine=SlurmEngine(store, local=True))


@pytest.mark.slow
def test_two_jobs_give_the_table_of_an_undisturbed_run(store, tmp_path):
    study = corridor(100, seeds=50, agents=TWO)
    workers = set()
    engine = SlurmEngine(store, jobs=2, local=True)
    summary = run_study(store, study, engine=engine, watch=lambda now: workers.update(now.by))
    assert (summary.runs, summary.failures) == (100, [])
    assert len(workers) == 2
    assert outcome(store, study, tmp_path) == undisturbed(study, tmp_path)
    assert files_of_jobs(store) == []
    assert at_work(store.directory) == []
    assert engine.running() == {}


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands by the names of SLURM's that do what is asked of them here, with processes; what they were given."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, text in SLURM.items():
        (folder / name).write_text("#!/bin/bash\n" + dedent(text))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FOLDER", str(folder))
    monkeypatch.setattr(queues, "LOOK", 0.5)
    monkeypatch.setattr(queues, "GRACE", 2.0)
    return folder


SLURM = {
    "sbatch": """
        cp $1 $FOLDER/script
        touch $FOLDER/queue
        id=$(( $(wc -l < $FOLDER/queue) + 100 ))
        export SLURM_JOB_ID=$id
        if grep -q -e --array $1; then export SLURM_ARRAY_JOB_ID=$id; fi
        last=$(sed -n "s/^#SBATCH --array=0-\\([0-9]*\\).*/\\1/p" $1)
        for task in $(seq 0 ${last:-0}); do
            if [ $last ]; then export SLURM_ARRAY_TASK_ID=$task; fi
            setsid bash $FOLDER/script > /dev/null 2>&1 &
            echo "$id${last:+_$task} $!" >> $FOLDER/queue
        done
        echo "Submitted batch job $id"
    """,
    "srun": """
        while [[ $1 == --* ]]; do
            case $1 in --output|--error) shift 2 ;; *) shift ;; esac
        done
        exec "$@"
    """,
    "squeue": """
        if [ -e $FOLDER/silent ]; then rm $FOLDER/silent; exit 1; fi
        while read job process; do
            if kill -0 $process 2> /dev/null; then echo "$job|RUNNING"; fi
        done < $FOLDER/queue
    """,
}


@pytest.mark.slow
def test_an_array_of_slurm_jobs_one_of_which_is_killed(store, tmp_path, slurm):
    study, killed = corridor(700, seeds=20, agents=TWO), []

    def watch(now):
        if len(now.by) == 2 and not killed:
            (slurm / "silent").touch()
            job, process = (slurm / "queue").read_text().split()[:2]
            os.killpg(int(process), signal.SIGKILL)
            killed.append(job)

    engine = SlurmEngine(store, 2, partition="fast", options={"account": "me", "exclusive": ""}, wall_time=59.5)
    assert run_study(store, study, engine=engine, watch=watch).failures == []
    assert killed == ["100_0"]
    assert len((slurm / "queue").read_text().splitlines()) > 2
    assert outcome(store, study, tmp_path) == undisturbed(study, tmp_path)
    assert files_of_jobs(store) == []
    given = set((slurm / "script").read_text().splitlines())
    assert given >= {
        "#SBATCH --account=me", "#SBATCH --exclusive", "#SBATCH --partition=fast", "#SBATCH --time=60",
        "#SBATCH --requeue", "#SBATCH --cpus-per-task=1", "#SBATCH --signal=USR2@90",
    }  # fmt: skip


class Clock:
    """A clock that only a test moves, but for a tick whenever it is looked at."""

    now = 0.0

    def monotonic(self):
        self.now += 1e-3
        return self.now


def test_jobs_that_slurm_does_not_know_are_over_after_a_while(tmp_path, slurm, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(queues, "time", clock)
    monkeypatch.setattr(queues, "LOOK", 0.0)
    queue, jobs = queues.SlurmQueue(tmp_path, 60, 1, 1, None, {}), {"5_0", "5_1"}
    (slurm / "queue").write_text(f"5_0 {os.getpid()}\n")
    assert queue.states(jobs) == {"5_0": "RUNNING"}  # it has never heard of the other
    clock.now += queues.GRACE
    (slurm / "silent").touch()
    assert queue.states(jobs) == {"5_0": "UNKNOWN", "5_1": "UNKNOWN"}
    assert queue.states(jobs) == {"5_0": "RUNNING", "5_1": "UNKNOWN"}
    (slurm / "queue").write_text("")
    assert "5_0" in queue.states(jobs)
    clock.now += queues.GRACE
    assert queue.states(jobs) == {}
    (slurm / "queue").write_text(f"5_0 {os.getpid()}\n")
    (tmp_path / "5_0_0_result.pkl").touch()
    assert queue.states(jobs) == {}


def test_jobs_of_earlier_commands_that_are_at_work(tmp_path, slurm, monkeypatch):
    assert jobs_at_work(tmp_path) == []
    folder = tmp_path / "jobs" / "slurm"
    folder.mkdir(parents=True)
    for job in ("7_0", "7_1", "7_2"):
        (folder / f"{job}_submitted.pkl").touch()
    (folder / "7_2_0_result.pkl").touch()
    (slurm / "queue").write_text(f"7_0 {os.getpid()}\n7_2 {os.getpid()}\n9_0 {os.getpid()}\n")
    assert jobs_at_work(tmp_path) == ["7_0"]
    (slurm / "silent").touch()
    assert jobs_at_work(tmp_path) == ["7_0", "7_1"]  # nobody knows better
    monkeypatch.setenv("PATH", "")
    assert jobs_at_work(tmp_path) == []  # there is no SLURM where they could be


def test_nothing_half_written_is_left_of_a_job_that_died(tmp_path):
    names = ("7_submitted.pkl", "7_0_result.pkl.save_tmp", "7_0_log.err", "7_0_log.out", "8_0_result.pkl.save_tmp")
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(queues.JobDied):
        queues.ProcessQueue(tmp_path, 1).result("7")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[2:])


def test_processes_of_earlier_commands_that_are_at_work(tmp_path):
    folder = tmp_path / "jobs" / "local"
    folder.mkdir(parents=True)
    with subprocess.Popen(["tail", "-f", "/dev/null", folder], stderr=subprocess.DEVNULL) as process:
        for job in (process.pid, os.getpid()):
            (folder / f"{job}_submitted.pkl").touch()
        until(lambda: jobs_at_work(tmp_path) == [str(process.pid)])
        process.kill()
    assert jobs_at_work(tmp_path) == []


def test_another_engine_is_refused_while_jobs_are_at_work(store, slurm):
    refuse_jobs_at_work(store.directory)
    folder = store.directory / "jobs" / "slurm"
    folder.mkdir(parents=True)
    for task in range(5):
        (folder / f"7_{task}_submitted.pkl").touch()
    (slurm / "queue").write_text("".join(f"7_{task} {os.getpid()}\n" for task in range(5)))
    sentence = r"--engine slurm still work there \(7_0, 7_1, 7_2 and 2 more\); wait for them, or end them with scancel"
    with pytest.raises(bc.InputError, match=sentence):
        refuse_jobs_at_work(store.directory)
    with pytest.raises(bc.InputError, match=sentence):
        run_study(store, corridor(3), engine=SlurmEngine(store, local=True))


def test_to_look_for_jobs_needs_no_submitit(tmp_path):
    script = (
        "import pathlib, sys; from backcast.studies.engines.queues import jobs_at_work; jobs_at_work(pathlib.Path())"
    )
    subprocess.run([sys.executable, "-c", f"{script}; sys.exit('submitit' in sys.modules)"], check=True, cwd=tmp_path)


def test_what_sbatch_refuses(store, slurm):
    (slurm / "sbatch").write_text("#!/bin/bash\necho 'sbatch: error: invalid partition specified: slow' >&2; exit 1\n")
    with pytest.raises(bc.InputError, match=r"could not be submitted \(sbatch: error: invalid partition"):
        run_study(store, corridor(3), engine=SlurmEngine(store, partition="slow"))


# faults


@pytest.mark.slow
def test_what_a_killed_job_leaves_behind_is_done_by_others(store, tmp_path):
    study, killed = corridor(700, seeds=20, agents=TWO), []

    def watch(now):
        if now.done and now.running() and not killed:
            job = next(iter(now.running())).removeprefix("job ")
            killed.append(job)
            psutil.Process(int(job)).children()[0].kill()

    summary = run_study(store, study, engine=SlurmEngine(store, jobs=2, local=True), watch=watch)
    assert (summary.runs, summary.failures) == (40, [])
    assert killed
    assert outcome(store, study, tmp_path) == undisturbed(study, tmp_path)
    assert files_of_jobs(store) == [f"{killed[0]}_0_log.err", f"{killed[0]}_0_log.out"]


@pytest.mark.slow
def test_a_job_whose_time_is_up_goes_on_where_it_was(store, tmp_path):
    """Twice it is told so in the midst of a unit, which is frozen; what failed meanwhile is not lost.

    Of a job of less than ten minutes, submitit takes the signal for the end of its time whenever it comes.
    """
    study, frozen, requeued = corridor(1000, seeds=8, agents=[RAISES, *TWO]), set(), []

    def watch(now):
        requeued.append(sum(path.read_text().count("Requeued") for path in store.directory.rglob("*_log.out")))
        for process in performing(now) if requeued[-1] < 2 and requeued[-1] not in frozen else ():
            process.suspend()
            frozen.add(requeued[-1])
            job = next(iter(now.running())).removeprefix("job ")
            psutil.Process(int(job)).children()[0].send_signal(signal.SIGUSR2)

    summary = run_study(store, study, engine=SlurmEngine(store, jobs=1, wall_time=9, local=True), watch=watch)
    assert summary.runs == 16
    assert sum(len(failure.unit.seeds) for failure in summary.failures) == 8
    assert frozen == {0, 1}
    assert max(requeued) >= 2
    study = study.model_copy(update={"agents": study.agents[1:]})
    assert outcome(store, study, tmp_path) == undisturbed(study, tmp_path)


def test_a_job_that_is_queued_again_leaves_alone_what_is_done_and_what_failed(store, monkeypatch):
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    monkeypatch.setenv("SUBMITIT_LOCAL_JOB_ID", "7")
    study = corridor(3, seeds=4)
    run_study(store, study, seeds=1)
    units = list(all_units(study, 4))
    failed = [Failed(Unit(units[0].cell, (1, 3)), "why")]
    job = SlurmJob(store.directory, units, 1, 60.0, versions(), failed)
    job = pickle.loads(pickle.dumps(job.checkpoint().function))
    assert job() == failed
    records = [record for _, record in store.batches() if record["machine"].get("job") == "7"]
    assert [unit["seeds"] for record in records for unit in record["units"]] == [[2]]


@pytest.mark.slow
def test_a_client_that_was_killed_finds_its_jobs_at_work(store, tmp_path):
    study, notes = corridor(700, seeds=20, agents=TWO), set()
    (tmp_path / "study.json").write_text(study.model_dump_json(exclude_defaults=True))
    client = subprocess.Popen([sys.executable, "-c", CLIENT, store.directory, tmp_path / "study.json"])
    until(lambda: list((store.directory / "units").glob("*.json")))
    client.kill()
    client.wait()
    before = {f"job {process.pid}" for process in at_work(store.directory)}
    assert len(before) == 4  # two jobs, and what watches their time
    engine = SlurmEngine(store, jobs=3, local=True)
    summary = run_study(store, study, engine=engine, watch=lambda now: notes.update(now.running().items()))
    assert 0 < summary.runs <= 40
    assert {job for job, _ in notes} <= before
    assert {state for _, state in notes} == {"RUNNING, started by an earlier command"}
    assert outcome(store, study, tmp_path) == undisturbed(study, tmp_path)
    assert files_of_jobs(store) == []


CLIENT = """
import json, sys
from backcast.studies import Store, check_study
from backcast.studies.engines.on_slurm import SlurmEngine
from backcast.studies.runner import run_study
store = Store(sys.argv[1])
with open(sys.argv[2]) as file:
    try:
        run_study(store, check_study(json.load(file), "test"), engine=SlurmEngine(store, jobs=2, local=True))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.slow
def test_units_that_raise_or_hang_are_reported_and_the_others_finish(store, tmp_path):
    study = corridor(1, seeds=2, worlds=[{"kind": "maze"}, HANGS], agents=[TWO[0], RAISES])
    summary = run_study(store, study, seeds=1, engine=SlurmEngine(store, jobs=1, time_limit=8, local=True))
    assert summary.runs == 1
    assert sorted(failure.error for failure in summary.failures) == [
        "InputError: alpha: a list of 3 given for 2 episodes; expected one per episode",
        "InputError: alpha: a list of 3 given for 2 episodes; expected one per episode",
        "TimeLimit: not finished after 8 s, the time limit of a unit",
    ]
    assert len(list((store.directory / "failures").glob("*.json"))) == 3
    study = corridor(1, seeds=2, worlds=[{"kind": "maze"}], agents=TWO[:1])
    assert run_study(store, study).runs == 1
    assert outcome(store, study, tmp_path) == undisturbed(study, tmp_path)


@pytest.mark.slow
def test_jobs_that_always_die_are_given_up(store):
    """A job that has one second is killed before it has begun."""
    engine = SlurmEngine(store, jobs=2, wall_time=1 / 60, local=True)
    summary = run_study(store, corridor(3, seeds=40), engine=engine)
    assert summary.runs == 0
    assert [len(failure.unit.seeds) for failure in summary.failures] == [20, 20]
    assert {failure.error for failure in summary.failures} == {
        "Died: the job that was to perform it ended without a result, 3 times"
    }
    assert len(files_of_jobs(store)) == 3 * 2 * 2  # their logs
    assert len(list((store.directory / "failures").glob("*.json"))) == 2


@pytest.mark.slow
def test_processes_end_with_who_started_them(store):
    """As after Ctrl-C; jobs of SLURM would go on."""
    units = missing_units(store, corridor(700, seeds=40), 40)
    performing = SlurmEngine(store, jobs=2, local=True).perform(Batches(units))
    next(performing)
    assert len(at_work(store.directory)) == 4
    performing.close()
    assert at_work(store.directory) == []
    assert files_of_jobs(store) == []
    assert len(store.index().seed) < 40


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 4], ids=["the first is started", "and what they look after"])
def test_ctrl_c_ends_processes_and_nothing_is_said(store, tmp_path, processes):
    (tmp_path / "study.json").write_text(corridor(700, seeds=40).model_dump_json(exclude_defaults=True))
    command = [sys.executable, "-c", CLIENT, store.directory, tmp_path / "study.json"]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True) as client:
        until(lambda: client.poll() is not None or len(at_work(store.directory)) >= processes)
        os.killpg(client.pid, signal.SIGINT)
        said = client.stderr.read()
    assert (client.returncode, said) == (130, "")
    assert at_work(store.directory) == []
    assert files_of_jobs(store) == []


@pytest.mark.slow
def test_other_versions_are_refused_with_both_named(store, monkeypatch):
    monkeypatch.setattr(on_slurm, "versions", lambda: {"backcast": "0.0.1", "numba": "0.0.2", "numpy": "0.0.3"})
    engine = SlurmEngine(store, jobs=1, local=True)
    with pytest.raises(bc.InputError, match=r"a job has other versions, .*numpy': '\d.*, than .*numpy': '0\.0\.3'"):
        run_study(store, corridor(3), engine=engine)
