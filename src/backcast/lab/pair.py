"""Two agents on their way, as a session needs them: in this process, compiled, or in another one, interpreted."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from backcast.lab.frames import encode
from backcast.lab.inspection import answer
from backcast.lab.lockstep import Lockstep


class Moment(NamedTuple):
    """Where two agents are.

    Attributes:
        at: ticks so far.
        furthest: the largest `at` ever.
        episode: the number of the episode; −1 before the first.
        between: whether an episode of both is over, or none has begun.
        finished: whether the last episode is over.
    """

    at: int
    furthest: int
    episode: int
    between: bool
    finished: bool


class Pair(Protocol):
    """Two agents of a scene. Its methods take their time: call them beside the event loop, one at a time."""

    @property
    def moment(self) -> Moment:
        """Where they are."""

    def play(self, ticks: int, seconds: float) -> None:
        """So many ticks, or as many as there is time for; the last one is watched."""

    def way_to(self, at: int, episode: int) -> Callable[[float], bool]:
        """The way to a moment: to be called with seconds to spend until it says True."""

    def frame(self, state: dict[str, Any], known_episodes: int) -> tuple[bytes, int]:
        """What the page draws, with what the session adds; and how many episodes the page knows then."""

    def answer(self, s: int) -> dict[str, Any]:
        """All about a state."""

    def close(self) -> None:
        """End soon whatever it does, for ever."""


class Here:
    """Agents in this process."""

    def __init__(self, lockstep: Lockstep) -> None:
        self.lockstep = lockstep

    @property
    def moment(self) -> Moment:
        """Where they are."""
        pair = self.lockstep
        return Moment(pair.at, pair.furthest, pair.episode, pair.between, pair.finished)

    def play(self, ticks: int, seconds: float) -> None:
        """So many ticks, or as many as there is time for; the last one is watched."""
        self.lockstep.play(ticks, seconds)

    def way_to(self, at: int, episode: int) -> Callable[[float], bool]:
        """The way to a moment: to be called with seconds to spend until it says True."""
        return self.lockstep.way_to(at, episode)

    def frame(self, state: dict[str, Any], known_episodes: int) -> tuple[bytes, int]:
        """What the page draws, with what the session adds; and how many episodes the page knows then."""
        return encode(self.lockstep, state, known_episodes), len(self.lockstep.curves[0].steps)

    def answer(self, s: int) -> dict[str, Any]:
        """All about a state."""
        return answer(self.lockstep, s)

    def close(self) -> None:
        """End soon whatever it does, for ever."""
        self.lockstep.stop[0] = 1
