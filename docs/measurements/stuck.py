"""What the values look like in runs that get stuck: python docs/measurements/stuck.py [SEEDS].

Agents with networks in the paper's maze, 60 episodes, as in the study `hindsight-or-replay`. A line for each seed, in
the order of the mean steps of its last ten episodes: the largest value of the start, where the optimum is 0.886, and
the median, over states, of how far the best action is ahead of the second.
"""

import sys

import numpy as np

import backcast as bc
from backcast.networks import mlp

PLANNER = {"network": mlp(64, 64), "batch": 16, "candidates": 48}
AGENTS = {
    "replay, equal processor time": bc.agent("replay", network=mlp(64, 64), batch=16, sample=320),
    "backward": bc.agent("backward", **PLANNER),
    "backward, from s": bc.agent("backward", frame="previous", **PLANNER),
    "backward, double Q-learning": bc.agent("backward", double=True, **PLANNER),
    "backward, 192 candidates": bc.agent("backward", **PLANNER | {"candidates": 192}),
    "backward, model's step size 0.003": bc.agent("backward", alpha_model=0.003, **PLANNER),
}


def main(seeds: int = 12) -> None:
    """Print a line for each agent and seed."""
    world = bc.worlds.maze()
    start, going_on = int(np.argmax(world.mdp.start)), ~world.mdp.terminal
    for name, agent in AGENTS.items():
        print(f"\n{name}\nsteps  start  ahead")
        runs = bc.run(world, agent, episodes=60, seeds=seeds)
        steps = runs.steps[:, -10:].mean(axis=1)
        for seed in np.argsort(steps):
            values = runs.values[seed]
            second, best = np.sort(values[going_on], axis=1)[:, -2:].T
            print(f"{steps[seed]:5.0f}  {values[start].max():5.3f}  {np.median(best - second):5.4f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
