"""The worlds of a study, and settings of agents in them."""

import functools
import platform
from collections.abc import Collection, Iterable
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from backcast.agents.settings import COMMON, SETTINGS
from backcast.core.errors import InputError, nearest
from backcast.core.files import checksum
from backcast.core.registry import named_kind
from backcast.core.setting_types import Setting
from backcast.worlds import World
from backcast.worlds.kinds import WORLDS, Picture, WorldKind
from backcast.worlds.views import check_view
from backcast.worlds.world import Judge, Purpose

REGISTERED = 'or name the module that registers it in plugins = ["…"]'
QUICK_FILE = 2**20  # size of a file that is quick to read
SHARED = {
    **{name: each for name, each in COMMON.items() if name not in ("frame", "learn")},
    "features": SETTINGS["features"],
}  # settings that a world may have for all agents in it


def one_of(names: Collection[str], name: str, *hints: str) -> str:
    """Return a name if it is known; otherwise raise ValueError with hints."""
    if name not in names:
        raise ValueError("; ".join([f"expected one of {', '.join(names)}{nearest(name, names)}", *hints]))
    return name


class Strict(BaseModel):
    """A table of a study: immutable, with a fixed set of keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _take_no_text_for_a_number(cls, given: object) -> Any:
        if not isinstance(given, dict):
            return given
        numbers = [name for name, field in cls.model_fields.items() if _is_numeric(field.annotation)]
        return given | {name: _quoted(given[name]) for name in numbers if name in given}

    def __copy__(self) -> Self:
        """A copy without cached values, because `model_copy` may change what they depend on."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class _Quoted:
    """Text in the place of a number, which pydantic would otherwise read as one."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _quoted(given: object) -> Any:
    """Mark text, also within lists."""
    if isinstance(given, (list, tuple)):
        return [_quoted(each) for each in given]
    return _Quoted(given) if isinstance(given, str) else given


def _is_numeric(annotation: object) -> bool:
    """Whether a type consists of numbers only: int, float | None, tuple[int, ...]."""
    parts = [each for each in get_args(annotation) if each not in (NoneType, Ellipsis)]
    return all(map(_is_numeric, parts)) if parts else annotation in (int, float)


class _Shared(Strict):
    """Settings of a world for all its agents; None: as given for each agent."""

    def given(self) -> dict[str, Any]:
        """Only what was set."""
        values = {name: getattr(self, name) for name in SHARED}
        return {name: value for name, value in values.items() if value is not None}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # features are a table, which has no hash of its own


def optional_fields(settings: Iterable[Setting]) -> Any:
    """Pydantic fields for settings; None: not given."""
    return {each.name: (each.of | None, None) for each in settings}


Settings: Any = create_model("Settings", __base__=_Shared, __module__=__name__, **optional_fields(SHARED.values()))


def _content(path: Path, expected: str | None) -> str:
    """The SHA-256 of the file of a world; raise InputError if another one is expected."""
    try:
        found = checksum(path)
    except OSError as error:
        raise InputError(
            f"file: {path} cannot be read on {platform.node()} ({error.strerror}); every machine that runs the study"
            " needs it at this path"
        ) from error
    if expected not in (None, found):
        raise InputError(
            f"file: {path} has another content than the study was made for, its SHA-256 is {found} instead of"
            f" {expected}; put the earlier file back, or begin a new study"
        )
    return found


class About(NamedTuple):
    """What is needed of a world to read results of runs in it.

    Attributes:
        name: the world's own name.
        purpose: whether values are predicted or improved.
        judged_by: the metric by which agents are compared there (`World.judged_by`).
        picture: the picture in figures, for third-party kinds; Backcast's own kinds make it on demand.
    """

    name: str
    purpose: Purpose
    judged_by: Judge
    picture: Picture | None = None

    def stored(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        picture = {} if self.picture is None else {"picture": self.picture._asdict()}
        return {"name": self.name, "purpose": self.purpose, "judged_by": self.judged_by, **picture}


class WorldSpec(Strict):
    """A world of a study: its kind, one of `backcast.worlds.kinds.WORLDS`, and the keys of that kind.

    `label` is its name in tables and figures, if different from the world's own; `view` sets what agents with a network
    observe of its states.
    """

    model_config = ConfigDict(extra="allow")  # the keys of its kind, validated

    kind: str
    label: str | None = Field(default=None, min_length=1, max_length=100)
    episodes: int | None = Field(default=None, ge=1)
    updates: int | None = Field(default=None, ge=1)
    view: str | None = None
    settings: Settings = Settings()

    @model_validator(mode="before")
    @classmethod
    def _with_checked_keys(cls, given: Any) -> Any:
        kind = named_kind(WORLDS, given)
        if kind is None:
            return given
        common = {name: value for name, value in given.items() if name in cls.model_fields}
        return common | checked_keys(kind, {name: value for name, value in given.items() if name not in common})

    @field_validator("view")
    @classmethod
    def _known_view(cls, view: str | None) -> str | None:
        return None if view is None else str(check_view(view))

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(WORLDS, kind, REGISTERED)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def arguments(self) -> dict[str, Any]:
        """The given keys of its kind, and their values."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def file(self) -> Path | None:
        """The file of the world, if there is one."""
        name = WORLDS[self.kind].file
        return None if name is None else Path(self.arguments[name])

    def build(self) -> World:
        """Make the world; a random world without a seed is drawn anew for every seed of the study."""
        kind, given = WORLDS[self.kind], self.arguments
        if kind.file is not None and self.file is not None:
            _content(self.file, given.pop("sha256", None))
            given[kind.file] = self.file
        world = kind.make(**({"seed": None} if kind.drawn else {}) | given)
        return world if self.view is None else world.view(self.view)

    def located(self, folder: Path) -> Self:
        """The same world, with the path of its file, if any, relative to this folder."""
        key = WORLDS[self.kind].file
        if key is None:
            return self
        return self.model_copy(update={key: str((folder / self.arguments[key]).absolute())})

    def pinned(self) -> Self:
        """The same world, with the checksum of its file; raise InputError if the file has changed."""
        if self.file is None:
            return self
        return self.model_copy(update={"sha256": _content(self.file, self.arguments.get("sha256"))})

    @functools.cached_property
    def about(self) -> About:
        """The description of the world, which is made for it unless the description is known."""
        world, kind = self.build(), WORLDS[self.kind]
        purpose = kind.purpose or world.purpose
        judged_by = "rmsve" if purpose == "prediction" else world.judged_by
        picture = None if kind.is_builtin else kind.picture(self.arguments)
        return About(self.label or world.name, purpose, judged_by, picture)

    def knowing(self, about: About) -> Self:
        """The same world with a known description, so that nothing is made or imported to find it."""
        known = self.model_copy()
        known.__dict__["about"] = about
        return known

    @property
    def known(self) -> About | None:
        """The description, if known without making the world; otherwise None."""
        return self.__dict__.get("about")

    @property
    def why_unmade(self) -> str:
        """Why a dry run does not make it, in a sentence; empty if making it is quick and imports nothing."""
        why = WORLDS[self.kind].sketch.why_unmade(self.arguments)
        if why or self.file is None:
            return why
        quick = self.file.is_file() and self.file.stat().st_size <= QUICK_FILE
        return "" if quick else f"the file {self.file} was not read"

    def sketch(self, place: int | None = None) -> About:
        """A quick description of the world, without importing anything."""
        return self.unmade(place) if self.why_unmade else self.about

    def unmade(self, place: int | None = None) -> About:
        """The default description of worlds of this kind; `place`, the position in the study, distinguishes them."""
        kind, number = WORLDS[self.kind], "" if place is None else f" {place}"
        own = kind.sketch.name(self.arguments) if self.file is None else self.file.stem
        seen = "" if self.view is None else f":{self.view}"
        name = self.label or (own or f"{self.kind}{number}") + seen
        if kind.purpose == "prediction":
            return About(name, kind.purpose, "rmsve")
        return About(name, "control", "reward" if kind.purpose is None else "steps")

    def refuse(self) -> None:
        """Raise InputError if the world certainly cannot be made, without making it."""
        WORLDS[self.kind].sketch.refuse(self.arguments)

    @property
    def imports(self) -> str | None:
        """The module that an argument asks to import, as in "module:Env-v0"."""
        return WORLDS[self.kind].sketch.imports(self.arguments)

    @property
    def name(self) -> str:
        """The world's own name."""
        return self.about.name

    @property
    def purpose(self) -> Purpose:
        """Whether values are predicted or improved."""
        return WORLDS[self.kind].purpose or self.about.purpose

    @property
    def judged_by(self) -> Judge:
        """The metric by which agents are compared there."""
        return self.about.judged_by

    @property
    def picture(self) -> Picture:
        """The picture in figures, under the label of the world if it has one."""
        known = None if self.known is None else self.known.picture
        its = known or WORLDS[self.kind].picture(self.arguments)
        seen = "" if self.view is None else f", as {self.view}"
        return its._replace(title=self.label or (its.title and its.title + seen) or self.name)

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the world: for a file its content, not its path."""
        file, seen = WORLDS[self.kind].file, {} if self.view is None else {"view": self.view}
        return {"kind": self.kind, **{name: value for name, value in self.arguments.items() if name != file}, **seen}


def checked_keys(kind: WorldKind, given: dict[str, Any]) -> dict[str, Any]:
    """Validate the keys of a world; raise InputError on missing, unknown or invalid ones."""
    for name in given.keys() - kind.keys.keys():
        if any(name in other.keys for other in WORLDS.values()):
            raise ValueError(f"{name} does not belong to a {kind.name}; its keys are {', '.join(kind.keys)}")
    typed = _table_of(kind).model_validate(given)
    for name in kind.required:
        if given.get(name) is None:
            raise InputError(f"{name}: missing, expected {kind.keys[name].meaning or kind.keys[name].allowed}")
    return {name: kind.keys[name].check(name, value) for name, value in typed if value is not None}


@functools.cache
def _table_of(kind: WorldKind) -> type[Strict]:
    """The keys of a kind, each of its type."""
    return create_model("Keys", __base__=Strict, __module__=__name__, **optional_fields(kind.keys.values()))
