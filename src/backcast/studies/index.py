"""What is done in a store: every run, by what determined it, and where its numbers are."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from backcast.arrays import Indices, Vector


class Index:
    """The runs of a store as columns (runs,), sorted by group and then by seed; none is there twice.

    A group is everything but the seed that determines a run's numbers, as a hash. Two million runs take 150 MB.

    Attributes:
        files: names of files, of which `file` gives the number.
        seed: the seed of each run.
        file: where it is stored.
        row: which run of that file it is, counted from 0.
        updates: value updates made by learning and by planning, (runs, 2).
        seconds: processor time.
        diverged: the step at which its values exploded, or 0.
    """

    def __init__(self, batches: Iterable[tuple[str, dict[str, Any]]]) -> None:
        self.files: list[str] = []
        numbers: dict[str, int] = {}  # of groups
        columns: dict[str, list[Any]] = {name: [] for name in ("group", "seed", "file", "row", "seconds", "diverged")}
        learning: list[int] = []
        planning: list[int] = []
        for name, record in batches:
            row = 0
            for unit in record["units"]:
                count = len(unit["seeds"])
                columns["group"] += [numbers.setdefault(unit["group"], len(numbers))] * count
                columns["seed"] += unit["seeds"]
                columns["file"] += [len(self.files)] * count
                columns["row"] += range(row, row + count)
                columns["seconds"] += unit["run_seconds"]
                columns["diverged"] += unit.get("diverged", [0] * count)  # of older units nobody looked
                learning += unit["value_updates"]["learning"]
                planning += unit["value_updates"]["planning"]
                row += count
            self.files.append(name)
        group, self.seed = np.array(columns["group"], dtype=np.int64), np.array(columns["seed"], dtype=np.int64)
        order = np.lexsort((self.seed, group))
        again = np.zeros(len(order), dtype=bool)
        again[1:] = (np.diff(group[order]) == 0) & (np.diff(self.seed[order]) == 0)
        order = order[~again]
        self.seed = self.seed[order]
        self.file: Indices = np.array(columns["file"], dtype=np.int64)[order]
        self.row: Indices = np.array(columns["row"], dtype=np.int64)[order]
        self.seconds: Vector = np.array(columns["seconds"], dtype=np.float64)[order]
        self.diverged: Indices = np.array(columns["diverged"], dtype=np.int64)[order]
        self.updates: Indices = np.stack([learning, planning], axis=1).astype(np.int64).reshape(-1, 2)[order]
        ends = np.searchsorted(group[order], np.arange(len(numbers) + 1))
        self._spans = {name: slice(int(ends[number]), int(ends[number + 1])) for name, number in numbers.items()}

    def runs(self, group: str) -> slice:
        """Where in the columns the runs of a group are; nowhere if none is done."""
        return self._spans.get(group, slice(0, 0))
