"""The worlds of a study, and what can be set about agents in them."""

import functools
import platform
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from backcast.core.errors import InputError, nearest
from backcast.core.files import checksum
from backcast.worlds import (
    World,
    blocking_maze,
    boyan,
    chain,
    from_file,
    from_gymnasium,
    maze,
    noisy_tv,
    random_walk,
    shortcut_maze,
)

QUICK, QUICK_FILE = 10_000, 2**20  # cells of a maze, and bytes of a file, of which a world is made in no time
Rate = float | tuple[float, ...]


def one_of(names: Collection[str], name: str) -> str:
    """The name, if it is one of some."""
    if name not in names:
        raise ValueError(f"expected one of {', '.join(names)}{nearest(name, names)}")
    return name


class Strict(BaseModel):
    """A table of a study: it has no keys but its own, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __copy__(self) -> Self:
        """A copy that forgets what was worked out once: `model_copy` may change what it follows from."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


class Settings(Strict):
    """What can be set about an agent besides its kind; None: as `backcast.agent` has it."""

    alpha: Rate | None = None
    alpha_model: Rate | None = None
    alpha_plan: Rate | None = None
    epsilon: Rate | None = None
    schedule: Literal["linear", "constant"] | None = None
    features: dict[str, Any] | str | None = None

    def given(self) -> dict[str, Any]:
        """Only what was set."""
        values = {name: getattr(self, name) for name in Settings.model_fields}
        return {name: value for name, value in values.items() if value is not None}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # features are a table, which has no hash of its own


def _from_gymnasium(id: str, max_steps: int | None = None, **given: Any) -> World:
    return from_gymnasium(id, max_episode_steps=max_steps, **given)


