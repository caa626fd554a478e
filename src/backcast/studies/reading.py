"""Read and validate studies; errors name the file and the key.

A TOML file that a user names may run code: a Gymnasium world may import a module, and so may plugins. A study that
comes with a results directory may not (`stored_study`). A dry run imports nothing and expands nothing large
(`outline`).
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

MOST_BYTES = 2**20  # size limit of a study
MANY = 100_000  # combinations from which a message is shown, because expanding them takes seconds
EXPANDED = 5000  # most combinations that a dry run checks one by one
LOOKED_AT = 50  # most worlds that a dry run checks


@dataclass(frozen=True)
class Outline:
    """What is known of a study quickly and without importing anything.

    Attributes:
        study: the study; its worlds are not made.
        seeds: number of seeds requested.
        combinations: number of combinations of world, agent and settings.
        exact: whether that number is exact; otherwise it is an upper bound, because duplicate samples are run once.
        expanded: whether every combination was checked.
        refused: why running it would be refused; empty if it would not.
        unchecked: what was not checked, in sentences.
    """

    study: Study
    seeds: int
    combinations: int
    exact: bool
    expanded: bool
    refused: str
    unchecked: tuple[str, ...]


def read_study(path: str | Path, tell: Callable[[str], None] = lambda sentence: None) -> Study:
    """Read a study from a TOML file; its name defaults to that of the file.

    Args:
        path: path of the file.
        tell: called with a sentence before anything slow.
    """
    study = check_study(_parsed(Path(path)), str(path), tell, Path(path).parent)
    _check_schedules(study, str(path))
    return study


def read_outline(path: str | Path, seeds: int | None = None) -> Outline:
    """Outline a study in a TOML file, run with the given number of seeds."""
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
    """Validate a study from plain data; errors name the source, the key, what was given and what is allowed.

    Its plugins are imported, and installed plugins that it needs are added.

    Args:
        given: the study.
        source: name of the source, for error messages.
        tell: called with a sentence before anything slow.
        folder: directory that relative paths of files refer to.
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
    try:
        study.refuse_plots()
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return study


def stored_study(given: dict[str, Any], found: Mapping[str, Any], source: str, folder: Path) -> Study:
    """Read a study that was stored with results: nothing is imported, and no world is made.

    Args:
        given: the study as `Store.add_study` wrote it.
        found: what was stored with it: the description of each world, if there is one, and what is needed of
            third-party kinds and metrics.
        source: name of the source, for error messages.
        folder: the directory of the results, to which the paths of its files refer.
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
    """Outline a study quickly: count it, and check only small parts."""
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
        _check_schedules(study, source)
        combinations = len(study.runs())
    else:
        unchecked.append("agents: there are too many combinations to check each of them")
    exact = expanded or not any(space.drawn for space in study.spaces)
    return Outline(study, seeds, combinations, exact, expanded, refused, tuple(unchecked))


def _of_files(study: Study, folder: Path, source: str) -> Study:
    """The study with the files of its worlds located in this folder and their content recorded."""
    return _with_worlds(study, lambda place, world: world.located(folder).pinned(), source)


def _knowing(study: Study, say: Callable[[int, WorldSpec], About], source: str) -> Study:
    """The study with a description of each world."""
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
    """Quick descriptions of worlds.

    A world that is too large is recorded, not refused.

    Args:
        may_come: whether unknown names may come from a plugin.
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
    """The study with the installed plugins it needs added."""
    used: list[Registered] = [KINDS[agent.kind] for agent in study.agents]
    used += [WORLDS[world.kind] for world in study.worlds]
    used += [ESTIMATORS[name] for name in study.models if name in ESTIMATORS]
    more = [module for module in needed(used) if module not in study.plugins]
    return study.model_copy(update={"plugins": [*study.plugins, *more]}) if more else study


def _kinds(given: dict[str, Any]) -> dict[str, list[str]]:
    """The kinds of agents of an unvalidated study, each with its apparent settings."""
    agents = _tables(given, "agents")
    kinds: dict[str, list[str]] = {agent["kind"]: [] for agent in agents}
    for agent in agents:
        grids, searches = ([table.get(name) for table in (given, agent)] for name in ("grid", "search"))
        for keys, tables in ((AgentSpec.model_fields, [agent]), (COMMON, grids), (_OF_SEARCHES, searches)):
            names = [name for table in tables if isinstance(table, dict) for name in table]
            kinds[agent["kind"]].extend(name for name in names if name not in keys)
    return kinds


