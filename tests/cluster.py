"""Real schedulers and workers of dask, for tests that kill them."""

import contextlib
import csv
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from pathlib import Path

from backcast.studies import check_study, export
from backcast.studies.units import all_units
from patience import PATIENCE, until


def corridor(length, **changes):
    """A study of random walks to the end of a corridor: few numbers, all of them different, and much work."""
    worlds = [{"kind": "maze", "text": f"S{'.' * length}G", "max_steps": 10**15}]
    agents = [{"kind": "q", "epsilon": 1.0}]
    given = {"name": "corridor", "episodes": 2, "seeds": 16, "worlds": worlds, "agents": agents}
    return check_study({**given, **changes}, "test")


def outcome(store, study, tmp_path):
    """The exported rows, after a look at what is stored: every run of the study once, and nothing else.

    Columns of settings are left out: they depend on agents that failed, too.
    """
    stored = [
        (unit["group"], seed) for _, batch in store.batches() for unit in batch["units"] for seed in unit["seeds"]
    ]
    units = all_units(study, study.seeds)
    assert Counter(stored) == Counter((unit.cell.group, seed) for unit in units for seed in unit.seeds)
    export(store.directory, tmp_path / "table.csv")
    return [row[:7] for row in csv.reader((tmp_path / "table.csv").read_text().splitlines())]


def python_without_backcast(folder):
    """A command and an environment in which everything is installed but Backcast."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "backcast" not in path.name:
            (folder / path.name).symlink_to(path)
    return [sys.executable, "-S"], {**os.environ, "PYTHONPATH": str(folder)}


class Cluster:
    """A scheduler on a port of its own, and workers of one thread; `with` ends them all."""

    def __init__(self, folder, python=(sys.executable,), env=None):
        self._folder, self._started, self._python, self._env = folder, [], python, env
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._client = None

    def __enter__(self):
        self.start_scheduler()
        return self

    def __exit__(self, *_):
        if self._client is not None:
            self._client.close()
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def client(self):
        """A client besides the engine's own."""
        from distributed import Client

        if self._client is None:
            self._client = Client(self.address, set_as_default=False)
        return self._client

    def start_scheduler(self):
        self.scheduler = self._start("scheduler", self._python, self._env, "--port", self.port, "--host", "127.0.0.1")
        until(self._answers)

    def start_workers(self, *names):
        """Start them, and wait until they are there."""
        for name in names:
            self.start_worker(name)
        self.client.wait_for_workers(len(names), timeout=PATIENCE)

    def start_worker(self, name, *more, python=(sys.executable,), env=None):
        more = more or ("--no-nanny",)
        given = ("--nworkers", 1, "--nthreads", 1, "--name", name, "--local-directory", self._folder / name)
        return self._start("worker", python, env, self.address, *given, *more)

    def in_the_midst(self):
        """Worker processes, by name, each frozen in the midst of a task; it is for the caller to kill them."""
        return until(self._frozen)

    def _frozen(self):
        workers = self.client.scheduler_info()["workers"]
        within = {
            worker: set(stacks) for worker, stacks in self.client.call_stack().items() if "perform(" in str(stacks)
        }
        if within.keys() != workers.keys() or not within:
            return {}
        ids = self.client.run(os.getpid)
        for process_id in ids.values():
            os.kill(process_id, signal.SIGSTOP)
        time.sleep(0.1)  # for what they had sent before
        there = self.client.processing()
        if all(keys <= set(there[worker]) for worker, keys in within.items()):
            return {workers[worker]["name"]: process_id for worker, process_id in ids.items()}
        for process_id in ids.values():
            os.kill(process_id, signal.SIGCONT)
        return {}

    def _start(self, what, python, env, *arguments):
        command = [*python, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", "--dashboard-address", ":0"]
        with (self._folder / f"{what}-{len(self._started)}.log").open("w") as log:
            process = subprocess.Popen(
                [*command, *map(str, arguments)], env=env, stdout=log, stderr=log, start_new_session=True
            )
        self._started.append(process)
        return process

    def _answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True


def kill(process_id):
    os.kill(process_id, signal.SIGKILL)


def go_on(process_id):
    os.kill(process_id, signal.SIGCONT)
