"""Backcast: credit assignment by planning, forward and backward.

An agent learns models of its world: forward models (what comes next?) and backward models (what led here?). Between
real steps it plans with them. Backcast implements the system of Chelu, Precup and van Hasselt,
"Forethought and Hindsight in Credit Assignment" (NeurIPS 2020):

    import backcast as bc
    mdp = bc.FiniteMDP(transition, reward, discount=0.9, start=start, terminal=terminal)
    bc.exact.backward(mdp, policy).states        # P←(s̃ | s), the world with time reversed

Names are imported on first use, so that `backcast --help` answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from backcast.core.importing import once_imported

__version__ = "0.2.0"

_HOMES = {
    "Agent": "backcast.agents",
    "Comparison": "backcast.comparison",
    "FiniteMDP": "backcast.mdp",
    "InputError": "backcast.core.errors",
    "Option": "backcast.models.options",
    "Runs": "backcast.drivers.runs",
    "agent": "backcast.agents",
    "compare": "backcast.comparison",
    "load": "backcast.studies",
    "run": "backcast.drivers.run",
    "train": "backcast.drivers.train",
}
_MODULES = ("exact", "features", "networks", "testing", "worlds")

__all__ = [
    "Agent",
    "Comparison",
    "FiniteMDP",
    "InputError",
    "Option",
    "Runs",
    "__version__",
    "agent",
    "compare",
    "exact",
    "features",
    "load",
    "networks",
    "run",
    "testing",
    "train",
    "worlds",
]

if TYPE_CHECKING:
    from backcast import exact, features, networks, testing, worlds
    from backcast.agents import Agent, agent
    from backcast.comparison import Comparison, compare
    from backcast.core.errors import InputError
    from backcast.drivers.run import run
    from backcast.drivers.runs import Runs
    from backcast.drivers.train import train
    from backcast.mdp import FiniteMDP
    from backcast.models.options import Option
    from backcast.studies import load


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"backcast.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'backcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _register_environments() -> None:
    """Register `backcast/Chain-v0` and `backcast/Maze-v0` with Gymnasium; their code is loaded when one is made."""
    import gymnasium

    for name in ("Chain", "Maze"):
        if f"backcast/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"backcast/{name}-v0", entry_point=f"backcast.worlds.envs:{name}Env")


once_imported("gymnasium", _register_environments)  # slow to import, and rarely needed
