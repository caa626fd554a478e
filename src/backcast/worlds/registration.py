"""Backcast's environments in Gymnasium's registry; importing `backcast` puts them there."""

import gymnasium


def register() -> None:
    """Make `backcast/Chain-v0` and `backcast/Maze-v0` known; their code is loaded when one of them is made."""
    for name in ("Chain", "Maze"):
        if f"backcast/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"backcast/{name}-v0", entry_point=f"backcast.worlds.envs:{name}Env")
