"""Parts are made of parts: to ask, or to replace, all that are in one."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeGuard

from backcast.core.arrays import Indices
from backcast.core.compiling import in_python, is_part, optional


class Inside(Protocol):
    """What may be asked of every part, at whatever depth of an agent it is; in Python only, and all has a default."""

    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Forget what is kept of these states: their numbers are given to other observations."""

    def needs_table(self) -> bool:
        """Whether it works with a table of values only."""

    def is_constant(self) -> bool:
        """Whether its arrays never change, so that copies of an agent may share them."""


class Growing(Protocol):
    """A part with rows that grow where the graph of the world is not known; others have no such method."""

    def with_room(self, states: Sequence[int], rows: Sequence[int]) -> Any:
        """The same with room for one more observation of these states, or in these rows."""


@optional("forget_states")
@in_python
def _keeps_nothing_of_states(self: object, states: Indices, n_actions: int) -> None:
    """What most parts keep is overwritten or fades."""


@optional("needs_table")
@in_python
def _takes_any_values(self: object) -> bool:
    """Most parts ask of values what linear values can answer as well."""
    return False


@optional("is_constant")
@in_python
def _changes(self: object) -> bool:
    """Most parts change."""
    return False


def grows(part: object) -> TypeGuard[Growing]:
    """Whether a part has rows that grow."""
    return hasattr(part, "with_room")


def with_all_inside(part: Any) -> Iterator[Inside]:
    """A part, then all parts in it, at any depth; what is shared comes more than once."""
    if is_part(part):
        yield part
    for each in part:
        if hasattr(each, "_fields"):
            yield from with_all_inside(each)


def rebuilt(part: Any, replace: Callable[[Any], Any | None]) -> Any:
    """The same part, in which `replace` has given another for some of those inside; what was shared stays shared.

    Args:
        part: a NamedTuple.
        replace: gives back what is to stand in the place of a part, or None to look further inside.
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
