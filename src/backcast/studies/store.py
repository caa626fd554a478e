"""The run store: a directory in which what exists is done.

    DIR/units/<hash>.parquet   seed, episode and the metrics of a block of seeds of one agent in one world
    DIR/units/<hash>.json      what determined it (its hash is the name), versions, timings
    DIR/studies/<name>.json    the studies that were run here, as they were

Files are written beside their place and renamed, the record last: a unit without a record is not done and is run again.
Whatever kills a study, at any moment, costs the units under way and nothing else.
"""

import functools
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from backcast.arrays import Indices, Vector
from backcast.errors import InputError
from backcast.files import atomic_path
from backcast.runs import Runs
from backcast.studies.divergence import lost_episodes
from backcast.studies.spec import METRICS, Cell, Study, check_study

RESULTS = 3  # raised when the same settings give other numbers: older units are then not taken for done


@dataclass(frozen=True)
class Unit:
    """A block of seeds of one agent in one world."""

    cell: Cell
    seeds: tuple[int, ...]

    @property
    def key(self) -> str:
        """The hash of everything that determines the numbers; the name of its files."""
        return _digest({**_identity(self.cell), "seeds": self.seeds})


class Store:
    """A directory of results."""

    def __init__(self, directory: str | Path, *, create: bool = False) -> None:
        self.directory = Path(directory)
        if create:
            try:
                for name in ("units", "studies"):
                    (self.directory / name).mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError, PermissionError) as error:
                raise InputError(f"{directory}: cannot be used for results ({error.strerror})") from error
            if not os.access(self.directory / "units", os.W_OK):
                raise InputError(f"{directory}: cannot be written to")
        elif not (self.directory / "units").is_dir():
            raise InputError(
                f"{directory}: no results of Backcast there; make some with: backcast reproduce --out {directory}"
            )

    def add_study(self, study: Study) -> None:
        """Remember a study, so that reports and exports know what belongs to it."""
        path = self.directory / "studies" / f"{study.name}.json"
        with atomic_path(path) as part:
            part.write_text(study.model_dump_json(indent=1, exclude_defaults=True) + "\n", encoding="utf-8")

    def studies(self) -> list[Study]:
        """The studies that were run here, by name."""
        found = []
        for path in sorted((self.directory / "studies").glob("*.json")):
            found.append(check_study(_read_json(path), str(path)))
        return found

    def put(self, unit: Unit, runs: Runs, seconds: float) -> None:
        """Keep the results of a unit."""
        record = {
            **_identity(unit.cell),
            "seeds": list(unit.seeds),
            "label": unit.cell.label,
            "world_name": runs.world,
            "value_updates": {"learning": runs.updates.learning.tolist(), "planning": runs.updates.planning.tolist()},
            "seconds": round(seconds, 4),
            "run_seconds": [round(float(each), 6) for each in runs.seconds],
            "diverged": runs.diverged.tolist(),
            "steps": int(runs.steps.sum()),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine(),
        }
        base = self.directory / "units" / unit.key
        with atomic_path(base.with_suffix(".parquet")) as part:
            pq.write_table(_table(runs), part, compression="zstd")
        with atomic_path(base.with_suffix(".json")) as part:
            part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def records(self) -> dict[str, dict[str, Any]]:
        """The records of all finished units, by key."""
        return {path.stem: _read_json(path) for path in sorted((self.directory / "units").glob("*.json"))}

    def foreign_files(self) -> list[Path]:
        """Files among the units that Backcast did not write; they are left alone."""
        mine = {".json", ".parquet", ".part"}
        return [
            path
            for path in sorted((self.directory / "units").iterdir())
            if path.suffix not in mine or (path.suffix != ".part" and len(path.stem) != _KEY_LENGTH)
        ]

    def done(self, cell: Cell, records: dict[str, dict[str, Any]]) -> dict[int, str]:
        """For each seed of a cell that is done, the key of the unit that holds it."""
        group = _identity(cell)["group"]
        return {seed: key for key, record in records.items() if record["group"] == group for seed in record["seeds"]}

    def read(self, key: str) -> pa.Table:
        """The table of one unit."""
        path = self.directory / "units" / f"{key}.parquet"
        try:
            return pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{path}: damaged or missing ({error}); remove {key}.json to have it run again") from error


_KEY_LENGTH = 24


def _identity(cell: Cell) -> dict[str, Any]:
    identity = {"results": RESULTS, **cell.identity()}
    return {**identity, "group": _digest(identity)}


def _digest(thing: dict[str, Any]) -> str:
    text = json.dumps(thing, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]


def _table(runs: Runs) -> pa.Table:
    seeds, episodes = runs.steps.shape
    columns: dict[str, Any] = {
        "seed": np.repeat(np.asarray(runs.seeds, dtype=np.int64), episodes),
        "episode": np.tile(np.arange(episodes, dtype=np.int32), seeds),
        "updates": runs.updates.by_episode.ravel(),
    }
    for metric in METRICS:
        values = getattr(runs, metric)
        if values is not None and (runs.rmsve is not None) == metric.startswith("rmsve"):
            columns[metric] = np.asarray(values, dtype=np.float64).ravel()
    return pa.table(columns)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not a record")
        return found
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: cannot be read ({error}); move it away to have its unit run again") from error


@functools.cache
def machine() -> dict[str, str]:
    """Versions, and the commit if Backcast runs from a checkout."""
    versions = {name: version(name) for name in ("backcast", "numpy", "numba", "scipy", "pyarrow")}
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        commit = ""
    return {**versions, "python": platform.python_version(), "platform": sys.platform, "commit": commit}