_OF_SEARCHES = (*Search.model_fields, *COMMON)  # keys of a search that are not settings of kinds


def _models(given: dict[str, Any]) -> list[str]:
    """The values of `model` in an unvalidated study."""
    found = []
    for table in (given, *_tables(given, "agents")):
        searched = [inner.get("model") for inner in (table.get("grid"), table.get("search")) if isinstance(inner, dict)]
        found += [table.get("model"), *(each for those in searched if isinstance(those, list) for each in those)]
    return [name for name in found if isinstance(name, str)]


def _world_kinds(given: dict[str, Any]) -> dict[str, list[str]]:
    """The kinds of worlds of an unvalidated study, each with its apparent keys."""
    kinds: dict[str, list[str]] = {}
    for world in _tables(given, "worlds"):
        kinds.setdefault(world["kind"], []).extend(name for name in world if name not in WorldSpec.model_fields)
    return kinds


def _metrics(given: dict[str, Any]) -> dict[str, Any]:
    """The metrics plotted by an unvalidated study, with what was stored about unknown ones."""
    plots = [plot for plot in _listed(given, "plots") if isinstance(plot, str) and plot.endswith(OF_A_METRIC)]
    names = {plot: plot.removesuffix(OF_A_METRIC) for plot in plots}
    return {name: {"label": name, "plot": plot} for plot, name in names.items() if name not in METRICS}


def _tables(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of this name, in an unvalidated study, that have a kind."""
    return [each for each in _listed(given, name) if isinstance(each, dict) and isinstance(each.get("kind"), str)]


def _modules(given: dict[str, Any]) -> list[str]:
    """The plugins of an unvalidated study that can be modules."""
    return [name for name in _listed(given, "plugins") if isinstance(name, str) and re.match(MODULE, name)]


def _listed(given: Mapping[str, Any], table: str) -> list[Any]:
    """A list of an unvalidated study; empty if it is not a list."""
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
    """Validate every key of a study, but not combinations of them."""
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
    """Raise InputError, before anything is made, if there is more to run than is allowed."""
    combinations = study.count()
    refuse_many(f"{source}: worlds × agents × settings", "combinations", combinations)
    refuse_many(f"{source}: combinations × seeds", "runs", combinations * (seeds or study.seeds))
    refuse_many(f"{source}: episodes", "episodes", max(world.episodes or study.episodes for world in study.worlds))


def _check_cells(study: Study, source: str) -> None:
    """Raise InputError on duplicate agents or worlds, or if a world has no agent."""
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


def _check_schedules(study: Study, source: str) -> None:
    """Raise InputError if a list, which gives a rate for each episode, has another length: perhaps a grid was meant."""
    for cell in study.runs():
        try:
            cell.agent.refuse_lists(cell.episodes)
        except InputError as error:
            every = "To run every value in the list, write it below [agents.grid]"
            raise InputError(f"{source}: agents.{cell.place}.{error}. {every}") from None


def _refuse_twice(source: str, key: str, names: list[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            digits = "; numbers have six digits there" if "=" in name else ""
            raise InputError(f"{source}: {key}: {name!r} is there twice, and results could not be told apart{digits}")
        seen.add(name)


def _sentence(error: Any, given: Mapping[str, Any]) -> str:
    """Rephrase a pydantic error about a study."""
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


_TABLES: dict[str, type[BaseModel]] = {"settings": Settings, "search": Range}  # tables with their own keys


def _allowed(place: Sequence[str | int], given: Mapping[str, Any]) -> list[str]:
    """The allowed keys of the table of a study in which an unknown key was found."""
    inner = next((model for name, model in _TABLES.items() if name in place[:-1]), None)
    if inner is not None:
        return list(inner.model_fields)
    if place[0] == "worlds":
        return [*WorldSpec.model_fields, *WORLDS[_listed(given, "worlds")[int(place[1])]["kind"]].keys]
    if place[0] == "agents":
        kind = KINDS[_listed(given, "agents")[int(place[1])]["kind"]]
        return [*AgentSpec.model_fields, *kind.settings]
    return list(Study.model_fields)
