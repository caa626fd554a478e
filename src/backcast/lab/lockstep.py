"""Two agents in lockstep: both are in the same episode, and the first to finish waits for the other.

Time is counted in *ticks*: in each, an agent whose episode is not over takes one step. Runs are deterministic, so the
past is not recorded: some positions are saved, and it is recomputed from there.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.lab.config import RefusedError
from backcast.lab.credit import Credit
from backcast.lab.scene import Scene
from backcast.lab.walker import Position, Walker

_KEPT_BYTES = 32_000_000
_MOST_KEPT = 64
_FIRST_INTERVAL = 256  # ticks between saved positions; it doubles whenever there are too many
_LOOK = 0.004  # approximate seconds between checks of the clock
_LARGEST_POSITION = 16_000_000  # most bytes of a saved position of one agent
NEVER = 2**62
_NOTHING = (Credit(words="Nothing has happened yet."),) * 2
_UNWATCHED = (Credit(words="On its way."),) * 2


class Kept(NamedTuple):
    """A saved position of both agents after a number of ticks."""

    at: int
    step: int
    positions: tuple[Position, Position]


class EpisodeCurves:
    """The known episodes of an agent, up to the furthest one."""

    def __init__(self) -> None:
        self.steps: list[int | None] = []
        self.reward: list[float | None] = []
        self.error: list[float | None] = []
        self.updates: list[int | None] = []

    def add(self, walker: Walker) -> None:
        """Record the end of an agent's episode; None if its values diverged."""
        place, lost = walker.now.place, walker.lost
        error = walker.era.error(walker.action_values.max(axis=1))
        self.steps.append(None if lost else place.steps)
        self.reward.append(None if lost else place.gained)
        self.error.append(None if lost or not np.isfinite(error) else error)
        self.updates.append(int(walker.now.parts.updates.sum()))

    def since(self, first: int) -> dict[str, Any]:
        """Those from an episode on."""
        return {"from": first} | {name: values[first:] for name, values in vars(self).items()}


