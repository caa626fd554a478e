"""The tables of a store: written compactly, and read only if they match their record.

A table has a row for each run and episode, in the order of its record: seed, episode, value updates and the metrics of
its world: `rmsve` and `rmsve_inner`, or `steps` and `reward`, and those of plugins.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from backcast.core.errors import InputError, in_a_line
from backcast.core.files import checksum, refuse_special
from backcast.core.limits import refuse_many
from backcast.drivers.metrics import COUNTED, METRICS


class Written(NamedTuple):
    """What the record stores to check a table."""

    columns: list[str]
    rows: int
    bytes: int
    sha256: str


class Expected(NamedTuple):
    """The expected content of a table; for older tables columns and checksum are unknown."""

    runs: int
    episodes: int
    columns: tuple[str, ...] | None = None
    sha256: str | None = None


def write_table(parts: Sequence[pa.Table], path: Path) -> Written:
    """Write some tables as one."""
    table = pa.concat_tables(parts)
    pq.write_table(
        table,
        path,
        compression="zstd",
        use_dictionary=[name for name in table.column_names if name not in COUNTED],
        column_encoding=dict.fromkeys(COUNTED, "DELTA_BINARY_PACKED"),  # consecutive differences are nearly equal
    )
    return Written(table.column_names, len(table), path.stat().st_size, checksum(path))


def columns(path: Path, expected: Expected) -> list[str]:
    """Return the names of the columns of a table; raise InputError if it is damaged."""
    with _whole(path):
        if expected.sha256 is not None and checksum(path) != expected.sha256:
            raise InputError(f"{path}: it was changed after it was written, its checksum differs; {again(path)}")
        found = pq.read_metadata(path)
    names = [found.schema.column(i).name for i in range(found.num_columns)]
    wanted = expected.columns or (*COUNTED[:2], *_measured(names))
    for name in wanted:
        if name not in names:
            raise InputError(f"{path}: the column {name!r} is missing; {again(path)}")
    if found.num_rows != expected.runs * expected.episodes:
        raise InputError(
            f"{path}: {found.num_rows:,} rows, but its record has {expected.runs:,} runs of {expected.episodes:,}"
            f" episodes; {again(path)}"
        )
    refuse_many(str(path), "episodes", found.num_rows)
    return names


def column(path: Path, name: str, expected: Expected) -> NDArray[Any]:
    """Return a column of a table whose columns were checked, (runs, episodes)."""
    with _whole(path):
        values = pq.read_table(path, columns=[name])[name]
        if values.null_count or not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            raise InputError(f"{path}: the column {name!r} does not hold numbers; {again(path)}")
    if len(values) != expected.runs * expected.episodes:
        raise InputError(f"{path}: the column {name!r} has {len(values):,} rows, fewer than others; {again(path)}")
    return values.to_numpy().reshape(expected.runs, expected.episodes)


def again(path: Path) -> str:
    """Say what to do about a damaged table."""
    return f"remove {path.stem}.json to have it run again, or see backcast verify {path.parent.parent}"


def _measured(names: Sequence[str]) -> tuple[str, ...]:
    """The group of metrics found in an older table, which has none of plugins."""
    own = [metric for metric in METRICS.values() if metric.is_builtin]
    those = [tuple(each.name for each in own if each.purpose == purpose) for purpose in ("prediction", "control")]
    return max(those, key=lambda names_of: sum(name in names for name in names_of))


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        refuse_special(path)
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: damaged or missing ({in_a_line(error)}); {again(path)}") from error
