"""Registration by name: kinds of agents, kinds of worlds, metrics.

Third-party modules need not be imported where results are only read. There a *stand-in* replaces a registered object;
it can be described and counted, but not used (`Absent`).
"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from backcast.core.errors import InputError

R = TypeVar("R")
OWN = "backcast"  # the package whose names are reserved


class Registered:
    """A registered function with its name."""

    name: str

    @property
    def function(self) -> Callable[..., Any]:
        """The registered function."""
        raise NotImplementedError

    @property
    def home(self) -> str:
        """The module that registered it; empty if unknown."""
        return getattr(self.function, "__module__", None) or ""

    @property
    def is_builtin(self) -> bool:
        """Whether it is one of Backcast's own."""
        return self.home.partition(".")[0] == OWN

    @property
    def is_absent(self) -> bool:
        """Whether it is known by name only: its module was not imported."""
        return isinstance(self.function, Absent)


class Absent:
    """A stand-in for a function registered by a module that was not imported.

    Args:
        field: its type, for error messages: "agent", "world" or "metric".
        name: its registered name.
        plugins: the modules, one of which may register it.
    """

    def __init__(self, field: str, name: str, plugins: tuple[str, ...]) -> None:
        self._field, self._name, self._plugins = field, name, plugins
        self.__module__ = plugins[0]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise InputError."""
        raise InputError(
            f"{self._field}: {self._name!r} is known by name alone; import {' or '.join(self._plugins)} first"
        )


def refuse_taken(field: str, name: str, registered: Registered | None) -> None:
    """Raise InputError if a name is one of Backcast's own; third-party names may be registered again."""
    if registered is not None and registered.is_builtin:
        raise InputError(f"{field}: {name!r} is one of Backcast's own; choose another name")


def named_kind(registered: Mapping[str, R], given: object) -> R | None:
    """What the key "kind" of a given table names; None if this is no table, or names nothing that is registered."""
    name = given.get("kind") if isinstance(given, dict) else None
    return registered.get(name) if isinstance(name, str) else None


def first_line(documentation: str | None) -> str:
    """The first line of a docstring; empty if there is none."""
    return next(iter((documentation or "").strip().splitlines()), "")
