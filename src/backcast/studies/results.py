"""Stored results of a study: curves by world, agent and metric, means, and the long table."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from backcast.agents import Agent
from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError
from backcast.drivers.metrics import METRICS, lost_episodes
from backcast.studies.cells import Cell
from backcast.studies.costs import costs
from backcast.studies.exported import Varied
from backcast.studies.index import Index
from backcast.studies.spec import Study
from backcast.studies.store import Store
from backcast.studies.trials import episodes_run
from backcast.studies.unit_tables import column, columns
from backcast.worlds.kinds import Picture

CACHE = 256 * 2**20  # size of the cache of columns in bytes
PIECE = 2**20  # rows of the long table per piece


class Measured(NamedTuple):
    """A metric of an agent (given by label) in a world: (runs, episodes), and the seed of each run."""

    world: str
    label: str
    agent: Agent
    metric: str
    seeds: Indices
    values: Vector


def long_table(study: str, piece: Sequence[Measured], varied: Varied) -> pa.Table:
    """The long table, with a row for each measured number."""
    worlds, labels, agents, metrics, seeds, values = zip(*piece, strict=True)
    sizes = [each.size for each in values]
    lengths = np.repeat([each.shape[1] for each in values], [len(each) for each in seeds])  # of each run
    columns = {
        "study": _repeated([study], [sum(sizes)]),
        "world": _repeated(worlds, sizes),
        "agent": _repeated(labels, sizes),
        "seed": np.repeat(np.concatenate(seeds), lengths),
        "episode": (np.arange(sum(sizes)) - np.repeat(lengths.cumsum() - lengths, lengths)).astype(np.int32),
        "metric": _repeated(metrics, sizes),
        "value": np.concatenate([each.ravel() for each in values]),
    }
    return pa.table(columns | varied.columns(agents, sizes), schema=varied.schema)


class Results:
    """The stored results of one study, which may be incomplete.

    Agents are compared on the seeds that all of them have; agents without runs are left out.

    Args:
        store: the store of the results.
        study: the study.
        index: index of the store, if known already.
        wanted: the number of seeds requested; by default the study's own.

    Attributes:
        seeds: the number of seeds that all agents have.
        runs: number of runs of the study, for the seeds requested.
        missing_runs: number of missing runs.
        missing: worlds and agents without any run.
    """

    def __init__(self, store: Store, study: Study, index: Index | None = None, wanted: int | None = None) -> None:
        self.store, self.study, self.name = store, study, study.name
        self._index = store.index() if index is None else index
        self._columns = _Columns(store, self._index)
        self._means: dict[str, Vector] = {}
        self._cells: dict[str, dict[str, Cell]] = {}
        self._runs: dict[tuple[str, str], slice] = {}
        self.missing: list[tuple[str, str]] = []
        for cell in study.runs():
            world, runs = cell.world.name, self._index.runs(cell.group)
            if runs.start == runs.stop:
                self.missing.append((world, cell.label))
                continue
            self._cells.setdefault(world, {})[cell.label] = cell
            self._runs[world, cell.label] = runs
        seeds = list(_distinct(self._index.seed[runs] for runs in self._runs.values()))
        self._common: Indices = reduce(np.intersect1d, seeds) if seeds else np.empty(0, dtype=np.int64)
        self.seeds = len(self._common)
        wanted = study.seeds if wanted is None else wanted
        self.runs = len(study.runs()) * wanted
        self.missing_runs = self.runs - sum(self._index.done(cell.group, wanted) for cell in study.runs())

    @property
    def complete(self) -> bool:
        """Whether every run of the study is there."""
        return self.missing_runs == 0

    @property
    def gap(self) -> str:
        """What is missing, in words; nothing if it is complete."""
        return "" if self.complete else f"{self.missing_runs:,} of {self.runs:,} runs are missing"

    @property
    def worlds(self) -> list[str]:
        """World names, in the order of the study."""
        return list(self._cells)

    def agents(self, world: str) -> list[str]:
        """Agent names, in the order of the study."""
        return list(self._cells[world])

    def cells(self, world: str) -> list[Cell]:
        """The cells of a world, in the order of the study."""
        return list(self._cells[world].values())

    def picture(self, world: str) -> Picture:
        """The picture of a world in figures."""
        return self.cells(world)[0].world.picture

    def metrics(self, world: str, agent: str) -> list[str]:
        """The metrics measured: errors in prediction, steps and reward in control, and those that all runs have."""
        files = np.unique(self._index.file[self._runs[world, agent]])
        columns = [self._columns.names(file) for file in files.tolist()]
        return [metric for metric in METRICS if all(metric in names for names in columns)]

    def curves(self, world: str, agent: str, metric: str) -> Vector:
        """Return a metric, (seeds, episodes), for the seeds that all agents of the study have.

        From the episode in which a run diverged, it is the worst possible value: ∞, or −∞ for a reward.
        """
        self._check(world, agent, metric)
        return self._rows(metric, self._compared(world, agent))

    def means(self, world: str, agent: str, metric: str) -> Vector:
        """The mean of each seed's curve, (seeds,): steps per episode, or the area under an error curve."""
        self._check(world, agent, metric)
        if metric not in self._means:
            self._means[metric] = self._mean_of_every_run(metric)
        return self._means[metric][self._compared(world, agent)]

    def diverged(self, world: str, agent: str) -> Indices:
        """The step, counted from 1, at which the values of each seed diverged, (seeds,); 0 where they did not."""
        return self._index.diverged[self._compared(world, agent)]

    def updates(self, world: str, agent: str) -> Vector:
        """(seeds, episodes): value updates made up to the end of each episode."""
        return self._columns.rows("updates", self._compared(world, agent)).astype(np.float64)

    def seconds(self, world: str, agent: str) -> float:
        """Mean processor seconds of a run."""
        return float(self._index.seconds[self._compared(world, agent)].mean())

    def edges(self, world: str, agent: str) -> float:
        """Mean number of edges that planning touched in a run."""
        return float(self._index.edges[self._compared(world, agent)].mean())

    def computed_nanoseconds(self, world: str, agent: str) -> float | None:
        """Mean processor time of a run, computed by `backcast.studies.costs`; None if unknown."""
        cost, runs = costs().get(self._cells[world][agent].base), self._compared(world, agent)
        steps = float(self._index.steps[runs].mean())
        if cost is None or steps == 0.0:
            return None
        episodes = float(episodes_run(self.updates(world, agent)).mean())
        return cost.nanoseconds(episodes, steps, self.value_updates(world, agent), self.edges(world, agent))

    def value_updates(self, world: str, agent: str) -> float:
        """Mean number of value updates of a run, learning and planning together."""
        return float(self._index.updates[self._compared(world, agent)].sum(axis=1).mean())

    def long_tables(self, varied: Varied) -> Iterator[pa.Table]:
        """The long table of the study in pieces: all finished runs, by world, agent, metric, seed and episode.

        Args:
            varied: the settings that have columns.
        """
        piece: list[Measured] = []
        rows = 0
        for (world, agent), runs in self._runs.items():
            there, seeds = np.arange(runs.start, runs.stop), self._index.seed[runs]
            for metric in self.metrics(world, agent):
                values, who = self._rows(metric, there), self._cells[world][agent].agent
                piece.append(Measured(world, agent, who, metric, seeds, values))
                rows += values.size
            if rows > PIECE:
                yield long_table(self.name, piece, varied)
                piece, rows = [], 0
        if piece:
            yield long_table(self.name, piece, varied)

    def _compared(self, world: str, agent: str) -> Indices:
        """Positions in the index of an agent's runs on the seeds that all agents have."""
        runs = self._runs[world, agent]
        return runs.start + np.searchsorted(self._index.seed[runs], self._common)

    def _rows(self, metric: str, runs: Indices) -> Vector:
        """A metric of some runs, (runs, episodes), with values after divergence replaced."""
        values, diverged = self._columns.rows(metric, runs), self._index.diverged[runs]
        its = METRICS[metric]
        if its.is_builtin and its.per_episode and diverged.any():  # others were stored without
            steps = values if metric == "steps" else self._columns.rows("steps", runs)
            values = np.where(lost_episodes(steps, diverged), its.worst, values)
        return values

    def _mean_of_every_run(self, metric: str) -> Vector:
        """The mean over episodes of every run of the study that has this metric; all files are read once."""
        means = np.full(len(self._index.seed), np.nan)
        mine = np.concatenate([np.arange(runs.start, runs.stop) for runs in self._runs.values()])
        mine = mine[np.argsort(self._index.file[mine], kind="stable")]
        for runs in np.split(mine, np.flatnonzero(np.diff(self._index.file[mine])) + 1):
            file = int(self._index.file[runs[0]])
            if metric in self._columns.names(file):
                means[runs] = self._columns.matrix(file, metric)[self._index.row[runs]].mean(axis=1)
        if METRICS[metric].per_episode:
            means[self._index.diverged > 0] = METRICS[metric].worst
        return means

    def _check(self, world: str, agent: str, metric: str) -> None:
        if metric in self.metrics(world, agent):
            return
        purpose = METRICS[metric].purpose if metric in METRICS else None
        if purpose in (None, self._cells[world][agent].world.purpose):
            raise InputError(f"{self.name}: {metric} was not measured when {agent} was run in {world}; see its plots")
        raise InputError(f"{self.name}: {metric} is measured in {purpose} worlds, and {world} is none; see its plots")


