"""Backcast's worlds as Gymnasium environments, `backcast/Chain-v0` and `backcast/Maze-v0`."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from backcast.core.errors import InputError
from backcast.worlds.chain import chain
from backcast.worlds.maze import maze
from backcast.worlds.world import World

_CELL = 24
_WALL, _FLOOR, _START, _GOAL, _AGENT = (52, 61, 70), (246, 247, 248), (214, 230, 242), (0, 158, 115), (213, 94, 0)
_ARROWS = "^>v<"


class TableEnv(gymnasium.Env[int, int]):
    """A finite world, stepped by the same random numbers as in `backcast.run`.

    ## Description
    Any `backcast.worlds.World` as an environment. `reset(seed=k)` draws what a run with seed k draws. A world
    that changes does so after the given number of steps since the last `reset` with a seed, over all episodes.

    ## Action space
    `Discrete(A)`; `Discrete(1)` in a prediction world, where there is nothing to choose.

    ## Observation space
    `Discrete(S)`: the number of the state.

    ## Starting state
    Drawn from the world's start distribution.

    ## Reward
    That of the world's transition.

    ## Episode end
    Terminated in a terminal state; truncated after `max_steps` steps, if there is a limit.

    ## Arguments
    `world`; `max_steps` (default: the world's); `render_mode` "ansi" or "rgb_array".
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space: Any
    action_space: Any

    def __init__(self, world: World, max_steps: int | None = None, render_mode: str | None = None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InputError(f"render_mode: {render_mode!r} given, expected 'ansi' or 'rgb_array'")
        self.family = world
        self.world = world if world.redraw is None else world.draw(0)
        self.max_steps = world.max_steps if max_steps is None else max_steps
        self.render_mode = render_mode
        self.observation_space = Discrete(self.world.n_states)
        self.action_space = Discrete(self.world.n_actions)
        self._state, self._steps, self._action = -1, 0, -1
        self._taken = 0

    @property
    def current(self) -> World:
        """The world that is in force now."""
        return self.world.at(self._taken)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode; if every seed draws its own world, the seed determines it."""
        super().reset(seed=seed)
        if seed is not None:
            self.world, self._taken = self.family.draw(seed), 0
        self._state = int(self.current.steps_table.draw_start(self.np_random.random()))
        self._steps, self._action = 0, -1
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        if self._state < 0:
            raise InputError("step: call reset() before the first step")
        if not self.action_space.contains(action):
            raise InputError(f"action: {action!r} given, expected 0 to {self.action_space.n - 1}")
        table = self.current.steps_table
        outcome = table.draw_outcome(self._state, int(action), self.np_random.random())
        self._state, self._action = int(table.next_state[outcome]), int(action)
        self._steps += 1
        self._taken += 1
        terminated = bool(table.terminal[self._state])
        truncated = not terminated and self.max_steps is not None and self._steps >= self.max_steps
        return self._state, float(table.reward[outcome]), terminated, truncated, {}

    def render(self) -> Any:
        """The current state, as text (ansi) or as a picture (rgb_array)."""
        if self.render_mode == "ansi":
            return self._text()
        if self.render_mode == "rgb_array":
            return self._picture()
        return None

    def _text(self) -> str:
        return f"state {self._state} of {self.world.n_states}\n"

    def _picture(self) -> NDArray[np.uint8]:
        columns = int(np.ceil(np.sqrt(self.world.n_states)))
        return _squares(np.arange(self.world.n_states) == self._state, columns)


class ChainEnv(TableEnv):
    """A leveled random chain (see `backcast.worlds.chain`).

    ## Description
    States form levels. Every level leads to the next; the last one ends the episode. Used to study fan-in and fan-out.

    ## Action space
    `Discrete(1)`: there is nothing to choose.

    ## Observation space
    `Discrete(S)`, S the sum of the levels, numbered level by level.

    ## Starting state
    A random state of the first level.

    ## Reward
    On entering the last level, drawn once per transition from a normal distribution with mean 10 and standard
    deviation 10; otherwise 0.

    ## Episode end
    Terminated in the last level; never truncated.

    ## Arguments
    `levels` (default 500, 50, 5), `seed` of the chain (None: `reset(seed=…)` draws it), `discount`, `render_mode`.

    ## Version history
    v0: first.
    """

    def __init__(
        self,
        levels: Sequence[int] = (500, 50, 5),
        seed: int | None = 0,
        discount: float = 0.9,
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(chain(levels, seed, discount), max_steps, render_mode)

    def _text(self) -> str:
        sizes = self.world.layout
        bounds = np.cumsum((0, *sizes))
        level = int(np.searchsorted(bounds, self._state, side="right")) - 1
        return f"level {level + 1} of {len(sizes)}, state {self._state - bounds[level] + 1} of {sizes[level]}\n"

    def _picture(self) -> NDArray[np.uint8]:
        sizes = self.world.layout
        height, width = 8 * min(max(sizes), 60) + 16, 80 * len(sizes)
        picture = np.full((height, width, 3), 255, dtype=np.uint8)
        bounds = np.cumsum((0, *sizes))
        for level, size in enumerate(sizes):
            x = 80 * level + 40
            for y in {int(8 + (height - 16) * (i + 0.5) / size) for i in range(size)}:
                picture[y - 2 : y + 2, x - 3 : x + 3] = _WALL
            if bounds[level] <= self._state < bounds[level + 1]:
                y = int(8 + (height - 16) * (self._state - bounds[level] + 0.5) / size)
                picture[max(0, y - 4) : y + 4, x - 6 : x + 6] = _AGENT
        return picture


class MazeEnv(TableEnv):
    """A text maze (see `backcast.worlds.maze`).

    ## Description
    Find the goal in a grid with walls; the paper's maze of 6 by 8 cells if no text is given.

    ## Action space
    `Discrete(4)`: up, right, down, left. A move into a wall or off the grid has no effect.

    ## Observation space
    `Discrete(cells)`, numbered row by row, walls included.

    ## Starting state
    A cell marked S, each equally likely.

    ## Reward
    1 on entering a goal (with probability `reward_probability`), otherwise 0.

    ## Episode end
    Terminated at a goal; truncated after `max_steps` steps (the paper's maze: 400).

    ## Arguments
    `text`, `slip`, `reward_probability`, `discount`, `max_steps`, `render_mode`, `later` (a maze that changes).

    ## Version history
    v0: first.
    """

    def __init__(
        self,
        text: str | None = None,
        slip: float = 0.0,
        reward_probability: float = 1.0,
        discount: float = 0.99,
        max_steps: int | None = None,
        render_mode: str | None = None,
        later: tuple[int, str] | None = None,
    ) -> None:
        super().__init__(maze(text, slip, reward_probability, discount, max_steps, later), None, render_mode)

    def _text(self) -> str:
        cells = self.current.layout.copy()
        cells.flat[self._state] = _ARROWS[self._action] if self._action >= 0 else "@"
        return "\n".join("".join(row) for row in cells) + "\n"

    def _picture(self) -> NDArray[np.uint8]:
        cells = self.current.layout
        picture = np.empty((*cells.shape, 3), dtype=np.uint8)
        for letter, colour in ((".", _FLOOR), ("X", _WALL), ("S", _START), ("G", _GOAL)):
            picture[cells == letter] = colour
        picture = picture.repeat(_CELL, axis=0).repeat(_CELL, axis=1)
        picture[::_CELL], picture[:, ::_CELL] = 200, 200
        row, column = np.divmod(self._state, cells.shape[1])
        y, x = np.ogrid[: picture.shape[0], : picture.shape[1]]
        centre = (row + 0.5) * _CELL, (column + 0.5) * _CELL
        picture[(y - centre[0]) ** 2 + (x - centre[1]) ** 2 <= (0.33 * _CELL) ** 2] = _AGENT
        return picture


def _squares(marked: NDArray[np.bool_], columns: int) -> NDArray[np.uint8]:
    rows = -(-len(marked) // columns)
    picture = np.full((rows * columns, 3), 255, dtype=np.uint8)
    picture[: len(marked)] = np.where(marked[:, None], _AGENT, _FLOOR)
    return picture.reshape(rows, columns, 3).repeat(8, axis=0).repeat(8, axis=1)
