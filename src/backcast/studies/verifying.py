"""`backcast verify`: check every file of a results directory against its record."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backcast.core.errors import InputError
from backcast.studies.index import Index
from backcast.studies.results import Results
from backcast.studies.store import Store, visible
from backcast.studies.unit_tables import Expected, column, columns


class Damage(NamedTuple):
    """A damaged file: the reason, and the number of runs lost with it, if known."""

    path: Path
    reason: str
    runs: int | None = None


@dataclass
class Verified:
    """The result of checking a directory.

    Attributes:
        files: number of intact tables.
        runs: number of runs in them.
        unchecked: number of these tables without a checksum, as written by older versions.
        damaged: damaged files.
        gaps: studies with missing runs, in sentences.
        strays: number of runs that belong to no study here.
        failures: number of units that failed the last time.
        others: files that are not Backcast's, or tables without a record.
    """

    files: int = 0
    runs: int = 0
    unchecked: int = 0
    damaged: list[Damage] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    strays: int = 0
    failures: int = 0
    others: list[Path] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        damaged = [{"path": str(path), "reason": reason, "runs": runs} for path, reason, runs in self.damaged]
        return {**vars(self), "damaged": damaged, "others": [str(path) for path in self.others]}


def verify(directory: str | Path) -> Verified:
    """Check every file of a directory of results; nothing is changed."""
    store = Store(directory)
    units, found, whole = store.directory / "units", Verified(), []
    records = visible(units)
    for path in records:
        try:
            record = store.record(path.stem)
            found.runs += _check(store, path.stem, record)
        except InputError as error:
            found.damaged.append(Damage(path, str(error), _runs_of(store, path.stem)))
            continue
        whole.append((path.stem, record))
        found.files += 1
        found.unchecked += "table" not in record
    recorded = {path.stem for path in records}
    orphans = [path for path in sorted(units.glob("*.parquet")) if path.stem not in recorded]
    found.others = [*orphans, *store.foreign_files()]
    found.failures = len(visible(store.directory / "failures"))
    _look_at_studies(store, Index(whole, units), found)
    return found


def _look_at_studies(store: Store, index: Index, found: Verified) -> None:
    """Record the missing runs of each study, and the stray runs."""
    groups: set[str] = set()
    for path in visible(store.directory / "studies"):
        try:
            study, wanted = store.study(path)
        except InputError as error:
            found.damaged.append(Damage(path, str(error)))
            continue
        gap = Results(store, study, index, wanted).gap
        found.gaps += [f"{study.name}: {gap}"] if gap else []
        groups.update(cell.group for cell in study.runs())
    found.strays = index.strays(groups)


def _check(store: Store, key: str, record: dict[str, Any]) -> int:
    """Return the number of runs of a file; raise InputError if it does not match its record."""
    expected = Index([(key, record)], store.directory / "units").expected[0]
    table = store.table(key)
    columns(table, expected)
    if expected.sha256 is None:
        _check_order(record, table, expected)
    return expected.runs


def _check_order(record: dict[str, Any], table: Path, expected: Expected) -> None:
    """Raise InputError if the rows of an older table, without a checksum, do not match its record."""
    seeds = np.concatenate([unit["seeds"] for unit in record["units"]])
    wanted = {"seed": seeds[:, None], "episode": np.arange(expected.episodes)}
    for name, values in wanted.items():
        if not (column(table, name, expected) == values).all():
            raise InputError(f"{table}: its rows do not match its record (column {name!r})")


def _runs_of(store: Store, key: str) -> int | None:
    """The number of runs of a record, if it can be read."""
    try:
        return len(Index([(key, store.record(key))]).seed)
    except InputError:
        return None


def sentences(found: Verified, directory: Path) -> Iterator[str]:
    """Describe the result; the last sentences say what to do."""
    yield from (damage.reason for damage in found.damaged)
    yield from (f"{path}: it belongs to no record and is left alone" for path in found.others)
    old = f" ({found.unchecked:,} of them without a checksum, by an older version)" if found.unchecked else ""
    yield f"{found.files:,} files with {found.runs:,} runs are whole{old}, {len(found.damaged):,} are not"
    if found.strays:
        yield f"{found.strays:,} runs belong to no study in this directory, for instance to an earlier version of one"
    if found.failures:
        yield f"{found.failures:,} units failed the last time they were tried: {directory / 'failures'} says why"
    yield from found.gaps
    if found.damaged:
        yield f"to run damaged units again: move these records away, then backcast sweep {directory}"
    elif found.gaps:
        yield f"to run what is missing: backcast sweep {directory}, or the original command"
