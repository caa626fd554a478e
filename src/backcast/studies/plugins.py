"""Plugins: modules that register your own kinds of agents, kinds of worlds or metrics.

A study names them, `plugins = ["my_module"]`, and an installed package announces them in the entry-point group
`backcast.plugins`. docs/trust.md says what may import them: a study run by the user, and the workers that perform its
units. Where nothing may be imported, stand-ins replace what is unknown (`backcast.studies.stand_ins`).
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
    """Import plugins; raise InputError, naming the field, if one cannot be imported."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # third-party code may raise anything
            raise InputError(
                f"{field}: the module {module!r} cannot be imported on {platform.node()} ({type(error).__name__}:"
                f" {in_a_line(error)}); install it there, or add its directory to PYTHONPATH"
            ) from error


def installed() -> dict[str, EntryPoint]:
    """The modules that installed packages announce as plugins; nothing is imported."""
    return {each.module: each for each in entry_points(group=GROUP)}


def import_installed() -> Iterator[str]:
    """Import announced plugins; yield a sentence about each that cannot be imported."""
    for module in installed():
        try:
            import_plugins([module])
        except InputError as error:
            yield str(error)


def needed(used: Iterable[Registered]) -> list[str]:
    """The installed plugins that registered some of the given kinds."""
    homes = {each.home for each in used}
    return [module for module in installed() if any(_is_within(home, module) for home in homes)]


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def refuse_unknown(field: str, name: str, known: Mapping[str, Registered], plugins: Iterable[str]) -> None:
    """Raise InputError if a name is still unknown, or known by name only, after importing the plugins."""
    if name not in known or known[name].is_absent:
        raise InputError(f"{field}: {name!r} is not known here; {_which(plugins)}")


def _which(plugins: Iterable[str]) -> str:
    names = ", ".join(plugins)
    return f"the plugins of the study ({names}) do not register it" if names else "the study names no plugin for it"


def homes(used: Mapping[str, Registered]) -> list[str]:
    """The modules that registered third-party kinds and metrics, for other processes to import.

    Args:
        used: the registered objects, by a description for error messages: "agents: the kind of 'mine', 'patient',".
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
    except (ImportError, ValueError):  # a missing package, or a module made by hand
        return False
