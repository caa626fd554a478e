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
of the agents in it; `[grid]` lists values of agent settings of which every combination is run, and `[search]` says what
samples of them are drawn from (`backcast.studies.search`). With `updates`, a run is over when it has made so many value
updates, at the latest after `episodes`.
"""

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, create_model, field_validator, model_validator

from backcast.agents import Agent, agent
from backcast.agents.kinds import KINDS, all_settings
from backcast.agents.settings import COMMON, SETTINGS, describe
from backcast.core.errors import InputError, nearest
from backcast.core.settings import Setting
from backcast.drivers.metrics import METRICS
from backcast.studies.cells import Cell
from backcast.studies.search import (
    RATES,
    SAMPLES,
    Point,
    Search,
    Space,
    checked_grid,
    checked_search,
    takes,
)
from backcast.studies.worldspec import REGISTERED, Shared, Strict, WorldSpec, one_of, optional_fields

MOST = 10**15  # episodes, seeds and value updates: what is counted with numbers of 64 bits
LONGEST = 100  # characters of a name
MODULE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"  # the name of a plugin
PLOT_NAMES = (
    "error-curves",
    "error-by-ratio",
    "reward-over-steps",
    "steps-per-episode",
    "reward-per-episode",
    "error-by-agent",
    "error-by-horizon",
    "error-by-capacity",
    "error-against-updates",
    "error-against-seconds",
    "sensitivity",
)


class _Searched(Strict):
    """What is tried: values of settings of which every combination is run, and what samples are drawn from."""

    grid: dict[str, list[Any]] = Field(default={})
    search: Search = Search()

    @field_validator("grid")
    @classmethod
    def _known_grid(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return checked_grid(grid, _searchable())

    @field_validator("search")
    @classmethod
    def _known_search(cls, search: Search) -> Search:
        return checked_search(search, _searchable())

    @model_validator(mode="after")
    def _one_way_each(self) -> Self:
        for name in self.grid.keys() & self.search.settings.keys():
            raise InputError(f"search.{name}: it is in grid as well; give one of them")
        return self


class _AgentSpec(_Searched, Shared):
    """An agent of a study: the arguments of `backcast.agent`.

    `label` is its name in tables and figures, if it is not to be the agent's own; `only` leaves it out of the worlds
    of the other kind; `grid` and `search` add to those of the study, or replace their entries.
    """

    kind: str
    label: str | None = None
    only: Literal["prediction", "control"] | None = None
    frame: Literal["previous", "current"] | None = None
    learn: bool = True

    @field_validator("kind")
    @classmethod
    def _known(cls, kind: str) -> str:
        return one_of(KINDS, kind, REGISTERED)

    def build(self, settings: dict[str, Any]) -> Agent:
        """The agent, with `settings` in place of its own."""
        own = {name: getattr(self, name) for name in all_settings() if getattr(self, name, None) is not None}
        given = {"frame": self.frame, "learn": self.learn, **own, **self.given(), **settings}
        return agent(self.kind, **given)

    def base(self, built: Agent, searched: Collection[str]) -> str:
        """Its label, or the name of the agent as built from it without the settings that are searched."""
        own = tuple(pair for pair in built.settings if pair[0] not in searched)
        return self.label or replace(built, frame=self.frame, learn=self.learn, settings=own).name


def _with_fields(base: Any, table: Mapping[str, Setting]) -> Any:
    """The same with a field for each setting of a table that it does not have."""
    fields = optional_fields(each for name, each in table.items() if name not in base.model_fields)
    return create_model("AgentSpec", __base__=base, __module__=__name__, **fields)


NO_SETTINGS = (*_AgentSpec.model_fields, *COMMON, "samples", "seed")  # keys of an agent or a search, but of no kind
AgentSpec: Any = _with_fields(_AgentSpec, COMMON | SETTINGS)


def _further() -> tuple[Setting, ...]:
    """The settings that other people's kinds have registered by now."""
    return tuple(each for name, each in all_settings().items() if name not in AgentSpec.model_fields)


@functools.cache
def _agent_type(further: tuple[Setting, ...]) -> Any:
    return _with_fields(AgentSpec, {each.name: each for each in further}) if further else AgentSpec


def _searchable() -> dict[str, Any]:
    """The settings of agents that can be searched, and their types."""
    return _types_searched(_further())


@functools.cache
def _types_searched(further: tuple[Setting, ...]) -> dict[str, Any]:
    others = {"kind", "label", "only", *_Searched.model_fields}
    fields = _agent_type(further).model_fields
    return {name: field.annotation for name, field in fields.items() if name not in others}


