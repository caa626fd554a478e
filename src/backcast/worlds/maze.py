"""Text mazes: the control worlds of the paper's studies, and any maze drawn with characters."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Mask, Vector, as_whole
from backcast.core.errors import InputError
from backcast.core.graph import breadth_first
from backcast.core.setting_types import Bounds, Label
from backcast.worlds.kinds import Discount, Given, Picture, Probability, Sketch, Steps, register_world
from backcast.worlds.world import Change, Outcomes, World, refuse_large

PAPER_MAZE = """\
......XG
..X...X.
S.X...X.
..X.....
....X...
........
"""
BLOCKING_MAZE = (
    """\
........G
.........
.........
XXXXXXXX.
.........
...S.....
""",
    """\
........G
.........
.........
.XXXXXXXX
.........
...S.....
""",
)
SHORTCUT_MAZE = (
    BLOCKING_MAZE[1],
    """\
........G
.........
.........
.XXXXXXX.
.........
...S.....
""",
)
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
_LEGEND = "'.' floor, 'X' or '#' wall, 'S' start, 'G' goal"
_QUICK = 10_000  # cells of a maze that is quick to make
StepOfChange = Annotated[int, Bounds(1), Label("changes after")]


class TextSketch(Sketch):
    """What is known of a maze before it is made: its text, and the text it changes to."""

    def why_unmade(self, given: Given) -> str:
        """Why a large maze is not made."""
        large = sum(len(text) for text in self._texts(given)) > _QUICK
        return "the maze is large, and was not made" if large else ""

    def sizes(self, given: Given) -> dict[str, int]:
        """The numbers of rows and columns, and the step of the change."""
        mazes = [text.splitlines() for text in self._texts(given)]
        return {
            "the number of rows": max(map(len, mazes)),
            "the number of columns": max((len(line) for lines in mazes for line in lines), default=0),
            "the step at which it changes": given.get("step", given.get("later", (0, ""))[0]),
        }

    def tidy(self, given: Given) -> dict[str, Any]:
        """With texts that have a line for each row."""
        texts = {"text": _drawn(_read("text", given["text"]))} if "text" in given else {}
        later = {"later": (given["later"][0], _drawn(_read("later", given["later"][1])))} if "later" in given else {}
        return {**given, **texts, **later}

    def _texts(self, given: Given) -> tuple[str, str]:
        return given.get("text", ""), given.get("later", (0, ""))[1]


class MazeSketch(TextSketch):
    """What is known of a maze, which may be the paper's."""

    def picture(self, given: Given) -> Picture:
        """The paper's maze, and what is random in it; other mazes have only their names."""
        if given["text"] is not None:
            return Picture()
        slip, rewarded, later = given["slip"], given["reward_probability"], given["later"]
        words = f", slips with probability {slip:g}" if slip else ""
        words += f", reward with probability {rewarded:g}" if rewarded < 1 else ""
        words += f", changes after {later[0]:,} steps" if later is not None else ""
        return Picture("Maze" + (words or ", deterministic"), cells=PAPER_MAZE)


@register_world("maze", purpose="control", label="Maze", sketch=MazeSketch())
def maze(
    text: str | None = None,
    slip: Probability = 0.0,
    reward_probability: Probability = 1.0,
    discount: Discount = 0.99,
    max_steps: Steps | None = None,
    later: tuple[int, str] | None = None,
) -> World:
    """A grid of cells with walls; entering a goal earns 1 and ends the episode.

    Actions are up, right, down and left; a move into a wall or off the grid has no effect. Every cell is a state, walls
    included (they are never reached), numbered row by row.

    Args:
        text: one line per row of cells ('.' floor, 'X' or '#' wall, 'S' start, 'G' goal; several starts are equally
            likely); None for the paper's maze of 48 cells, where episodes are truncated after 400 steps.
        slip: probability that a move is replaced by one of the four, drawn uniformly.
        reward_probability: probability that entering a goal earns 1; otherwise it earns 0.
        discount: γ, how much later rewards count.
        max_steps: number of steps after which episodes are truncated; by default 400 in the paper's maze and 100 per
            cell in others, so that an agent that goes in circles stops.
        later: (step, text) for a maze that changes: the first `step` real steps of a run, all its episodes together,
            happen in the first maze, the others in this one. Both have the same size and the same goals; walls and
            starts may differ. An agent standing where a wall appears can leave, but not come back. `world.mdp` is
            that of the first maze, `world.later.world.mdp` that of the second; agents with a true model are refused.
    """
    cells = _read("text", PAPER_MAZE if text is None else text)
    patience = 400 if text is None else 100 * cells.size
    limit = patience if max_steps is None else max_steps
    name = _name(text, slip, reward_probability)

    how = (slip, reward_probability, discount, limit)
    wall = (cells == "X").ravel()
    if later is None:
        return _world_of("text", cells, wall, name, how)
    step, cells_later = _read_later(later, cells)
    after = _world_of("later", cells_later, wall & (cells_later == "X").ravel(), f"{name}-later", how)
    return replace(_world_of("text", cells, wall, f"{name}-changes-{step}", how), later=Change(step, after))


