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

RESULTS = 3  # incremented when the same settings give other numbers, so that older results no longer count as done
KEY_LENGTH = 24


@dataclass(frozen=True)
class Cell:
    """One agent in one world, run for a number of seeds.

    Attributes:
        world: the world.
        agent: the agent.
        label: name in tables and figures, `base` and the searched settings: `forward,alpha=0.5`.
        place: position of the agent in the study's list.
        episodes: number of episodes.
        updates: budget of value updates of a run, if any.
        base: the label without the searched settings.
        point: the values of the searched settings.
        plugins: modules that must be imported before the agent can be made.
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
        if self.agent.epsilon_schedule is None:  # older results were stored without this setting
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
