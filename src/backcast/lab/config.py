"""The configuration of a scene: a world, two agents, a seed and a number of episodes, validated and bounded.

Anyone who can open the page can request anything that is allowed here, so everything has an upper bound.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, Field, ValidationError, create_model, field_validator, model_validator

from backcast.agents import Agent, agent
from backcast.agents.kinds import KINDS, Kind
from backcast.agents.settings import COMMON
from backcast.core.errors import InputError
from backcast.core.registry import named_kind
from backcast.core.setting_types import Depends, Form, Setting
from backcast.studies.search import takes
from backcast.studies.worldspec import Strict, WorldSpec, one_of
from backcast.worlds.kinds import WORLDS, WorldKind


class RefusedError(InputError):
    """A configuration is refused.

    Attributes:
        fields: the invalid fields, such as "left.alpha", or "left" for an invalid combination.
    """

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message)
        self.fields = fields


SIDE, STATES, EDGES, EPISODES = 50, 1_000, 50_000, 5_000
CHANGE = EPISODES * 1_000_000  # the most real steps of a run
SEED = 9_999  # a study that contains this seed also runs all before it
CONNECTIONS = 1_000_000  # most connections of states with pairs, if a model may connect any of them
CORRECTIONS = 100_000  # most corrections after one step, if predecessors of predecessors are corrected
MOST_CHANGES, LARGEST_REWARD = 40, 100.0  # limits of manual changes of cells
MOST = {
    "the number of rows": SIDE,
    "the number of columns": SIDE,
    "the number of levels": 20,
    "the number of states": STATES,
    "the number of transitions": EDGES,
    "the step at which it changes": CHANGE,
}  # limits of the sizes that kinds of worlds know in advance


def offered() -> dict[str, WorldKind]:
    """The kinds of worlds that can be shown: those that have a label."""
    return {name: kind for name, kind in WORLDS.items() if kind.label}


class LabWorld(WorldSpec):
    """A world as in a study, small enough to draw."""

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(offered(), kind)

    @model_validator(mode="after")
    def _small_enough(self) -> "LabWorld":
        kind, given = WORLDS[self.kind], self.arguments
        limits = {name: each.form.high for name, each in kind.keys.items() if each.form is not None}
        sizes = [(name, given[name], limit) for name, limit in limits.items() if limit is not None and name in given]
        sizes += [(what, size, MOST[what]) for what, size in kind.sketch.sizes(given).items() if what in MOST]
        for name, size, most in sizes:
            if size > most:
                raise ValueError(f"{name} is {size:,}, expected at most {most:,} in the lab")
        for name, choices in kind.sketch.choices().items():
            one_of(choices, given.get(name, choices[0]))
        if self.updates or self.episodes or self.settings.given():
            raise ValueError("episodes, updates and settings belong to studies, not to a world in the lab")
        return self


class LabAgent(Strict):
    """An agent: the bounded arguments of `backcast.agent` in the lab; others have their defaults."""

    model_config = ConfigDict(extra="allow")  # the settings of its kind, validated

    kind: str

    @model_validator(mode="before")
    @classmethod
    def _with_checked_settings(cls, given: Any) -> Any:
        kind = named_kind(KINDS, given)
        if kind is None:
            return given
        settings = {name: value for name, value in given.items() if name != "kind"}
        return {"kind": kind.name, **_checked_settings(kind, settings)}

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(KINDS, kind)

    def build(self) -> Agent:
        """The agent."""
        return agent(**self.model_dump())


def _asked(kind: Kind) -> dict[str, tuple[Setting, Form]]:
    """The form fields of a kind of agent: the common settings, and its own."""
    table = {**COMMON, **kind.table}
    return {name: (each, each.form) for name, each in table.items() if each.form is not None}


def _checked_settings(kind: Kind, given: dict[str, Any]) -> dict[str, Any]:
    """Validate the settings of an agent within the bounds of their forms; raise on settings without a form."""
    fields: Any = {name: _field(*how) for name, how in _asked(kind).items()}
    for name in given.keys() - fields.keys() - kind.table.keys():
        if any(name in _asked(other) for other in KINDS.values()):
            raise ValueError(f"{name} does not belong to {kind.name!r}; its settings are {', '.join(fields)}")
    return create_model("Settings", __base__=Strict, **fields).model_validate(given).model_dump(exclude_none=True)


_TYPES: dict[Any, str] = {bool: "switch", int: "whole", float: "number", tuple[int, ...]: "list"}  # and their words


def _type(setting: Setting) -> Any:
    """The type of a form's value: for a rate a number, not a list."""
    either = get_args(setting.of) if get_origin(setting.of) in (Union, UnionType) else (setting.of,)
    return next(each for each in _TYPES if each in either)


