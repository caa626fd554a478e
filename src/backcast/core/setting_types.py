"""Settings of agents and worlds: name, meaning, type, bounds and check, defined once.

Validation, studies, the lab's forms, lists and docs use them. Settings of agents are in a table
(`backcast.agents.settings`); those of a world follow from the function that makes it (`setting_of`).
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np

from backcast.core.arrays import as_number, as_whole
from backcast.core.errors import InputError, nearest
from backcast.core.freezing import freeze, frozen_value

Check = Callable[[str, Any], Any]


class Form(NamedTuple):
    """The lab's form field of a setting: a number between bounds, a choice, a switch, or a list of numbers.

    Attributes:
        low: the smallest number allowed; None if there is none.
        high: the largest.
        above: whether `low` itself is excluded.
        below: whether `high` itself is excluded.
        choices: the choices.
        words: the choices in words, if they are not self-explanatory.
    """

    low: float | None = None
    high: float | None = None
    above: bool = False
    below: bool = False
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Depends(NamedTuple):
    """A default that depends on the other settings.

    Attributes:
        on: function from the given settings to the value; None if the setting does not apply.
        words: the value and when it applies: "0.1 with features".
        otherwise: the value if the setting does not apply; None if there is none.
    """

    on: Callable[[Mapping[str, Any]], Any]
    words: str
    otherwise: Any = None


@dataclass(frozen=True)
class Setting:
    """A setting of an agent or a world.

    Attributes:
        name: name in Python and studies.
        meaning: one sentence, without a full stop.
        check: function from the name and the given value to the value that is used; raises InputError.
        of: type of the plain data in a study.
        allowed: what is allowed, in words.
        symbol: symbol in formulas and figures.
        default: the default value, or one that `Depends` on other settings; None: no default.
        form: form field in the lab; None if there is none.
        label: label in the lab's form, if different from the name.
    """

    name: str
    meaning: str
    check: Check
    of: Any
    allowed: str
    symbol: str = ""
    default: Any = None
    form: Form | None = None
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "default", freeze(self.default))

    def usual(self, given: Mapping[str, Any]) -> Any:
        """The default, given the other settings."""
        return self.default.on(given) if isinstance(self.default, Depends) else self.default

    @property
    def default_in_words(self) -> str:
        """The default in lists and docs; empty if there is none."""
        if isinstance(self.default, Depends):
            return self.default.words
        known = list(self.default) if isinstance(self.default, tuple) else self.default
        return "" if known is None else str(known)


def choice(name: str, meaning: str, *allowed: str, lab: tuple[str, ...] | None = None, **more: Any) -> Setting:
    """A setting with a choice of words; the lab offers all of them, or those in `lab`."""

    def check(name: str, given: object) -> str:
        if not isinstance(given, str) or given not in allowed:
            raise InputError(f"{name}: {given!r} given, expected one of {', '.join(allowed)}{nearest(given, allowed)}")
        return str(given)

    words = " or ".join(filter(None, (", ".join(f'"{each}"' for each in allowed[:-1]), f'"{allowed[-1]}"')))
    offered = allowed if lab is None else lab
    return Setting(name, meaning, check, str, words, form=Form(choices=offered) if offered else None, **more)


def whole(name: str, meaning: str, low: int = 1, high: int | None = None, **more: Any) -> Setting:
    """An integer setting, with the same bounds in the lab unless `form` is given."""

    def check(name: str, given: Any) -> int:
        if as_whole(name, given, low) > (np.inf if high is None else high):
            raise InputError(f"{name}: {given} given, expected at most {high:,}")
        return int(given)

    words = f"a whole number, {low} or more" if high is None else f"a whole number from {low} to {high:,}"
    return Setting(name, meaning, check, int, words, **{"form": Form(low, high), **more})


def number(
    name: str, meaning: str, low: float, high: float = np.inf, words: str = "", *, below: bool = False, **more: Any
) -> Setting:
    """A numeric setting from low to high (excluded if `below`), with the same bounds in the lab."""
    if not words:
        words = (
            f"a number, {low:g} or more" if np.isinf(high) else f"a number in [{low:g}, {high:g}{')' if below else ']'}"
        )

    def check(name: str, given: object) -> float:
        return as_number(name, given, low, np.nextafter(high, low) if below else high, words)

    form = Form(low, None if np.isinf(high) else high, below=below)
    return Setting(name, meaning, check, float, words, **{"form": form, **more})


def switch(name: str, meaning: str, **more: Any) -> Setting:
    """A boolean setting."""
    return Setting(name, meaning, _switch, bool, "True or False", form=Form(), **more)


def free(name: str, meaning: str = "") -> Setting:
    """A free setting, known by name only: it may be any hashable value.

    Lists and arrays become tuples, and dicts become immutable (`backcast.core.freezing`).
    """
    return Setting(name, meaning, frozen_value, Any, "anything")


def _switch(name: str, given: object) -> bool:
    if not isinstance(given, (bool, np.bool_)):
        raise InputError(f"{name}: {given!r} given, expected True or False")
    return bool(given)


class Bounds(NamedTuple):
    """The bounds of a number, as part of an annotation: `n: Annotated[int, Bounds(1)] = 13`.

    Attributes:
        low: the smallest number allowed.
        high: the largest; None if there is none.
        what: description for error messages: "a probability".
        lab: the largest number in the lab, if smaller.
    """

    low: float
    high: float | None = None
    what: str = "a number"
    lab: float | None = None


class Label(NamedTuple):
    """The lab's label of an argument, as part of an annotation: `n: Annotated[int, Bounds(1), Label("states")] = 13`.

    Attributes:
        text: label in a form.
        symbol: symbol in formulas and figures.
    """

    text: str
    symbol: str = ""


class Annotation(NamedTuple):
    """A parsed annotation: the type without None, bounds and label if any, and whether None is allowed."""

    of: Any
    bounds: Bounds | None
    optional: bool
    label: Label = Label("")


def read_annotation(annotation: object) -> Annotation:
    """Parse an annotation, such as `Annotated[int, Bounds(1)] | None`."""
    if get_origin(annotation) is Annotated:
        of, *more = get_args(annotation)
        inner, more = read_annotation(of), more[::-1]  # of several, the outermost is the last
        bounds = next((each for each in more if isinstance(each, Bounds)), inner.bounds)
        label = next((each for each in more if isinstance(each, Label)), inner.label)
        return inner._replace(bounds=bounds, label=label)
    if get_origin(annotation) in (Union, UnionType):
        parts = [each for each in get_args(annotation) if each is not NoneType]
        optional = len(parts) < len(get_args(annotation))
        if len(parts) == 1:
            return read_annotation(parts[0])._replace(optional=optional)
        return Annotation(Union[tuple(parts)], None, optional)  # noqa: UP007  made of parts
    return Annotation(Any if annotation is inspect.Parameter.empty else annotation, None, False)


def setting_of(name: str, annotation: object, meaning: str = "", default: object = None) -> Setting | None:
    """The setting of a function's argument, from its annotation; None if it is not plain data."""
    of, bounds, _, label = read_annotation(annotation)
    more: dict[str, Any] = {"default": default, "label": label.text, "symbol": label.symbol}
    if bounds is not None and of in (int, float):
        more["form"] = Form(bounds.low, bounds.high if bounds.lab is None else bounds.lab)
        if of is int:
            return whole(name, meaning, int(bounds.low), None if bounds.high is None else int(bounds.high), **more)
        high = np.inf if bounds.high is None else bounds.high
        ends = f"{bounds.low:g} or more" if np.isinf(high) else f"in [{bounds.low:g}, {high:g}]"
        return number(name, meaning, bounds.low, high, f"{bounds.what} {ends}", **more)
    if of is bool:
        return switch(name, meaning, **more)
    if get_origin(of) is Literal and all(isinstance(each, str) for each in get_args(of)):
        return replace(choice(name, meaning, *get_args(of), **more), of=of)
    plain = _plain(of)
    if plain is None:
        return None
    among = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    form = Form() if {*among} & {int, float, tuple[int, ...]} else None
    return Setting(name, meaning, lambda name, given: given, plain, _in_words(plain), form=form, **more)


