"""The run store: a directory in which everything that exists is finished.

    DIR/units/<hash>.parquet   what some units measured: seed, episode and the metrics of a world
    DIR/units/<hash>.json      its record: the identity of each unit, in the order of the rows; versions, timings;
                               the columns, the size and the checksum of the table
        DIR/studies/<name>.json    a study that was run here, the number of seeds, and the descriptions of its worlds
                                   (also what is needed to read results of third-party kinds and metrics)
    DIR/failures/<…>.json      units that failed the last time they were tried, and why

Studies and records end with their own checksum. Files are written under temporary names and renamed, the record last:
a unit without a record is not done and is run again. Killing a study at any moment loses only the units under way.

A directory may come from an untrusted source. Reading it runs nothing, imports nothing and makes no world.
"""

import contextlib
import functools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from backcast.core.errors import InputError, in_a_line, shown
from backcast.core.files import atomic_path, locked, read_regular, remove_remains
from backcast.studies.batches import Performed
from backcast.studies.cells import KEY_LENGTH, digest
from backcast.studies.index import Index
from backcast.studies.reading import stored_study
from backcast.studies.sealing import is_sealed, seal
from backcast.studies.spec import Study
from backcast.studies.stand_ins import remembered
from backcast.studies.unit_tables import write_table
from backcast.studies.units import Failed, Finished, Unit
from backcast.worlds.kinds import WORLDS

FORMAT = 2  # format of a directory; 1 had no checksums and no descriptions of worlds
AGAIN = "move it away to have its units run again"
MOST_STUDY, MOST_RECORD = 16 * 2**20, 64 * 2**20  # size limits of files in bytes
Shard = tuple[int, int]  # the number of the shard, from 1, and the number of shards


class Asked(NamedTuple):
    """A study, and the number of seeds requested."""

    study: Study
    seeds: int


