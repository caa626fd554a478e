"""The engine for dask: batches go to the workers of a scheduler, and outcomes come back to the client.

A batch is a task. About two tasks per thread of the workers are under way, so that no worker waits for the client.
Tasks are polled: no call blocks for ever, and Ctrl-C works at any time. Workers need no file system in common with the
client. A task compares versions first (`engines.dask_worker`), so that a worker with other versions is detected before
it does any harm, whenever it joined.

What may go wrong:

* A worker is killed: dask reassigns its tasks to another worker. If there is none, they wait until one joins.
* The connection is lost, perhaps because the scheduler was killed: the engine reconnects to whichever scheduler answers
  at the address, and resubmits what was under way. Outcomes count when they arrive here, and a batch has one task at a
  time, so that none is lost or counted twice.
* Workers die repeatedly: dask gives up all tasks that were on them, also those that are not to blame. Their units are
  retried at the end, one at a time; a unit that is given up even then has failed.
"""

import contextlib
import errno
import importlib.util
import logging
import pickle
import re
import time
import uuid
import warnings
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any

from backcast.core.errors import InputError
from backcast.studies.batches import Batch, Batches, Performed
from backcast.studies.engines.dask_worker import travelling_task
from backcast.studies.engines.interrupts import call_undisturbed
from backcast.studies.engines.versions import versions
from backcast.studies.store import machine
from backcast.studies.units import Failed, Unit

TASKS_PER_THREAD = 2  # under way: one running and one waiting
ADDRESS = re.compile(r"(\w+://)?(\[[\w:.%]+\]|[\w.-]+):\d{1,5}")  # a scheme is optional, a port is not
CONNECTING, ASKING, FETCHING = 10.0, 5.0, 60.0  # timeouts of calls in seconds
LOOKING, COUNTING = 0.01, 1.0  # seconds between polls of finished tasks, and of workers


class DaskEngine:
    """Performs units on the workers of dask.

    Args:
        scheduler: address of a running scheduler; by default one is started on this machine, with workers, and stopped
            at the end. A script that starts one needs the usual `if __name__ == "__main__":`.
        workers: number of workers to start; by default the number of cores.
        time_limit: time limit of a unit in seconds; workers then perform units in processes, which can be killed.
        patience: seconds that a scheduler may be unreachable.
    """

    def __init__(
        self,
        scheduler: str | None = None,
        workers: int | None = None,
        time_limit: float | None = None,
        patience: float = 600.0,
    ) -> None:
        if importlib.util.find_spec("distributed") is None:
            raise InputError("--engine dask: dask.distributed is not installed; pip install 'backcast[cluster]'")
        if scheduler is not None and ADDRESS.fullmatch(scheduler) is None:
            example = "an address with a port, such as tcp://10.0.0.1:8786"
            raise InputError(f"--scheduler: {scheduler!r} given, expected {example}")
        self._scheduler, self._workers, self._time_limit, self._patience = scheduler, workers, time_limit, patience
        self._doing: dict[str, str] = {}

    def perform(self, batches: Batches) -> Generator[Performed, None, None]:
        """Perform batches on the available workers, whose number may change."""
        batches.cutting = True
        tasks, counted = _Tasks(batches, self._time_limit), 0.0
        with contextlib.ExitStack() as at_the_end:
            at_the_end.callback(self._say, {})
            at_the_end.enter_context(_quiet())
            address = self._scheduler or at_the_end.enter_context(_own_cluster(self._workers))
            at_the_end.callback(tasks.disconnect)
            tasks.connect(address, CONNECTING)
            while True:
                if not tasks.connected:
                    self._connect_again(tasks, address)
                if time.monotonic() > counted + COUNTING:
                    self._say(tasks.count())
                    counted = time.monotonic()
                tasks.submit()
                if tasks.all_done:
                    return
                yield from tasks.finished()
                time.sleep(LOOKING)

    def running(self) -> dict[str, str]:
        """The current work of each worker, or what the engine waits for."""
        return dict(self._doing)

    def _say(self, doing: dict[str, str]) -> None:
        self._doing = doing

    def _connect_again(self, tasks: "_Tasks", address: str) -> None:
        self._say({"dask": f"waiting for the scheduler at {address}"})
        tasks.disconnect()
        deadline = time.monotonic() + self._patience
        while not tasks.connected:
            try:
                tasks.connect(address, min(CONNECTING, max(1.0, deadline - time.monotonic())))
            except InputError:
                if time.monotonic() >= deadline:
                    reason = f"the dask scheduler has been away for {self._patience:g} s"
                    raise ConnectionRefusedError(errno.ECONNREFUSED, reason, address) from None
                time.sleep(LOOKING)