class _Columns:
    """Columns of files as matrices (runs, episodes), in a cache of `CACHE` bytes."""

    def __init__(self, store: Store, index: Index) -> None:
        self._store, self._index = store, index
        self._kept: OrderedDict[tuple[int, str], Vector] = OrderedDict()
        self._names: dict[int, list[str]] = {}
        self._bytes = 0

    def names(self, file: int) -> list[str]:
        """The names of the columns of a file."""
        if file not in self._names:
            self._names[file] = columns(self._store.table(self._index.files[file]), self._index.expected[file])
        return self._names[file]

    def matrix(self, file: int, name: str) -> Vector:
        """A column of a file, (runs, episodes)."""
        key = file, name
        if key not in self._kept:
            self.names(file)  # raises if the file is damaged
            self._kept[key] = column(self._store.table(self._index.files[file]), name, self._index.expected[file])
            self._bytes += self._kept[key].nbytes
            while len(self._kept) > 1 and self._bytes > CACHE:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        self._kept.move_to_end(key)
        return self._kept[key]

    def rows(self, name: str, runs: Indices) -> Vector:
        """A column of some runs, (runs, episodes), in their order."""
        files = self._index.file[runs]
        if (files == files[0]).all():  # as of most agents in a large sweep
            return self.matrix(int(files[0]), name)[self._index.row[runs]]
        parts = np.split(runs, np.flatnonzero(np.diff(files)) + 1)
        found = [self.matrix(int(self._index.file[part[0]]), name)[self._index.row[part]] for part in parts]
        return np.concatenate(found)


def _distinct(arrays: Iterable[Indices]) -> Iterator[Indices]:
    """Yield the arrays that differ from the one before."""
    last = None
    for array in arrays:
        if last is None or not np.array_equal(last, array):
            yield array
        last = array


def _repeated(words: Sequence[str], counts: list[int]) -> pa.Array:
    """A column in which each word is repeated `counts` times."""
    numbers = np.repeat(np.arange(len(words), dtype=np.int32), counts)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(list(words), pa.string())).cast(pa.string())
