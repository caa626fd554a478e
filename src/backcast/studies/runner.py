"""Running a study: which units are missing, and making them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from backcast.runs import run
from backcast.studies.spec import Study, WorldSpec
from backcast.studies.store import Store, Unit
from backcast.worlds import World

BLOCK = 20  # seeds per unit


@dataclass(frozen=True)
class Progress:
    """How far a study is: units done, units in all, and the steps and seconds of those run just now."""

    done: int
    total: int
    steps: int
    seconds: float
    label: str


def missing_units(store: Store, study: Study, seeds: int) -> list[Unit]:
    """The units that bring every agent in every world to this many seeds; seeds that are done are not run again.

    World by world and block by block, so that agents that share a world share the work of drawing it.
    """
    records = store.records()
    cells = [(cell, store.done(cell, records)) for cell in study.runs()]
    units = []
    for world in dict.fromkeys(cell.world for cell, _ in cells):
        for first in range(0, seeds, BLOCK):
            for cell, done in cells:
                left = tuple(seed for seed in range(first, min(first + BLOCK, seeds)) if seed not in done)
                if cell.world == world and left:
                    units.append(Unit(cell, left))
    return units


def run_study(
    store: Store,
    study: Study,
    seeds: int | None = None,
    workers: int | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> int:
    """Run what is missing of a study; the number of units that were run."""
    store.add_study(study)
    units = missing_units(store, study, study.seeds if seeds is None else seeds)
    steps, started = 0, time.perf_counter()
    for done, (unit, unit_steps) in enumerate(_finished(store, units, workers), start=1):
        steps += unit_steps
        if watch is not None:
            where = f"{unit.cell.label} in {_world(unit.cell.world).name}"
            watch(Progress(done, len(units), steps, time.perf_counter() - started, where))
    return len(units)


def _finished(store: Store, units: list[Unit], workers: int | None) -> Iterator[tuple[Unit, int]]:
    for unit in units:
        started = time.perf_counter()
        world = _world(unit.cell.world)
        cell = unit.cell
        runs = run(world, cell.agent, cell.episodes, unit.seeds, workers=workers, updates=cell.updates)
        store.put(unit, runs, time.perf_counter() - started)
        yield unit, int(runs.steps.sum())


@lru_cache(maxsize=8)
def _world(specification: WorldSpec) -> World:
    return specification.build()
