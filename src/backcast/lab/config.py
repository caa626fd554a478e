"""What is on the screen: a world, two agents, a seed and a number of episodes, checked and bounded.

Whoever can open the page can ask for anything that is allowed here, so everything has an upper bound.
"""

import inspect
from itertools import pairwise
from typing import Any, Literal, get_args

import gymnasium
from annotated_types import Ge, Gt, Le
from pydantic import Field, ValidationError, create_model, field_validator, model_validator

from backcast.agents import Agent, agent
from backcast.agents.kinds import KINDS
from backcast.agents.settings import COMMON, SETTINGS, Setting
from backcast.core.errors import InputError
from backcast.studies.worldspec import WORLD_KINDS, Strict, WorldSpec, one_of

SIDE, STATES, EDGES, EPISODES, STEPS = 50, 1_000, 50_000, 5_000, 1_000_000
CHANGE = EPISODES * STEPS  # real steps, which a run has at most
SEED = 9_999  # a study that holds this seed runs all before it, too
CONNECTIONS = 1_000_000  # of states with pairs, where a model may connect any state with any pair
CORRECTIONS = 100_000  # after one step, where predecessors of predecessors are corrected
TABLES = tuple(
    name
    for name in (
        "FrozenLake-v1",
        "FrozenLake8x8-v1",
        "CliffWalking-v1",
        "CliffWalkingSlippery-v1",
        "Taxi-v3",
        "Taxi-v4",
    )
    if name in gymnasium.registry
)
WORLDS = {
    "maze": "Maze",
    "blocking-maze": "Blocking maze, which changes",
    "shortcut-maze": "Shortcut maze, which changes",
    "chain": "Leveled chain",
    "gymnasium": "Gymnasium table",
    "boyan": "Boyan's chain",
    "random-walk": "Random walk",
    "noisy-tv": "Noisy TV",
}


class LabWorld(WorldSpec):
    """A world as in a study, small enough to be drawn."""

    @model_validator(mode="after")
    def _small_enough(self) -> "LabWorld":
        one_of(WORLDS, self.kind)
        for name, given, most in self._sizes():
            if given is not None and given > most:
                raise ValueError(f"{name} is {given:,}, expected at most {most:,} in the lab")
        if self.kind == "gymnasium":
            one_of(TABLES, self.id or "")
        if self.updates or self.episodes or self.settings.given():
            raise ValueError("episodes, updates and settings belong to studies, not to a world in the lab")
        return self

    def _sizes(self) -> list[tuple[str, int | None, int]]:
        step, later = self.later or (self.step, "")
        mazes = [text.splitlines() for text in (self.text or "", later)]
        levels = self.levels or ()
        return [
            ("the number of rows", max(map(len, mazes)), SIDE),
            ("the number of columns", max((len(line) for lines in mazes for line in lines), default=0), SIDE),
            ("the step at which it changes", step, CHANGE),
            ("the number of levels", len(levels), 20),
            ("the number of states", sum(levels), STATES),
            ("the number of transitions", sum(a * b for a, b in pairwise(levels)), EDGES),
            ("n", self.n, STATES),
            ("jump", self.jump, 100),
            ("signals", self.signals, 20),
            ("channels", self.channels, 20),
            ("max_steps", self.max_steps, STEPS),
        ]


class _LabAgent(Strict):
    """An agent: the arguments of `backcast.agent`, bounded; None: as they usually are."""

    kind: str

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(KINDS, kind)

    def build(self) -> Agent:
        """The agent."""
        return agent(**self.model_dump(exclude_none=True))


def _field(setting: Setting) -> Any:
    """The type of a setting in the lab, and a field with the bounds of its form."""
    form = setting.form
    assert form is not None
    of: Any = Literal[form.choices] if form.choices else next(each for each in _KINDS if each in _types(setting.of))
    bounds = {"gt" if form.above else "ge": form.low, "le": form.high}
    told: Any = {name: bound for name, bound in bounds.items() if bound is not None}
    default = True if setting.default is True else None
    sentence = f"{setting.meaning[0].upper()}{setting.meaning[1:]}."
    return of if default is not None else of | None, Field(default, description=sentence, **told)


_KINDS = (bool, int, float)


def _types(of: Any) -> tuple[Any, ...]:
    return get_args(of) or (of,)


LabAgent: Any = create_model(
    "LabAgent",
    __base__=_LabAgent,
    **{name: _field(setting) for name, setting in {**COMMON, **SETTINGS}.items() if setting.form is not None},
)


class LabConfig(Strict):
    """All that determines a run of two agents."""

    world: LabWorld
    left: LabAgent
    right: LabAgent
    seed: int = Field(0, ge=0, le=SEED)
    episodes: int = Field(50, ge=1, le=EPISODES)

    def given(self) -> dict[str, Any]:
        """Only what was set, as plain data: what the address of the page holds."""
        return {
            "world": self.world.identity,
            "left": self.left.model_dump(exclude_none=True),
            "right": self.right.model_dump(exclude_none=True),
            "seed": self.seed,
            "episodes": self.episodes,
        }


def read_config(given: Any) -> LabConfig:
    """A configuration from what a page sent; an error says which field was wrong, and how."""
    try:
        return LabConfig.model_validate(given)
    except ValidationError as error:
        raise InputError("; ".join(map(_sentence, error.errors()[:3]))) from None


def _sentence(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "config"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"{where}: no such field"
    if error["type"] == "value_error":
        return f"{where}: {message}"
    shown = repr(error["input"])
    return f"{where}: {shown if len(shown) < 60 else shown[:57] + '…'} given, {message[0].lower() + message[1:]}"


def setting_descriptions() -> dict[str, dict[str, Any]]:
    """What the page needs to build a form: type, bounds, choices and a word of explanation for each setting."""
    return {name: _described(field) for name, field in LabAgent.model_fields.items() if name != "kind"}


def _described(field: Any) -> dict[str, Any]:
    kinds = {float: "number", int: "whole", bool: "switch"}
    told: dict[str, Any] = {"help": field.description}
    arguments = getattr(field.annotation, "__args__", (field.annotation,))
    told["type"] = next((kinds[kind] for kind in arguments if kind in kinds), "choice")
    if told["type"] == "choice":
        told["choices"] = list(getattr(arguments[0], "__args__", arguments))
    for bound in field.metadata:
        if isinstance(bound, Ge | Gt):
            told["least"] = getattr(bound, "ge", getattr(bound, "gt", None))
        elif isinstance(bound, Le):
            told["most"] = bound.le
    return told


def world_descriptions() -> list[dict[str, Any]]:
    """The kinds of worlds, with the keys that each takes."""
    choices = {"gymnasium": {"id": list(TABLES)}}

    def usual(kind: str) -> dict[str, Any]:
        given = {name: each.default for name, each in inspect.signature(WORLD_KINDS[kind].make).parameters.items()}
        return {name: value for name, value in given.items() if isinstance(value, int | float | tuple)}

    return [
        {
            "kind": kind,
            "label": label,
            "purpose": WORLD_KINDS[kind].purpose or "control",  # all the tables are for control
            "keys": [*WORLD_KINDS[kind].keys, "discount"],
            "choices": choices.get(kind, {}),
            "usual": {**usual(kind), "seed": None},
        }
        for kind, label in WORLDS.items()
    ]
