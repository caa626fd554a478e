"""Worlds to learn in: leveled random chains, text mazes, Gymnasium tables, any finite MDP."""

from backcast.worlds.chain import chain
from backcast.worlds.maze import PAPER_MAZE, maze
from backcast.worlds.tables import from_gymnasium, from_mdp
from backcast.worlds.world import Outcomes, World

__all__ = ["PAPER_MAZE", "Outcomes", "World", "chain", "from_gymnasium", "from_mdp", "maze"]
