"""The settings that a study tries: every combination of a grid's values, samples drawn from ranges, or both.

    [grid]
    alpha_model = [1.0, 0.1]

    [search]
    samples = 30
    alpha = { low = 0.01, high = 1.0, scale = "log" }
    model = ["softmax", "counts"]

Each setting is drawn from its own stream, seeded by the seed and the setting's name. What is drawn for one setting does
not depend on the others, and a larger number of samples begins with the same ones.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import GenericAlias
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from backcast.agents.kinds import KINDS
from backcast.agents.settings import COMMON
from backcast.core.errors import InputError
from backcast.core.setting_types import Setting

Point = tuple[tuple[str, Any], ...]

RATES = ("alpha", "alpha_model", "alpha_plan", "epsilon")
SAMPLES = 30
EDGE = 0.05  # fraction of a range near its ends that counts as the edge
DIGITS = 4  # significant digits of a drawn number, which becomes part of a label


def _finite(given: Any) -> int | float:
    if not is_number(given) or not np.isfinite(given):
        raise ValueError("expected a finite number")
    return given


Number = Annotated[int | float, PlainValidator(_finite)]


class Range(BaseModel):
    """Numbers from low to high, uniform on a linear or a logarithmic scale."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: Number
    high: Number
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _has_room(self) -> "Range":
        if self.low >= self.high:
            raise ValueError(f"low is {self.low:g} and high {self.high:g}; low must be below high")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"low is {self.low:g}; on a logarithmic scale it must be above 0")
        return self

    def draw(self, chances: Iterable[float], whole: bool) -> list[float]:
        """Return a number with few digits for each chance in [0, 1), clipped to the range."""
        kind = int if whole else float
        return [kind(min(max(_rounded(self._at(u, whole), whole), self.low), self.high)) for u in chances]

    def place(self, value: float) -> float:
        """The position of a number on the scale: 0 at the low end, 1 at the high end."""
        if self.scale == "log":
            return float(np.log(value / self.low) / np.log(self.high / self.low))
        return float((value - self.low) / (self.high - self.low))

    def _at(self, chance: float, whole: bool) -> float:
        end = self.high + 1 if whole else self.high  # its integer part is then uniform
        if self.scale == "log":
            return float(self.low * (end / self.low) ** chance)
        return self.low + chance * (end - self.low)


def _rounded(number: float, whole: bool) -> float:
    return float(f"{np.floor(number) if whole else number:.{DIGITS}g}")


TAGS = ("range", "choices")


def _tag(given: object) -> str | None:
    """Which of the two types was given."""
    return TAGS[0] if isinstance(given, (Mapping, Range)) else TAGS[1] if isinstance(given, (list, tuple)) else None


_EXPECTED = "expected a list of choices, or a range such as { low = 0.01, high = 1.0, scale = 'log' }"
Choices = Annotated[
    Annotated[Range, Tag(TAGS[0])] | Annotated[list[Any], Tag(TAGS[1]), Field(min_length=1)],
    Discriminator(_tag, custom_error_type="neither", custom_error_message=_EXPECTED),
]


class Search(BaseModel):
    """The number of samples and the seed; every other key is a setting with its range or choices."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Choices] = Field(init=False)

    samples: int | None = Field(default=None, ge=1, le=10**15)
    seed: int | None = Field(default=None, ge=0)

    @property
    def settings(self) -> dict[str, Range | list[Any]]:
        """The range or choices of each setting."""
        return dict(self.__pydantic_extra__)


def checked_values(setting: Setting, values: list[Any]) -> list[Any]:
    """Convert the values of a grid, or choices, to the type of a setting; raise InputError on invalid ones."""
    name = setting.name
    if not values:
        raise InputError(f"{name}: no values given, expected some")
    try:
        typed = _adapter(setting.of).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{name}: {json.dumps(first['input'], default=str)} given, {_lower(first['msg'])}") from None
    if not {bool, Any} & _types(setting):
        _refuse_switches(name, values)
    for value in _telling(typed):
        setting.check(name, value)
    return typed


def checked_source(setting: Setting, source: Range | list[Any]) -> Range | list[Any]:
    """Validate a range or choices; both ends of a range must be allowed."""
    if not isinstance(source, Range):
        return checked_values(setting, source)
    if not {int, float, Any} & _types(setting):
        raise InputError(f"{setting.name}: a range given, but it is not a number; expected a list of choices")
    checked_values(setting, [source.low, source.high])
    return source


def _types(setting: Setting) -> set[Any]:
    """The possible plain types of a setting."""
    return {setting.of, *get_args(setting.of)}


def _refuse_switches(name: str, values: Iterable[Any]) -> None:
    """Raise InputError where true or false would be read as 1 or 0."""
    for value in values:
        if isinstance(value, bool):
            raise InputError(f"{name}: {json.dumps(value)} given, expected a number")
        if isinstance(value, (list, tuple)):
            _refuse_switches(name, value)


@functools.cache
def _adapter(kind: object) -> TypeAdapter[list[Any]]:
    values: Any = GenericAlias(list, (kind,))
    return TypeAdapter(values, config=ConfigDict(allow_inf_nan=False))


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _telling(values: list[Any]) -> list[Any]:
    """The values to validate: of many numbers only the smallest and the largest, because bounds are intervals."""
    numbers = [value for value in values if isinstance(value, float)]
    others = [value for value in values if not isinstance(value, float)]
    return others + ([min(numbers), max(numbers)] if numbers else [])


def is_number(value: object) -> bool:
    """Whether a setting's value is a number, rather than a switch, a word or a list."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def edge(setting: Setting, value: float, source: Range | Sequence[Any]) -> str:
    """Describe a number on the edge of those tried, or of its range; empty if it is not on the edge.

    Examples:
        >>> edge(COMMON["alpha"], 0.1, [0.1, 0.5, 1.0])
        'alpha = 0.1 is the smallest value tried: better ones may lie beyond'
        >>> edge(COMMON["alpha"], 1.0, [0.1, 0.5, 1.0])
        'alpha = 1 is the largest value tried, and the largest allowed'
    """
    name = setting.name
    ends = (source.low, source.high) if isinstance(source, Range) else _ends(source)
    for word, end, beyond in zip(("smallest", "largest"), ends, (-np.inf, np.inf), strict=True):
        if isinstance(source, Range):
            end = type(value)(end)
            there = abs(source.place(value) - source.place(end)) < EDGE
            what = f"{name} = {value:g} lies near the end of its range, {end:g}"
        else:
            there, what = ends[0] < ends[1] and value == end, f"{name} = {value:g} is the {word} value tried"
        if there:
            limit = f", and {'that is ' if value != end else ''}the {word} allowed"
            return what + (limit if _is_limit(setting, end, beyond) else ": better ones may lie beyond")
    return ""


