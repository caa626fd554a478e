"""The engine for one machine: in this process while there is little to do, then in one process for each core."""

from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from backcast.core.waiting import listening
from backcast.drivers.run import cores
from backcast.studies.batches import Batch, Batches, Performed
from backcast.studies.engines.supervised import Child, known_elsewhere
from backcast.studies.store import machine
from backcast.studies.units import Finished, perform

PATIENCE = 5.0  # seconds of work, without compiling, before processes are worth starting


class LocalEngine:
    """Performs units on the cores of this machine.

    The first seconds of work are done in this process, with a thread for each seed. If there is more to do, it
    continues in processes, each with its own unit, which is faster because they do not share a GIL.

    Args:
        workers: number of processes, or threads; by default the number of cores.
        time_limit: time limit of a unit in seconds; all units are then performed in processes, which can be killed.
        patience: seconds of work after which processes are started.
    """

    def __init__(self, workers: int | None = None, time_limit: float | None = None, patience: float = PATIENCE) -> None:
        self._workers = cores() if workers is None else workers
        self._time_limit, self._patience = time_limit, patience
        self._doing: dict[str, str] = {}

    def perform(self, batches: Batches) -> Generator[Performed, None, None]:
        """Perform batches in this process, and after a while in others."""
        spent, met = 0.0, set()
        patience = 0.0 if self._time_limit is not None else self._patience if self._workers > 1 else float("inf")
        while spent < patience:
            batch = next(batches, None)
            if batch is None:
                return
            performed = self._here(batch)
            for outcome in performed.outcomes:
                kind = outcome.unit.cell.agent.kind
                if isinstance(outcome, Finished) and kind in met:  # the first of its kind may have been compiled
                    spent += outcome.record["seconds"]
                met.add(kind)
            yield performed
        yield from self._in_processes(batches)

    def running(self) -> dict[str, str]:
        """The current work of each process."""
        return dict(self._doing)

    def _here(self, batch: Batch) -> Performed:
        self._doing = {"this process": batch.units[0].label}
        with listening(lambda compilation: self._doing.update({"this process": str(compilation)})):
            outcomes = tuple(perform(unit, self._workers) for unit in batch.units)
        self._doing = {}
        return Performed(outcomes, "this process", machine())

    def _in_processes(self, batches: Batches) -> Iterator[Performed]:
        """Threads of this process wait for the child processes, one each; all children are killed at the end."""
        batches.workers, batches.cutting = self._workers, True
        idle = [(f"process {number + 1}", Child()) for number in range(self._workers)]
        children = [child for _, child in idle]
        under_way: dict[Future[Performed], tuple[str, Child]] = {}
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                while True:
                    while idle and (batch := next(batches, None)) is not None:
                        worker = idle.pop()
                        under_way[pool.submit(self._there, batch, *worker)] = worker
                    if not under_way:
                        return
                    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                        idle.append(under_way.pop(future))
                        yield future.result()
            finally:
                self._doing = {}
                for child in children:
                    child.end()

    def _there(self, batch: Batch, name: str, child: Child) -> Performed:
        outcomes = []
        for unit in batch.units:
            self._doing[name] = unit.label
            told = partial(self._doing.__setitem__, name)
            outcomes.append(child.perform(unit, self._time_limit, told) if known_elsewhere(unit) else perform(unit))
        self._doing.pop(name, None)
        return Performed(tuple(outcomes), name, machine())
