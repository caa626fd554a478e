"""Engines: where units are performed. An engine takes batches and yields their outcomes, in any order."""

from collections.abc import Generator
from typing import Protocol

from backcast.studies.batches import Batches, Performed


class Engine(Protocol):
    """An engine performs batches: in processes of this machine, on a cluster, or in jobs of a queue."""

    def perform(self, batches: Batches) -> Generator[Performed, None, None]:
        """Perform all batches, as many at a time as there are workers, and yield each when it is finished.

        It takes a batch when a worker is free, and cleans up when the iteration ends, however it ends. An error in a
        unit is an outcome; an error that makes it impossible to continue is raised.
        """

    def running(self) -> dict[str, str]:
        """The current work of each worker, if known."""