class Study(_Searched):
    """A study, checked."""

    name: str
    title: str = ""
    episodes: int = Field(ge=1, le=MOST)
    seeds: int = Field(default=20, ge=1, le=MOST)
    updates: int | None = Field(default=None, ge=1, le=MOST)
    worlds: list[WorldSpec] = Field(min_length=1)
    agents: list[AgentSpec] = Field(min_length=1)
    plots: list[str] = Field(default=[])
    claims: list[int] = Field(default=[])
    plugins: list[Annotated[str, Field(pattern=MODULE)]] = Field(default=[])

    @field_validator("name")
    @classmethod
    def _for_files(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            better = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "my-study"
            raise ValueError(f"expected letters, digits, '.', '_' and '-', such as name = \"{better[:LONGEST]}\"")
        if len(name) > LONGEST:
            raise ValueError(f"expected at most {LONGEST} characters: files are named after it")
        return name

    @field_validator("plots")
    @classmethod
    def _known_plots(cls, plots: list[str]) -> list[str]:
        known = list(dict.fromkeys([*PLOT_NAMES, *(metric.plot for metric in METRICS.values())]))
        for plot in plots:
            if plot not in known:
                raise ValueError(f"{plot!r} is no plot; expected some of {', '.join(known)}{nearest(plot, known)}")
        return plots

    def count(self) -> int:
        """How many runs of a seed there are at most: samples that are drawn twice are run once. Nothing is expanded."""
        sizes = [(chosen.only, space.size) for chosen, space in zip(self.agents, self.spaces, strict=True)]
        purposes = Counter(world.purpose for world in self.worlds)
        return sum(
            worlds * sum(size for only, size in sizes if only in (None, purpose))
            for purpose, worlds in purposes.items()
        )

    def runs(self) -> list[Cell]:
        """Every agent in every world, in the order of the file, with all settings that are tried of it."""
        return list(self._cells)

    @functools.cached_property
    def spaces(self) -> list[Space]:
        """What is tried of each agent: of the study's settings those that its kind has, and its own."""
        has = [takes(chosen.kind, chosen.only) for chosen in self.agents]
        everybody = dict.fromkeys(name for names in has for name in names)
        _refuse_foreign("", self, "no agent of the study has this setting; theirs are", everybody)
        spaces = [self._space(place, names) for place, names in enumerate(has)]
        _refuse_nothing_to_draw("", self.search, spaces)
        for place, (own, space) in enumerate(zip(self.agents, spaces, strict=True)):
            _refuse_nothing_to_draw(f"agents.{place}.", own.search, [space])
        return spaces

    def _space(self, place: int, has: list[str]) -> Space:
        own = self.agents[place]
        _refuse_foreign(f"agents.{place}.", own, f"{own.kind!r} has no such setting; its own are", has)
        grid, drawn = own.grid, own.search.settings
        shared = {name: values for name, values in self.grid.items() if name in has and name not in drawn}
        also = {name: source for name, source in self.search.settings.items() if name in has and name not in grid}
        return Space(
            grid={**shared, **grid},
            drawn={**also, **drawn},
            whole=frozenset(name for name, kind in _searchable().items() if int in get_args(kind)),
            samples=own.search.samples or self.search.samples or SAMPLES,
            seed=next((seed for seed in (own.search.seed, self.search.seed) if seed is not None), 0),
        )

    @functools.cached_property
    def _cells(self) -> tuple[Cell, ...]:
        points = [space.points() for space in self.spaces]
        return tuple(
            cell
            for world in self.worlds
            for place, chosen in enumerate(self.agents)
            if chosen.only in (None, world.purpose)
            for cell in self._of(world, place, points[place])
        )

    def _of(self, world: WorldSpec, place: int, points: list[Point]) -> Iterator[Cell]:
        """An agent in a world at each point; those that differ in rates alone, checked already, are built once."""
        chosen, settings = self.agents[place], world.settings.given()
        episodes, updates = world.episodes or self.episodes, world.updates or self.updates
        built: dict[Point, Agent] = {}
        base = ""
        for point in points:
            rest = tuple(pair for pair in point if pair[0] not in RATES)
            if rest not in built:
                built[rest] = chosen.build({**settings, **dict(rest)})
                base = base or chosen.base(built[rest], dict(rest))
            rates = {name: value for name, value in point if name in RATES}
            made = replace(built[rest], **rates) if rates else built[rest]
            yield Cell(world, made, base + describe(point), place, episodes, updates, base, point, tuple(self.plugins))


def _refuse_foreign(where: str, given: _Searched, who: str, has: Collection[str]) -> None:
    """Raise where a setting is searched that makes no difference to anybody."""
    for table, names in (("grid", given.grid), ("search", given.search.settings)):
        for name in names:
            if name not in has:
                raise InputError(f"{where}{table}.{name}: {who} {', '.join(has)}{nearest(name, has)}")


def _refuse_nothing_to_draw(where: str, search: Search, spaces: list[Space]) -> None:
    """Raise where samples are asked for of no setting."""
    if search.samples is not None and not any(space.drawn for space in spaces):
        raise InputError(f"{where}search.samples: {search.samples} given, but no setting is there to be drawn")


def study_type() -> type[Study]:
    """`Study`, with fields for the settings that other people's kinds have registered by now."""
    return _study_with(_further())


@functools.cache  # two studies are equal only if their types are the same
def _study_with(further: tuple[Setting, ...]) -> type[Study]:
    if not further:
        return Study
    agents: Any = list.__class_getitem__(_agent_type(further))
    return create_model("Study", __base__=Study, __module__=__name__, agents=(agents, Field(min_length=1)))
