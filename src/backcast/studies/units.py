"""Units of work: some seeds of one agent in one world; and their outcomes."""

import contextlib
import itertools
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS
from backcast.drivers.run import prepare, run_in_threads
from backcast.drivers.runs import Runs
from backcast.studies.cells import Cell, digest
from backcast.studies.plugins import import_plugins, refuse_unknown
from backcast.studies.spec import Study
from backcast.studies.study_metrics import metrics_of
from backcast.studies.worldspec import WorldSpec
from backcast.worlds import World
from backcast.worlds.kinds import WORLDS

BLOCK = 20  # most seeds per unit
MOST_ROWS = 2_000_000  # most rows of the tables of a batch of several runs, which are held in memory


@dataclass(frozen=True)
class Unit:
    """Some seeds of one agent in one world."""

    cell: Cell
    seeds: tuple[int, ...]

    @property
    def key(self) -> str:
        """The hash of everything that determines its numbers."""
        return digest({"group": self.cell.group, "seeds": self.seeds})

    @property
    def label(self) -> str:
        """The agent and the world."""
        return f"{self.cell.label} in {self.cell.world.name}"


@dataclass(frozen=True)
class Finished:
    """A performed unit: its record, and its table of seeds × episodes rows."""

    unit: Unit
    record: dict[str, Any]
    table: pa.Table


@dataclass(frozen=True)
class Failed:
    """A unit that failed, and why."""

    unit: Unit
    error: str
    details: str = ""


Outcome = Finished | Failed


def all_units(study: Study, seeds: int) -> Iterator[Unit]:
    """Every unit of a study, done or not.

    World by world and block by block, so that agents that share a world share the work of drawing it.
    """
    for _, cells in itertools.groupby(study.runs(), lambda cell: id(cell.world)):
        there = list(cells)
        size = max(1, min(BLOCK, MOST_ROWS // there[0].episodes))
        for first in range(0, seeds, size):
            block = tuple(range(first, min(first + size, seeds)))
            yield from (Unit(cell, block) for cell in there)


def compile_for(unit: Unit) -> None:
    """Compile what performing a unit needs; errors of the unit show up when it is performed."""
    with contextlib.suppress(Exception):
        import_plugins(unit.cell.plugins)
        prepare(world_of(unit.cell.world), unit.cell.agent, unit.seeds[0], 1)


def perform(unit: Unit, threads: int = 0) -> Outcome:
    """Run a unit in this process, by default in this thread; any exception except Ctrl-C becomes the outcome."""
    started = time.perf_counter()
    try:
        cell = unit.cell
        import_plugins(cell.plugins)
        refuse_unknown("kind", cell.agent.kind, KINDS, cell.plugins)
        if cell.agent.shared("model") is not None:
            refuse_unknown("model", cell.agent.shared("model"), ESTIMATORS, cell.plugins)
        refuse_unknown("world", cell.world.kind, WORLDS, cell.plugins)
        world = world_of(cell.world)
        runs = run_in_threads(world, cell.agent, cell.episodes, unit.seeds, None, threads, cell.updates, models=False)
        return finished(unit, runs, time.perf_counter() - started)
    except Exception as error:
        return Failed(unit, f"{type(error).__name__}: {error}", traceback.format_exc())


def finished(unit: Unit, runs: Runs, seconds: float) -> Finished:
    """The outcome of a unit whose runs took `seconds`."""
    return Finished(unit, _record(unit, runs, seconds), _table(runs, unit.cell.plugins))


@lru_cache(maxsize=8)
def world_of(specification: WorldSpec) -> World:
    """The world, made once."""
    return specification.build()


def _record(unit: Unit, runs: Runs, seconds: float) -> dict[str, Any]:
    """The record of a unit; lists have an entry for each seed."""
    return {
        **unit.cell.identity(),
        "group": unit.cell.group,
        "seeds": list(unit.seeds),
        "label": unit.cell.label,
        "world_name": runs.world,
        "value_updates": {"learning": runs.updates.learning.tolist(), "planning": runs.updates.planning.tolist()},
        "edges": runs.updates.edges.tolist(),
        "seconds": round(seconds, 4),
        "run_seconds": [round(float(each), 6) for each in runs.seconds],
        "diverged": runs.diverged.tolist(),
        "steps": int(runs.steps.sum()),
        "run_steps": runs.steps.sum(axis=1).tolist(),
    }


def _table(runs: Runs, plugins: tuple[str, ...]) -> pa.Table:
    """Seed, episode, value updates and the metrics of a world, a row for each seed and episode.

    Backcast's own metrics are stored as counted. Other metrics are stored with values after divergence replaced:
    finding these later takes the steps of each episode, which tables of prediction worlds do not have.
    """
    seeds, episodes = runs.steps.shape
    columns: dict[str, Any] = {
        "seed": np.repeat(np.asarray(runs.seeds, dtype=np.int64), episodes),
        "episode": np.tile(np.arange(episodes, dtype=np.int32), seeds),
        "updates": runs.updates.by_episode.ravel(),
    }
    for metric in metrics_of(runs.purpose, plugins):
        values = metric.of(runs) if metric.is_builtin else metric.before_divergence(runs)
        columns[metric.name] = values.ravel()
    return pa.table(columns)
