"""Stand-ins for what plugins register, where nothing may be imported: dry runs, and reading results.

A directory of results stores what is needed of third-party kinds and metrics (`remembered`). From that, or from the
study itself, stand-ins are made. Their agents and worlds can be described and counted, and their metrics read and
compared, but nothing can be run with them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from backcast.agents.estimators import ESTIMATORS, Estimator, add_estimator, is_name
from backcast.agents.kinds import KINDS, Kind
from backcast.agents.settings import COMMON, SETTINGS
from backcast.core.errors import InputError
from backcast.core.freezing import FrozenDict, freeze, frozen_value, is_plain
from backcast.core.registry import Absent, Registered
from backcast.core.setting_types import Setting, free
from backcast.drivers.metrics import METRICS, Metric, refuse_bad_name
from backcast.studies.study_metrics import metrics_of
from backcast.worlds.kinds import WORLDS, Given, Sketch, WorldKind
from backcast.worlds.world import Purpose

Named = Mapping[str, Collection[str]]  # names, each with its given settings or keys
T = TypeVar("T")


class _Remembered(BaseModel):
    model_config = ConfigDict(frozen=True)


class KindAbout(_Remembered):
    """What is needed of a kind to describe and show its agents: the attributes of `Kind` of the same names.

    For its own settings this is the type: `int`, `float` or another. Data stored before there was `own` has none;
    settings unknown to Backcast are then the kind's own.
    """

    frame: str | None = "each"
    only: str | None = None
    plans: bool = True
    learns_model: bool = True
    true: bool = False
    family: str = Field(default="", max_length=200)
    label: str = Field(default="", max_length=200)
    settings: tuple[str, ...] = tuple(SETTINGS)
    own: dict[str, str] = {}
    defaults: dict[str, Any] = {}


class WorldAbout(_Remembered):
    """What is needed of a kind of world to describe its worlds: the attributes of `WorldKind`."""

    purpose: Purpose | None = None
    keys: tuple[str, ...] = ()
    file: str | None = None


class MetricAbout(_Remembered):
    """What is needed of a metric to show it: the attributes of `Metric`."""

    label: str = Field(max_length=200)
    higher_is_better: bool = False
    per_episode: bool = True
    purpose: Purpose | None = None
    positive: bool = False
    plot: str


def remembered(kinds: Iterable[str], worlds: Iterable[str], plugins: Iterable[str]) -> dict[str, Any]:
    """The plain data to store about third-party kinds of agents, kinds of worlds and metrics.

    Args:
        kinds: the kinds of a study's agents.
        worlds: the kinds of its worlds.
        plugins: the plugins of the study.
    """
    agents = _foreign(KINDS[name] for name in kinds)
    places = _foreign(WORLDS[name] for name in worlds)
    measured = _foreign(each for purpose in ("prediction", "control") for each in metrics_of(purpose, plugins))
    found = {
        "kinds": {each.name: _about(KindAbout, each, own=_types(each), defaults=_defaults(each)) for each in agents},
        "world_kinds": {each.name: _about(WorldAbout, each) for each in places},
        "metrics": {each.name: _about(MetricAbout, each) for each in measured},
    }
    return {what: about for what, about in found.items() if about or what == "kinds"}


R = TypeVar("R", bound=Registered)


def _foreign(registered: Iterable[R]) -> list[R]:
    return list({each.name: each for each in registered if not each.is_builtin}.values())


def _about(kind: type[BaseModel], registered: Registered, **more: Any) -> dict[str, Any]:
    given = {name: getattr(registered, name) for name in kind.model_fields if name not in more}
    tuples = {name: tuple(value) for name, value in given.items() if isinstance(value, (dict, tuple))}
    return kind(**given | tuples | more).model_dump(mode="json")


_NUMBERS = {"int": int, "float": float}  # the types that affect draws from a range


def _types(kind: Kind) -> dict[str, str]:
    """The types of a kind's own settings."""
    return {
        setting.name: next((word for word, of in _NUMBERS.items() if of in (setting.of, *get_args(setting.of))), "")
        for setting in kind.own
    }


def _defaults(kind: Kind) -> dict[str, Any]:
    """The defaults of a kind that differ from Backcast's table and are plain data."""
    return {
        name: setting.default
        for name, setting in kind.table.items()
        if (kind.has_own(name) or name in kind.defaults) and is_plain(setting.default)
    }


