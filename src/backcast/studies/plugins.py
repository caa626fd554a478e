"""Plugins: modules that register kinds of agents of one's own (`backcast.agents.kinds.register`).

A study names them, `plugins = ["my_module"]`, and an installed package announces them by the entry-point group
`backcast.plugins`. What may import them is said in docs/trust.md: a study that a user runs, and whoever performs its
units. Where nothing may be imported, kinds that are not known have *stand-ins*, which can be described and counted, but
not run.
"""

import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from backcast.agents.kinds import KINDS, Kind
from backcast.agents.settings import COMMON, SETTINGS, free
from backcast.core.errors import InputError, in_a_line

GROUP = "backcast.plugins"


def import_plugins(modules: Iterable[str]) -> None:
    """Import modules that register kinds; refused with a sentence where one cannot be imported."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # anybody's code may raise anything
            raise InputError(
                f"plugins: the module {module!r} cannot be imported on {platform.node()} ({type(error).__name__}:"
                f" {in_a_line(error)}); install it there, or add its directory to PYTHONPATH"
            ) from error


def installed() -> dict[str, EntryPoint]:
    """The modules that installed packages announce as plugins; nothing is imported."""
    return {each.module: each for each in entry_points(group=GROUP)}


def import_installed() -> Iterator[str]:
    """Import what installed packages announce; a sentence about each that cannot be imported."""
    for module in installed():
        try:
            import_plugins([module])
        except InputError as error:
            yield str(error)


def needed(kinds: Iterable[str]) -> list[str]:
    """The installed plugins that registered some of these kinds."""
    homes = {KINDS[kind].build.__module__ or "" for kind in kinds}
    return [module for module in installed() if any(_is_within(home, module) for home in homes)]


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def refuse_unknown_kind(kind: str, plugins: Iterable[str]) -> None:
    """Raise if a kind is not known, or known by name alone, although the plugins were imported."""
    if kind not in KINDS or isinstance(KINDS[kind].build, Absent):
        raise InputError(f"kind: {kind!r} is not known here; {_which(plugins)}")


def _which(plugins: Iterable[str]) -> str:
    names = ", ".join(plugins)
    return f"the plugins of the study ({names}) do not register it" if names else "the study names no plugin for it"


class KindAbout(BaseModel):
    """What has to be known of a kind to describe its agents: the attributes of `Kind` of the same names."""

    model_config = ConfigDict(frozen=True)

    frame: str | None = "each"
    only: str | None = None
    plans: bool = True
    learns_model: bool = True
    settings: tuple[str, ...] = tuple(SETTINGS)


def about_kinds(kinds: Iterable[str]) -> dict[str, Any]:
    """What is to be remembered of those kinds that are not Backcast's own, as plain data."""
    foreign = [KINDS[kind] for kind in dict.fromkeys(kinds) if not KINDS[kind].is_builtin]
    return {
        kind.name: {
            "frame": kind.frame,
            "only": kind.only,
            "plans": kind.plans,
            "learns_model": kind.learns_model,
            "settings": list(kind.settings),
        }
        for kind in foreign
    }


def add_stand_ins(kinds: Mapping[str, Iterable[str]], plugins: Iterable[str], about: Any, source: str) -> list[str]:
    """Have stand-ins for kinds that are not known; these kinds.

    Args:
        kinds: of a study's agents, each with the settings that are given to it.
        plugins: of the study; without any, no kind has a stand-in.
        about: what was remembered of kinds (`about_kinds`); of others it is assumed that they have all settings of
            Backcast and those that are given.
        source: for errors.
    """
    try:
        known = TypeAdapter(dict[str, KindAbout]).validate_python(about or {})
    except ValidationError as error:
        raise InputError(f"{source}: kinds: what was known of them cannot be understood ({error.title})") from None
    modules = tuple(plugins)
    absent = [kind for kind in dict.fromkeys(kinds) if kind not in KINDS or isinstance(KINDS[kind].build, Absent)]
    for name in absent if modules else ():
        its = known.get(name) or KindAbout(settings=tuple(dict.fromkeys((*SETTINGS, *kinds[name]))))
        own = tuple(free(each) for each in its.settings if each not in SETTINGS and each not in COMMON)
        common = its.model_dump(include={"frame", "only", "plans", "learns_model"})
        KINDS[name] = Kind(name, "", Absent(name, modules), settings=its.settings, own=own, **common)
    return absent if modules else []


class Absent:
    """In place of the function that makes a kind's parts: it was not imported."""

    def __init__(self, kind: str, plugins: tuple[str, ...]) -> None:
        self._kind, self._plugins = kind, plugins
        self.__module__ = plugins[0]  # which may register it

    def __call__(self, setup: Any, agent: Any) -> Any:
        """Refuse to make anything."""
        raise InputError(f"agent: {self._kind!r} is known by name alone; import {' or '.join(self._plugins)} first")


def listed(given: Mapping[str, Any], table: str) -> list[Any]:
    """A list of a study that was not checked yet; nothing if it is no list."""
    found = given.get(table)
    return found if isinstance(found, list) else []
