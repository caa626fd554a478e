"""Batches: units put together, or cut up, so that performing a batch takes a few seconds."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backcast.studies.units import Finished, Outcome, Unit
from backcast.studies.worldspec import WorldSpec

SECONDS = 3.0  # that a batch is meant to take
MOST_UNITS = 1000
MOST_ROWS = 2_000_000  # of the tables of a batch: what a worker and the client hold in memory


@dataclass(frozen=True)
class Batch:
    """Units of one world, performed one after the other and stored as one file."""

    units: tuple[Unit, ...]


@dataclass(frozen=True)
class Performed:
    """Units that were performed: the outcome of each, by which worker, the versions there, and if they are stored."""

    outcomes: tuple[Outcome, ...]
    worker: str
    machine: dict[str, str]
    stored: bool = False


class Batches(Iterator[Batch]):
    """The batches of some units, made when they are asked for, as large as what is known by then suggests.

    The costs of a run are taken to be those of other runs of the same agent in the same world, whatever its settings.
    While they are not known, a batch is one unit or, if `cutting`, a single run.

    Attributes:
        workers: how many perform batches at the same time; towards the end batches are small enough for all of them.
        cutting: whether a unit may be cut up, so that no batch takes much longer than others.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        self.workers, self.cutting = 1, False
        self._left = deque(units)
        self._runs_left = sum(len(unit.seeds) for unit in units)
        self._costs: dict[tuple[WorldSpec, int], float] = {}

    def __next__(self) -> Batch:
        if not self._left:
            raise StopIteration
        first = self._take(self._left[0], self._wanted_seconds())
        chosen, seconds, rows = [first], self._seconds(first), _rows(first)
        while self._left and seconds is not None and len(chosen) < MOST_UNITS:
            candidate = self._left[0]
            more = self._seconds(candidate)
            rows += _rows(candidate)
            if candidate.cell.world != first.cell.world or more is None or rows > MOST_ROWS:
                break
            if seconds + more > self._wanted_seconds():
                break
            seconds += more
            chosen.append(self._take(candidate, self._wanted_seconds()))
        self._runs_left -= sum(len(unit.seeds) for unit in chosen)
        return Batch(tuple(chosen))

    def learn(self, outcome: Outcome) -> None:
        """Take note of what a unit cost; the later ones count for more."""
        if isinstance(outcome, Finished):
            kind, record = _kind(outcome.unit), outcome.record
            seconds = max(record["seconds"], sum(record["run_seconds"])) / len(outcome.unit.seeds)
            self._costs[kind] = (self._costs.get(kind, seconds) + seconds) / 2

    def _wanted_seconds(self) -> float:
        """A few seconds, or half of each worker's share in what is left if that is less."""
        if not self._costs:
            return SECONDS
        run = sum(self._costs.values()) / len(self._costs)
        return min(SECONDS, run * self._runs_left / (2 * self.workers))

    def _seconds(self, unit: Unit) -> float | None:
        """What a unit will take, if that is known."""
        run = self._costs.get(_kind(unit))
        return None if run is None else run * len(unit.seeds)

    def _take(self, unit: Unit, seconds: float) -> Unit:
        """The next unit, or as much of it as fits into so many seconds; the rest stays where it was."""
        self._left.popleft()
        if not self.cutting:
            return unit
        run = self._costs.get(_kind(unit))
        count = 1 if run is None else max(1, min(len(unit.seeds), int(seconds / max(run, 1e-9))))
        if count < len(unit.seeds):
            self._left.appendleft(Unit(unit.cell, unit.seeds[count:]))
        return Unit(unit.cell, unit.seeds[:count])


def _kind(unit: Unit) -> tuple[WorldSpec, int]:
    """What has much to do with the time that a run takes: the world and the agent, whatever its settings."""
    return unit.cell.world, unit.cell.place


def _rows(unit: Unit) -> int:
    return unit.cell.episodes * len(unit.seeds)