def is_path(annotation: object) -> bool:
    """Whether an argument is the path of a file."""
    of = read_annotation(annotation).of
    return of is Path or Path in get_args(of)


def _plain(of: object) -> Any:
    """The plain-data type of a type: lists become tuples; None if there is none."""
    if of in (int, float, bool, str, Any):
        return of
    if of is Path:
        return str
    origin, parts = get_origin(of), [_plain(each) for each in get_args(of) if each is not Ellipsis]
    if origin is Literal:
        return of
    if origin is None or None in parts:
        return None
    if origin in (Union, UnionType):
        return Union[tuple(parts)]  # noqa: UP007  made of parts
    if origin is tuple and Ellipsis not in get_args(of):
        return tuple.__class_getitem__(tuple(parts))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict.__class_getitem__(tuple(parts))
    return tuple.__class_getitem__((*parts, ...)) if isinstance(origin, type) and issubclass(origin, Sequence) else None


_WORDS = {int: "a whole number", float: "a number", str: "text", Any: "anything"}


def _in_words(of: object) -> str:
    """Describe a type of plain data."""
    if of in _WORDS:
        return _WORDS[of]
    parts = [_in_words(each) for each in get_args(of) if each is not Ellipsis]
    if get_origin(of) in (Union, UnionType):
        return " or ".join(parts)
    if get_origin(of) is tuple:
        return f"a list, each {parts[0]}" if Ellipsis in get_args(of) else f"a list of {' and '.join(parts)}"
    return "a table" if get_origin(of) is dict else "anything"
