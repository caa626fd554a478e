"""Value errors of states that a run never visited: python docs/measurements/unvisited.py [SEEDS].

Worlds and agents are those of the study `virtuous-cycle`. A seed's trajectory is the same for all agents, so that the
counts of a tabular agent tell which states were visited. Errors are root mean squares after the last episode, over the
visited and over the other states that do not end an episode, with 95 % intervals.
"""

import sys

import numpy as np

import backcast as bc
from backcast.core.arrays import Mask
from backcast.studies.statistics import bootstrap

SETTINGS = {"network": bc.networks.mlp(64, 64), "batch": 16}
PLANNING = SETTINGS | {"candidates": 48}
WORLDS = (
    (bc.worlds.random_walk().view("coordinates"), 50),
    (bc.worlds.chain([500, 50, 5]).view("random-64"), 200),
)
AGENTS = {
    "TD": bc.agent("td", **SETTINGS),
    "replay, equal updates": bc.agent("replay", sample=1024, **SETTINGS),
    "forward, separate": bc.agent("forward", encoder="separate", **PLANNING),
    "forward, shared": bc.agent("forward", encoder="shared", **PLANNING),
    "backward, separate": bc.agent("backward", encoder="separate", **PLANNING),
    "backward, shared": bc.agent("backward", encoder="shared", **PLANNING),
    "backward, untrained": bc.agent("backward", alpha_model=0, **PLANNING),
}


def visited_in(world: bc.worlds.World, episodes: int, seeds: int) -> Mask:
    """Whether each seed's run leaves each state, (seeds, S)."""
    runs = bc.run(world, bc.agent("forward", model="counts"), episodes=episodes, seeds=seeds)
    return np.array([~np.isnan(model.transition[:, 0, 0]) for model in runs.models])


def main(seeds: int = 30) -> None:
    """Print a table for each world."""
    for world, episodes in WORLDS:
        visited = visited_in(world, episodes, seeds)
        groups = visited, ~visited & ~world.mdp.terminal
        share = 1 - visited.sum() / (groups[0] | groups[1]).sum()
        print(f"\n{world.name}, {episodes} episodes: {share:.0%} not visited\n")
        print("| | visited | not visited |\n|---|---|---|")
        for name, agent in AGENTS.items():
            runs = bc.run(world, agent, episodes=episodes, seeds=seeds)
            errors = runs.values - [world.draw(seed).truth for seed in range(seeds)]
            cells = (np.sqrt(np.mean(errors**2, axis=1, where=states)) for states in groups)
            print(f"| {name} | " + " | ".join(str(bootstrap(cell, seed=0)) for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
