"""The worlds of a study, and what can be set about agents in them."""

import functools
import platform
from collections.abc import Collection, Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from backcast.agents.settings import COMMON, SETTINGS
from backcast.core.errors import InputError, nearest
from backcast.core.files import checksum
from backcast.core.setting_types import Setting
from backcast.worlds import World
from backcast.worlds.kinds import WORLDS, Picture, WorldKind
from backcast.worlds.world import Judge, Purpose

REGISTERED = 'or name the module that registers it in plugins = ["…"]'
QUICK_FILE = 2**20  # bytes of a file that is read in no time
SHARED = {
    **{name: each for name, each in COMMON.items() if name not in ("frame", "learn")},
    "features": SETTINGS["features"],
}  # settings that a world may have for all agents in it


def one_of(names: Collection[str], name: str, *hints: str) -> str:
    """The name, if it is one of some; hints say what else to do about it."""
    if name not in names:
        raise ValueError("; ".join([f"expected one of {', '.join(names)}{nearest(name, names)}", *hints]))
    return name


class Strict(BaseModel):
    """A table of a study: it has no keys but its own, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _take_no_text_for_a_number(cls, given: object) -> Any:
        if not isinstance(given, dict):
            return given
        numbers = [name for name, field in cls.model_fields.items() if _is_numeric(field.annotation)]
        return given | {name: _quoted(given[name]) for name in numbers if name in given}

    def __copy__(self) -> Self:
        """A copy that forgets what was worked out once: `model_copy` may change what it follows from."""
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
    """What was given, text marked as such, in lists, too."""
    if isinstance(given, (list, tuple)):
        return [_quoted(each) for each in given]
    return _Quoted(given) if isinstance(given, str) else given


def _is_numeric(annotation: object) -> bool:
    """Whether a type is made of numbers alone: int, float | None, tuple[int, ...]."""
    parts = [each for each in get_args(annotation) if each not in (NoneType, Ellipsis)]
    return all(map(_is_numeric, parts)) if parts else annotation in (int, float)


class _Shared(Strict):
    """Settings that a world has for all agents in it; None: as they are given to each."""

    def given(self) -> dict[str, Any]:
        """Only what was set."""
        values = {name: getattr(self, name) for name in SHARED}
        return {name: value for name, value in values.items() if value is not None}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # features are a table, which has no hash of its own


def optional_fields(settings: Iterable[Setting]) -> Any:
    """A field for each setting, as pydantic makes a model of them; None: it was not given."""
    return {each.name: (each.of | None, None) for each in settings}


Settings: Any = create_model("Settings", __base__=_Shared, __module__=__name__, **optional_fields(SHARED.values()))


def _content(path: Path, expected: str | None) -> str:
    """The SHA-256 of the file of a world; refused if another one is expected."""
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
    """What has to be known of a world to read results of runs in it.

    Attributes:
        name: what the world calls itself.
        purpose: whether values are predicted there, or improved.
        judged_by: the metric by which agents are compared there (`World.judged_by`).
        picture: what figures show of it, if its kind is not one of Backcast's own, which say it again when asked.
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

    `label` is its name in tables and figures, if it is not to be the world's own; `view` says what agents with a
    network observe of its states.
    """

    model_config = ConfigDict(extra="allow")  # the keys of its kind, checked

    kind: str
    label: str | None = Field(default=None, min_length=1, max_length=100)
    episodes: int | None = Field(default=None, ge=1)
    updates: int | None = Field(default=None, ge=1)
    view: Literal["onehot", "coordinates", "pixels"] | None = None
    settings: Settings = Settings()

    @model_validator(mode="before")
    @classmethod
    def _with_checked_keys(cls, given: Any) -> Any:
        kind = WORLDS.get(given["kind"]) if isinstance(given, dict) and isinstance(given.get("kind"), str) else None
        if kind is None:
            return given
        common = {name: value for name, value in given.items() if name in cls.model_fields}
        return common | checked_keys(kind, {name: value for name, value in given.items() if name not in common})

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(WORLDS, kind, REGISTERED)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def arguments(self) -> dict[str, Any]:
        """The keys of its kind that were given, and their values."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def file(self) -> Path | None:
        """The file that the world is in, if it is in one."""
        name = WORLDS[self.kind].file
        return None if name is None else Path(self.arguments[name])

    def build(self) -> World:
        """The world; a random one without a seed is drawn anew for every seed of the study."""
        kind, given = WORLDS[self.kind], self.arguments
        if kind.file is not None and self.file is not None:
            _content(self.file, given.pop("sha256", None))
            given[kind.file] = self.file
        world = kind.make(**({"seed": None} if kind.drawn else {}) | given)
        return world if self.view is None else world.view(self.view)

    def located(self, folder: Path) -> Self:
        """The same world, with the path of its file, if it has one, from this folder on."""
        key = WORLDS[self.kind].file
        if key is None:
            return self
        return self.model_copy(update={key: str((folder / self.arguments[key]).absolute())})

    def pinned(self) -> Self:
        """The same world, with the content of its file as it is now; refused if it was known, and is another now."""
        if self.file is None:
            return self
        return self.model_copy(update={"sha256": _content(self.file, self.arguments.get("sha256"))})

    @functools.cached_property
    def about(self) -> About:
        """What the world says of itself; it is made for that, unless it is known."""
        world, kind = self.build(), WORLDS[self.kind]
        purpose = kind.purpose or world.purpose
        judged_by = "rmsve" if purpose == "prediction" else world.judged_by
        picture = None if kind.is_builtin else kind.picture(self.arguments)
        return About(self.label or world.name, purpose, judged_by, picture)

    def knowing(self, about: About) -> Self:
        """The same world, of which this is known: nothing is made or imported to find it out."""
        known = self.model_copy()
        known.__dict__["about"] = about
        return known

    @property
    def known(self) -> About | None:
        """What is known of it without making it; None if nothing is."""
        return self.__dict__.get("about")

    @property
    def why_unmade(self) -> str:
        """Why it is not made in passing, in a sentence; empty if that takes next to nothing and imports nothing."""
        why = WORLDS[self.kind].sketch.why_unmade(self.arguments)
        if why or self.file is None:
            return why
        quick = self.file.is_file() and self.file.stat().st_size <= QUICK_FILE
        return "" if quick else f"the file {self.file} was not read"

    def sketch(self, place: int | None = None) -> About:
        """What can be said of the world in no time and without importing anything."""
        return self.unmade(place) if self.why_unmade else self.about

    def unmade(self, place: int | None = None) -> About:
        """What is usually the case with worlds of this kind; `place` of the world in its study tells them apart."""
        kind, number = WORLDS[self.kind], "" if place is None else f" {place}"
        own = kind.sketch.name(self.arguments) if self.file is None else self.file.stem
        seen = "" if self.view is None else f":{self.view}"
        name = self.label or (own or f"{self.kind}{number}") + seen
        if kind.purpose == "prediction":
            return About(name, kind.purpose, "rmsve")
        return About(name, "control", "reward" if kind.purpose is None else "steps")

    def refuse(self) -> None:
        """Raise InputError if it is known without making it that it cannot be made."""
        WORLDS[self.kind].sketch.refuse(self.arguments)

    @property
    def imports(self) -> str | None:
        """The module that making it imports because an argument says so, as in "module:Env-v0"."""
        return WORLDS[self.kind].sketch.imports(self.arguments)

    @property
    def name(self) -> str:
        """What the world calls itself."""
        return self.about.name

    @property
    def purpose(self) -> Purpose:
        """Whether values are predicted there, or improved."""
        return WORLDS[self.kind].purpose or self.about.purpose

    @property
    def judged_by(self) -> Judge:
        """The metric by which agents are compared there."""
        return self.about.judged_by

    @property
    def picture(self) -> Picture:
        """What figures show of it; a world that has a label is called that."""
        known = None if self.known is None else self.known.picture
        its = known or WORLDS[self.kind].picture(self.arguments)
        return its._replace(title=self.label or its.title or self.name)

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the world itself: of a file its content, wherever it is."""
        file, seen = WORLDS[self.kind].file, {} if self.view is None else {"view": self.view}
        return {"kind": self.kind, **{name: value for name, value in self.arguments.items() if name != file}, **seen}


def checked_keys(kind: WorldKind, given: dict[str, Any]) -> dict[str, Any]:
    """The keys of a world as its kind has them; refused where one is missing, another's, or not what is allowed."""
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
