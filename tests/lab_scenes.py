"""Scenes of the lab: two agents in a world."""

from backcast.lab.config import read_config
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.scene import Scene

LONG = 3600.0  # seconds: as long as it takes


def config(left="forward", right="backward", world=None, **given):
    """A scene as a page gives it; agents of which only the kind is said have default settings."""
    agents = {side: {"kind": of} if isinstance(of, str) else of for side, of in (("left", left), ("right", right))}
    return {"world": world or {"kind": "maze"}, **agents, "episodes": 12, **given}


def scene(*agents, **given):
    """The scene itself."""
    return Scene(read_config(config(*agents, **given)))


def at_the_end(stage):
    """Both agents after the last episode of a scene."""
    pair = Lockstep(stage)
    assert pair.way_to(NEVER)(LONG)
    return pair
