"""Nested parts: traverse, or replace, all parts within a part."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeGuard

from backcast.core.arrays import Indices
from backcast.core.compiling import in_python, is_part, optional


class Inside(Protocol):
    """The interface of every part, at any depth of an agent; in Python only, with defaults for everything."""

    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Forget the data of these states, whose numbers are reused for other observations."""

    def needs_table(self) -> bool:
        """Whether it needs a table of values."""

    def is_constant(self) -> bool:
        """Whether its arrays never change, so that copies of an agent may share them."""


class Growing(Protocol):
    """A part with rows that grow if the graph of the world is unknown; other parts lack this method."""

    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> Any:
        """The same part with room for one more observation of these states, or in these rows."""


@optional("forget_states")
@in_python
def _keeps_nothing_of_states(self: object, states: Indices, n_actions: int) -> None:
    """By default, nothing is forgotten: data are overwritten or decay."""


@optional("needs_table")
@in_python
def _takes_any_values(self: object) -> bool:
    """By default, a part works with linear values, too."""
    return False


@optional("is_constant")
@in_python
def _changes(self: object) -> bool:
    """By default, the arrays of a part change."""
    return False


def grows(part: object) -> TypeGuard[Growing]:
    """Whether a part has rows that grow."""
    return hasattr(part, "with_room")


def with_all_inside(part: Any) -> Iterator[Inside]:
    """Yield a part, then all parts in it, at any depth; shared parts are repeated."""
    if is_part(part):
        yield part
    for each in part:
        if hasattr(each, "_fields"):
            yield from with_all_inside(each)


def rebuilt(part: Any, replace: Callable[[Any], Any | None]) -> Any:
    """The same part with some inner parts replaced by `replace`; shared parts stay shared.

    Args:
        part: a NamedTuple.
        replace: returns the replacement of a part, or None to look further inside.
    """
    done: dict[int, Any] = {}

    def visit(part: object) -> Any:
        if id(part) not in done:
            new = replace(part)
            done[id(part)] = _with_fields(part) if new is None else new
        return done[id(part)]

    def _with_fields(part: Any) -> Any:
        inside = {name: each for name, each in part._asdict().items() if hasattr(each, "_fields")}
        changed = {name: visit(each) for name, each in inside.items() if visit(each) is not each}
        return part._replace(**changed) if changed else part

    return visit(part)
