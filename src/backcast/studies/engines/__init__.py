"""Engines: where units are performed. One takes batches and yields what came of them, in any order."""

from collections.abc import Generator
from typing import Protocol

from backcast.studies.batches import Batches, Performed


class Engine(Protocol):
    """What performs batches: processes of this machine, a cluster, jobs in a queue."""

    def perform(self, batches: Batches) -> Generator[Performed, None, None]:
        """Perform all batches, as many at a time as there are workers, and yield each when it is finished.

        It takes a batch when it has somebody to perform it, and cleans up when the iteration ends, however it ends.
        What goes wrong with a unit is an outcome; what makes it impossible to go on is raised.
        """

    def running(self) -> dict[str, str]:
        """What each worker does now, if that is known."""