def add_stand_ins(
    kinds: Named,
    worlds: Named,
    models: Iterable[str],
    plugins: Iterable[str],
    found: Mapping[str, Any],
    source: str,
) -> None:
    """Add stand-ins for everything unknown.

    Args:
        kinds: the kinds of a study's agents, each with its given settings.
        worlds: the kinds of its worlds, each with its given keys.
        models: the values of `model` of its agents.
        plugins: the plugins of the study; without any, there are no stand-ins.
        found: the stored data (`remembered`). Other kinds are assumed to have all settings of Backcast and those that
            are given.
        source: for errors.
    """
    modules = tuple(plugins)
    if not modules:
        return
    about_kinds = _read(KindAbout, found, "kinds", source)
    for name in _absent(kinds, KINDS):
        KINDS[name] = _kind(name, about_kinds.get(name), kinds[name], modules)
    for name in _absent(filter(is_name, models), ESTIMATORS):
        add_estimator(Estimator(name, "", Absent("model", name, modules)))
    about_worlds = _read(WorldAbout, found, "world_kinds", source)
    for name in _absent(worlds, WORLDS):
        WORLDS[name] = _world_kind(name, about_worlds.get(name) or WorldAbout(keys=tuple(worlds[name])), modules)
    about_metrics = _read(MetricAbout, found, "metrics", source)
    for name in _absent(about_metrics, METRICS):
        refuse_bad_name(name)
        METRICS[name] = Metric(name, compute=Absent("metric", name, modules), **about_metrics[name].model_dump())


def _read(kind: type[T], found: Mapping[str, Any], what: str, source: str) -> dict[str, T]:
    try:
        return TypeAdapter(dict[str, kind]).validate_python(found.get(what) or {})  # type: ignore[valid-type]
    except ValidationError as error:
        raise InputError(f"{source}: {what}: what was known of them cannot be understood ({error.title})") from None


def _absent(names: Iterable[str], known: Mapping[str, Registered]) -> list[str]:
    """The names that are unknown, or known by name only."""
    return [name for name in names if name not in known or known[name].is_absent]


def _kind(name: str, about: KindAbout | None, given: Collection[str], modules: tuple[str, ...]) -> Kind:
    its = about or KindAbout(settings=tuple(dict.fromkeys((*SETTINGS, *given))))
    own = tuple(
        replace(free(each), of=_NUMBERS.get(its.own.get(each, ""), Any))
        for each in its.settings
        if each not in COMMON and (each in its.own or each not in SETTINGS)
    )
    if about is None:
        own += tuple(_perhaps(SETTINGS[each]) for each in dict.fromkeys(given) if each in SETTINGS)
    known = its.model_dump(exclude={"settings", "own", "defaults"})
    usual = FrozenDict({each: freeze(value) for each, value in its.defaults.items() if each in its.settings})
    known["averages"] = True  # this was checked when it was run
    return Kind(name, "", Absent("agent", name, modules), settings=its.settings, own=own, defaults=usual, **known)


def _perhaps(setting: Setting) -> Setting:
    """A setting that may be Backcast's or a third-party setting of the same name."""

    def check(name: str, given: object) -> Any:
        try:
            return setting.check(name, given)
        except InputError:
            return frozen_value(name, given)

    return replace(free(setting.name), check=check)


def _world_kind(name: str, its: WorldAbout, modules: tuple[str, ...]) -> WorldKind:
    keys = {key: free(key) for key in its.keys}
    if its.file is not None:
        keys[its.file] = replace(free(its.file), of=str)
    return WorldKind(
        name,
        Absent("world", name, modules),
        keys,
        required=() if its.file is None else (its.file,),
        purpose=its.purpose,
        file=its.file,
        sketch=_AbsentSketch(name, modules),
    )


class _AbsentSketch(Sketch):
    """The sketch of a world whose kind was not imported."""

    def __init__(self, kind: str, plugins: tuple[str, ...]) -> None:
        self._kind, self._plugins = kind, plugins

    def why_unmade(self, given: Given) -> str:
        """Why it is not made."""
        return f"{self._kind!r} was not looked at, as that would import the plugins {', '.join(self._plugins)}"
