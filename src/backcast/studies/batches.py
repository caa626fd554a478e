"""Batches: units that are grouped or split so that a batch takes a few seconds."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backcast.studies.units import BLOCK, MOST_ROWS, Failed, Outcome, Unit
from backcast.studies.worldspec import WorldSpec

SECONDS = 3.0  # target duration of a batch
MOST_UNITS = 1000


@dataclass(frozen=True)
class Batch:
    """Units of one world, performed one after the other and stored as one file."""

    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Performed:
    """Performed units: the outcome of each, the worker, its versions, and whether they are stored."""

    outcomes: tuple[Outcome, ...]
    worker: str
    machine: dict[str, str]
    stored: bool = False


class Batches(Iterator[Batch]):
    """The batches of some units, made on demand, with sizes based on the durations known so far.

    The costs of a run are assumed equal to those of other runs of the same agent in the same world, whatever its
    settings. While they are unknown, a batch is one unit or, if `cutting`, a single run.

    Attributes:
        workers: number of workers that perform batches; towards the end batches are small enough for all of them.
        cutting: whether a unit may be split, so that no batch takes much longer than others.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        self.workers, self.cutting = 1, False
        self._left = deque(units)
        self._runs_left = sum(len(unit.seeds) for unit in units)
        self._costs: dict[tuple[WorldSpec, int], float] = {}

    def __next__(self) -> Batch:
        if not self._left:
            raise StopIteration
        wanted, seconds, rows = self._wanted_seconds(), 0.0, 0
        chosen: list[Unit] = []
        while self._left and len(chosen) < MOST_UNITS:
            unit = self._cut(self._left[0], wanted)
            cost, rows = self._seconds(unit), rows + unit.cell.episodes * len(unit.seeds)
            fits = seconds + cost <= wanted and rows <= MOST_ROWS
            if chosen and not (fits and unit.cell.world == chosen[0].cell.world):
                break
            self._take(unit)
            chosen.append(unit)
            seconds += cost
        return Batch(tuple(chosen))

    def learn(self, outcome: Outcome) -> None:
        """Record the cost of a unit, giving later ones more weight; a failed unit need not be split again."""
        kind = _kind(outcome.unit)
        if isinstance(outcome, Failed):
            self._costs.setdefault(kind, SECONDS / BLOCK)
        else:
            record = outcome.record
            seconds = sum(record["run_seconds"])
            if kind in self._costs:  # the first also contains compiling
                seconds = max(seconds, record["seconds"])
            each = seconds / len(outcome.unit.seeds)
            self._costs[kind] = (self._costs.get(kind, each) + each) / 2

    def _wanted_seconds(self) -> float:
        """A few seconds, or half of each worker's share of the rest if that is less."""
        if not self._costs:
            return SECONDS
        run = sum(self._costs.values()) / len(self._costs)
        return min(SECONDS, run * self._runs_left / (2 * self.workers))

    def _seconds(self, unit: Unit) -> float:
        """The expected duration of a unit; infinite while unknown."""
        return self._costs.get(_kind(unit), math.inf) * len(unit.seeds)

    def _cut(self, unit: Unit, seconds: float) -> Unit:
        """As much of a unit as fits into the given seconds, at least one run; all of it if it may not be split."""
        fitting = int(seconds / max(self._costs.get(_kind(unit), math.inf), 1e-9))
        return Unit(unit.cell, unit.seeds[: max(1, fitting)]) if self.cutting else unit

    def _take(self, unit: Unit) -> None:
        """Remove a unit, or the beginning of one, from the rest."""
        whole = self._left.popleft()
        if len(unit.seeds) < len(whole.seeds):
            self._left.appendleft(Unit(whole.cell, whole.seeds[len(unit.seeds) :]))
        self._runs_left -= len(unit.seeds)


def _kind(unit: Unit) -> tuple[WorldSpec, int]:
    """The main determinants of a run's duration: the world and the agent, whatever its settings."""
    return unit.cell.world, unit.cell.place
