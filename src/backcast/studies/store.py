"""The run store: a directory in which what exists is done.

    DIR/units/<hash>.parquet   what some units measured: seed, episode and the metrics of a world
    DIR/units/<hash>.json      what determined each of them, in the order of the rows; versions, timings
    DIR/studies/<name>.json    the studies that were run here, as they were
    DIR/failures/<…>.json      units that could not be performed the last time they were tried, and why

Files are written beside their place and renamed, the record last: a unit without a record is not done and is run again.
Whatever kills a study, at any moment, costs the units under way and nothing else.
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
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from backcast.errors import InputError
from backcast.files import atomic_path, locked
from backcast.studies.batches import Performed
from backcast.studies.cells import KEY_LENGTH, digest
from backcast.studies.index import Index
from backcast.studies.spec import Study, check_study
from backcast.studies.units import Failed, Finished, Unit

REMAINS = 3600.0  # seconds after which a file that is half written is nobody's
Shard = tuple[int, int]  # this one, counted from 1, and how many there are


class Store:
    """A directory of results."""

    def __init__(self, directory: str | Path, *, create: bool = False) -> None:
        self.directory = Path(directory)
        if create:
            try:
                for name in ("units", "studies", "failures"):
                    (self.directory / name).mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError, PermissionError) as error:
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
        """Be the only one who adds results, or the only one of this shard; wait while another one is.

        Who waits goes on when the other has finished or was killed, and finds done what the other did.
        """
        with locked(self.directory / ".lock", when_waiting, shared=shard is not None):
            if shard is None:
                self._remove_remains()
                yield
                return
            with locked(self.directory / ".lock-{}-of-{}".format(*shard), when_waiting):
                yield

    def _remove_remains(self) -> None:
        """Remove what was being written when somebody was killed, a while ago: jobs may be writing now."""
        for path in self.directory.glob("*/.*.part"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > REMAINS:
                    path.unlink()

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

    def put(self, performed: Performed) -> None:
        """Keep what came of a batch: as one file what was measured, and a file for each unit that failed."""
        finished = [outcome for outcome in performed.outcomes if isinstance(outcome, Finished)]
        if finished:
            self._put_finished(finished, performed.machine)
        for outcome in performed.outcomes:
            if isinstance(outcome, Failed):
                self._put_failed(outcome, performed.worker)

    def _put_finished(self, finished: Sequence[Finished], machine: dict[str, str]) -> None:
        base = self.directory / "units" / digest({"units": [each.unit.key for each in finished]})
        with atomic_path(base.with_suffix(".parquet")) as part:
            pq.write_table(pa.concat_tables([each.table for each in finished]), part, compression="zstd")
        when = {"finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": machine}
        lines = ",\n".join(json.dumps(each.record) for each in finished)
        with atomic_path(base.with_suffix(".json")) as part:
            part.write_text(f'{json.dumps(when)[:-1]},\n"units": [\n{lines}\n]}}\n', encoding="utf-8")

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
        """Forget that these units, which are tried again, could not be performed."""
        known = {path.stem for path in (self.directory / "failures").glob("*.json")}
        for unit in units if known else ():
            for name in known.intersection(f"{unit.cell.group}-{seed}" for seed in unit.seeds):
                (self.directory / "failures" / f"{name}.json").unlink(missing_ok=True)

    def batches(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every record, with the name of its files; one that older versions wrote is about a single unit."""
        for path in sorted((self.directory / "units").glob("*.json")):
            record = _read_json(path)
            yield path.stem, record if "units" in record else {**record, "units": [record]}

    def index(self) -> Index:
        """Which runs are done, and where they are."""
        try:
            return Index(self.batches())
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{self.directory}: a record cannot be understood ({error!r})") from error

    def foreign_files(self) -> list[Path]:
        """Files among the units that Backcast did not write; they are left alone."""
        mine = {".json", ".parquet", ".part"}
        return [
            path
            for path in sorted((self.directory / "units").iterdir())
            if path.suffix not in mine or (path.suffix != ".part" and len(path.stem) != KEY_LENGTH)
        ]

    def columns(self, key: str) -> list[str]:
        """The names of the columns of a file."""
        with self._whole(key) as path:
            return list(pq.read_schema(path).names)

    def read(self, key: str, columns: list[str] | None = None) -> pa.Table:
        """A file's table, or some columns of it."""
        with self._whole(key) as path:
            return pq.read_table(path, columns=columns)

    @contextlib.contextmanager
    def _whole(self, key: str) -> Iterator[Path]:
        path = self.directory / "units" / f"{key}.parquet"
        try:
            yield path
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{path}: damaged or missing ({error}); remove {key}.json to have it run again") from error


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
