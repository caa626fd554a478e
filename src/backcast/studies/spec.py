"""What a study is: worlds, agents, episodes, seeds, plots and claims, read from a small TOML file.

    title = "Fan-in and fan-out"
    episodes = 4000
    seeds = 20
    plots = ["error-curves"]

    [[worlds]]
    kind = "chain"
    levels = [500, 50, 5]

    [[agents]]
    kind = "backward"

Every agent lives in every world. A world may have `episodes` and `updates` of its own and `settings` that replace those
of the agents in it; `[grid]` lists values of agent settings of which every combination is run. With `updates`, a run is
over when it has made so many value updates, at the latest after `episodes`.
"""

import itertools
import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from backcast.agents import Agent, agent
from backcast.errors import InputError, nearest
from backcast.kinds import KINDS
from backcast.settings import CHECKS
from backcast.worlds import World, boyan, chain, from_gymnasium, maze, noisy_tv, random_walk

PLOT_NAMES = (
    "error-curves",
    "error-by-ratio",
    "reward-over-steps",
    "steps-per-episode",
    "error-by-agent",
    "error-by-horizon",
    "error-by-capacity",
    "error-against-updates",
    "error-against-seconds",
)
METRICS = ("rmsve", "rmsve_inner", "steps", "reward")
Rate = float | tuple[float, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(_Strict):
    """What can be set about an agent besides its kind; None: as `backcast.agent` has it."""

    alpha: Rate | None = None
    alpha_model: Rate | None = None
    alpha_plan: Rate | None = None
    epsilon: Rate | None = None
    schedule: Literal["linear", "constant"] | None = None
    features: dict[str, Any] | str | None = None

    def given(self) -> dict[str, Any]:
        """Only what was set."""
        names = Settings.model_fields
        return {name: value for name, value in self.model_dump().items() if value is not None and name in names}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())  # features are a table, which has no hash of its own


class AgentSpec(Settings):
    """An agent of a study: the arguments of `backcast.agent`.

    `label` is its name in tables and figures, if it is not to be the agent's own; `only` leaves it out of the worlds
    of the other kind.
    """

    kind: str
    label: str | None = None
    only: Literal["prediction", "control"] | None = None
    frame: Literal["previous", "current"] | None = None
    learn: bool = True
    model_features: dict[str, Any] | str | None = None
    model: str | None = None
    learn_by: str | None = None
    ridge: float | None = None
    memory: int | None = None
    horizon: int | None = None
    weights: tuple[float, ...] | None = None
    lam: float | tuple[float, ...] | None = None
    lam_by: str | None = None
    option: dict[str, Any] | None = None
    conditioned: bool | None = None
    sample: int | None = None
    top: int | None = None
    depth: int | None = None
    forget: float | None = None
    importance: bool | None = None
    traces: str | None = None
    variant: str | None = None
    bonus: float | None = None
    buffer: int | None = None
    exponent: float | None = None

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
        return kind

    def build(self, settings: dict[str, Any]) -> Agent:
        """The agent, with `settings` in place of its own."""
        own = {name: getattr(self, name) for name in CHECKS}
        return agent(self.kind, frame=self.frame, learn=self.learn, **{**own, **self.given(), **settings})


def _from_gymnasium(id: str, max_steps: int | None = None, **given: Any) -> World:
    import gymnasium

    return from_gymnasium(gymnasium.make(id, max_episode_steps=max_steps), **given)


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
    "maze": WorldKind(maze, ("text", "slip", "reward_probability", "max_steps"), "control"),
    "gymnasium": WorldKind(_from_gymnasium, ("id", "max_steps"), None),
}


class WorldSpec(_Strict):
    """A world of a study: its kind, one of `WORLD_KINDS`, and the arguments of the function that makes it."""

    kind: str
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
    id: str | None = None
    discount: float | None = None
    max_steps: int | None = None
    episodes: int | None = Field(default=None, ge=1)
    updates: int | None = Field(default=None, ge=1)
    settings: Settings = Settings()

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        if kind not in WORLD_KINDS:
            raise ValueError(f"expected one of {', '.join(WORLD_KINDS)}{nearest(kind, WORLD_KINDS)}")
        return kind

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> "WorldSpec":
        allowed = WORLD_KINDS[self.kind].keys
        for name in self.identity().keys() - {"kind", "discount", *allowed}:
            raise ValueError(f"{name} does not belong to a {self.kind}; its keys are {', '.join(allowed)}")
        if self.kind == "gymnasium" and self.id is None:
            raise ValueError("a gymnasium world needs an id, such as 'FrozenLake-v1'")
        return self

    def build(self) -> World:
        """The world; a random one without a seed is drawn anew for every seed of the study."""
        given = self.identity()
        kind = WORLD_KINDS[given.pop("kind")]
        if "seed" in kind.keys:
            given.setdefault("seed", None)
        return kind.make(**given)

    @property
    def purpose(self) -> str:
        """Whether values are predicted there, or improved."""
        return WORLD_KINDS[self.kind].purpose or ("prediction" if self.build().is_prediction else "control")

    def identity(self) -> dict[str, Any]:
        """What determines the world itself."""
        return self.model_dump(exclude={"episodes", "updates", "settings"}, exclude_none=True)


