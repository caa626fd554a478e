"""Parts are made of parts: to ask, or to replace, all that are in one."""

from collections.abc import Callable, Iterator
from typing import Any


def with_all_inside(part: Any) -> Iterator[Any]:
    """A part, then all NamedTuples in it, at any depth; what is shared comes more than once."""
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

    def visit(part: Any) -> Any:
        if id(part) not in done:
            new = replace(part)
            done[id(part)] = _with_fields(part) if new is None else new
        return done[id(part)]

    def _with_fields(part: Any) -> Any:
        inside = {name: each for name, each in part._asdict().items() if hasattr(each, "_fields")}
        changed = {name: visit(each) for name, each in inside.items() if visit(each) is not each}
        return part._replace(**changed) if changed else part

    return visit(part)
