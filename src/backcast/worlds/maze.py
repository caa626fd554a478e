"""Text mazes: the control worlds of the paper's studies, and any other drawn with characters."""

import textwrap

import numpy as np
from scipy import sparse

from backcast.arrays import Indices, Mask, as_fraction, as_whole
from backcast.errors import InputError
from backcast.graph import breadth_first
from backcast.worlds.world import Outcomes, World

PAPER_MAZE = """\
......XG
..X...X.
S.X...X.
..X.....
....X...
........
"""
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
_LEGEND = "'.' floor, 'X' or '#' wall, 'S' start, 'G' goal"


def maze(
    text: str | None = None,
    slip: float = 0.0,
    reward_probability: float = 1.0,
    discount: float = 0.99,
    max_steps: int | None = None,
) -> World:
    """A grid of cells with walls; entering a goal earns 1 and ends the episode.

    Actions are up, right, down and left; a move into a wall or off the grid stays. Every cell is a state, walls
    included (they are never reached), numbered row by row.

    Args:
        text: one line per row of cells ('.' floor, 'X' or '#' wall, 'S' start, 'G' goal; several starts are equally
            likely); None for the paper's maze of 48 cells, where episodes are cut at 400 steps.
        slip: with this probability a move is replaced by one of the four, uniformly.
        reward_probability: with this probability entering a goal earns 1, else 0.
        discount: γ.
        max_steps: where episodes are truncated; by default after 400 steps in the paper's maze and after a hundred per
            cell in others, so that an agent that goes in circles comes to an end.
    """
    slip = as_fraction("slip", slip, "a probability")
    reward_probability = as_fraction("reward_probability", reward_probability, "a probability")
    cells = _read(PAPER_MAZE if text is None else text)
    following, start, goal = _moves(cells), (cells == "S").ravel(), (cells == "G").ravel()
    _refuse_unreachable(cells, following, start, goal)
    outcomes = _outcomes(following, goal, slip, reward_probability)
    mdp = outcomes.mdp(cells.size, len(MOVES), discount, start / start.sum(), goal)
    patience = 400 if text is None else 100 * cells.size
    limit = patience if max_steps is None else as_whole("max_steps", max_steps, 1)
    return World(_name(text, slip, reward_probability), mdp, outcomes, max_steps=limit, layout=cells)


def _name(text: str | None, slip: float, reward_probability: float) -> str:
    name = "maze" if text is None else "custom-maze"
    name += f"-slip-{slip:g}" if slip else ""
    return name + (f"-reward-{reward_probability:g}" if reward_probability < 1 else "")


def _read(text: str) -> np.ndarray:
    """The characters (rows, columns) of a maze; errors name line and column."""
    if not isinstance(text, str):
        raise InputError(f"text: {type(text).__name__} given, expected the maze as text, drawn with {_LEGEND}")
    lines = textwrap.dedent(text).strip("\n").rstrip().splitlines()
    if not lines:
        raise InputError(f"text: it is empty; draw a maze with {_LEGEND}")
    for number, line in enumerate(lines, start=1):
        for column, character in enumerate(line, start=1):
            if character not in ".X#SG ":
                raise InputError(f"text: line {number}, column {column} is {character!r}; allowed are {_LEGEND}")
        if len(line) != len(lines[0]):
            raise InputError(
                f"text: line {number} ends after column {len(line)}, line 1 after column {len(lines[0])};"
                " all lines must have the same length"
            )
    cells = np.array([list(line) for line in lines])
    cells[cells == "#"] = "X"
    cells[cells == " "] = "."
    for letter, thing in (("S", "start"), ("G", "goal")):
        if not (cells == letter).any():
            raise InputError(
                f"text: no {thing} ({letter!r}) between line 1, column 1 and line {len(lines)}, column {len(lines[0])}"
            )
    return cells


def _moves(cells: np.ndarray) -> Indices:
    """The cell reached from each cell by each action if nothing slips, (S, 4)."""
    height, width = cells.shape
    row, column = np.divmod(np.arange(cells.size), width)
    wall = (cells == "X").ravel()
    following = np.empty((cells.size, len(MOVES)), dtype=np.int64)
    for action, (down, right) in enumerate(MOVES):
        target = np.clip(row + down, 0, height - 1) * width + np.clip(column + right, 0, width - 1)
        following[:, action] = np.where(wall[target] | wall, np.arange(cells.size), target)
    return following


def _refuse_unreachable(cells: np.ndarray, following: Indices, start: Mask, goal: Mask) -> None:
    n = cells.size
    ways = sparse.csr_array((np.ones(4 * n), following.ravel(), np.arange(0, 4 * n + 1, 4)), shape=(n, n))
    lost_goals = np.setdiff1d(np.flatnonzero(goal), breadth_first(ways, start))
    if lost_goals.size:
        raise InputError(f"text: the goal at {_place(cells, lost_goals[0])} cannot be reached from any start")
    lost_starts = np.setdiff1d(np.flatnonzero(start), breadth_first(ways.T.tocsr(), goal))
    if lost_starts.size:
        raise InputError(f"text: no goal can be reached from the start at {_place(cells, lost_starts[0])}")


def _place(cells: np.ndarray, cell: int) -> str:
    return f"line {cell // cells.shape[1] + 1}, column {cell % cells.shape[1] + 1}"


def _outcomes(following: Indices, goal: Mask, slip: float, reward_probability: float) -> Outcomes:
    """P(s' | s, a) = (1 − slip) [s' is where a leads] + slip / 4 for where each of the four moves leads."""
    n_states, n_actions = following.shape
    rows = np.arange(n_states * n_actions)
    entries = [(rows, following.ravel(), np.full(rows.size, 1 - slip))]
    if slip:
        for action in range(n_actions):
            slipped = np.repeat(following[:, action], n_actions)
            entries.append((rows, slipped, np.full(rows.size, slip / n_actions)))
    row, target, probability = (np.concatenate(column) for column in zip(*entries, strict=True))
    earns = goal[target].astype(np.float64)
    if reward_probability < 1:
        lucky, unlucky = (
            np.where(earns > 0, reward_probability, 1.0),
            np.where(earns > 0, 1 - reward_probability, 0.0),
        )
        row, target = np.tile(row, 2), np.tile(target, 2)
        probability = np.concatenate([probability * lucky, probability * unlucky])
        earns = np.concatenate([earns, np.zeros_like(earns)])
    kept = np.flatnonzero(probability > 0)
    order = kept[np.argsort(row[kept], kind="stable")]
    return Outcomes(row[order], target[order], probability[order], earns[order])
