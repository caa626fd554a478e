"""Jobs started by submitit: in SLURM's queue or, to try it without a cluster, as processes of this machine."""

import importlib.util
import math
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from backcast.core.errors import InputError, nearest
from backcast.studies.engines.interrupts import call_undisturbed

FOLDER, SLURM, PROCESSES = "jobs", "slurm", "local"  # subdirectory of a store, and within it of each kind of queue
OPTIONS = (
    "account", "comment", "constraint", "exclude", "exclusive", "gres", "licenses", "mail-type", "mail-user", "mem",
    "mem-per-cpu", "nice", "nodelist", "qos", "reservation", "tmp",
)  # fmt: skip
REQUEUES = 100  # most requeues of a job whose time is up
LOOK = 10.0  # seconds between polls of SLURM
GRACE = 20.0  # seconds until the result of a job is visible on another machine
ENDING = 10.0  # seconds that processes have to end
TAIL = 30  # lines of a log in error messages


class JobDied(RuntimeError):  # noqa: N818 — it tells what happened
    """A job that ended without a result; the end of its log."""


class JobQueue(ABC):
    """Jobs, by their ids.

    Args:
        folder: directory for the files of submitit; `<job>_submitted.pkl` is there until the result is read.
        minutes: time of each job; a little earlier it is told to checkpoint and requeue.
    """

    def __init__(self, folder: Path, minutes: float) -> None:
        if importlib.util.find_spec("submitit") is None:
            raise InputError("--engine slurm: submitit is not installed; pip install 'backcast[cluster]'")
        if not minutes > 0:
            raise InputError(f"--slurm-time: {minutes!r} given, expected minutes, more than 0")
        self.minutes = minutes
        self.notice = max(1, int(min(90, 6 * minutes)))  # in seconds; a tenth of a short time
        self._folder = folder

    def submit(self, tasks: Sequence[Callable[[], Any]]) -> set[str]:
        """Submit a job for each task, as one array; return their ids."""
        try:
            return self._submit(tasks)
        except (OSError, RuntimeError) as error:
            raise InputError(f"--engine slurm: the jobs could not be submitted ({error})") from error
        finally:
            for pattern in ("?" * 32 + ".pkl", "*submission*.sh"):  # not submitted; SLURM has its own copy
                for path in self._folder.glob(pattern):
                    path.unlink()

    def known(self) -> set[str]:
        """The jobs whose results have not been read yet."""
        return _known(self._folder)

    def result(self, job: str) -> Any:
        """Return the result of a finished job, and remove its files, except the log if it died."""
        import submitit

        paths = self._paths(job)
        remove = [paths.submitted_pickle, paths.result_pickle]
        remove += [path.with_name(f"{path.name}.save_tmp") for path in remove]  # half written
        try:
            if not paths.result_pickle.exists():
                raise JobDied(_tail(paths.stderr))
            result = submitit.LocalJob[Any](self._folder, job).result()  # it only reads the file
            remove += [paths.stdout, paths.stderr]
            return result
        except submitit.core.utils.UncompletedJobError as error:
            raise JobDied(str(error)) from error
        finally:
            for path in remove:
                path.unlink(missing_ok=True)

    def forget(self, job: str) -> None:
        """Remove the files of a finished job, except the log if it died.

        They are not read, because they may come from an untrusted source.
        """
        paths = self._paths(job)
        logs = [paths.stdout, paths.stderr] if paths.result_pickle.exists() else []
        for path in (paths.submitted_pickle, paths.result_pickle, *logs):
            path.unlink(missing_ok=True)

    @abstractmethod
    def states(self, jobs: set[str]) -> dict[str, str]:
        """The states of the jobs that are not over."""

    @abstractmethod
    def leave(self) -> None:
        """Stop watching."""

    @abstractmethod
    def _submit(self, tasks: Sequence[Callable[[], Any]]) -> set[str]: ...

    def _paths(self, job: str) -> Any:
        from submitit.core.utils import JobPaths

        return JobPaths(self._folder, job)


class SlurmQueue(JobQueue):
    """Jobs of SLURM, which continue without a client; SLURM counts time in whole minutes."""

    def __init__(
        self, folder: Path, minutes: float, jobs: int, processors: int, partition: str | None, options: dict[str, str]
    ) -> None:
        super().__init__(folder, math.ceil(minutes))
        if shutil.which("sbatch") is None:
            raise InputError(
                "--engine slurm: there is no SLURM here (sbatch not found); "
                "add --slurm-local to try it with processes of this machine"
            )
        self._settings = {
            "job_name": "backcast",
            "time": self.minutes,
            "partition": partition,
            "cpus_per_task": processors,
            "srun_args": [f"--cpus-per-task={processors}"],  # since 22.05 srun does not take it from sbatch
            "array_parallelism": jobs,
            "signal_delay_s": self.notice,
            "additional_parameters": {"requeue": True, **checked_options(options)},
        }
        self._asked = -math.inf
        self._told: dict[str, tuple[str, float]] = {}  # the state of each job, and when SLURM last reported it

    def states(self, jobs: set[str]) -> dict[str, str]:
        """The states from SLURM; a job is over if there is a result, or if SLURM has not reported it for a while."""
        now = time.monotonic()
        if now - self._asked > LOOK:
            self._asked, answer = now, _squeue()
            for job in jobs if answer is None else jobs & answer.keys():
                self._told[job] = ("UNKNOWN" if answer is None else answer[job], now)
        told = ((job, *self._told.get(job, ("", -math.inf))) for job in jobs)
        known = {job: state for job, state, when in told if now - when < GRACE}
        return {job: state for job, state in known.items() if not self._paths(job).result_pickle.exists()}

    def leave(self) -> None:
        """Leave the jobs running."""

    def _submit(self, tasks: Sequence[Callable[[], Any]]) -> set[str]:
        import submitit

        executor = submitit.SlurmExecutor(self._folder, max_num_timeout=REQUEUES)
        executor.update_parameters(**self._settings)
        jobs = {job.job_id for job in executor.submit_array(tasks)}
        self._told.update(dict.fromkeys(jobs, ("PENDING", time.monotonic())))
        return jobs


