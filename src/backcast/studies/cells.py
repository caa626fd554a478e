"""Cells: one agent in one world, and what determines the numbers of its runs."""

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from backcast.agents import Agent
from backcast.agents.settings import Settings
from backcast.studies.search import Point
from backcast.studies.worldspec import WorldSpec

RESULTS = 3  # raised when the same settings give other numbers: older results are then not taken for done
KEY_LENGTH = 24


@dataclass(frozen=True)
class Cell:
    """One agent in one world: what a number of seeds is run of.

    Attributes:
        world: where.
        agent: who.
        label: the agent's name in tables and figures, `base` and what is searched: `forward,alpha=0.5`.
        place: that of the agent in the study's list.
        episodes: how many.
        updates: after which a run is over, if there is such a limit.
        base: the label without what is searched.
        point: the values of the settings that are searched.
        plugins: modules that have to be imported before the agent can be made.
    """

    world: WorldSpec
    agent: Agent
    label: str
    place: int
    episodes: int
    updates: int | None = None
    base: str = ""
    point: Point = ()
    plugins: tuple[str, ...] = ()

    def identity(self) -> dict[str, Any]:
        """Everything but the seeds that determines the numbers."""
        budget = {} if self.updates is None else {"updates": self.updates}
        who = {**vars(self.agent), "settings": _plain(self.agent.settings)}
        if self.agent.epsilon_schedule is None:  # results were stored before there was such a setting
            del who["epsilon_schedule"]
        return {"results": RESULTS, "world": self.world.identity, "agent": who, "episodes": self.episodes, **budget}

    @functools.cached_property
    def group(self) -> str:
        """The hash of it."""
        return digest(self.identity())


@functools.lru_cache(maxsize=64)
def _plain(settings: Settings) -> Settings:
    """Settings as plain data."""
    return tuple((name, asdict(value) if hasattr(value, "__dataclass_fields__") else value) for name, value in settings)


def digest(thing: dict[str, Any]) -> str:
    """A short hash of plain data."""
    text = json.dumps(thing, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]
