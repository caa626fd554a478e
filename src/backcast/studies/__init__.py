"""Studies: many seeds of several agents in several worlds, stored in a directory, evaluated and exported."""

import contextlib
import gc
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
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
NEURAL = ("hindsight-or-replay", "hallucination", "neural-fan", "virtuous-cycle", "vectors")
PLAIN = PAPER + BEYOND + TEXTBOOK + BLEND  # those that need no extra
STUDIES = PLAIN + NEURAL
GROUPS = {"paper": PAPER, "beyond": BEYOND, "textbook": TEXTBOOK, "blend": BLEND, "neural": NEURAL, "all": PLAIN}


def in_group(names: Sequence[str]) -> list[str]:
    """Expand groups of studies to the names of their studies, without duplicates.

    Examples:
        >>> in_group(["frames", "paper"])
        ['frames', 'fan-levels', 'fan-ratios', 'stochasticity']
    """
    return list(dict.fromkeys(study for name in names for study in GROUPS.get(name, (name,))))


def named_study(name: str) -> Study:
    """Return a built-in study by name, of any group."""
    if name not in STUDIES:
        raise InputError(f"study: {name!r} given, expected some of {', '.join(STUDIES)}{nearest(name, STUDIES)}")
    with resources.as_file(_file_of(name)) as path:
        return read_study(path)


def title_of(name: str) -> str:
    """The title of a built-in study, whether or not its worlds can be made here."""
    return str(tomllib.loads(_file_of(name).read_text(encoding="utf-8"))["title"])


def _file_of(name: str) -> Traversable:
    folder = next(group for group, names in GROUPS.items() if name in names)
    return resources.files("backcast.studies") / folder / f"{name}.toml"


def results(directory: str | Path) -> list[Results]:
    """Return the results of every study in a directory whose agents have seeds in common."""
    return comparable(stored(directory).results, directory)


def comparable(found: Sequence[Results], directory: str | Path) -> list[Results]:
    """Return the results whose agents have seeds in common."""
    chosen = [result for result in found if result.seeds > 0]
    if not chosen and any(result.worlds for result in found):
        raise InputError(
            f"{directory}: runs are there, but no seed yet that all agents have, by which they could be compared;"
            " backcast export writes what is there"
        )
    return chosen


class Stored(NamedTuple):
    """The content of a directory: the results of every study, with or without runs, and the number of stray runs."""

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
    """Disable garbage collection, which is slow when reading a hundred thousand records."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def export(directory: str | Path, target: str | Path, found: Sequence[Results] | None = None) -> int:
    """Write the long table of all studies in a directory to a .csv or .parquet file; return the number of rows.

    Args:
        directory: directory of the results.
        target: the file to write.
        found: the stored results, if they are known already.
    """
    target = checked_target("--to", target)
    found = stored(directory).results if found is None else found
    varied = _varied(found)
    return write_long(target, varied.schema, (table for result in found for table in result.long_tables(varied)))


def _varied(found: Sequence[Results]) -> Varied:
    """The settings that vary in any of several studies."""
    return Varied([cell.agent for cell in result.study.runs()] for result in found)


def load(directory: str | Path, pandas: bool = False) -> Any:
    """Load the long table of all studies in a directory: study, world, agent, seed, episode, metric, value.

    Further columns are the settings that vary among the agents of a study. Warns of studies with missing runs.

    Args:
        directory: directory of results of `backcast reproduce` or `backcast sweep`.
        pandas: return a pandas DataFrame (if pandas is installed) instead of a pyarrow Table.
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
    "NEURAL",
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
    "title_of",
]
