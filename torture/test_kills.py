"""Engines that are killed again and again, at random moments: nothing is lost, nothing is there twice, nothing remains.

A study is started in one directory, killed and started again; if it is done before the last kill it gets more seeds.
In the end the exported table has to be that of a study that nobody disturbed, byte for byte.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil
import pyarrow.parquet as pq
import pytest

from backcast.studies.store import Store
from cluster import Cluster, corridor, outcome
from patience import PATIENCE, until

KILLS = int(os.environ.get("BACKCAST_KILLS", "90"))  # of the local engine; of dask's processes a fifth as many
SEEDS = 200  # at first, and so many more whenever they are done
CELLS = 600
AGENTS = [{"kind": "q", "epsilon": 1.0}, {"kind": "backward", "epsilon": 1.0}]
SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}  # SIGKILL is for all else


class Sweep:
    """A study in a directory, and the command that runs it, which may be killed and started again."""

    def __init__(self, folder):
        self._folder, self.directory = folder, folder / "out"
        self.seeds, self.starts, self.parts = 0, 0, set()
        self._process = None

    @property
    def is_over(self):
        return self._process is None or self._process.poll() is not None

    @property
    def is_at_work(self):
        """Whether it has begun to perform units; just before, it writes the study."""
        path = self.directory / "studies" / "corridor.json"
        return not self.is_over and path.exists() and path.stat().st_mtime_ns > self._began

    @property
    def half_written(self):
        return set(self.directory.rglob("*.part"))

    @property
    def records(self):
        return len(list(self.directory.glob("units/*.json")))

    @property
    def children(self):
        found = psutil.Process(self._process.pid).children()
        return [child for child in found if "backcast.studies.engines.child" in child.cmdline()]

    def start(self, *options):
        """Start the command if it is over, with more seeds if they are done; take note of what is half written."""
        if self.is_over:
            if self._process is None or self._process.returncode == 0:
                self._write(self.seeds + SEEDS)
            self.parts |= self.half_written
            self._start(self.directory, options)

    def kill(self, number=signal.SIGKILL):
        """Send a signal to all processes of its group, and wait for its end."""
        os.killpg(self._process.pid, number)
        self._process.wait(PATIENCE)

    def finish(self, *options):
        """Have it do what is left; the last kill may have made a unit fail, which is then tried once more."""
        for _ in range(2):
            if self.is_over and self._process.returncode != 0:
                self.start(*options)
            if self._process.wait(10 * PATIENCE) == 0:
                return
        pytest.fail((self._folder / "log").read_text()[-3000:])

    def examine(self):
        """The number of runs: all of them are there, as if nothing had happened, and nothing else is."""
        study, store = corridor(CELLS, seeds=self.seeds, agents=AGENTS), Store(self.directory)
        assert all(pq.read_table(path).num_rows for path in self.directory.glob("units/*.parquet"))
        assert [store.foreign_files(), list(self.directory.glob("failures/*")), self.half_written] == [[], [], set()]
        subprocess.run([sys.executable, "-m", "backcast", "verify", self.directory], check=True)
        table = outcome(store, study, self._folder)
        self._start(self._folder / "calm", ())
        assert self._process.wait(10 * PATIENCE) == 0
        assert outcome(Store(self._folder / "calm"), study, self._folder) == table
        return self.seeds * len(AGENTS)

    def _write(self, seeds):
        self.seeds = seeds
        agents = "".join(f'[[agents]]\nkind = "{agent["kind"]}"\nepsilon = 1.0\n' for agent in AGENTS)
        world = f'[[worlds]]\nkind = "maze"\nmax_steps = {10**15}\ntext = "S{"." * CELLS}G"\n'
        text = f'name = "corridor"\nepisodes = 2\nseeds = {seeds}\n{world}{agents}'
        (self._folder / "study.toml").write_text(text)

    def _start(self, directory, options):
        self.starts, self._began = self.starts + 1, time.time_ns()
        command = [sys.executable, "-m", "backcast", "sweep", self._folder / "study.toml", "--out", directory, *options]
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


@pytest.fixture
def sweep(tmp_path):
    sweep = Sweep(tmp_path)
    yield sweep
    if not sweep.is_over:
        sweep.kill()


def wait_for(happens):
    """Wait until something is true, and notice it at once."""
    until(happens, every=0.001)


def in_words(kills):
    return f"{kills.total()} kills ({', '.join(f'{number} {what}' for what, number in kills.most_common())})"


def came_of_it(sweep):
    runs, parts = sweep.examine(), len(sweep.parts)
    return f"0 of {runs:,} runs lost, tables equal; half-written files: {parts}, all removed by the next start"


def hit_local(sweep, what, rng):
    """Kill all or a part of it in some moment; False if that moment does not come."""
    if what == "while it starts":
        time.sleep(rng.uniform(0, 1.5))
    else:
        wait_for(lambda: sweep.is_at_work or sweep.is_over)
        assert not sweep.parts & sweep.half_written
    if what == "while it writes":
        wait_for(lambda: sweep.half_written or sweep.is_over)
    elif what != "while it starts":
        time.sleep(rng.uniform(0, 1.5))
    if sweep.is_over or (what == "one process" and not sweep.children):
        return False
    if what == "one process":
        rng.choice(sweep.children).kill()
    else:
        sweep.kill(SIGNALS.get(what, signal.SIGKILL))
    return True


def test_the_local_engine(sweep, tell):
    """Threads and processes, at random moments and in those in which a file is being written."""
    kinds = {"all": 25, "while it writes": 25, "one process": 20, "Ctrl-C": 10, "SIGTERM": 10, "while it starts": 10}
    rng, kills, under_way = random.Random(16), Counter(), 0
    while kills.total() < KILLS:
        sweep.start(*rng.choice([(), ("--workers", "2", "--time-limit", "60")]))
        (what,) = rng.choices([*kinds], [*kinds.values()])
        if hit_local(sweep, what, rng):
            kills[what] += 1
            under_way += what != "while it starts"
    sweep.finish()
    tried = f"{in_words(kills)}, {under_way} of them while units were under way; {sweep.starts} starts"
    tell("local engine", tried, came_of_it(sweep))


def hit_dask(cluster, sweep, workers, what, rng):
    """Kill some of the processes of a cluster, or the command, with a signal that none of them notices."""
    if what == "client":
        sweep.kill()
        return
    if what == "scheduler":
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        cluster.start_scheduler()
    for worker in rng.sample(workers, 1) if what == "worker" else workers:  # without its scheduler a worker ends, too
        worker.kill()
        worker.wait()


def test_the_dask_engine(sweep, tmp_path, tell):
    """Workers, the scheduler and the client, while units are under way."""
    kinds, rng, kills = {"worker": 6, "all workers": 3, "scheduler": 4, "client": 5}, random.Random(17), Counter()
    with Cluster(tmp_path) as cluster:
        options, workers = ("--engine", "dask", "--scheduler", cluster.address), []
        names = map("worker-{}".format, range(10**6))
        while True:
            workers = [worker for worker in workers if worker.poll() is None]
            workers += [cluster.start_worker(next(names)) for _ in range(2 - len(workers))]
            if kills.total() == KILLS // 5:
                break
            sweep.start(*options)
            before = sweep.records
            wait_for(lambda before=before: sweep.records > before or sweep.is_over)
            time.sleep(rng.uniform(0, 1))
            if not sweep.is_over:
                (what,) = rng.choices([*kinds], [*kinds.values()])
                hit_dask(cluster, sweep, workers, what, rng)
                kills[what] += 1
        sweep.finish(*options)
    tell("dask engine", f"{in_words(kills)} while units were under way", came_of_it(sweep))