def _ends(values: Iterable[Any]) -> tuple[float, float]:
    numbers = [number for number in values if is_number(number)]
    return min(numbers), max(numbers)


def _is_limit(setting: Setting, value: float, beyond: float) -> bool:
    """Whether the next number beyond is invalid."""
    following = value + np.sign(beyond) if isinstance(value, int) else np.nextafter(value, beyond)
    try:
        setting.check(setting.name, float(following))
    except InputError:
        return True
    return False


def takes(kind: str, only: str | None = None) -> list[str]:
    """The settings that matter to a kind of agent, optionally `only` in prediction or control."""
    its = KINDS[kind]
    common = {
        "alpha": True,
        "alpha_model": its.learns_model,
        "alpha_plan": its.plans,
        "epsilon": (only or its.only) != "prediction",
        "schedule": True,
        "epsilon_schedule": (only or its.only) != "prediction",
        "frame": its.frame is not None,
        "learn": its.plans,
    }
    return [*(name for name, has in common.items() if has), *its.settings]


def searchable(kind: str, only: str | None = None) -> dict[str, Setting]:
    """The same settings, with the defaults of the kind."""
    its = KINDS[kind]
    table = {**COMMON, "frame": replace(COMMON["frame"], default=its.frame), **its.table}
    return {name: table[name] for name in takes(kind, only)}


@dataclass(frozen=True)
class Space:
    """The search space of one agent.

    Attributes:
        grid: values whose every combination is tried.
        drawn: ranges or choices of samples.
        table: the settings of its kind, for validation and types.
        samples: number of samples, before duplicates are removed.
        seed: seed of the draws.
    """

    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    drawn: Mapping[str, Range | list[Any]] = field(default_factory=dict)
    table: Mapping[str, Setting] = field(default_factory=dict)
    samples: int = SAMPLES
    seed: int = 0

    @property
    def sources(self) -> dict[str, Range | Sequence[Any]]:
        """The source of the values of each setting."""
        return {**self.grid, **self.drawn}

    @property
    def size(self) -> int:
        """The number of points, duplicate samples included; nothing is drawn."""
        return math.prod(map(len, self.grid.values())) * (self.samples if self.drawn else 1)

    def points(self) -> list[Point]:
        """Every combination of the grid's values with every sample; one empty point if there is nothing to try."""
        grid = itertools.product(*(self._pairs(name, values) for name, values in self.grid.items()))
        columns = [self._pairs(name, self._draw(name)) for name in self.drawn]
        samples: list[Point] = list(dict.fromkeys(zip(*columns, strict=True))) if columns else [()]
        return [chosen + sample for chosen in grid for sample in samples]

    def _draw(self, name: str) -> list[Any]:
        """The values of a setting in each sample; they depend only on the seed, the name and the source."""
        source = self.drawn[name]
        stream = np.random.SeedSequence(self.seed, spawn_key=tuple(name.encode()))
        chances = np.random.default_rng(stream).random(self.samples).tolist()
        if isinstance(source, Range):
            return source.draw(chances, name in self.table and int in _types(self.table[name]))
        return [source[int(chance * len(source))] for chance in chances]

    def _pairs(self, name: str, values: Iterable[Any]) -> list[tuple[str, Any]]:
        """A setting with each of its values in hashable form."""
        check = self.table[name].check if name in self.table and name not in COMMON else _as_given
        return [(name, check(name, value)) for value in values]


def _as_given(name: str, value: object) -> Any:
    return value


def numbers_among(spaces: Iterable[Space]) -> list[str]:
    """The settings with several numbers to try, in their order."""
    found: dict[str, None] = {}
    for space in spaces:
        for name, values in space.sources.items():
            numbers = () if isinstance(values, Range) else set(filter(is_number, values))
            if isinstance(values, Range) or len(numbers) > 1:
                found[name] = None
    return list(found)