class Lockstep:
    """The two agents of a scene.

    Args:
        scene: their scene.
        stop: a flag set by another thread, if any.

    Attributes:
        scene: their scene.
        stop: set when the agents are no longer needed; they then stop.
        walkers: left and right.
        at: ticks so far.
        step: ticks of this episode so far.
        furthest: the largest `at` ever.
        credits: what the last tick changed, of each.
        curves: of each.
    """

    def __init__(self, scene: Scene, stop: NDArray[np.uint8] | None = None) -> None:
        self.scene = scene
        self.stop = np.zeros(1, dtype=np.uint8) if stop is None else stop
        self.walkers = tuple(Walker(scene, agent, self.stop) for agent in scene.agents)
        self._refuse_large()
        self.curves = (EpisodeCurves(), EpisodeCurves())
        self.credits = _NOTHING
        self.at = self.step = self.furthest = 0
        self._watched = 0  # the tick that `credits` is about
        self._interval = _FIRST_INTERVAL
        self._kept = [self._save()]

    @property
    def episode(self) -> int:
        """The number of the episode that they are in; −1 before the first."""
        return self.walkers[0].now.episode

    @property
    def between(self) -> bool:
        """Whether both have finished an episode, or none has begun."""
        return all(walker.over for walker in self.walkers)

    @property
    def finished(self) -> bool:
        """Whether the last episode is over."""
        return self.between and self.episode >= self.scene.episodes - 1

    @property
    def watched(self) -> tuple[Credit, Credit]:
        """The changes of each agent in the last tick; empty if it was not watched."""
        return self.credits if self._watched == self.at or self.at == 0 else _UNWATCHED

    def tick(self) -> None:
        """Make one tick, and record what it changed."""
        if self.finished:
            return
        begins = self.between
        left, right = (walker.tick(begins) for walker in self.walkers)
        self.credits = (left, right)
        self._arrive(1 if begins else self.step + 1, self.at + 1)
        self._watched = self.at

    def play(self, ticks: int, seconds: float) -> None:
        """Make a number of ticks, or as many as there is time for; the last one is watched."""
        self._run(self.at + ticks - 1, NEVER, seconds)
        self.tick()

    def way_to(self, at: int, episode: int = NEVER) -> Callable[[float], bool]:
        """Go to a moment, past or future, or to the end of an episode, whichever comes first.

        Call it with the seconds to spend until it returns True; the last tick is watched. The end of the run is unknown
        before it is reached: then its last tick is repeated to be watched.
        """
        there: list[int] = []

        def go_on(seconds: float) -> bool:
            if not there:
                if not self._run(at - 1, episode, seconds):
                    return False
                ahead = at == self.at + 1 and not self.finished and not (self.between and self.episode >= episode)
                there.append(at if at <= self.at or ahead else self.at)
            return self._seek(there[0], seconds)

        return go_on

    def start_again(self) -> None:
        """Reset to the beginning."""
        self._restore(self._kept[0])
        self._kept, self._interval, self.furthest = self._kept[:1], _FIRST_INTERVAL, 0
        self.curves = (EpisodeCurves(), EpisodeCurves())

    def _seek(self, at: int, seconds: float) -> bool:
        """Go to a moment not beyond the end, and watch its tick; return False if time ran out."""
        if at < self.at or (at == self.at and self._watched != at):
            self._restore(max(kept for kept in self._kept if kept.at < max(at, 1)))
        if at > self.at:
            if not self._run(at - 1, NEVER, seconds):
                return False
            self.tick()
        return True

    def _run(self, at: int, episode: int, seconds: float) -> bool:
        """Run, compiled, to a moment or to the end of an episode; return False if time ran out."""
        now = time.monotonic()
        deadline, chunk = now + seconds, 1
        while self.at < at and not self.finished and not (self.between and self.episode >= episode):
            before = 0 if self.between else self.step
            if self.between:
                for walker in self.walkers:
                    walker.begin_episode()
            goal = before + min(chunk, at - self.at)
            for walker in self.walkers:
                walker.walk_to(goal)
            if self.stop[0]:
                return False
            taken = max(walker.now.place.steps for walker in self.walkers)
            step = max(1, taken) if self.between else goal
            self._arrive(step, self.at + step - before)
            then, now = now, time.monotonic()
            chunk = _next_chunk(step - before, now - then)
            if now > deadline:
                return self.at >= at
        return True

    def _arrive(self, step: int, at: int) -> None:
        """Arrive at a tick; record the end of an episode and, at intervals, the positions."""
        self.step, self.at, self.furthest = step, at, max(at, self.furthest)
        if self.between:
            for walker, curves in zip(self.walkers, self.curves, strict=True):
                if len(curves.steps) == self.episode:
                    curves.add(walker)
        if at - self._kept[-1].at >= self._interval:
            self._kept.append(self._save())
            self._forget_some()

    def _refuse_large(self) -> None:
        for side, walker in zip(("left", "right"), self.walkers, strict=True):
            if walker.now.n_bytes > _LARGEST_POSITION:
                raise RefusedError(
                    f"{side}: {walker.agent.name!r} takes {walker.now.n_bytes / 1e6:.0f} MB in this world; in the lab"
                    f" at most {_LARGEST_POSITION / 1e6:.0f}: take a smaller world, or a model of one step",
                    side,
                )

    def _save(self) -> Kept:
        left, right = (walker.save() for walker in self.walkers)
        return Kept(self.at, self.step, (left, right))

    def _restore(self, kept: Kept) -> None:
        self.at, self.step, self.credits, self._watched = kept.at, kept.step, _NOTHING, 0
        for walker, position in zip(self.walkers, kept.positions, strict=True):
            walker.restore(position)

    def _forget_some(self) -> None:
        """Drop every other position, except the first and the last, if they take too much memory."""
        n_bytes = sum(position.n_bytes for kept in self._kept for position in kept.positions)
        if len(self._kept) > _MOST_KEPT or n_bytes > _KEPT_BYTES:
            self._kept = [*self._kept[:-1:2], self._kept[-1]]
            self._interval *= 2


def _next_chunk(steps: int, seconds: float) -> int:
    """The number of steps before the next check of the clock, given the duration of the last ones."""
    return max(1, min(4 * steps, int(steps * _LOOK / max(seconds, 1e-6))))