def altered_maze(
    world: World,
    changes: Sequence[tuple[int, str | float]],
    slip: float = 0.0,
    reward_probability: float = 1.0,
    discount: float = 0.99,
) -> World:
    """The maze after cells change, one after the other: (cell, "X" for a wall, "." for floor, or a reward).

    A reward is earned by entering the cell; at a goal it replaces the 1. Starts and goals stay what they are.
    An agent standing where a wall appears can leave, but not come back.

    Args:
        world: the maze before the first change.
        changes: the changes of cells, in order.
        slip: as in the maze.
        reward_probability: as in the maze.
        discount: as in the maze.
    """
    cells, rewards = world.layout.copy(), dict[int, float]()
    shut = (cells == "X").ravel()
    for cell, to in changes:
        row, column = divmod(as_whole("changes", cell, 0, cells.size - 1), cells.shape[1])
        if not isinstance(to, str):
            rewards[cell] = float(to)
        elif cells[row, column] in "SG":
            what = "start" if cells[row, column] == "S" else "goal"
            raise InputError(f"changes: {_place(cells, cell)} is a {what}, which cannot become a wall")
        else:
            cells[row, column] = to
        shut = shut & (cells == "X").ravel()
    limit = 0 if world.max_steps is None else world.max_steps
    how = (slip, reward_probability, discount, limit)
    return _world_of("changes", cells, shut, f"{world.name}-changed", how, rewards)


def _world_of(
    field: str,
    cells: np.ndarray,
    shut: Mask,
    name: str,
    how: tuple[float, float, float, int],
    rewards: Mapping[int, float] | None = None,
) -> World:
    """A maze whose shut cells cannot be left; entering a cell may earn a reward."""
    slip, reward_probability, discount, limit = how
    following, start, goal = _moves(cells, shut), (cells == "S").ravel(), (cells == "G").ravel()
    _refuse_unreachable(field, cells, following, start, goal)
    worth = goal.astype(np.float64)
    for cell, reward in (rewards or {}).items():
        worth[cell] = reward
    outcomes = _outcomes(following, goal, worth, slip, reward_probability)
    mdp = outcomes.mdp(cells.size, len(MOVES), discount, start / start.sum(), goal)
    return World(name, mdp, outcomes, max_steps=limit, layout=cells)


@register_world("blocking-maze", purpose="control", label="Blocking maze, which changes", sketch=TextSketch())
def blocking_maze(
    step: StepOfChange = 1000, slip: Probability = 0.0, discount: Discount = 0.95, max_steps: Steps | None = None
) -> World:
    """Sutton and Barto's blocking maze (example 8.2): the gap on the right closes, one on the left opens.

    Args:
        step: number of real steps for which the short path is open.
        slip: probability that a move is replaced by one of the four, drawn uniformly.
        discount: γ, how much later rewards count.
        max_steps: number of steps after which episodes are truncated; by default 100 per cell.
    """
    return _changing("blocking-maze", BLOCKING_MAZE, step, slip, discount, max_steps)


@register_world("shortcut-maze", purpose="control", label="Shortcut maze, which changes", sketch=TextSketch())
def shortcut_maze(
    step: StepOfChange = 3000, slip: Probability = 0.0, discount: Discount = 0.95, max_steps: Steps | None = None
) -> World:
    """Sutton and Barto's shortcut maze (example 8.3): besides the gap on the left, a shorter path opens on the right.

    Args:
        step: number of real steps before the shortcut opens.
        slip: probability that a move is replaced by one of the four, drawn uniformly.
        discount: γ, how much later rewards count.
        max_steps: number of steps after which episodes are truncated; by default 100 per cell.
    """
    return _changing("shortcut-maze", SHORTCUT_MAZE, step, slip, discount, max_steps)


def _changing(
    name: str, texts: tuple[str, str], step: int, slip: float, discount: float, max_steps: int | None
) -> World:
    before, after = texts
    world = maze(before, slip, discount=discount, max_steps=max_steps, later=(step, after))
    return replace(world, name=world.name.replace("custom-maze", name))


def _name(text: str | None, slip: float, reward_probability: float) -> str:
    name = "maze" if text is None else "custom-maze"
    name += f"-slip-{slip:g}" if slip else ""
    return name + (f"-reward-{reward_probability:g}" if reward_probability < 1 else "")


def _read_later(given: tuple[int, str], cells: np.ndarray) -> tuple[int, np.ndarray]:
    """The step of a change and the characters of the maze from then on, which must fit the first maze."""
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise InputError(f"later: {given!r} given, expected (step, text), such as (1000, 'S.G')")
    step, after = as_whole("later", given[0], 1), _read("later", given[1])
    if after.shape != cells.shape:
        raise InputError(
            f"later: a maze of {after.shape[0]} × {after.shape[1]} cells given, expected {cells.shape[0]} ×"
            f" {cells.shape[1]} (rows × columns) as in text"
        )
    moved = np.flatnonzero((after == "G").ravel() != (cells == "G").ravel())
    if moved.size:
        raise InputError(
            f"later: {_place(cells, moved[0])} is a goal in one of the mazes only; goals stay where they are, walls and"
            " starts may change"
        )
    return step, after


