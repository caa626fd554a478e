"""The engine for SLURM: arrays of jobs, with a store on a file system that this machine and all nodes share.

Jobs write into the store themselves and need no client. A waiting client sees finished work by the records that appear
there, and asks SLURM only whether the jobs still exist (`squeue`: no accounting is needed).

submitit exchanges pickles with jobs in DIR/jobs; they are removed when a job is over, and no results are in them.
Only pickles of jobs submitted by this process are read: others may have come with the directory.
"""

import contextlib
import json
import math
import random
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from backcast.core.arrays import as_whole
from backcast.core.errors import InputError
from backcast.studies.batches import Batches, Performed
from backcast.studies.cells import Cell
from backcast.studies.engines.local import LocalEngine
from backcast.studies.engines.queues import (
    FOLDER,
    PROCESSES,
    SLURM,
    JobDied,
    JobQueue,
    ProcessQueue,
    SlurmQueue,
    checked_options,
    refuse_jobs_at_work,
)
from backcast.studies.engines.supervised import known_elsewhere
from backcast.studies.engines.versions import versions
from backcast.studies.store import Store
from backcast.studies.units import Failed, Finished, Unit

ATTEMPTS = 3  # most arrays in a row in which jobs die and nothing is finished
POLL = 1.0  # seconds between looks at the store


class SlurmEngine:
    """Performs units in the jobs of an array.

    A job whose time is up is requeued and continues where it was. Units left behind by dead jobs are resubmitted when
    the others are over, as long as this makes progress. Running jobs of an earlier command are waited for first.

    Args:
        store: the store of the results; jobs write into it.
        jobs: the most jobs.
        workers: number of processes of each job, and processors it requests; by default 1.
        time_limit: time limit of a unit in seconds, bounded by the time of a job.
        wall_time: minutes after which a job is requeued; whole minutes for SLURM.
        partition: the partition; by default SLURM decides.
        options: more options of sbatch (`queues.OPTIONS`); an empty value means a flag.
        local: use processes of this machine instead of SLURM, to try it; they end if this process is interrupted.
    """

    def __init__(
        self,
        store: Store,
        jobs: int = 8,
        workers: int | None = None,
        time_limit: float | None = None,
        wall_time: float = 60,
        partition: str | None = None,
        options: dict[str, str] | None = None,
        local: bool = False,
    ) -> None:
        self._jobs, self._workers = as_whole("--slurm-jobs", jobs, 1), as_whole("--workers", workers or 1, 1)
        self._directory = store.directory.absolute()
        folder, more = self._directory / FOLDER, options or {}
        checked_options(more)
        self._others = SLURM if local else PROCESSES
        self._queue: JobQueue = (
            ProcessQueue(folder / PROCESSES, wall_time)
            if local
            else SlurmQueue(folder / SLURM, wall_time, self._jobs, self._workers, partition, more)
        )
        self._time_limit = min(time_limit or math.inf, max(1, 60 * self._queue.minutes - 2 * self._queue.notice))
        self._states: dict[str, str] = {}
        self._seen: set[Path] = set()  # records that were read
        self._last_words = ""  # of the job that died last

    def running(self) -> dict[str, str]:
        """The state of each job."""
        return {f"job {job}": state for job, state in self._states.items()}

    def perform(self, batches: Batches) -> Generator[Performed, None, None]:
        """Submit all units, and resubmit those left behind by dead jobs."""
        units = [unit for batch in batches for unit in batch.units]
        for unit in units:
            if not known_elsewhere(unit):
                raise InputError(
                    f"--engine slurm: only this process knows the agent {unit.cell.label!r}, jobs do not; put it into a"
                    " module and name that in plugins"
                )
        refuse_jobs_at_work(self._directory, [self._others])
        missing = Missing(units)
        earlier = self._queue.known()
        self._seen = set() if earlier else set(self._records())
        try:
            yield from self._watch(earlier, missing, earlier=True)
            attempts = 0
            while missing.runs and attempts < ATTEMPTS:
                before = missing.runs
                yield from self._watch(self._submit(missing.units()), missing)
                attempts = 0 if missing.runs < before else attempts + 1
            if missing.runs:
                error = f"Died: the job that was to perform it ended without a result, {ATTEMPTS} times"
                yield Performed(tuple(Failed(unit, error, self._last_words) for unit in missing.units()), "jobs", {})
        finally:
            self._states = {}
            self._queue.leave()

    def _submit(self, units: Sequence[Unit]) -> set[str]:
        """Submit equal random shares, so that no job has all units of a slow agent; within each, the order is kept."""
        order, here = random.Random(0).sample(range(len(units)), len(units)), versions()
        shares = [sorted(order[job :: self._jobs]) for job in range(min(self._jobs, len(units)))]
        return self._queue.submit(
            [
                SlurmJob(self._directory, [units[place] for place in share], self._workers, self._time_limit, here)
                for share in shares
            ]
        )

    def _watch(self, jobs: set[str], missing: "Missing", earlier: bool = False) -> Iterator[Performed]:
        """Yield what appears in the store until all jobs are over, and the units that failed."""
        note = ", started by an earlier command" if earlier else ""
        while jobs:
            states = self._queue.states(jobs)
            self._states = {job: state + note for job, state in sorted(states.items())}
            yield from self._stored(missing)  # after polling jobs, so that all work of finished jobs is included
            for job in jobs - states.keys():
                if earlier:
                    self._queue.forget(job)  # its unfinished work is retried
                    continue
                failed = missing.cross_off_failed(self._result(job))
                if failed:
                    yield Performed(failed, f"job {job}", {})
            jobs = jobs & states.keys()
            time.sleep(POLL if jobs else 0)

    def _result(self, job: str) -> list[Failed]:
        """The units that a job submitted here reported as failed."""
        try:
            result: list[Failed] | InputError = self._queue.result(job)
        except JobDied as death:
            self._last_words = str(death)
            return []
        if isinstance(result, InputError):
            raise result
        return result

    def _records(self) -> list[Path]:
        return sorted((self._directory / "units").glob("*.json"))

    def _stored(self, missing: "Missing") -> Iterator[Performed]:
        """Yield what is new in the store, one file at a time."""
        for path in self._records():
            if path not in self._seen:
                self._seen.add(path)
                record = json.loads(path.read_text(encoding="utf-8"))
                finished = missing.cross_off_finished(record.get("units", []))
                if finished:
                    machine = record["machine"]
                    yield Performed(finished, f"job {machine.get('job')}", machine, stored=True)


