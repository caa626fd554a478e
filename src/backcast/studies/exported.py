"""The exported table: its columns, with one for each setting in which the agents of a study differ, and its files."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from backcast.agents import Agent
from backcast.agents.settings import COMMON, describe
from backcast.core.errors import InputError
from backcast.core.files import atomic_path, remove_remains
from backcast.core.setting_types import Setting
from backcast.studies.search import searchable

COLUMNS = (
    ("study", pa.string()),
    ("world", pa.string()),
    ("agent", pa.string()),
    ("seed", pa.int64()),
    ("episode", pa.int32()),
    ("metric", pa.string()),
    ("value", pa.float64()),
)  # columns of every exported table


class Varied:
    """The settings that vary among the agents of a study, and their values for each agent.

    An agent has values of the settings that matter to it, possibly defaults, and none of others. Values are numbers or,
    if one of them is not a number, text as in the names of agents.

    Args:
        studies: the agents of each study. A setting has a column if it is given in one of them, and varies there.

    Attributes:
        schema: schema of the table: the columns of every table, and one for each varying setting.
    """

    def __init__(self, studies: Iterable[Iterable[Agent]]) -> None:
        self._tables: dict[str, dict[str, Setting]] = {}  # settings of kinds
        found: dict[str, set[Any]] = {}
        varying: dict[str, None] = {}
        for agents in studies:
            here: dict[str, set[Any]] = {}
            given: set[str] = set()
            for agent in set(agents):
                given.update(_given(agent))
                for name, value in self._settings(agent):
                    here.setdefault(name, set()).add(value)
            varying |= {name: None for name, values in here.items() if len(values) > 1 and name in given}
            for name, values in here.items():
                found.setdefault(name, set()).update(values)
        self._types = {name: _type(found[name] - {None}) for name in sorted(varying)}
        self.schema = pa.schema([*COLUMNS, *((_column(name), kind) for name, kind in self._types.items())])

    def columns(self, agents: Sequence[Agent], counts: Sequence[int]) -> dict[str, pa.Array]:
        """The columns of the settings, with the values of each agent repeated `counts` times."""
        numbers = pa.array(np.repeat(np.arange(len(agents), dtype=np.int32), counts))
        given = [dict(self._settings(agent)) for agent in agents]
        columns = {}
        for name, kind in self._types.items():
            values = [_cast(name, each.get(name), kind) for each in given]
            columns[_column(name)] = pa.array(values, kind).take(numbers)
        return columns

    def _settings(self, agent: Agent) -> Iterator[tuple[str, Any]]:
        """The settings that matter to an agent, and their values; None if there is no value."""
        given = _given(agent)
        if agent.kind not in self._tables:
            self._tables[agent.kind] = searchable(agent.kind)
        for name, setting in self._tables[agent.kind].items():
            yield name, given[name] if name in given else setting.usual(given)


def _given(agent: Agent) -> dict[str, Any]:
    """The settings given to an agent."""
    common = {name: getattr(agent, name) for name in COMMON}
    return {name: value for name, value in (*common.items(), *agent.settings) if value is not None}


def _type(values: set[Any]) -> pa.DataType:
    """The Arrow type of these values: integers, floats, booleans or text."""
    kinds = {type(value) for value in values}
    for allowed, kind in (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64())):
        if kinds <= allowed:
            return kind
    return pa.string()


def _cast(name: str, value: object, kind: pa.DataType) -> Any:
    return value if value is None or kind != pa.string() else describe(((name, value),)).partition("=")[2]


def _column(name: str) -> str:
    """The unique name of a setting's column."""
    return f"{name}_setting" if name in dict(COLUMNS) else name


def checked_target(field: str, target: str | Path) -> Path:
    """Validate the path of a table: a .csv or .parquet file in an existing directory."""
    path = Path(target)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{field}: {path} given, expected a file that ends in .csv or .parquet")
    if not path.parent.is_dir():
        raise InputError(f"{field}: there is no directory {path.parent}")
    return path


def write_long(target: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """Write tables of this schema to one file atomically; return the number of rows."""
    rows = 0
    remove_remains(target.parent)
    with atomic_path(target) as part:
        in_rows = target.suffix == ".csv"
        writer: Any = pv.CSVWriter(part, schema) if in_rows else pq.ParquetWriter(part, schema, compression="zstd")
        with writer:
            for table in tables:
                writer.write_table(table)
                rows += len(table)
    return rows
