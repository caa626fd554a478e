"""Agents: their settings, and kinds, which define the model, planner and learner of an agent."""

from importlib import import_module

from backcast.agents.agent import agent
from backcast.agents.kinds import KINDS, Agent, Kind, register
from backcast.agents.setup import Setup

_FAMILIES = (
    *("tabular_models", "linear_models", "neural_models", "paper", "model_free", "experience", "full_backups"),
    "blending",
)
for _family in _FAMILIES:  # in the order in which estimators and kinds are listed
    import_module(f"backcast.agents.{_family}")

__all__ = ["KINDS", "Agent", "Kind", "Setup", "agent", "register"]