class Study(_Strict):
    """A study, checked."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str = ""
    episodes: int = Field(ge=1)
    seeds: int = Field(default=20, ge=1)
    updates: int | None = Field(default=None, ge=1)
    worlds: list[WorldSpec] = Field(min_length=1)
    agents: list[AgentSpec] = Field(min_length=1)
    grid: dict[str, list[Rate]] = {}
    plots: list[str] = []
    claims: list[int] = []

    @field_validator("plots")
    @classmethod
    def _known_plots(cls, plots: list[str]) -> list[str]:
        for plot in plots:
            if plot not in PLOT_NAMES:
                raise ValueError(
                    f"{plot!r} is no plot; expected some of {', '.join(PLOT_NAMES)}{nearest(plot, PLOT_NAMES)}"
                )
        return plots

    @field_validator("grid")
    @classmethod
    def _known_grid(cls, grid: dict[str, list[Rate]]) -> dict[str, list[Rate]]:
        names = [name for name in Settings.model_fields if name not in ("schedule", "features")]
        for name, values in grid.items():
            if name not in names:
                raise ValueError(f"{name!r} is no setting; expected some of {', '.join(names)}{nearest(name, names)}")
            if not values:
                raise ValueError(f"{name} has no values")
        return grid

    def points(self) -> list[dict[str, Any]]:
        """Every combination of the grid's values; one empty one if there is no grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def runs(self) -> list["Cell"]:
        """Every agent in every world, in the order of the file."""
        cells = []
        for world in self.worlds:
            for place, chosen in enumerate(self.agents):
                if chosen.only not in (None, world.purpose):
                    continue
                for point in self.points():
                    built = chosen.build({**world.settings.given(), **point})
                    label = (chosen.label or built.name) + "".join(f",{key}={value:g}" for key, value in point.items())
                    budget = world.updates or self.updates
                    cells.append(Cell(world, built, label, place, world.episodes or self.episodes, budget))
        return cells


@dataclass(frozen=True)
class Cell:
    """One agent in one world: what a number of seeds is run of; `place` is that of the agent in the study's list."""

    world: WorldSpec
    agent: Agent
    label: str
    place: int
    episodes: int
    updates: int | None = None

    def identity(self) -> dict[str, Any]:
        """Everything but the seeds that determines the numbers."""
        budget = {} if self.updates is None else {"updates": self.updates}
        return {"world": self.world.identity(), "agent": asdict(self.agent), "episodes": self.episodes, **budget}


def read_study(path: str | Path) -> Study:
    """A study from a TOML file; its name is that of the file unless it says otherwise."""
    path = Path(path)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML ({error})") from error
    return check_study({"name": path.stem, **given}, str(path))


def check_study(given: dict[str, Any], source: str) -> Study:
    """A study from plain data; an error names the source, the key, what was given and what is allowed."""
    try:
        study = Study.model_validate(given)
    except ValidationError as error:
        raise InputError("\n".join(f"{source}: {_sentence(e, given)}" for e in error.errors())) from None
    try:
        names = [world.build().name for world in study.worlds]
        labels = [[cell.label for cell in study.runs() if cell.world == world] for world in study.worlds]
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    for name, those in zip(names, labels, strict=True):
        if not those:
            raise InputError(f"{source}: agents: none of them is for {name}; see `only`")
    for key, entries in (("worlds", names), *(("agents", those) for those in labels)):
        twice = next((entry for entry in entries if entries.count(entry) > 1), None)
        if twice is not None:
            raise InputError(f"{source}: {key}: {twice!r} is there twice, and results could not be told apart")
    return study


def _sentence(error: Any, given: dict[str, Any]) -> str:
    """One pydantic error in our words."""
    key = ".".join(str(part) for part in error["loc"]) or "the study"
    if error["type"] == "extra_forbidden":
        owners: dict[str, type[BaseModel]] = {"worlds": WorldSpec, "agents": AgentSpec}
        owner = Settings if "settings" in error["loc"] else owners.get(str(error["loc"][0]), Study)
        fields = owner.model_fields
        return f"{key}: no such key; allowed are {', '.join(fields)}{nearest(error['loc'][-1], fields)}"
    if error["type"] == "missing":
        return f"{key}: missing"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "literal_error":
        message += nearest(error["input"], error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", "))
    shown = json.dumps(error["input"], default=str)
    return f"{key}: {shown if len(shown) < 80 else shown[:77] + '...'} given, {message[0].lower() + message[1:]}"
