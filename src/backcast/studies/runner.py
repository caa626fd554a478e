"""Running a study: find the missing units, have an engine perform them, and store the outcomes."""

import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from backcast.studies.batches import Batches, Performed
from backcast.studies.engines import Engine
from backcast.studies.engines.local import LocalEngine
from backcast.studies.index import Index
from backcast.studies.spec import Study
from backcast.studies.store import Shard, Store
from backcast.studies.units import Failed, Finished, Unit, all_units


@dataclass
class Progress:
    """Progress of a study.

    Attributes:
        total: number of runs to be made.
        done: number of runs made so far.
        failed: number of runs that failed.
        steps: environment steps of the runs made so far.
        label: agent and world of the last run.
        by: number of runs made by each worker.
        running: current work of each worker, if known.
    """

    total: int
    done: int = 0
    failed: int = 0
    steps: int = 0
    label: str = ""
    by: Counter[str] = field(default_factory=Counter)
    running: Callable[[], dict[str, str]] = dict
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Estimated seconds left; infinite before anything is done."""
        over = self.done + self.failed
        return self.seconds / over * (self.total - over) if over else float("inf")

    def count(self, performed: Performed) -> None:
        """Record a batch."""
        for outcome in performed.outcomes:
            runs = len(outcome.unit.seeds)
            if isinstance(outcome, Finished):
                self.done += runs
                self.steps += outcome.record["steps"]
            else:
                self.failed += runs
            self.by[performed.worker] += runs
        self.label = performed.outcomes[-1].unit.label


@dataclass(frozen=True)
class Summary:
    """The outcome of running a study: the number of runs made, and the failed units."""

    runs: int
    failures: list[Failed]


def missing_units(store: Store | None, study: Study, seeds: int, shard: Shard | None = None) -> list[Unit]:
    """The missing units, or one shard of them, that bring all agents in all worlds to this many seeds.

    The shard of a unit does not depend on what is done.
    """
    index = Index([]) if store is None else store.index()
    units = all_units(study, seeds)
    if shard is not None:
        units = itertools.islice(units, shard[0] - 1, None, shard[1])
    done: dict[str, set[int]] = {}
    missing = []
    for unit in units:
        group = unit.cell.group
        if group not in done:
            done[group] = set(index.seed[index.runs(group)].tolist())
        left = tuple(seed for seed in unit.seeds if seed not in done[group])
        if left:
            missing.append(Unit(unit.cell, left))
    return missing


def count_missing(store: Store | None, study: Study, seeds: int, shard: Shard | None = None) -> int:
    """Count the missing runs of a study, or of one shard; without a shard no units are listed."""
    if shard is not None:
        return sum(len(unit.seeds) for unit in missing_units(store, study, seeds, shard))
    index = Index([]) if store is None else store.index()
    return sum(seeds - index.done(cell.group, seeds) for cell in study.runs())


def run_study(
    store: Store,
    study: Study,
    seeds: int | None = None,
    engine: Engine | None = None,
    shard: Shard | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
    when_waiting: Callable[[], None] = lambda: None,
) -> Summary:
    """Run and store what is missing of a study, or of one shard; failed units do not stop the others."""
    engine = LocalEngine() if engine is None else engine
    with store.writing(shard, when_waiting):
        seeds = study.seeds if seeds is None else seeds
        store.add_study(study, seeds)
        units = missing_units(store, study, seeds, shard)
        store.forget_failures(units)
        return _perform(store, units, engine, watch) if units else Summary(0, [])


def _perform(store: Store, units: Sequence[Unit], engine: Engine, watch: Callable[[Progress], None]) -> Summary:
    batches = Batches(units)
    progress = Progress(sum(len(unit.seeds) for unit in units), running=engine.running)
    failures: list[Failed] = []
    watch(progress)
    with contextlib.closing(engine.perform(batches)) as performing:  # cleans up at once, whatever happens
        for performed in performing:
            if not performed.stored:
                store.put(performed)
            for outcome in performed.outcomes:
                batches.learn(outcome)
            failures += [outcome for outcome in performed.outcomes if isinstance(outcome, Failed)]
            progress.count(performed)
            watch(progress)
    return Summary(progress.done, failures)