def _from_file(file: str, sha256: str | None = None, **given: Any) -> World:
    """The world in a file whose content is known by its SHA-256."""
    _content(Path(file), sha256)
    return from_file(file, **given)


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
    """

    name: str
    purpose: Literal["prediction", "control"]
    judged_by: Literal["rmsve", "steps", "reward"]


class WorldKind(NamedTuple):
    """How a kind of world is made, from which keys besides `discount`, and what an agent does there.

    None as the purpose: it is for the world itself to say.
    """

    make: Callable[..., World]
    keys: tuple[str, ...]
    purpose: Literal["prediction", "control"] | None


WORLD_KINDS = {
    "chain": WorldKind(chain, ("levels", "seed", "branches"), "prediction"),
    "boyan": WorldKind(boyan, ("n",), "prediction"),
    "random-walk": WorldKind(random_walk, ("n", "jump"), "prediction"),
    "noisy-tv": WorldKind(noisy_tv, ("signals", "channels", "structure", "seed"), "prediction"),
    "maze": WorldKind(maze, ("text", "slip", "reward_probability", "max_steps", "later"), "control"),
    "blocking-maze": WorldKind(blocking_maze, ("step", "slip", "max_steps"), "control"),
    "shortcut-maze": WorldKind(shortcut_maze, ("step", "slip", "max_steps"), "control"),
    "gymnasium": WorldKind(_from_gymnasium, ("id", "max_steps"), None),
    "mdp": WorldKind(_from_file, ("file", "sha256", "policy", "max_steps"), None),
}


class WorldSpec(Strict):
    """A world of a study: its kind, one of `WORLD_KINDS`, and the arguments of the function that makes it.

    `label` is its name in tables and figures, if it is not to be the world's own.
    """

    kind: str
    label: str | None = Field(default=None, min_length=1, max_length=100)
    levels: tuple[int, ...] | None = None
    seed: int | None = None
    branches: int | None = None
    n: int | None = None
    jump: int | None = None
    signals: int | None = None
    channels: int | None = None
    structure: float | None = None
    text: str | None = None
    slip: float | None = None
    reward_probability: float | None = None
    later: tuple[int, str] | None = None
    step: int | None = None
    id: str | None = None
    file: str | None = None
    sha256: str | None = None
    policy: Literal["uniform"] | None = None
    discount: float | None = None
    max_steps: int | None = Field(default=None, ge=1)
    episodes: int | None = Field(default=None, ge=1)
    updates: int | None = Field(default=None, ge=1)
    settings: Settings = Settings()

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(WORLD_KINDS, kind)

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> "WorldSpec":
        allowed = WORLD_KINDS[self.kind].keys
        for name in self._arguments.keys() - {"discount", *allowed}:
            raise ValueError(f"{name} does not belong to a {self.kind}; its keys are {', '.join(allowed)}")
        if self.kind == "gymnasium" and self.id is None:
            raise ValueError("a gymnasium world needs an id, such as 'FrozenLake-v1'")
        if self.kind == "mdp" and self.file is None:
            raise ValueError('an mdp needs a file, such as file = "my.npz", which FiniteMDP.save wrote')
        if self.kind == "mdp" and self.discount is not None:
            raise ValueError("the discount of an mdp is in its file")
        return self

    def build(self) -> World:
        """The world; a random one without a seed is drawn anew for every seed of the study."""
        kind = WORLD_KINDS[self.kind]
        drawn = {"seed": None} if "seed" in kind.keys else {}
        return kind.make(**{**drawn, **self._arguments})

    def located(self, folder: Path) -> Self:
        """The same world, with the path of its file, if it has one, from this folder on."""
        return self if self.file is None else self.model_copy(update={"file": str((folder / self.file).absolute())})

    def pinned(self) -> Self:
        """The same world, with the content of its file as it is now; refused if it was known, and is another now."""
        if self.file is None:
            return self
        return self.model_copy(update={"sha256": _content(Path(self.file), self.sha256)})

    @functools.cached_property
    def about(self) -> About:
        """What the world says of itself; it is made for that, unless it is known."""
        world = self.build()
        purpose = WORLD_KINDS[self.kind].purpose or ("prediction" if world.is_prediction else "control")
        return About(self.label or world.name, purpose, "rmsve" if purpose == "prediction" else world.judged_by)

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
    def is_quickly_made(self) -> bool:
        """Whether making it takes next to nothing and imports nothing: walks are made when they are first walked."""
        if self.file is not None:
            return Path(self.file).is_file() and Path(self.file).stat().st_size <= QUICK_FILE
        cells = len(self.text or "") + len(self.later[1] if self.later else "")
        return WORLD_KINDS[self.kind].purpose is not None and cells <= QUICK

    @property
    def sketch(self) -> About:
        """What can be said of the world in no time and without importing anything."""
        return self.about if self.is_quickly_made else self.unmade

    @property
    def unmade(self) -> About:
        """What is usually the case with worlds of this kind."""
        own = self.kind if self.file is None else Path(self.file).stem
        name, purpose = self.label or (self.id or own).rpartition(":")[2], WORLD_KINDS[self.kind].purpose
        if purpose == "prediction":
            return About(name, purpose, "rmsve")
        return About(name, "control", "reward" if purpose is None else "steps")

    @property
    def imports(self) -> str | None:
        """The module that making it imports because its id says so, as in "module:Env-v0"."""
        module, colon, _ = (self.id or "").partition(":")
        return module if colon else None

    @property
    def name(self) -> str:
        """What the world calls itself."""
        return self.about.name

    @property
    def purpose(self) -> str:
        """Whether values are predicted there, or improved."""
        return WORLD_KINDS[self.kind].purpose or self.about.purpose

    @property
    def judged_by(self) -> str:
        """The metric by which agents are compared there."""
        return self.about.judged_by

    @functools.cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the world itself: of a file its content, wherever it is."""
        return {"kind": self.kind, **{name: value for name, value in self._arguments.items() if name != "file"}}

    @property
    def _arguments(self) -> dict[str, Any]:
        """What the function that makes it is given."""
        return self.model_dump(exclude={"kind", "label", "episodes", "updates", "settings"}, exclude_none=True)
