"""Agents: their settings, and the kinds that say which model, planner and learner each is made of."""

from importlib import import_module

from backcast.agents.agent import agent
from backcast.agents.kinds import KINDS, Agent, Kind, Setup, register

for _family in ("paper", "model_free", "experience", "sweeping"):  # in the order in which they are listed
    import_module(f"backcast.agents.{_family}")

__all__ = ["KINDS", "Agent", "Kind", "Setup", "agent", "register"]
