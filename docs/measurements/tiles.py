"""What planning costs in a large world where there is something to plan: 400 small grids side by side.

A random walk over one large open grid hardly ever finds its goal. Here each 50 × 50 cells have a start and a goal. The
same cells are also walked over one grid at a time, by 400 agents that take a 400th of the steps each, in small tables.
Printed are nanoseconds and value updates per step of both, and the ratio.

    python docs/measurements/tiles.py
"""

import numpy as np

from backcast import agent
from backcast.drivers.run import one_run
from backcast.worlds import World, maze

SIDE, TILES, STEPS, REPEATS = 50, 20, 1_400_000, 3
KINDS = {"q": {"alpha": 0.5}, "small-backups": {}}


def tiled(tiles: int) -> World:
    """An open grid of tiles × tiles grids, each with a start in its middle and a goal in its corner."""
    tile = np.full((SIDE, SIDE), ".")
    tile[0, 0], tile[SIDE // 2, SIDE // 2] = "G", "S"
    return maze("\n".join("".join(row) for row in np.tile(tile, (tiles, tiles))))


def walked(world: World, kind: str, agents: int) -> tuple[float, float]:
    """Nanoseconds and value updates per step, where so many agents share the steps."""
    chosen = agent(kind, epsilon=1.0, schedule="constant", **KINDS[kind])
    most = STEPS // agents
    episodes = max(1, 100 // agents)
    runs = [one_run(world, chosen, seed, chosen.rates(episodes), most // episodes) for seed in range(agents)]
    steps = sum(record.steps.sum() for record, _, _ in runs)
    return 1e9 * sum(took for _, _, took in runs) / steps, sum(record.made[-1] for record, _, _ in runs) / steps


if __name__ == "__main__":
    small, large = tiled(1), tiled(TILES)
    for kind in KINDS:
        ours = [(walked(small, kind, TILES**2), walked(large, kind, 1)) for _ in range(REPEATS)]
        (few, updates), (many, made) = (min(side) for side in zip(*ours, strict=True))
        print(f"{kind}: {few:.0f} ns ({updates:.1f} updates) → {many:.0f} ns ({made:.1f}), {many / few:.1f} times")
