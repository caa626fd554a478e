"""An environment that carries no table."""

import gymnasium


class PlainMaze(gymnasium.Env):
    """The maze behind an interface that tells nothing but its spaces."""

    def __init__(self):
        self.inner = gymnasium.make("backcast/Maze-v0").unwrapped
        self.observation_space, self.action_space = self.inner.observation_space, self.inner.action_space
        self.reset, self.step = self.inner.reset, self.inner.step