def _field(setting: Setting, form: Form) -> Any:
    """The type of a setting in the lab, and a field with the bounds of its form.

    Only `learn` is always present, because given settings are part of the agent's name.
    """
    of: Any = Literal[form.choices] if form.choices else _type(setting)
    bounds = {"gt" if form.above else "ge": form.low, "lt" if form.below else "le": form.high}
    told: Any = {name: bound for name, bound in bounds.items() if bound is not None}
    return (of, Field(True)) if setting is COMMON["learn"] else (of | None, Field(None, **told))


_Steps = Annotated[int, Field(ge=0, le=CHANGE)]
_Reward = Annotated[float, Field(ge=-LARGEST_REWARD, le=LARGEST_REWARD, allow_inf_nan=False)]
CellChange = tuple[_Steps, _Steps, Annotated[int, Field(ge=0, lt=SIDE * SIDE)], Literal["X", "."] | _Reward]


class LabConfig(Strict):
    """Everything that determines a run of two agents.

    Attributes:
        world: the world at the beginning.
        left: the left agent.
        right: the right agent.
        seed: seed of the run.
        episodes: number of episodes of the run.
        changes: changes of a maze during the run: the numbers of real steps of the left and of the right agent, the
            cell, and what it becomes: a wall, floor, or a cell with a reward.
    """

    world: LabWorld
    left: LabAgent
    right: LabAgent
    seed: int = Field(0, ge=0, le=SEED)
    episodes: int = Field(50, ge=1, le=EPISODES)
    changes: list[CellChange] = Field([], max_length=MOST_CHANGES)

    @field_validator("changes")
    @classmethod
    def _in_order(cls, changes: list[CellChange]) -> list[CellChange]:
        if any(after[0] < before[0] or after[1] < before[1] for before, after in pairwise(changes)):
            raise ValueError("they must be in the order in which they happen, of each agent")
        return changes

    def given(self) -> dict[str, Any]:
        """The given values only, as plain data: the content of the page's address."""
        return {
            "world": self.world.identity,
            "left": self.left.model_dump(),
            "right": self.right.model_dump(),
            "seed": self.seed,
            "episodes": self.episodes,
            **({"changes": [list(change) for change in self.changes]} if self.changes else {}),
        }


def homes_of(given: Mapping[str, Any]) -> list[str]:
    """The third-party modules that registered kinds in a configuration (`LabConfig.given`)."""
    used = WORLDS[given["world"]["kind"]], KINDS[given["left"]["kind"]], KINDS[given["right"]["kind"]]
    return list(dict.fromkeys(each.home for each in used if not each.is_builtin))


def read_config(given: object) -> LabConfig:
    """Read a configuration sent by a page; RefusedError names the invalid field and the reason."""
    try:
        return LabConfig.model_validate(given)
    except ValidationError as error:
        errors = error.errors()[:3]
        raise RefusedError("; ".join(map(_sentence, errors)), *map(_where, errors)) from None


def _where(error: Mapping[str, Any]) -> str:
    return ".".join(str(part) for part in error["loc"]) or "config"


