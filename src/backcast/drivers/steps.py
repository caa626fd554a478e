"""Runs of a given number of real steps, with any number of episodes.

Falling rates fall from one real step to the next, α (N − t) / N before step t of N, so that a run of one long
episode has the same schedule as one of many. The last episode is truncated where the steps are used up; like any
truncated episode it bootstraps.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.parts import Parts
from backcast.core.arrays import Vector, as_whole
from backcast.core.compiling import kernel
from backcast.core.copies import Copies
from backcast.core.errors import InputError
from backcast.core.limits import refuse_many
from backcast.core.randomness import Stream, streams, uniform
from backcast.core.waiting import compiling_for
from backcast.drivers.loop import LEARNING, PLANNING, EpisodeState, Record, Run, begin, finish, judge, walk
from backcast.drivers.runs import PER_EPISODE, RunRows, rows_of
from backcast.drivers.seed_blocks import Job, empty_record, setup_for
from backcast.worlds.stepping import FOREVER, Tables
from backcast.worlds.world import World

_ROOM = 4096  # most episodes recorded by one call of the kernel


class Clock(NamedTuple):
    """The progress of a run, and its rates.

    Attributes:
        taken: (1,), real steps so far.
        largest: (1,), the largest |reward| so far, or the largest |true value| if that is larger.
        first: (4,), the rates of the first step.
        falls: (4,), whether each falls to 0 over the run.
        rates: (4,), the rates of the next step.
        steps: number of steps of the whole run, N.
    """

    taken: NDArray[np.int64]
    largest: Vector
    first: Vector
    falls: NDArray[np.bool_]
    rates: Vector
    steps: int


@kernel
def set_rates(clock: Clock, taken: int) -> None:
    """Set the rates after `taken` real steps: constant, or multiplied by (N − t) / N."""
    for k in range(clock.rates.size):
        left = (clock.steps - taken) / clock.steps if clock.falls[k] else 1.0
        clock.rates[k] = clock.first[k] * left


@kernel
def run_steps(
    tables: Tables,
    agent: Parts,
    clock: Clock,
    world_stream: Stream,
    agent_stream: Stream,
    max_steps: int,
    record: Record,
    stop: NDArray[np.uint8],
) -> int:
    """Run episodes until the clock's steps are taken, the record is full, or `stop` is raised; return their number."""
    for episode in range(record.steps.size):
        taken, largest = clock.taken[0], clock.largest[0]
        if taken >= clock.steps:
            return episode
        set_rates(clock, taken)
        s = tables.at(taken).draw_start(uniform(world_stream))
        ends = tables.at(taken).terminal[s]
        if not ends:
            begin(agent, clock.rates, s)
        place = EpisodeState(s, 0, 0.0, largest, ends, False)
        most = min(max_steps, clock.steps - taken)
        while not place.ends and place.steps < most:
            before = place.steps
            set_rates(clock, taken + before)
            table = tables.at(taken + before)
            place = walk(table, agent, clock.rates, world_stream, agent_stream, place, before + 1, stop)
            if place.steps == before:  # stopped
                return episode
        clock.taken[0], clock.largest[0] = taken + place.steps, place.largest
        if place.lost:
            record.diverged[0] = taken + place.steps
        elif place.steps > 0:
            finish(agent, clock.rates, place.s, place.ends)
        record.steps[episode] = place.steps
        record.reward[episode] = place.gained
        record.made[episode] = agent.updates[LEARNING] + agent.updates[PLANNING]
        if not judge(agent, record, episode, taken + place.steps, place.largest, max_steps, FOREVER):
            return episode + 1
    return record.steps.size


class StepsJob(Job):
    """Runs of a given number of real steps, made seed by seed.

    Args:
        world: the world.
        agent: the agent.
        steps: real steps of each run.
        limit: number of steps after which episodes are truncated.
        models: whether models are kept.
    """

    def __init__(self, world: World, agent: Agent, steps: int, limit: int, models: bool = True) -> None:
        super().__init__(world, agent, np.empty((0, 4)), limit, models=models)
        self._steps = steps

    def begin(self, world: World, seed: int) -> Run:
        """The run of a seed before its first episode, with room for some episodes."""
        agent = self.agent.build(setup_for(world, seed, min(self.limit, self._steps)))
        return Run(agent, empty_record(min(self._steps, _ROOM), world), *streams(seed))

    def prepare(self, seed: int) -> None:
        """Compile, or load, the kernels, by a run of no steps."""
        with compiling_for(f"{self.agent.name} in {self.world.name}"):
            world = self.world.draw(seed)
            run = self.begin(world, seed)
            self._go_on(world, run, self._clock(run.record, 0))

    def allow_blocks(self, seed: int) -> None:
        """A block is one seed, because runs differ in their number of episodes."""

    def perform(self, seeds: Sequence[Any]) -> RunRows:
        """Make the run of a block, which is one seed."""
        (seed,) = seeds
        world = self.world.draw(seed)
        run, started, parts = self.begin(world, seed), time.thread_time(), []
        clock = self._clock(run.record, self._steps)
        going = True
        while going:
            made = self._go_on(world, run, clock)
            parts.append({name: getattr(run.record, name)[:made].copy() for name in PER_EPISODE})
            going = clock.taken[0] < self._steps and not run.record.diverged[0] and not self.stop[0]
        seconds = np.array([time.thread_time() - started])
        rows = rows_of(Copies(run, 1, 0), seconds, self._keeps_models)
        whole: dict[str, Any] = {name: np.concatenate([part[name] for part in parts])[None] for name in PER_EPISODE}
        return rows._replace(**whole)

    def _clock(self, record: Record, steps: int) -> Clock:
        return new_clock(self.agent, steps, np.abs(record.truth).max(initial=0.0))

    def _go_on(self, world: World, run: Run, clock: Clock) -> int:
        """Run as many episodes as there is room for; return their number."""
        made: int = run_steps(
            world.tables, run.agent, clock, run.world_stream, run.agent_stream, self.limit, run.record, self.stop
        )
        return made


class Length(NamedTuple):
    """The length of runs, in episodes or real steps, and their seeds."""

    episodes: int | None
    steps: int | None
    seeds: list[Any]

    @property
    def most_episodes(self) -> int:
        """The largest possible number of episodes: each has at least one step."""
        return self.episodes or self.steps or 0


def check_length(episodes: object, steps: object, seeds: Sequence[Any]) -> Length:
    """Return the length of runs; raise InputError unless exactly one is given, or if the record would be too large."""
    if (episodes is None) == (steps is None):
        raise InputError(f"episodes: {episodes!r} and steps: {steps!r} given, expected one of them")
    if steps is not None:
        return Length(None, as_whole("steps", steps, 1), list(seeds))
    number = as_whole("episodes", episodes, 1)
    refuse_many("episodes × seeds", "episodes", number * len(seeds))
    return Length(number, None, list(seeds))


def refuse_no_steps(world: World) -> None:
    """Raise InputError if every episode ends where it begins."""
    if world.motion is None and not world.mdp.start[~world.mdp.terminal].any():
        raise InputError(f"steps: in {world.name} every episode ends where it begins, and no step is ever taken")


def new_clock(agent: Agent, steps: int, largest: float = 0.0) -> Clock:
    """The clock of a run of `steps` steps, before the first."""
    first, falls = agent.rates_at_first()
    return Clock(np.zeros(1, dtype=np.int64), np.array([largest]), first, falls, np.zeros(4), steps)