class Store:
    """A directory of results."""

    def __init__(self, directory: str | Path, *, create: bool = False) -> None:
        self.directory = Path(directory)
        if create:
            try:
                for name in ("units", "studies", "failures"):
                    (self.directory / name).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"{directory}: cannot be used for results ({error.strerror})") from error
            if not os.access(self.directory / "units", os.W_OK):
                raise InputError(f"{directory}: cannot be written to")
        elif not (self.directory / "units").is_dir():
            raise InputError(
                f"{directory}: no results of Backcast there; make some with: backcast reproduce --out {directory}"
                " (or backcast sweep)"
            )

    @contextlib.contextmanager
    def writing(self, shard: Shard | None = None, when_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Acquire the right to add results, exclusively or for one shard; wait while another process has it.

        The waiting process continues when the other has finished or was killed, and skips what the other did.
        """
        with locked(self.directory / ".lock", when_waiting, shared=shard is not None):
            self._remove_remains()
            if shard is None:
                yield
                return
            with locked(self.directory / ".lock-{}-of-{}".format(*shard), when_waiting):
                yield

    def _remove_remains(self) -> None:
        """Remove incomplete files of killed processes; other shards, jobs and reports may be writing now."""
        for name in (".", "units", "studies", "failures", "figures"):
            remove_remains(self.directory / name)

    def add_study(self, study: Study, seeds: int | None = None) -> None:
        """Store a study, so that reports and exports know what belongs to it, and the most seeds ever requested."""
        path = self.directory / "studies" / f"{study.name}.json"
        known: dict[str, Any] = {
            "format": FORMAT,
            "study": self._plain(study),
            "seeds": study.seeds if seeds is None else seeds,
            "worlds": [world.about.stored() for world in study.worlds],
        }
        if study.plugins:
            kinds, worlds = (dict.fromkeys(each.kind for each in those) for those in (study.agents, study.worlds))
            known |= remembered(kinds, worlds, study.plugins)
        if path.exists():
            earlier = _read_json(path, MOST_STUDY)
            if earlier.get("study") == known["study"]:
                known["seeds"] = max(known["seeds"], _stored(path, earlier).seeds)
        with atomic_path(path) as part:
            part.write_text(seal(json.dumps(known, indent=1)), encoding="utf-8")

    def _plain(self, study: Study) -> dict[str, Any]:
        """A study as plain data; paths of files in this directory are relative to it, as it may be moved."""
        plain = study.model_dump(mode="json", exclude_defaults=True)
        here = self.directory.absolute()
        for world in plain["worlds"]:
            file = WORLDS[world["kind"]].file
            if file is not None and Path(world[file]).is_relative_to(here):
                world[file] = str(Path(world[file]).relative_to(here))
        return plain

    def studies(self) -> list[Asked]:
        """The studies that were run here, by name."""
        return [self.study(path) for path in visible(self.directory / "studies")]

    def study(self, path: Path) -> Asked:
        """The study that a file is about."""
        return _stored(path, _read_json(path, MOST_STUDY))

    def put(self, performed: Performed) -> None:
        """Store the outcome of a batch: one file of measurements, and a file for each failed unit."""
        finished = [outcome for outcome in performed.outcomes if isinstance(outcome, Finished)]
        if finished:
            self._put_finished(finished, performed.machine)
        for outcome in performed.outcomes:
            if isinstance(outcome, Failed):
                self._put_failed(outcome, performed.worker)

    def _put_finished(self, finished: Sequence[Finished], machine: dict[str, str]) -> None:
        lines = ",\n".join(json.dumps(each.record) for each in finished)
        if len(lines) > MOST_RECORD // 2 and len(finished) > 1:
            for half in (finished[: len(finished) // 2], finished[len(finished) // 2 :]):
                self._put_finished(half, machine)
            return
        base = self.directory / "units" / digest({"units": [each.unit.key for each in finished]})
        with atomic_path(base.with_suffix(".parquet")) as part:
            table = write_table([each.table for each in finished], part)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        known = {"format": FORMAT, "finished": when, "machine": machine, "table": table._asdict()}
        with atomic_path(base.with_suffix(".json")) as part:
            part.write_text(seal(f'{json.dumps(known)[:-1]},\n"units": [\n{lines}\n]}}'), encoding="utf-8")

    def _put_failed(self, failed: Failed, worker: str) -> None:
        what = {
            "error": failed.error,
            "label": failed.unit.label,
            **failed.unit.cell.identity(),
            "seeds": list(failed.unit.seeds),
            "worker": worker,
            "details": failed.details.splitlines(),
        }
        with atomic_path(self.directory / "failures" / f"{failed.unit.cell.group}-{failed.unit.seeds[0]}.json") as part:
            part.write_text(json.dumps(what, indent=1) + "\n", encoding="utf-8")

    def forget_failures(self, units: Sequence[Unit]) -> None:
        """Remove the failures of these units, which are tried again."""
        known = {path.stem for path in visible(self.directory / "failures")}
        for unit in units if known else ():
            for name in known.intersection(f"{unit.cell.group}-{seed}" for seed in unit.seeds):
                (self.directory / "failures" / f"{name}.json").unlink(missing_ok=True)

    def batches(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every record, with the name of its files."""
        for path in visible(self.directory / "units"):
            yield path.stem, self.record(path.stem)

    def record(self, key: str) -> dict[str, Any]:
        """The record of a file; records of older versions have a single unit."""
        path = self.directory / "units" / f"{key}.json"
        record = _read_json(path, MOST_RECORD)
        return record if "units" in record else {**record, "units": [record]}

    def index(self) -> Index:
        """Which runs are done, and where they are."""
        return Index(self.batches(), self.directory / "units")

    def foreign_files(self) -> list[Path]:
        """Files among the units that were not written by Backcast; they are left alone."""
        mine = {".json", ".parquet", ".part"}
        return [
            path
            for path in sorted((self.directory / "units").iterdir())
            if path.suffix not in mine or (path.suffix != ".part" and len(path.stem) != KEY_LENGTH)
        ]

    def table(self, key: str) -> Path:
        """The path of the table of a file."""
        return self.directory / "units" / f"{key}.parquet"


def visible(folder: Path) -> list[Path]:
    """The .json files of a folder, except hidden ones, which are not Backcast's."""
    return [path for path in sorted(folder.glob("*.json")) if not path.name.startswith(".")]


def _stored(path: Path, found: dict[str, Any]) -> Asked:
    """Read a stored study; files without a format contain only the study."""
    folder = path.parent.parent
    if "format" not in found:
        study = stored_study(found, {}, str(path), folder)
        return Asked(study, study.seeds)
    given, seeds = found.get("study"), found.get("seeds")
    if not isinstance(given, dict) or not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"{path}: not a study that Backcast wrote; move it away")
    return Asked(stored_study(given, found, str(path), folder), seeds)


def _read_json(path: Path, most: int) -> dict[str, Any]:
    """Read an object written by Backcast; raise InputError if it is from a later version or was changed."""
    try:
        content = read_regular(path, most)
        found = json.loads(content)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({in_a_line(error)}); {AGAIN}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: not a record; {AGAIN}")
    given = found.get("format", 1)
    if not isinstance(given, int) or not 1 <= given <= FORMAT:
        raise InputError(f"{path}: format {shown(given)}, this Backcast reads 1 to {FORMAT}; get a newer version")
    if given > 1 and not is_sealed(content):
        raise InputError(f"{path}: it was changed after it was written, its checksum differs; {AGAIN}")
    return found


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