class Results:
    """The results of one study: curves by world, agent and metric."""

    def __init__(self, store: Store, study: Study, records: dict[str, dict[str, Any]] | None = None) -> None:
        self.store, self.study, self.name = store, study, study.name
        self._records = store.records() if records is None else records
        self._means: dict[tuple[str, str, str], Vector] = {}
        self._cells: dict[str, dict[str, Cell]] = {}
        for cell in study.runs():
            self._cells.setdefault(cell.world.build().name, {})[cell.label] = cell
        counts = [len(self._seeds(cell)) for cells in self._cells.values() for cell in cells.values()]
        self.seeds = min(counts)
        self.complete = min(counts) == max(counts) >= study.seeds

    @property
    def worlds(self) -> list[str]:
        """World names, in the order of the study."""
        return list(self._cells)

    def agents(self, world: str) -> list[str]:
        """Agent names, in the order of the study."""
        return list(self._cells[world])

    def metrics(self, world: str, agent: str) -> list[str]:
        """The metrics measured: errors in prediction, steps and reward in control."""
        done = self._seeds(self._cells[world][agent])
        names = self.store.read(next(iter(done.values()))).column_names if done else []
        return [metric for metric in METRICS if metric in names]

    def curves(self, world: str, agent: str, metric: str) -> Vector:
        """(seeds, episodes), for the seeds that all agents of the study have.

        From the episode on in which a run diverged it is as bad as can be: infinite, and −∞ in the case of a reward.
        """
        return self._rows(world, agent, metric)[1][: self.seeds]

    def means(self, world: str, agent: str, metric: str) -> Vector:
        """The mean of each seed's curve, (seeds,): steps per episode, or the area under an error curve."""
        key = (world, agent, metric)
        if key not in self._means:
            self._means[key] = self.curves(*key).mean(axis=1)
        return self._means[key]

    def diverged(self, world: str, agent: str) -> Indices:
        """The step at which each seed's values exploded, counted from 1, (seeds,); 0 where they did not."""
        return self._diverged(world, agent)[: self.seeds]

    def _rows(self, world: str, agent: str, metric: str) -> tuple[list[int], Vector]:
        """All seeds that are done, in ascending order, and their curves."""
        seeds, values = self._stored(world, agent, metric)
        diverged = self._diverged(world, agent)
        if metric in ("steps", "reward") and diverged.any():
            steps = values if metric == "steps" else self._stored(world, agent, "steps")[1]
            values = np.where(lost_episodes(steps, diverged), np.inf if metric == "steps" else -np.inf, values)
        return seeds, values

    def _stored(self, world: str, agent: str, column: str) -> tuple[list[int], Vector]:
        """All seeds that are done, in ascending order, and a column of their tables by episode."""
        cell = self._cells[world][agent]
        rows: dict[int, Vector] = {}
        for key in set(self._seeds(cell).values()):
            table = self.store.read(key)
            if column not in table.column_names:
                kind = "prediction" if column.startswith("rmsve") else "control"
                raise InputError(
                    f"{self.name}: {column} is measured in {kind} worlds, and {world} is none; see its plots"
                )
            values = table[column].to_numpy().reshape(-1, cell.episodes)
            rows.update(zip(table["seed"].to_numpy()[:: cell.episodes].tolist(), values, strict=True))
        seeds = sorted(rows)
        return seeds, np.stack([rows[seed] for seed in seeds])

    def _diverged(self, world: str, agent: str) -> Indices:
        """When each seed that is done diverged; of units older than this, nobody looked: 0."""
        found = self._of_each_run(world, agent, lambda unit: unit.get("diverged", [0] * len(unit["seeds"])))
        return np.array(found, dtype=np.int64)

    def _of_each_run(self, world: str, agent: str, read: Callable[[dict[str, Any]], Iterable[Any]]) -> list[Any]:
        """What records say of each seed that is done, in ascending order of the seeds."""
        done = self._seeds(self._cells[world][agent])
        found: dict[int, Any] = {}
        for key in set(done.values()):
            found.update(zip(self._records[key]["seeds"], read(self._records[key]), strict=True))
        return [found[seed] for seed in sorted(done)]

    def updates(self, world: str, agent: str) -> Vector:
        """(seeds, episodes): value updates made up to the end of each episode."""
        return self._stored(world, agent, "updates")[1][: self.seeds].astype(np.float64)

    def seconds(self, world: str, agent: str) -> float:
        """Mean processor seconds of a run."""
        return float(np.mean(self._of_each_run(world, agent, lambda unit: unit["run_seconds"])[: self.seeds]))

    def value_updates(self, world: str, agent: str) -> float:
        """Mean number of value updates of a run, learning and planning together."""
        made = self._of_each_run(world, agent, lambda unit: map(sum, zip(*unit["value_updates"].values(), strict=True)))
        return float(np.mean(made[: self.seeds]))

    def long_tables(self) -> Iterator[pa.Table]:
        """The long table of the study, a piece for each world, agent and metric."""
        for world in self.worlds:
            for agent in self.agents(world):
                for metric in self.metrics(world, agent):
                    seeds, values = self._rows(world, agent, metric)
                    episodes = values.shape[1]
                    columns = {
                        "study": _constant(self.name, values.size),
                        "world": _constant(world, values.size),
                        "agent": _constant(agent, values.size),
                        "seed": pa.array(np.repeat(np.asarray(seeds, dtype=np.int64), episodes)),
                        "episode": pa.array(np.tile(np.arange(episodes, dtype=np.int32), len(seeds))),
                        "metric": _constant(metric, values.size),
                        "value": pa.array(values.ravel()),
                    }
                    yield pa.table(columns)

    def _seeds(self, cell: Cell) -> dict[int, str]:
        return self.store.done(cell, self._records)


def _constant(text: str, length: int) -> pa.Array:
    """A column that says the same in every row, stored once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int32)), pa.array([text])).cast(
        pa.string()
    )