def _sentence(error: Mapping[str, Any]) -> str:
    where, message = _where(error), error["msg"].removeprefix("Value error, ")
    if error["type"] in ("extra_forbidden", "missing"):
        return f"{where}: {'no such field' if error['type'] == 'extra_forbidden' else 'it is missing'}"
    if error["type"] == "value_error":
        return f"{where}: {message}"
    shown = repr(error["input"])
    known = _EXPECTED.get(error["type"])
    expected = known.format_map(error.get("ctx", {})) if known else message[0].lower() + message[1:]
    return f"{where}: {shown if len(shown) < 60 else shown[:57] + '…'} given, {expected}"


_EXPECTED = {
    "greater_than": "expected more than {gt:g}",
    "greater_than_equal": "expected {ge:g} or more",
    "less_than": "expected less than {lt:g}",
    "less_than_equal": "expected at most {le:,g}",
    "literal_error": "expected {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "expected a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
}  # the message of each type of error


_ORDER = ("frame", "alpha", "epsilon", "schedule", "learn", "alpha_model", "alpha_plan")  # in a form; others follow


def setting_descriptions(kind: Kind) -> dict[str, dict[str, Any]]:
    """The form fields of the settings that matter to a kind, in the order of the form.

    `only` is present if a setting matters in only one of prediction and control.
    """
    asked = _asked(kind)
    usual = {name: _usual(setting) for name, (setting, _) in asked.items()}
    usual["frame"] = kind.frame if kind.frame in asked["frame"][1].choices else None
    names = [name for name in takes(kind.name) if name in asked]
    everywhere = takes(kind.name, "prediction")
    return {
        name: _described(*asked[name], usual[name]) | ({} if name in everywhere else {"only": "control"})
        for name in sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    }


def _usual(setting: Setting) -> Any:
    """The default, if it is constant."""
    return setting.default.otherwise if isinstance(setting.default, Depends) else setting.default


def _described(setting: Setting, form: Form, usual: object) -> dict[str, Any]:
    first = setting.meaning[:1]  # a symbol, such as γ, has no capital
    sentence = f"{first.upper() if first.isascii() else first}{setting.meaning[1:]}." if setting.meaning else ""
    depends = isinstance(setting.default, Depends) and setting.default.otherwise is None
    default = f" By default {setting.default.words}." if depends else ""
    told: dict[str, Any] = {"label": setting.label or setting.name.replace("_", " "), "symbol": setting.symbol}
    told |= {"help": sentence + default, "type": "choice" if form.choices else _TYPES[_type(setting)], "usual": usual}
    told |= {"choices": _worded(form)} if form.choices else {}
    bounds = {"least": form.low, "most": form.high}
    return told | {name: bound for name, bound in bounds.items() if bound is not None}


def _worded(form: Form) -> list[list[str]]:
    """Each choice, and its wording."""
    return [list(pair) for pair in zip(form.choices, form.words or form.choices, strict=True)]


def world_descriptions() -> list[dict[str, Any]]:
    """The kinds of worlds, with the form fields of their keys."""
    return [
        {
            "kind": kind.name,
            "label": kind.label,
            "purpose": kind.purpose or "control",  # all the tables are for control
            "keys": _keys(kind),
        }
        for kind in offered().values()
    ]


def _keys(kind: WorldKind) -> dict[str, dict[str, Any]]:
    """The form field of each key; texts of mazes are edited in the drawing instead."""
    choices = {name: Form(choices=those) for name, those in kind.sketch.choices().items()}
    asked = {name: choices.get(name, key.form) for name, key in kind.keys.items()}
    usual = {name: None if name == "seed" and kind.drawn else key.default for name, key in kind.keys.items()}
    return {
        name: _described(kind.keys[name], form, usual[name]) | {"needed": name in kind.required}
        for name, form in asked.items()
        if form is not None
    }
