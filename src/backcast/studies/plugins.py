"""Plugins: modules that register kinds of agents, kinds of worlds or metrics of one's own.

A study names them, `plugins = ["my_module"]`, and an installed package announces them by the entry-point group
`backcast.plugins`. What may import them is said in docs/trust.md: a study that a user runs, and whoever performs its
units. Where nothing may be imported, stand-ins take the place of what is not known (`backcast.studies.stand_ins`).
"""

import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

from backcast.core.errors import InputError, in_a_line
from backcast.core.registry import Registered

GROUP = "backcast.plugins"


def import_plugins(modules: Iterable[str], field: str = "plugins") -> None:
    """Import plugins; where one cannot be imported, it is refused with a sentence that names the field."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # anybody's code may raise anything
            raise InputError(
                f"{field}: the module {module!r} cannot be imported on {platform.node()} ({type(error).__name__}:"
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


def needed(used: Iterable[Registered]) -> list[str]:
    """The installed plugins that registered some of what is used."""
    homes = {each.home for each in used}
    return [module for module in installed() if any(_is_within(home, module) for home in homes)]


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def refuse_unknown(field: str, name: str, known: Mapping[str, Registered], plugins: Iterable[str]) -> None:
    """Raise if a name is not known, or known by name alone, although the plugins were imported."""
    if name not in known or known[name].is_absent:
        raise InputError(f"{field}: {name!r} is not known here; {_which(plugins)}")


def _which(plugins: Iterable[str]) -> str:
    names = ", ".join(plugins)
    return f"the plugins of the study ({names}) do not register it" if names else "the study names no plugin for it"


def homes(used: Mapping[str, Registered]) -> list[str]:
    """The modules that registered what is not Backcast's own, for other processes to import.

    Args:
        used: what they registered, by what it is, for errors: "agents: the kind of 'mine', 'patient',".
    """
    foreign = {what: each for what, each in used.items() if not each.is_builtin}
    for what, each in foreign.items():
        if not is_importable(each.home):
            raise InputError(
                f"{what} was registered in {each.home or 'no module'}, which cannot be imported from elsewhere; put it"
                " into a module of its own"
            )
    return list(dict.fromkeys(each.home for each in foreign.values()))


def is_importable(module: str) -> bool:
    """Whether another process can import a module of this name."""
    try:
        return module not in ("", "__main__") and find_spec(module) is not None
    except (ImportError, ValueError):  # a package that is not there, or a module that was made by hand
        return False
