"""Processor time of agents, computed instead of measured: the same numbers wherever a study is run.

A run takes about

    nanoseconds = a · episodes + b · real steps + c · value updates + d · edges touched,

with a, b, c and d of each agent from a table (`costs.json`), printed by `backcast bench --only costs --json`. The table
is from one machine: what matters are ratios between agents.
"""

import json
from functools import lru_cache
from importlib import resources
from typing import NamedTuple


class Cost(NamedTuple):
    """Nanoseconds for each episode, real step, value update and edge touched."""

    episode: float
    step: float
    update: float
    edge: float

    def nanoseconds(self, episodes: float, steps: float, updates: float, edges: float) -> float:
        """The time of a run, including the world and acting, without measuring errors."""
        return self.episode * episodes + self.step * steps + self.update * updates + self.edge * edges


@lru_cache(maxsize=1)
def costs() -> dict[str, Cost]:
    """The costs of agents, by name without searched settings."""
    text = resources.files("backcast.studies").joinpath("costs.json").read_text(encoding="utf-8")
    return {row["agent"]: Cost(*(row[f"ns_per_{each}"] for each in Cost._fields)) for row in json.loads(text)}
