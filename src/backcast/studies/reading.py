"""From a file to a checked study; what is wrong with it is said in a sentence that names the file and the key.

A TOML file that a user names may run code: a world of Gymnasium's may import a module, and so may plugins. What comes
with a results directory may not (`stored_study`), and a dry run neither imports nor expands anything large (`outline`).
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS
from backcast.agents.settings import COMMON
from backcast.core.errors import InputError, TooManyError, in_a_line, nearest, shortened
from backcast.core.files import read_regular
from backcast.core.limits import refuse_many
from backcast.core.registry import Registered
from backcast.drivers.metrics import METRICS, OF_A_METRIC
from backcast.studies.agentspec import AgentSpec
from backcast.studies.plugins import import_plugins, needed
from backcast.studies.search import TAGS, Range, Search
from backcast.studies.spec import MODULE, Study
from backcast.studies.stand_ins import add_stand_ins
from backcast.studies.worldspec import About, Settings, WorldSpec
from backcast.worlds.kinds import WORLDS

MOST_BYTES = 2**20  # of a study
MANY = 100_000  # combinations of which it is said that they are laid out, which takes seconds
EXPANDED = 5000  # combinations that a dry run looks at one by one
LOOKED_AT = 50  # worlds that a dry run looks at


@dataclass(frozen=True)
class Outline:
    """What can be said of a study in a moment and without importing anything.

    Attributes:
        study: its worlds are not made.
        seeds: how many are asked for.
        combinations: of world, agent and settings.
        exact: whether there are so many; otherwise at most so many, for samples that are drawn twice are run once.
        expanded: whether there are so few that each was looked at.
        refused: why running it would be refused; nothing if it would not.
        unchecked: what was not looked at, in sentences.
    """

    study: Study
    seeds: int
    combinations: int
    exact: bool
    expanded: bool
    refused: str
    unchecked: tuple[str, ...]


def read_study(path: str | Path, tell: Callable[[str], None] = lambda sentence: None) -> Study:
    """A study from a TOML file; its name is that of the file unless it says otherwise.

    Args:
        path: of the file.
        tell: is told what takes long.
    """
    return check_study(_parsed(Path(path)), str(path), tell, Path(path).parent)


def read_outline(path: str | Path, seeds: int | None = None) -> Outline:
    """What can be said in a moment of a study in a TOML file, if it is run with so many seeds."""
    given, source = _parsed(Path(path)), str(path)
    known = {"metrics": _metrics(given)}
    add_stand_ins(_kinds(given), _world_kinds(given), _models(given), _modules(given), known, source)
    return outline(_of_files(_validated(given, source), Path(path).parent, source), source, seeds)


def check_study(
    given: dict[str, Any],
    source: str,
    tell: Callable[[str], None] = lambda sentence: None,
    folder: Path = Path(),
) -> Study:
    """A study from plain data; an error names the source, the key, what was given and what is allowed.

    Its plugins are imported, and installed ones that it needs are added to them.

    Args:
        given: the study.
        source: for errors.
        tell: is told what takes long.
        folder: from which on the paths of files are given.
    """
    try:
        import_plugins(_modules(given))
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    known: dict[str, About] = {}

    def about(place: int, world: WorldSpec) -> About:
        key = json.dumps(world.identity, sort_keys=True)
        if key not in known:
            known[key] = world.about
        return known[key]

    study = _knowing(_of_files(_with_plugins(_validated(given, source)), folder, source), about, source)
    _refuse_large(study, source)
    if study.count() > MANY:
        tell(f"{source}: laying out {study.count():,} combinations of world, agent and settings")
    _check_cells(study, source)
    return study


def stored_study(given: dict[str, Any], found: Mapping[str, Any], source: str, folder: Path) -> Study:
    """A study from plain data that came with results: nothing is imported for it, and no world is made.

    Args:
        given: the study as `Store.add_study` wrote it.
        found: what was written with it: of each world, what it says of itself, if that was written yet, and what is
            to be known of other people's kinds and metrics.
        source: for errors.
        folder: the directory of the results, from which on the paths of its own files are given.
    """
    add_stand_ins(_kinds(given), _world_kinds(given), _models(given), _modules(given), found, source)
    study = _validated(given, source)
    study = study.model_copy(update={"worlds": [world.located(folder) for world in study.worlds]})
    known = None if found.get("worlds") is None else _about(found["worlds"], len(study.worlds), source)
    study = _knowing(study, lambda place, world: world.sketch() if known is None else known[place], source)
    _refuse_large(study, source)
    _check_cells(study, source)
    return study


def outline(study: Study, source: str, seeds: int | None = None) -> Outline:
    """What can be said of a study in a moment: it is counted, and looked at only as far as it is small."""
    unchecked, sketches, seeds = list(_unchecked(study)), _Sketches(bool(study.plugins)), seeds or study.seeds
    study = _knowing(study, sketches, source)
    refused = f"{source}: {sketches.refused}" if sketches.refused else ""
    try:
        _refuse_large(study, source, seeds)
    except TooManyError as error:
        refused = refused or str(error)
    combinations = study.count()
    expanded = combinations <= EXPANDED
    if expanded:
        _check_cells(study, source)
        combinations = len(study.runs())
    else:
        unchecked.append("agents: of so many combinations, none was looked at")
    exact = expanded or not any(space.drawn for space in study.spaces)
    return Outline(study, seeds, combinations, exact, expanded, refused, tuple(unchecked))


def _of_files(study: Study, folder: Path, source: str) -> Study:
    """The study with worlds whose files were found, from this folder on, and whose content is known."""
    return _with_worlds(study, lambda place, world: world.located(folder).pinned(), source)


def _knowing(study: Study, say: Callable[[int, WorldSpec], About], source: str) -> Study:
    """The study with worlds of which is known what is said of each."""
    return _with_worlds(study, lambda place, world: world.knowing(say(place, world)), source)


def _with_worlds(study: Study, change: Callable[[int, WorldSpec], WorldSpec], source: str) -> Study:
    """The study with its worlds changed; an error names the world."""
    worlds = []
    for place, world in enumerate(study.worlds):
        try:
            worlds.append(change(place, world))
        except InputError as error:
            raise type(error)(f"{source}: worlds.{place}: {error}") from None
    return study.model_copy(update={"worlds": worlds})


class _Sketches:
    """What can be said of each world in a moment.

    A world that is too large is not refused, but noted.

    Args:
        may_come: whether what is not known may come with a plugin.
    """

    def __init__(self, may_come: bool = False) -> None:
        self.refused, self._may_come = "", may_come

    def __call__(self, place: int, world: WorldSpec) -> About:
        if world.known is not None:
            return world.known
        if place >= LOOKED_AT:
            return world.unmade(place)
        if not self._may_come:
            world.refuse()
        try:
            return world.sketch(place)
        except TooManyError as error:
            self.refused = self.refused or f"worlds.{place}: {error}"
            return world.unmade(place)


def _unchecked(study: Study) -> Iterable[str]:
    worlds, modules = study.worlds, ", ".join(study.plugins)
    for place, agent in enumerate(study.agents):
        if KINDS[agent.kind].is_absent:
            yield f"agents.{place}: {agent.kind!r} was not looked at, as that would import the plugins {modules}"
    for name in study.models:
        if name in ESTIMATORS and ESTIMATORS[name].is_absent:
            yield f"agents: the model {name!r} was not looked at, as that would import the plugins {modules}"
    for place, world in enumerate(worlds[:LOOKED_AT]):
        if world.why_unmade:
            yield f"worlds.{place}: {world.why_unmade}"
    if len(worlds) > LOOKED_AT:
        yield f"worlds.{LOOKED_AT} to worlds.{len(worlds) - 1}: they were not made"


def _with_plugins(study: Study) -> Study:
    """The study with the installed plugins that it needs, too."""
    used: list[Registered] = [KINDS[agent.kind] for agent in study.agents]
    used += [WORLDS[world.kind] for world in study.worlds]
    used += [ESTIMATORS[name] for name in study.models if name in ESTIMATORS]
    more = [module for module in needed(used) if module not in study.plugins]
    return study.model_copy(update={"plugins": [*study.plugins, *more]}) if more else study


def _kinds(given: dict[str, Any]) -> dict[str, list[str]]:
    """The kinds of agents of a study that was not checked yet, each with what seem to be settings of it."""
    agents = _tables(given, "agents")
    kinds: dict[str, list[str]] = {agent["kind"]: [] for agent in agents}
    for agent in agents:
        grids, searches = ([table.get(name) for table in (given, agent)] for name in ("grid", "search"))
        for keys, tables in ((AgentSpec.model_fields, [agent]), (COMMON, grids), (_OF_SEARCHES, searches)):
            names = [name for table in tables if isinstance(table, dict) for name in table]
            kinds[agent["kind"]].extend(name for name in names if name not in keys)
    return kinds


_OF_SEARCHES = (*Search.model_fields, *COMMON)  # keys of a search that are no settings of kinds


def _models(given: dict[str, Any]) -> list[str]:
    """What is given as `model` to the agents of a study that was not checked yet."""
    found = []
    for table in (given, *_tables(given, "agents")):
        searched = [inner.get("model") for inner in (table.get("grid"), table.get("search")) if isinstance(inner, dict)]
        found += [table.get("model"), *(each for those in searched if isinstance(those, list) for each in those)]
    return [name for name in found if isinstance(name, str)]


def _world_kinds(given: dict[str, Any]) -> dict[str, list[str]]:
    """The kinds of worlds of a study that was not checked yet, each with what seem to be keys of it."""
    kinds: dict[str, list[str]] = {}
    for world in _tables(given, "worlds"):
        kinds.setdefault(world["kind"], []).extend(name for name in world if name not in WorldSpec.model_fields)
    return kinds


def _metrics(given: dict[str, Any]) -> dict[str, Any]:
    """The metrics of which a study that was not checked yet has plots, with what is known of those nobody knows."""
    plots = [plot for plot in _listed(given, "plots") if isinstance(plot, str) and plot.endswith(OF_A_METRIC)]
    names = {plot: plot.removesuffix(OF_A_METRIC) for plot in plots}
    return {name: {"label": name, "plot": plot} for plot, name in names.items() if name not in METRICS}


def _tables(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of this name in a study that was not checked yet, as far as they have a kind."""
    return [each for each in _listed(given, name) if isinstance(each, dict) and isinstance(each.get("kind"), str)]