class _Tasks:
    """The batches under way, one task each, and those to be resubmitted."""

    def __init__(self, batches: Batches, time_limit: float | None) -> None:
        self._batches, self._time_limit = batches, time_limit
        self._under_way: dict[Any, Batch] = {}  # by dask's future
        self._again: deque[Batch] = deque()  # whose tasks were lost
        self._suspects: deque[Unit] = deque()  # of batches that dask gave up
        self._on_trial: Any = None  # the future of a suspect, which runs alone
        self._client: Any = None
        self._names: dict[str, str] = {}  # of workers, by address
        self._room = TASKS_PER_THREAD
        self._task, self._versions = travelling_task(), versions()

    @property
    def connected(self) -> bool:
        """Whether there is a connection that was not lost."""
        return self._client is not None and self._client.status == "running"

    @property
    def all_done(self) -> bool:
        """Whether nothing is under way or to be resubmitted."""
        return not (self._under_way or self._again or self._suspects)

    def connect(self, address: str, seconds: float) -> None:
        """Connect to a scheduler; raise InputError if there is none."""
        from distributed import Client
        from distributed.versions import VersionMismatchWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VersionMismatchWarning)  # tasks compare what matters here
            self._client = Client.__new__(Client)  # so that `disconnect` can reach it even if connecting fails
            try:
                self._client.__init__(address, timeout=seconds, set_as_default=False, name="backcast")
            except Exception as error:  # of any kind, if something else answers
                self.disconnect()
                raise InputError(f"--scheduler: {address} given, but no dask scheduler answers there") from error

    def disconnect(self) -> None:
        """Disconnect; what was under way is to be resubmitted."""
        self._again.extend([self._drop(future) for future in list(self._under_way)])
        if self._client is not None:
            with contextlib.suppress(Exception):  # there may be no answer
                self._client.close(timeout=ASKING)
            self._client = None

    def count(self) -> dict[str, str]:
        """Count the threads, which limits the number of batches, and return what they do."""
        try:
            scheduler = self._client.scheduler
            threads = self._client.sync(scheduler.ncores, workers=None, callback_timeout=ASKING)
            doing = self._client.sync(scheduler.processing, workers=None, callback_timeout=ASKING)
        except Exception:  # the connection is being lost
            return {"dask": "waiting for the scheduler"}
        self._batches.workers = max(1, sum(threads.values()))
        self._room = TASKS_PER_THREAD * self._batches.workers
        if not threads:
            return {"dask": "waiting for workers"}
        batches = {future.key: batch for future, batch in self._under_way.items()}
        first = {worker: next(filter(None, map(batches.get, keys)), None) for worker, keys in doing.items()}
        return {self._names.get(worker, worker): batch.units[0].label for worker, batch in first.items() if batch}

    def submit(self) -> None:
        """Submit as many batches as there is room for, or one suspect if nothing else is left."""
        while len(self._under_way) < self._room:
            batch = self._again.popleft() if self._again else next(self._batches, None)
            if batch is None:
                break
            if self._submit(batch) is None:
                return
        if self._suspects and not self._under_way:
            self._on_trial = self._submit(Batch((self._suspects.popleft(),)))

    def _submit(self, batch: Batch) -> Any:
        """The future of a batch; None if the connection is lost and it is to be resubmitted."""
        from distributed.client import ClosedClientError

        order = pickle.dumps((batch.units, self._time_limit))
        try:
            future = self._client.submit(self._task, order, self._versions, key=f"backcast-{uuid.uuid4()}")
        except ClosedClientError:
            self._again.append(batch)
            return None
        self._under_way[future] = batch
        return future

    def finished(self) -> Iterator[Performed]:
        """Yield what was finished since the last poll; what was lost is to be resubmitted."""
        for future in [each for each in self._under_way if each.status != "pending"]:
            if future.status in ("finished", "error"):
                performed = self._fetched(future)
                if performed is not None:
                    yield performed
            else:  # lost, or cancelled by somebody else
                self._again.append(self._drop(future))

    def _fetched(self, future: Any) -> Performed | None:
        """The outcomes of a task; None if they are not available now (the next poll will tell) or never."""
        try:
            address, name, versions, reply = future.result(timeout=FETCHING)
        except Exception as error:
            if isinstance(error, OSError) or not self.connected:
                return None
            if future.status == "error":
                return self._given_up(future, _in_words(error))
            if future.status == "finished":
                raise
            return None
        for package, here in self._versions.items():
            if versions[package] != here:
                there = f"{package} {versions[package]}" if versions[package] else f"no {package}"
                raise InputError(f"--engine dask: worker {name} has {there}, but here it is {package} {here}")
        self._names[address] = name
        if isinstance(reply, str):
            return self._given_up(future, reply.splitlines()[-1], reply)
        self._drop(future)
        outcomes, its_machine = pickle.loads(reply)
        return Performed(outcomes, name, its_machine)

    def _given_up(self, future: object, error: str, details: str = "") -> Performed | None:
        """A failed unit if it ran alone; otherwise the units of its batch become suspects."""
        batch = self._drop(future)
        if future is self._on_trial:
            return Performed((Failed(batch.units[0], error, details),), "dask", machine())
        self._suspects.extend(batch.units)
        return None

    def _drop(self, future: Any) -> Batch:
        """Drop a task, in dask too: now, because a Ctrl-C during its garbage collection would be ignored."""
        with contextlib.suppress(RuntimeError):  # the client is closed
            future.release()
        return self._under_way.pop(future)


def _in_words(error: Exception) -> str:
    """Describe an error that dask reports about a task."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        times, last = error.allowed_failures + 1, error.last_worker.address
        return f"Died: the worker that performed it died, {times} times, the last time that at {last}"
    return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _own_cluster(workers: int | None) -> Iterator[str]:
    """Start a scheduler and one-thread workers on this machine; yield its address; stop them at the end."""
    from distributed import LocalCluster

    clusters: list[Any] = []

    def start() -> None:
        settings = {"scheduler_kwargs": {"dashboard": False}, "dashboard_address": ":0", "memory_limit": None}
        quiet = {"silence_logs": logging.CRITICAL}
        clusters.append(LocalCluster(n_workers=workers, threads_per_worker=1, **settings, **quiet))

    try:
        call_undisturbed(start)
        yield clusters[0].scheduler_address
    finally:
        for cluster in clusters:
            cluster.close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's messages off the terminal: what matters is raised, or shown in `running`."""
    from distributed.utils import silence_logging_cmgr

    with silence_logging_cmgr(logging.CRITICAL):
        yield