class ProcessQueue(JobQueue):
    """Processes of this machine; the id of a job is the number of its process, which supervises another one.

    They never receive Ctrl-C; the client ends them when it is interrupted or terminated. If the client is killed they
    continue, and the next client finds them.
    """

    def __init__(self, folder: Path, minutes: float) -> None:
        super().__init__(folder, minutes)
        self._mine: dict[str, Any] = {}

    def states(self, jobs: set[str]) -> dict[str, str]:
        """The jobs whose processes exist."""
        return {job: "RUNNING" for job in jobs if self._works(job)}

    def leave(self) -> None:
        """End those that were started here, and remove their files."""
        ended = working = {name: job for name, job in self._mine.items() if not job.done()}
        deadline = time.monotonic() + ENDING
        while working and time.monotonic() < deadline:  # repeatedly, because a starting process may miss the signal
            for name in working:
                os.kill(int(name), signal.SIGTERM)
            time.sleep(0.05)
            working = {name: job for name, job in working.items() if not job.done()}
        for name in ended.keys() - working.keys():
            paths = self._paths(name)
            for path in (paths.submitted_pickle, paths.result_pickle, paths.stdout, paths.stderr):
                path.unlink(missing_ok=True)

    def _works(self, job: str) -> bool:
        if job in self._mine:
            return not self._mine[job].done()
        return _is_process(job, self._folder)

    def _submit(self, tasks: Sequence[Callable[[], Any]]) -> set[str]:
        import submitit

        executor = submitit.LocalExecutor(self._folder, max_num_timeout=REQUEUES)
        executor.update_parameters(timeout_min=self.minutes, signal_delay_s=self.notice)
        jobs: dict[str, Any] = {}
        try:
            call_undisturbed(lambda: jobs.update({job.job_id: job for job in executor.submit_array(tasks)}))
        finally:
            self._mine.update(jobs)
        return set(jobs)


def refuse_jobs_at_work(directory: Path, queues: Sequence[str] = (SLURM, PROCESSES)) -> None:
    """Raise InputError if jobs of these queues are at work, because another engine would repeat their runs."""
    for queue in queues:
        jobs = jobs_at_work(directory, [queue])
        if jobs:
            which = ", ".join(jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else "")
            option, end = ("", "scancel") if queue == SLURM else (" --slurm-local", "kill")
            raise InputError(
                f"{directory}: jobs of an earlier --engine slurm{option} still work there ({which}); "
                f"wait for them, or end them with {end}"
            )


def jobs_at_work(directory: Path, queues: Sequence[str] = (SLURM, PROCESSES)) -> list[str]:
    """The ids of jobs of earlier commands that are still running or queued in the directory of a store."""
    found: list[str] = []
    for queue in queues:
        folder = directory.absolute() / FOLDER / queue
        jobs = sorted(job for job in _known(folder) if not (folder / f"{job}_0_result.pkl").exists())
        if queue == PROCESSES:
            found += [job for job in jobs if _is_process(job, folder)]
        elif jobs and shutil.which("squeue") is not None:
            answer = _squeue()
            found += [job for job in jobs if answer is None or job in answer]
    return found


def checked_options(options: dict[str, str]) -> dict[str, str | bool]:
    """Validate options of sbatch by their long names; raise InputError on unknown ones and on those set otherwise."""
    found = {name.replace("_", "-"): value or True for name, value in options.items()}
    for name in found:
        if name not in OPTIONS:
            allowed = ", ".join(OPTIONS)
            raise InputError(f"--slurm-option: {name!r} given, expected one of {allowed}{nearest(name, OPTIONS)}")
    return found


def _squeue() -> dict[str, str] | None:
    """The states of this user's unfinished jobs; None if SLURM does not answer."""
    command = ["squeue", f"--user={os.getuid()}", "--noheader", "--array", "--format=%i|%T"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(line.strip().split("|", 1) for line in answer.splitlines())


def _known(folder: Path) -> set[str]:
    return {path.name.partition("_submitted")[0] for path in folder.glob("*_submitted.pkl*")}


def _is_process(job: str, folder: Path) -> bool:
    """Whether a local job is running: its process is alive, and its number was not reused."""
    try:
        return str(folder) in Path(f"/proc/{job}/cmdline").read_text()
    except OSError:
        return False


def _tail(log: Path) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-TAIL:])
    except OSError:
        return "it left no log"
