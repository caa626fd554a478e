"""The kinds of agents, by name."""

from backcast.kinds import planning
from backcast.kinds.registry import KINDS, Kind, Setup, register

__all__ = ["KINDS", "Kind", "Setup", "planning", "register"]