def _modules(given: dict[str, Any]) -> list[str]:
    """The plugins of a study that was not checked yet, as far as they can be modules."""
    return [name for name in _listed(given, "plugins") if isinstance(name, str) and re.match(MODULE, name)]


def _listed(given: Mapping[str, Any], table: str) -> list[Any]:
    """A list of a study that was not checked yet; nothing if it is no list."""
    found = given.get(table)
    return found if isinstance(found, list) else []


def _parsed(path: Path) -> dict[str, Any]:
    """A TOML file as plain data, with a name."""
    try:
        given = tomllib.loads(read_regular(path, MOST_BYTES).decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except RecursionError:
        raise InputError(f"{path}: not a study, its arrays or tables are nested too deeply") from None
    except InputError:
        raise
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML ({in_a_line(error)})") from error
    except ValueError as error:
        raise InputError(f"{path}: a number in it has more digits than any number needs") from error
    return {"name": path.stem, **given}


def _validated(given: dict[str, Any], source: str) -> Study:
    """The study with every key checked, but not what follows from them together."""
    try:
        study = Study.model_validate(given)
        study.spaces  # noqa: B018 — it raises where a setting is searched that nobody has
    except ValidationError as error:
        raise InputError("\n".join(f"{source}: {_sentence(e, given)}" for e in error.errors())) from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except RecursionError:
        raise InputError(f"{source}: not a study, something in it is nested too deeply") from None
    return study


def _about(given: object, worlds: int, source: str) -> list[About]:
    try:
        about = TypeAdapter(list[About]).validate_python(given)
    except ValidationError as error:
        raise InputError(f"{source}: worlds: what was known of them cannot be understood ({error.title})") from None
    if len(about) != worlds:
        raise InputError(f"{source}: worlds: {len(about)} are known, but the study has {worlds}")
    return about


def _refuse_large(study: Study, source: str, seeds: int | None = None) -> None:
    """Raise if there is more to run than is allowed, before any of it is made."""
    combinations = study.count()
    refuse_many(f"{source}: worlds × agents × settings", "combinations", combinations)
    refuse_many(f"{source}: combinations × seeds", "runs", combinations * (seeds or study.seeds))
    refuse_many(f"{source}: episodes", "episodes", max(world.episodes or study.episodes for world in study.worlds))


def _check_cells(study: Study, source: str) -> None:
    """Raise if an agent or a world is there twice, or no agent lives in a world."""
    labels: dict[str, list[str]] = {world.name: [] for world in study.worlds}
    try:
        for cell in study.runs():
            labels[cell.world.name].append(cell.label)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    for world, those in labels.items():
        if not those:
            raise InputError(f"{source}: agents: none of them is for {world}; see `only`")
    _refuse_twice(source, "worlds", [world.name for world in study.worlds])
    for those in labels.values():
        _refuse_twice(source, "agents", those)


def _refuse_twice(source: str, key: str, names: list[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            digits = "; numbers have six digits there" if "=" in name else ""
            raise InputError(f"{source}: {key}: {name!r} is there twice, and results could not be told apart{digits}")
        seen.add(name)


def _sentence(error: Any, given: Mapping[str, Any]) -> str:
    """One pydantic error about a study in our words."""
    parts = [shortened(str(part), 80) for part in error["loc"] if part not in TAGS]
    key = ".".join(parts) or "the study"
    if error["type"] == "extra_forbidden":
        fields = _allowed(error["loc"], given)
        return f"{key}: no such key; allowed are {', '.join(fields)}{nearest(parts[-1], fields)}"
    if error["type"] == "missing":
        return f"{key}: missing"
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return ".".join([*parts, str(cause)])  # it begins with the field within the table
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "literal_error":
        message += nearest(error["input"], error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", "))
    shown = json.dumps(error["input"], default=str)
    return f"{key}: {shown if len(shown) < 80 else shown[:77] + '...'} given, {message[0].lower() + message[1:]}"


_TABLES: dict[str, type[BaseModel]] = {"settings": Settings, "search": Range}  # that hold keys of their own


def _allowed(place: Sequence[str | int], given: Mapping[str, Any]) -> list[str]:
    """The keys of the table of a study in which one was found that is none of them."""
    inner = next((model for name, model in _TABLES.items() if name in place[:-1]), None)
    if inner is not None:
        return list(inner.model_fields)
    if place[0] == "worlds":
        return [*WorldSpec.model_fields, *WORLDS[_listed(given, "worlds")[int(place[1])]["kind"]].keys]
    if place[0] == "agents":
        kind = KINDS[_listed(given, "agents")[int(place[1])]["kind"]]
        return [*AgentSpec.model_fields, *kind.settings]
    return list(Study.model_fields)
