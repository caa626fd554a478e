"""What is done in a store: every run, by what determined it, and where its numbers are."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from backcast.arrays import Indices, Vector

GROUP, SEED, FILE, ROW, LEARNING, PLANNING, DIVERGED = range(7)  # rows of what is known of runs


class Index:
    """The runs of a store as columns (runs,), sorted by group and then by seed; none is there twice.

    A group is everything but the seed that determines a run's numbers, as a hash. Two million runs take 130 MB.

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
        groups: dict[str, int] = {}
        numbers, seconds = [np.empty((DIVERGED + 1, 0), dtype=np.int64)], [np.empty(0)]
        for name, record in batches:
            numbers.append(_numbers(record["units"], groups, len(self.files)))
            seconds.append(np.concatenate([unit["run_seconds"] for unit in record["units"]]))
            self.files.append(name)
        runs = np.concatenate(numbers, axis=1)
        order = np.lexsort((runs[SEED], runs[GROUP]))
        again = np.zeros(len(order), dtype=bool)
        again[1:] = (np.diff(runs[[GROUP, SEED]][:, order]) == 0).all(axis=0)
        order = order[~again]
        runs = runs[:, order]
        self.seed: Indices = runs[SEED]
        self.file: Indices = runs[FILE]
        self.row: Indices = runs[ROW]
        self.updates: Indices = runs[[LEARNING, PLANNING]].T
        self.diverged: Indices = runs[DIVERGED]
        self.seconds: Vector = np.concatenate(seconds)[order]
        ends = np.searchsorted(runs[GROUP], np.arange(len(groups) + 1)).tolist()
        self._spans = {group: slice(ends[number], ends[number + 1]) for group, number in groups.items()}

    def runs(self, group: str) -> slice:
        """Where in the columns the runs of a group are; nowhere if none is done."""
        return self._spans.get(group, slice(0, 0))


def _numbers(units: list[dict[str, Any]], groups: dict[str, int], file: int) -> Indices:
    """What is known of the runs of a file, (7, runs); groups that are new get the next numbers."""
    rows: list[list[int]] = [[] for _ in range(DIVERGED + 1)]
    for unit in units:
        count = len(unit["seeds"])
        rows[GROUP] += [groups.setdefault(unit["group"], len(groups))] * count
        rows[SEED] += unit["seeds"]
        rows[LEARNING] += unit["value_updates"]["learning"]
        rows[PLANNING] += unit["value_updates"]["planning"]
        rows[DIVERGED] += unit.get("diverged", [0] * count)  # of older units nobody looked
    rows[FILE] = [file] * len(rows[SEED])
    rows[ROW] = list(range(len(rows[SEED])))
    return np.array(rows, dtype=np.int64)