def _read(field: str, text: str) -> np.ndarray:
    """The characters (rows, columns) of a maze; errors name line and column."""
    if not isinstance(text, str):
        raise InputError(f"{field}: {type(text).__name__} given, expected the maze as text, drawn with {_LEGEND}")
    lines = textwrap.dedent(text).strip("\n").rstrip().splitlines()
    if not lines:
        raise InputError(f"{field}: it is empty; draw a maze with {_LEGEND}")
    refuse_large(field, len(lines) * len(lines[0]), len(MOVES) * len(lines) * len(lines[0]))
    for number, line in enumerate(lines, start=1):
        for column, character in enumerate(line, start=1):
            if character not in ".X#SG ":
                raise InputError(f"{field}: line {number}, column {column} is {character!r}; allowed are {_LEGEND}")
        if len(line) != len(lines[0]):
            raise InputError(
                f"{field}: line {number} ends after column {len(line)}, line 1 after column {len(lines[0])};"
                " all lines must have the same length"
            )
    cells = np.array([list(line) for line in lines])
    cells[cells == "#"] = "X"
    cells[cells == " "] = "."
    for letter, thing in (("S", "start"), ("G", "goal")):
        if not (cells == letter).any():
            raise InputError(
                f"{field}: no {thing} ({letter!r}) between line 1, column 1 and line {len(lines)}, column"
                f" {len(lines[0])}"
            )
    return cells


def _drawn(cells: np.ndarray) -> str:
    """The text of a maze, with a line for each row, beginning on a line of its own."""
    return "\n" + "".join("".join(row) + "\n" for row in cells)


def _moves(cells: np.ndarray, shut: Mask) -> Indices:
    """The cell reached from each cell by each action without slipping, (S, 4); no move leaves a shut cell."""
    height, width = cells.shape
    row, column = np.divmod(np.arange(cells.size), width)
    wall = (cells == "X").ravel()
    following = np.empty((cells.size, len(MOVES)), dtype=np.int64)
    for action, (down, right) in enumerate(MOVES):
        target = np.clip(row + down, 0, height - 1) * width + np.clip(column + right, 0, width - 1)
        following[:, action] = np.where(wall[target] | shut, np.arange(cells.size), target)
    return following


def _refuse_unreachable(field: str, cells: np.ndarray, following: Indices, start: Mask, goal: Mask) -> None:
    n = cells.size
    ways = sparse.csr_array((np.ones(4 * n), following.ravel(), np.arange(0, 4 * n + 1, 4)), shape=(n, n))
    lost_goals = np.setdiff1d(np.flatnonzero(goal), breadth_first(ways, start))
    if lost_goals.size:
        raise InputError(f"{field}: the goal at {_place(cells, lost_goals[0])} cannot be reached from any start")
    lost_starts = np.setdiff1d(np.flatnonzero(start), breadth_first(ways.T.tocsr(), goal))
    if lost_starts.size:
        raise InputError(f"{field}: no goal can be reached from the start at {_place(cells, lost_starts[0])}")


def _place(cells: np.ndarray, cell: int) -> str:
    return f"line {cell // cells.shape[1] + 1}, column {cell % cells.shape[1] + 1}"


def _outcomes(following: Indices, goal: Mask, worth: Vector, slip: float, reward_probability: float) -> Outcomes:
    """P(s' | s, a) = (1 − slip) [s' is where a leads] + slip / 4 for where each of the four moves leads.

    Entering s' earns worth(s'); in a goal only with probability `reward_probability`.
    """
    n_states, n_actions = following.shape
    rows = np.arange(n_states * n_actions)
    entries = [(rows, following.ravel(), np.full(rows.size, 1 - slip))]
    if slip:
        for action in range(n_actions):
            slipped = np.repeat(following[:, action], n_actions)
            entries.append((rows, slipped, np.full(rows.size, slip / n_actions)))
    row, target, probability = (np.concatenate(column) for column in zip(*entries, strict=True))
    earns = np.where(goal[target] | (target != row // n_actions), worth[target], 0.0)
    if reward_probability < 1:
        by_chance = goal[target] & (earns != 0)
        lucky, unlucky = np.where(by_chance, reward_probability, 1.0), np.where(by_chance, 1 - reward_probability, 0.0)
        row, target = np.tile(row, 2), np.tile(target, 2)
        probability = np.concatenate([probability * lucky, probability * unlucky])
        earns = np.concatenate([earns, np.zeros_like(earns)])
    kept = np.flatnonzero(probability > 0)
    order = kept[np.argsort(row[kept], kind="stable")]
    return Outcomes(row[order], target[order], probability[order], earns[order])
