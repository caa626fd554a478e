"""Worlds: random chains, walks, garnets, a noisy TV, mazes, classic control, Gymnasium tables, any finite MDP."""

from backcast.worlds.chain import chain
from backcast.worlds.classic_control import acrobot, cartpole, mountain_car
from backcast.worlds.from_tables import from_file, from_gymnasium, from_mdp
from backcast.worlds.garnet import garnet
from backcast.worlds.maze import BLOCKING_MAZE, PAPER_MAZE, SHORTCUT_MAZE, blocking_maze, maze, shortcut_maze
from backcast.worlds.random_maze import random_maze
from backcast.worlds.television import noisy_tv, signal_groups
from backcast.worlds.walks import boyan, random_walk
from backcast.worlds.world import Outcomes, World

__all__ = [
    "BLOCKING_MAZE",
    "PAPER_MAZE",
    "SHORTCUT_MAZE",
    "Outcomes",
    "World",
    "acrobot",
    "blocking_maze",
    "boyan",
    "cartpole",
    "chain",
    "from_file",
    "from_gymnasium",
    "from_mdp",
    "garnet",
    "maze",
    "mountain_car",
    "noisy_tv",
    "random_maze",
    "random_walk",
    "shortcut_maze",
    "signal_groups",
]
