"""Blocks of seeds, run by few calls, so that threads rarely wait for the GIL.

Making an agent, passing it to a kernel and reading its results takes Python about as long as a hundred steps, in one
thread at a time. The agents of a block are therefore copies of one (`backcast.core.copies`), and a kernel runs them one
after the other. A block is a single seed if seeds begin differently (third-party kinds, random features, true models of
worlds that every seed draws anew) or if an agent is large. Results do not depend on the blocks.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.setup import Setup
from backcast.core.arrays import Vector
from backcast.core.copies import Copies, Layout, arrays_of
from backcast.core.randomness import PURPOSES, imagination, many_imaginations, many_streams, streams
from backcast.core.waiting import compiling_for
from backcast.drivers.loop import Record, Run, run_seeds
from backcast.drivers.runs import RunRows, rows_of
from backcast.worlds.stepping import FOREVER
from backcast.worlds.world import World

_MOST_SEEDS, _MOST_BYTES = 64, 16 * 2**20  # limits of a block
_SECONDS = 0.05  # target duration of a block, so that neither other threads nor Ctrl-C wait long


class Job:
    """A job: how to make runs, for any seeds.

    Args:
        world: the world.
        agent: the agent.
        schedule: step sizes and ε of each episode, (episodes, 4).
        limit: number of steps after which episodes are truncated.
        budget: value updates after which a run is over.
        stop: (1,), nonzero if runs are to be abandoned.
        models: whether models are kept.
    """

    def __init__(
        self,
        world: World,
        agent: Agent,
        schedule: Vector,
        limit: int,
        budget: int = FOREVER,
        stop: NDArray[np.uint8] | None = None,
        models: bool = True,
    ) -> None:
        self.world, self.agent, self.schedule, self.limit, self.budget = world, agent, schedule, limit, budget
        self.stop = np.zeros(1, dtype=np.uint8) if stop is None else stop
        self._keeps_models = models
        self._layout: Layout | None = None
        self._imagined: list[tuple[int, int]] = []

    @property
    def most_seeds(self) -> int:
        """The most seeds of a block."""
        return 1 if self._layout is None else max(1, min(_MOST_SEEDS, _MOST_BYTES // self._layout.size))

    def begin(self, world: World, seed: int) -> Run:
        """The run of a seed before its first episode, in the world drawn for the seed."""
        agent = self.agent.build(setup_for(world, seed, self.limit))
        return Run(agent, empty_record(len(self.schedule), world), *streams(seed))

    def prepare(self, seed: int) -> None:
        """Compile, or load, the kernels, by a run of no episodes."""
        with compiling_for(f"{self.agent.name} in {self.world.name}"):
            drawn = self.world.draw(seed)
            self.call(drawn, Copies(self.begin(drawn, seed), 1, 0), 0, 0)

    def allow_blocks(self, seed: int) -> None:
        """Allow blocks of several seeds if seeds begin alike and agents are small."""
        drawn = self.world.redraw is not None
        if not self.agent.begins_alike or (drawn and (self.agent.knows_the_truth or not self.world.same_graph)):
            return
        run = self.begin(self.world.draw(seed), seed)
        if 2 * sum(array.nbytes for array in arrays_of(run)) > _MOST_BYTES:
            return
        own = {purpose: imagination(seed, purpose).tobytes() for purpose in PURPOSES}
        for place, array in enumerate(arrays_of(run.agent)):
            held = array.tobytes() if array.dtype == np.uint64 else b""
            self._imagined += [(place, purpose) for purpose in PURPOSES if held == own[purpose]]
        self._layout = Layout(run)

    def one(self, seed: int) -> tuple[Run, float]:
        """Make the run of one seed; return it and its processor seconds."""
        drawn = self.world.draw(seed)
        run = self.begin(drawn, seed)
        return run, self.call(drawn, Copies(run, 1, 0), 0, 1)

    def perform(self, seeds: Sequence[Any]) -> RunRows:
        """Make the runs of a block."""
        seconds = np.zeros(len(seeds))
        if self._layout is None:
            (seed,) = seeds
            run, seconds[0] = self.one(seed)
            return rows_of(Copies(run, 1, 0), seconds, self._keeps_models)
        runs = self._copies(self._layout, seeds)
        if self.world.redraw is None:
            seconds[:] = self.call(self.world, runs, 0, len(seeds)) / len(seeds)
            return rows_of(runs, seconds, self._keeps_models)
        truth = runs.stacked(runs.first.record.truth)
        for place, seed in enumerate(seeds):
            drawn = self.world.draw(seed)
            if truth.size:
                truth[place] = drawn.truth
            seconds[place] = self.call(drawn, runs, place, place + 1)
        return rows_of(runs, seconds, self._keeps_models)

    def _copies(self, layout: Layout, seeds: Sequence[Any]) -> Copies:
        """A run for each seed before its first episode."""
        runs = layout.copies(len(seeds))
        first, held = runs.first, list(arrays_of(runs.first.agent))
        for stream, own in zip((first.world_stream, first.agent_stream), many_streams(seeds), strict=True):
            runs.stacked(stream)[:] = own
        for place, purpose in self._imagined:
            runs.stacked(held[place])[:] = many_imaginations(seeds, purpose)
        return runs

    def call(self, world: World, runs: Copies, first: int, last: int) -> float:
        """Make some runs of a block; return processor seconds."""
        started = time.thread_time()
        run_seeds(
            world.tables,
            runs.first,
            self.schedule,
            self.limit,
            self.budget,
            self.stop,
            first,
            last,
            runs.distance,
        )
        return time.thread_time() - started


class SeedBlocks(Iterator[tuple[int, Sequence[Any]]]):
    """Blocks of seeds, with the position of the first seed of each; blocks get smaller towards the end.

    The first blocks are single seeds, because the duration of a run is not known before.

    Args:
        seeds: all seeds.
        most: the most seeds of a block.
        takers: the number of threads that take blocks.
    """

    def __init__(self, seeds: Sequence[Any], most: int, takers: int) -> None:
        self._seeds, self._most, self._takers = seeds, most, takers
        self._taken, self._fitting = 0, 1
        self._lock = threading.Lock()

    def __next__(self) -> tuple[int, Sequence[Any]]:
        with self._lock:
            left = len(self._seeds) - self._taken
            if not left:
                raise StopIteration
            size = max(1, min(self._most, self._fitting, left // (2 * self._takers)))
            first, self._taken = self._taken, self._taken + size
            return first, self._seeds[first : first + size]

    def learn(self, runs: int, seconds: float) -> None:
        """Record the duration of a block."""
        self._fitting = int(_SECONDS * runs / max(seconds, 1e-9))


def setup_for(world: World, seed: int, limit: int) -> Setup:
    """The setup of an agent in the world drawn for the seed, in which episodes are truncated at this limit."""
    cut_off = None if limit >= FOREVER else limit
    return Setup(world.n_states, world.n_actions, world.discount, world, seed, cut_off)


def empty_record(episodes: int, world: World | None) -> Record:
    """An empty record of a run; errors are measured in a prediction world."""
    truth = inner = np.empty(0)
    if world is not None and world.is_prediction:
        truth = np.ascontiguousarray(world.truth)  # a view has another type, for which kernels would be recompiled
        inner = np.where(world.mdp.terminal, 0.0, 1.0)
    measured = episodes if truth.size else 0
    steps, made = np.zeros(episodes, dtype=np.int64), np.zeros(episodes, dtype=np.int64)
    reward, rmsve, rmsve_inner = np.zeros(episodes), np.zeros(measured), np.zeros(measured)
    errors, diverged = np.zeros(truth.size), np.zeros(1, dtype=np.int64)
    return Record(steps, made, reward, rmsve, rmsve_inner, truth, inner, inner.sum(), errors, diverged)
