"""Immutable plain data, compared and hashed by content."""

import json
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

import numpy as np

from backcast.core.errors import InputError, shown


class FrozenDict(dict[Any, Any]):
    """An immutable, hashable dict; JSON, `==` and `isinstance` treat it as a dict."""

    def __hash__(self) -> int:  # type: ignore[override]  # dicts have none
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("settings do not change; make another agent")

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse


def freeze(given: Any) -> Any:
    """Return the value with tuples in place of lists and arrays, and immutable dicts and sets.

    NumPy numbers become Python numbers.
    """
    if isinstance(given, np.ndarray | np.generic):
        return freeze(given.tolist())
    if isinstance(given, dict):
        return FrozenDict({freeze(name): freeze(each) for name, each in given.items()})
    if isinstance(given, AbstractSet):
        return frozenset(map(freeze, given))
    return tuple(map(freeze, given)) if type(given) in (list, tuple) else given


def is_plain(value: object) -> bool:
    """Whether a value is plain JSON data other than None."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return value is not None


def frozen_value(name: str, given: object) -> Any:
    """Freeze a value; raise InputError if it is still not hashable."""
    kept = freeze(given)
    try:
        hash(kept)
    except TypeError:
        raise InputError(
            f"{name}: {shown(given)} given, expected something that can be hashed: numbers, text, lists, tables and"
            " arrays of them, or an object with a hash of its own"
        ) from None
    return kept
