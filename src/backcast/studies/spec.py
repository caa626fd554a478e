"""The specification of a study: worlds, agents, episodes, seeds, plots and claims, from a small TOML file.

    title = "Fan-in and fan-out"
    episodes = 4000
    seeds = 20
    plots = ["error-curves"]

    [[worlds]]
    kind = "chain"
    levels = [500, 50, 5]

    [[agents]]
    kind = "backward"

Every agent is run in every world. A world may have its own `episodes` and `updates`, and `settings` that replace those
of the agents in it. `[grid]` lists values of agent settings whose every combination is run; `[search]` gives ranges or
choices from which samples are drawn (`backcast.studies.search`). With `updates`, a run is over when it has made that
many value updates, at the latest after `episodes`.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from pydantic import Field, field_validator

from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.agents.settings import describe
from backcast.core.errors import InputError, nearest
from backcast.core.setting_types import Setting
from backcast.drivers.metrics import METRICS
from backcast.studies.agentspec import AgentSpec, Searched
from backcast.studies.cells import Cell
from backcast.studies.search import (
    RATES,
    SAMPLES,
    Point,
    Search,
    Space,
    checked_source,
    checked_values,
    numbers_among,
    searchable,
)
from backcast.studies.worldspec import WorldSpec
from backcast.worlds.world import Purpose

MOST = 10**15  # limit of episodes, seeds and value updates, which are 64-bit numbers
LONGEST = 100  # most characters of a name
MODULE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"  # the name of a plugin
SENSITIVITY = "sensitivity"
SOLVING = "updates-to-solve"
PLOTS: dict[str, Purpose | None] = {  # and the purpose of the worlds that they need, if it matters
    "error-curves": "prediction",
    "error-by-ratio": "prediction",
    "reward-over-steps": "control",
    "steps-per-episode": "control",
    "reward-per-episode": "control",
    "error-by-agent": None,
    "error-by-horizon": None,
    "error-by-capacity": None,
    "error-against-updates": None,
    "error-against-seconds": None,
    SOLVING: None,
    SENSITIVITY: None,
}


class Study(Searched):
    """A validated study."""

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
        known = list(dict.fromkeys([*PLOTS, *(metric.plot for metric in METRICS.values())]))
        for plot in plots:
            if plot not in known:
                raise ValueError(f"{plot!r} is not a plot; expected some of {', '.join(known)}{nearest(plot, known)}")
        return plots

    def count(self) -> int:
        """The most runs per seed (duplicate samples are run once); nothing is expanded."""
        sizes = [(chosen.only, space.size) for chosen, space in zip(self.agents, self.spaces, strict=True)]
        purposes = Counter(world.purpose for world in self.worlds)
        return sum(
            worlds * sum(size for only, size in sizes if only in (None, purpose))
            for purpose, worlds in purposes.items()
        )

    def runs(self) -> list[Cell]:
        """Every agent in every world, in the order of the file, with all settings to try."""
        return list(self._cells)

    @functools.cached_property
    def spaces(self) -> list[Space]:
        """The search space of each agent: the study's settings that its kind has, and its own."""
        tables = [searchable(chosen.kind, chosen.only) for chosen in self.agents]
        everybody = dict.fromkeys(name for table in tables for name in table)
        _refuse_foreign("", self, "no agent of the study has this setting; theirs are", everybody)
        spaces = [self._space(place, tables) for place in range(len(tables))]
        _refuse_nothing_to_draw("", self.search, spaces)
        for place, (own, space) in enumerate(zip(self.agents, spaces, strict=True)):
            _refuse_nothing_to_draw(f"agents.{place}.", own.search, [space])
        if SENSITIVITY in self.plots and not numbers_among(spaces):
            raise InputError(
                f"plots: {SENSITIVITY!r} draws agents against the numbers that are searched, and no setting is given"
                " several; search some, such as grid = { alpha = [0.1, 0.5] }, or leave the plot out"
            )
        return spaces

    def solvable(self, names: Collection[str]) -> list[str]:
        """Those of these worlds that can be solved, because agents are judged by an error or by steps there."""
        found = [world.name for world in self.worlds if world.name in names and METRICS[world.judged_by].positive]
        if not found:
            raise InputError(f"plots: in no world of {self.name} agents are judged by an error or by steps")
        return found

    def refuse_plots(self) -> None:
        """Raise InputError if a plot shows what its worlds do not have."""
        for plot in self.plots:
            purpose = PLOTS.get(plot)
            for world in self.worlds:
                if purpose not in (None, world.purpose):
                    raise InputError(
                        f"plots: {plot!r} is drawn of {purpose} worlds, and {world.name} is for {world.purpose}"
                    )
        if SOLVING in self.plots:
            self.solvable([world.name for world in self.worlds])

    @property
    def searched_numbers(self) -> list[str]:
        """The settings with several numbers to try, in order."""
        return numbers_among(self.spaces)

    @property
    def models(self) -> list[str]:
        """The values of `model` of its agents, where that is Backcast's setting."""
        found: list[str] = []
        for chosen, space in zip(self.agents, self.spaces, strict=True):
            tried: Any = space.sources.get("model", [(chosen.model_extra or {}).get("model")])
            if not KINDS[chosen.kind].has_own("model"):
                found += [name for name in tried if name is not None]
        return list(dict.fromkeys(found))

    def _space(self, place: int, tables: Sequence[Mapping[str, Setting]]) -> Space:
        own, has, where = self.agents[place], tables[place], f"agents.{place}."
        _refuse_foreign(where, own, f"{own.kind!r} has no such setting; its own are", has)
        grid, drawn = own.grid, own.search.settings
        shared = {name: values for name, values in self.grid.items() if name in has and name not in drawn}
        also = {name: source for name, source in self.search.settings.items() if name in has and name not in grid}
        kinds = _Kinds(own.kind, has, tables)
        return Space(
            grid=kinds.checked(where, "grid", checked_values, shared, grid),
            drawn=kinds.checked(where, "search", checked_source, also, drawn),
            table=has,
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
        """Yield an agent in a world at each point; agents that differ only in validated rates are built once."""
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


class _Kinds(NamedTuple):
    """A kind and its settings, among those of all agents of a study."""

    kind: str
    has: Mapping[str, Setting]
    tables: Sequence[Mapping[str, Setting]]

    def checked(
        self,
        where: str,
        key: str,
        check: Callable[[Setting, Any], Any],
        shared: Mapping[str, Any],
        own: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The values to try of each setting, validated by the kind: `own` of the agent, else `shared` by the study."""
        found = {}
        for name, given in {**shared, **own}.items():
            try:
                found[name] = check(self.has[name], given)
            except InputError as error:
                raise InputError(
                    f"{where}{key}.{error}" if name in own else f"{key}.{error}{self._hint(name)}"
                ) from None
        return found

    def _hint(self, name: str) -> str:
        """A hint if the setting is not the same for all agents."""
        if len({table[name].check for table in self.tables if name in table}) == 1:
            return ""
        return f" ({self.kind!r} has another setting of this name than other agents)"


def _refuse_foreign(where: str, given: Searched, who: str, has: Collection[str]) -> None:
    """Raise InputError if a searched setting matters to no agent."""
    for table, names in (("grid", given.grid), ("search", given.search.settings)):
        for name in names:
            if name not in has:
                raise InputError(f"{where}{table}.{name}: {who} {', '.join(has)}{nearest(name, has)}")


def _refuse_nothing_to_draw(where: str, search: Search, spaces: list[Space]) -> None:
    """Raise InputError if samples are requested but no setting is drawn."""
    if search.samples is not None and not any(space.drawn for space in spaces):
        raise InputError(f"{where}search.samples: {search.samples} given, but no setting is there to be drawn")
