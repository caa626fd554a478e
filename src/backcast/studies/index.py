"""Index of a store: every finished run, what determined it, and where its numbers are."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError, in_a_line
from backcast.studies.unit_tables import Expected

GROUP, SEED, FILE, ROW, LEARNING, PLANNING, EDGES, STEPS, DIVERGED = range(9)  # rows of the table of runs


class Index:
    """The runs of a store as columns (runs,), sorted by group and then by seed, without duplicates.

    A group is a hash of everything but the seed that determines a run's numbers. Two million runs take 130 MB.

    Args:
        batches: records, and the names of their files.
        folder: directory of the files, for error messages.

    Attributes:
        files: names of files, indexed by `file`.
        expected: expected content of the table of each file.
        seed: the seed of each run.
        file: index of the file of each run.
        row: position of the run in that file, counted from 0.
        updates: value updates made by learning and by planning, (runs, 2).
        edges: edges that planning touched.
        steps: environment steps.
        seconds: processor time.
        diverged: the step at which its values diverged, or 0.
    """

    def __init__(self, batches: Iterable[tuple[str, dict[str, Any]]], folder: Path = Path("units")) -> None:
        self.files: list[str] = []
        self.expected: list[Expected] = []
        groups: dict[str, int] = {}
        numbers, seconds = [np.empty((DIVERGED + 1, 0), dtype=np.int64)], [np.empty(0)]
        for name, record in batches:
            try:
                numbers.append(_numbers(record["units"], groups, len(self.files)))
                seconds.append(_seconds(record["units"], numbers[-1].shape[1]))
                self.expected.append(_expected(record, numbers[-1].shape[1]))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                what = f"{error} is missing" if isinstance(error, KeyError) else in_a_line(error)
                raise InputError(
                    f"{folder / name}.json: a record that cannot be understood ({what}); move it away to have its units"
                    " run again"
                ) from error
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
        self.edges: Indices = runs[EDGES]
        self.steps: Indices = runs[STEPS]
        self.diverged: Indices = runs[DIVERGED]
        self.seconds: Vector = np.concatenate(seconds)[order]
        ends = np.searchsorted(runs[GROUP], np.arange(len(groups) + 1)).tolist()
        self._spans = {group: slice(ends[number], ends[number + 1]) for group, number in groups.items()}

    def runs(self, group: str) -> slice:
        """The slice of the columns with the runs of a group; empty if none is done."""
        return self._spans.get(group, slice(0, 0))

    def strays(self, groups: Iterable[str]) -> int:
        """The number of runs of other groups."""
        return len(self.seed) - sum(span.stop - span.start for span in map(self.runs, set(groups)))

    def done(self, group: str, seeds: int) -> int:
        """The number of seeds among 0 … n − 1 of a group that are done."""
        runs = self.runs(group)
        return int(np.searchsorted(self.seed[runs], seeds))


def _numbers(units: list[dict[str, Any]], groups: dict[str, int], file: int) -> Indices:
    """The table of the runs of a file, (9, runs); new groups get the next numbers."""
    rows: list[list[int]] = [[] for _ in range(DIVERGED + 1)]
    for unit in units:
        count = len(unit["seeds"])
        rows[GROUP] += [groups.setdefault(unit["group"], len(groups))] * count
        rows[SEED] += unit["seeds"]
        rows[LEARNING] += unit["value_updates"]["learning"]
        rows[PLANNING] += unit["value_updates"]["planning"]
        rows[EDGES] += unit.get("edges", [0] * count)  # unknown for older units, as are their steps
        rows[STEPS] += unit.get("run_steps", [0] * count)
        rows[DIVERGED] += unit.get("diverged", [0] * count)  # not recorded for older units
    rows[FILE] = [file] * len(rows[SEED])
    rows[ROW] = list(range(len(rows[SEED])))
    numbers = np.array(rows)
    if not rows[SEED] or numbers.ndim != 2 or numbers.dtype != np.int64 or numbers.min() < 0:
        raise ValueError("seeds, value_updates, edges, run_steps and diverged are not whole numbers, one for each run")
    return numbers


def _seconds(units: list[dict[str, Any]], runs: int) -> Vector:
    seconds = np.array([each for unit in units for each in unit["run_seconds"]], dtype=np.float64)
    if seconds.shape != (runs,):
        raise ValueError("run_seconds are not one number for each run")
    return seconds


def _expected(record: dict[str, Any], runs: int) -> Expected:
    """The expected content of the table of a file."""
    episodes = {unit["episodes"] for unit in record["units"]}
    if len(episodes) > 1 or not all(isinstance(each, int) and each >= 1 for each in episodes):
        raise ValueError("episodes are not the same whole number for all units")
    if record.get("format", 1) == 1:
        return Expected(runs, episodes.pop())
    written = record["table"]
    return Expected(runs, episodes.pop(), tuple(map(str, written["columns"])), str(written["sha256"]))
