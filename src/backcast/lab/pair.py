"""The two agents of a session: compiled in this process, or interpreted in another."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from backcast.lab.frames import encode
from backcast.lab.inspection import answer
from backcast.lab.lockstep import Lockstep


class Moment(NamedTuple):
    """The position of two agents.

    Attributes:
        at: ticks so far.
        furthest: the largest `at` ever.
        episode: the number of the episode; −1 before the first.
        between: whether both have finished an episode, or none has begun.
        finished: whether the last episode is over.
    """

    at: int
    furthest: int
    episode: int
    between: bool
    finished: bool


class Pair(Protocol):
    """Two agents of a scene. Its methods are slow: call them outside the event loop, one at a time."""

    @property
    def moment(self) -> Moment:
        """Their position."""

    def play(self, ticks: int, seconds: float) -> None:
        """Make a number of ticks, or as many as there is time for; the last one is watched."""

    def way_to(self, at: int, episode: int) -> Callable[[float], bool]:
        """Go to a moment: call it with the seconds to spend until it returns True."""

    def frame(self, state: dict[str, Any], known_episodes: int) -> tuple[bytes, int]:
        """The frame to draw, with the session's state; and the number of episodes that the page then knows."""

    def answer(self, s: int) -> dict[str, Any]:
        """The page's data on a state."""

    def close(self) -> None:
        """Stop soon and permanently."""


class Here:
    """Agents in this process."""

    def __init__(self, lockstep: Lockstep) -> None:
        self.lockstep = lockstep

    @property
    def moment(self) -> Moment:
        """Their position."""
        pair = self.lockstep
        return Moment(pair.at, pair.furthest, pair.episode, pair.between, pair.finished)

    def play(self, ticks: int, seconds: float) -> None:
        """Make a number of ticks, or as many as there is time for; the last one is watched."""
        self.lockstep.play(ticks, seconds)

    def way_to(self, at: int, episode: int) -> Callable[[float], bool]:
        """Go to a moment: call it with the seconds to spend until it returns True."""
        return self.lockstep.way_to(at, episode)

    def frame(self, state: dict[str, Any], known_episodes: int) -> tuple[bytes, int]:
        """The frame to draw, with the session's state; and the number of episodes that the page then knows."""
        return encode(self.lockstep, state, known_episodes), len(self.lockstep.curves[0].steps)

    def answer(self, s: int) -> dict[str, Any]:
        """The page's data on a state."""
        return answer(self.lockstep, s)

    def close(self) -> None:
        """Stop soon and permanently."""
        self.lockstep.stop[0] = 1
