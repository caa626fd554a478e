"""Studies: many seeds of several agents in several worlds, kept in a directory, judged and exported."""

import contextlib
import gc
import warnings
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from backcast.core.errors import InputError, nearest
from backcast.studies.exported import Varied, checked_target, write_long
from backcast.studies.reading import check_study, read_study
from backcast.studies.results import Results
from backcast.studies.spec import Study
from backcast.studies.store import Store

PAPER = ("fan-levels", "fan-ratios", "frames", "stochasticity")
BEYOND = (
    *("estimation", "horizons", "neighbours", "experience", "off-policy", "linear", "planner-aware", "abstract"),
    *("neighbours-searched", "experience-searched"),
)
TEXTBOOK = tuple(f"textbook-{part}" for part in ("maze", "changes", "sweeping", "walk", "lambda", "steps", "groups"))
BLEND = tuple(
    f"blend-{worlds}-{equal}" for worlds in ("development", "held-out") for equal in ("experience", "updates")
)
STUDIES = PAPER + BEYOND + TEXTBOOK + BLEND
GROUPS = {"paper": PAPER, "beyond": BEYOND, "textbook": TEXTBOOK, "blend": BLEND, "all": STUDIES}


def in_group(names: Sequence[str]) -> list[str]:
    """The names of studies, with all of a group in the place of its name; each of them once.

    Examples:
        >>> in_group(["frames", "paper"])
        ['frames', 'fan-levels', 'fan-ratios', 'stochasticity']
    """
    return list(dict.fromkeys(study for name in names for study in GROUPS.get(name, (name,))))


def named_study(name: str) -> Study:
    """One of the paper's studies, of those that go beyond it, or of those of the textbook and of `blend`."""
    if name not in STUDIES:
        raise InputError(f"study: {name!r} given, expected some of {', '.join(STUDIES)}{nearest(name, STUDIES)}")
    folder = next(group for group, names in GROUPS.items() if name in names)
    with resources.as_file(resources.files("backcast.studies") / folder / f"{name}.toml") as path:
        return read_study(path)


def results(directory: str | Path) -> list[Results]:
    """The results of every study in a directory of which all agents that are there have seeds in common."""
    return comparable(stored(directory).results, directory)


def comparable(found: Sequence[Results], directory: str | Path) -> list[Results]:
    """Those of which all agents that are there have seeds in common."""
    chosen = [result for result in found if result.seeds > 0]
    if not chosen and any(result.worlds for result in found):
        raise InputError(
            f"{directory}: runs are there, but no seed yet that all agents have, by which they could be compared;"
            " backcast export writes what is there"
        )
    return chosen


class Stored(NamedTuple):
    """What is in a directory: the results of every study, be there any runs or not, and how many runs are of none."""

    results: list[Results]
    strays: int


def stored(directory: str | Path) -> Stored:
    """All that is stored in a directory."""
    store = Store(directory)
    with _no_collecting():
        index = store.index()
        found = [Results(store, study, index, seeds) for study, seeds in store.studies()]
        return Stored(found, index.strays(cell.group for result in found for cell in result.study.runs()))


@contextlib.contextmanager
def _no_collecting() -> Iterator[None]:
    """Within, no garbage is looked for: a hundred thousand records are none, and to look again and again takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def export(directory: str | Path, target: str | Path, found: Sequence[Results] | None = None) -> int:
    """Write the long table of all studies in a directory to a .csv or .parquet file; the number of rows.

    Args:
        directory: of the results.
        target: the file.
        found: what is stored there, if it is known already.
    """
    target = checked_target("--to", target)
    found = stored(directory).results if found is None else found
    varied = _varied(found)
    return write_long(target, varied.schema, (table for result in found for table in result.long_tables(varied)))


def _varied(found: Sequence[Results]) -> Varied:
    """The settings that vary in one of several studies."""
    return Varied([cell.agent for cell in result.study.runs()] for result in found)


def load(directory: str | Path, pandas: bool = False) -> Any:
    """The long table of all studies in a directory: study, world, agent, seed, episode, metric, value.

    A column for each setting that varies among the agents of a study follows. It warns of studies of which runs are
    missing.

    Args:
        directory: where `backcast reproduce` or `backcast sweep` put their results.
        pandas: give a pandas DataFrame (if pandas is installed) instead of a pyarrow Table.
    """
    found = stored(directory).results
    for result in found:
        if result.gap:
            warnings.warn(f"{result.name}: {result.gap}", stacklevel=2)
    varied = _varied(found)
    pieces = [table for result in found for table in result.long_tables(varied)]
    table = pa.concat_tables(pieces) if pieces else varied.schema.empty_table()
    if not pandas:
        return table
    try:
        return table.to_pandas()
    except ImportError as error:
        raise InputError("pandas: it is not installed; pip install pandas, or use the pyarrow table") from error


__all__ = [
    "BEYOND",
    "GROUPS",
    "PAPER",
    "STUDIES",
    "TEXTBOOK",
    "Results",
    "Store",
    "Study",
    "check_study",
    "comparable",
    "export",
    "in_group",
    "load",
    "named_study",
    "read_study",
    "results",
    "stored",
]