@dataclass
class SlurmJob:
    """The work of a job. It is pickled to the job and back, also when its time is up and it is requeued."""

    directory: Path
    units: list[Unit]
    workers: int
    time_limit: float
    versions: dict[str, str]
    failed: list[Failed] = field(default_factory=list)

    def __call__(self) -> list[Failed] | InputError:
        """Perform what is not done, in processes that can be stopped at any time, and store the outcomes."""
        import submitit

        environment, here = submitit.JobEnvironment(), versions()
        if environment.cluster == "local":
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # `ProcessQueue` ends jobs so; SLURM jobs checkpoint first
        if here != self.versions:
            return InputError(f"--engine slurm: a job has other versions, {here}, than this command, {self.versions}")
        store, missing = Store(self.directory), Missing(self.units)
        index, job = store.index(), environment.job_id
        for group in missing.groups:
            missing.cross_off(group, index.seed[index.runs(group)].tolist())
        missing.cross_off_failed(self.failed)
        batches = Batches(missing.units())
        performing: Any = LocalEngine(self.workers, self.time_limit).perform(batches)
        with contextlib.closing(performing):  # ends its processes, also when this one is terminated
            for performed in performing:
                store.put(replace(performed, worker=f"job {job}", machine={**performed.machine, "job": job}))
                for outcome in performed.outcomes:
                    batches.learn(outcome)
                self.failed += [outcome for outcome in performed.outcomes if isinstance(outcome, Failed)]
        return self.failed

    def checkpoint(self) -> Any:
        """Requeue the same job when the time is up; finished work is skipped."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


class Missing:
    """The missing runs of some units; those that are found are crossed off."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = [(unit.cell.group, unit) for unit in units]
        self.groups: dict[str, Cell] = {group: unit.cell for group, unit in self._units}
        self._seeds: dict[str, set[int]] = {group: set() for group in self.groups}
        for group, unit in self._units:
            self._seeds[group].update(unit.seeds)

    @property
    def runs(self) -> int:
        """The number of missing runs."""
        return sum(map(len, self._seeds.values()))

    def units(self) -> list[Unit]:
        """The missing parts of the units, in their order."""
        left = ((unit, self._seeds[group].intersection(unit.seeds)) for group, unit in self._units)
        return [Unit(unit.cell, tuple(sorted(seeds))) for unit, seeds in left if seeds]

    def cross_off(self, group: str, seeds: Sequence[int]) -> Unit | None:
        """Cross off runs of a group; return those that were missing, if any."""
        found = self._seeds.get(group, set()).intersection(seeds)
        if not found:
            return None
        self._seeds[group] -= found
        return Unit(self.groups[group], tuple(sorted(found)))

    def cross_off_finished(self, records: Sequence[dict[str, Any]]) -> tuple[Finished, ...]:
        """Cross off stored units; return those that were missing. Their tables stay where they are."""
        found = ((self.cross_off(record["group"], record["seeds"]), record) for record in records)
        return tuple(Finished(unit, record, pa.table({})) for unit, record in found if unit is not None)

    def cross_off_failed(self, failed: Sequence[Failed]) -> tuple[Failed, ...]:
        """Cross off failed units; return those that were missing."""
        found = ((self.cross_off(each.unit.cell.group, each.unit.seeds), each) for each in failed)
        return tuple(replace(each, unit=unit) for unit, each in found if unit is not None)
