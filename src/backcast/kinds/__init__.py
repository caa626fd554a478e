"""The kinds of agents, by name."""

from importlib import import_module

from backcast.kinds.registry import KINDS, Kind, Setup, register

for _family in ("planning", "learning", "replaying", "sweeping"):  # in the order in which they are listed
    import_module(f"backcast.kinds.{_family}")

__all__ = ["KINDS", "Kind", "Setup", "register"]
