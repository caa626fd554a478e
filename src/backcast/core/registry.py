"""What modules register by name: kinds of agents, kinds of worlds, metrics.

Whoever registers something may be a stranger, whose module need not be imported where results are only read. There a
*stand-in* takes its place, which can be described and counted, but not used (`Absent`).
"""

from collections.abc import Callable
from typing import Any, NoReturn

from backcast.core.errors import InputError

OWN = "backcast"  # the package whose names nobody else may take


class Registered:
    """Something with a name, and the function that was registered by it."""

    name: str

    @property
    def function(self) -> Callable[..., Any]:
        """What was registered."""
        raise NotImplementedError

    @property
    def home(self) -> str:
        """The module that registered it; empty if that is not known."""
        return getattr(self.function, "__module__", None) or ""

    @property
    def is_builtin(self) -> bool:
        """Whether it is one of Backcast's own."""
        return self.home.partition(".")[0] == OWN

    @property
    def is_absent(self) -> bool:
        """Whether it is known by name alone: its module was not imported."""
        return isinstance(self.function, Absent)


class Absent:
    """In place of a function that was registered by a module that was not imported.

    Args:
        field: what it is, for errors: "agent", "world" or "metric".
        name: of what was registered.
        plugins: the modules of which one may register it.
    """

    def __init__(self, field: str, name: str, plugins: tuple[str, ...]) -> None:
        self._field, self._name, self._plugins = field, name, plugins
        self.__module__ = plugins[0]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to make anything."""
        raise InputError(
            f"{self._field}: {self._name!r} is known by name alone; import {' or '.join(self._plugins)} first"
        )


def refuse_taken(field: str, name: str, registered: Registered | None) -> None:
    """Raise if a name is that of one of Backcast's own; what others registered may be registered again."""
    if registered is not None and registered.is_builtin:
        raise InputError(f"{field}: {name!r} is one of Backcast's own; choose another name")


def first_line(documentation: str | None) -> str:
    """The first line of a docstring; empty if there is none."""
    return next(iter((documentation or "").strip().splitlines()), "")
