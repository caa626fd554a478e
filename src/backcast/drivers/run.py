"""`backcast.run`: many seeds of one agent in one world, compiled, on all cores."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.kinds import Parts, Setup
from backcast.core.arrays import Vector, as_whole
from backcast.core.errors import InputError
from backcast.core.graph import reachable
from backcast.core.limits import refuse_many
from backcast.core.randomness import streams
from backcast.core.waiting import compiling_for
from backcast.drivers.loop import Record, run_episodes
from backcast.drivers.results import Runs, collect
from backcast.mdp import FiniteMDP
from backcast.worlds.stepping import FOREVER
from backcast.worlds.world import World

T = TypeVar("T")
Seed = int | Sequence[int] | None

_switching, _quick_runs, _usual_interval = threading.Lock(), 0, 5e-3


def run(
    world: World,
    agent: Agent,
    episodes: int,
    seeds: int | Iterable[Seed],
    max_steps: int | None = None,
    workers: int | None = None,
    updates: int | None = None,
) -> Runs:
    """Run an agent in a world, once for each seed.

    The result depends on the seeds alone, not on the number of workers. Ctrl-C stops it within a second.

    Args:
        world: from `backcast.worlds`.
        agent: from `backcast.agent`.
        episodes: how many episodes each run has.
        seeds: a number n for the seeds 0 … n − 1, or an iterable of seeds as `numpy.random.SeedSequence` takes them:
            whole numbers of any size, sequences of them, or None for fresh entropy, which `Runs.seeds` then tells.
        max_steps: where an episode is truncated (its last step still bootstraps); by default the world's limit.
        workers: threads; by default one more than there are cores, for while one waits for the interpreter its core
            would be idle.
        updates: a run is over after the episode in which it has made so many value updates, to compare agents at equal
            computation; its last episode is then repeated up to the number of episodes.

    Returns:
        Steps and reward per episode, errors in prediction, counted value updates, final values and models.

    Examples:
        >>> from backcast import worlds
        >>> from backcast.agents import agent
        >>> run(worlds.maze(), agent("q"), episodes=50, seeds=4).steps.shape
        (4, 50)
    """
    check_world(world)
    check_agent(agent)
    threads = usual_threads() if workers is None else as_whole("workers", workers, 1)
    return run_in_threads(world, agent, episodes, check_seeds(seeds), max_steps, threads, updates)


def run_in_threads(
    world: World,
    agent: Agent,
    episodes: int,
    seeds: Sequence[int],
    max_steps: int | None,
    threads: int,
    updates: int | None,
) -> Runs:
    """As `run`; without any threads it is done in the calling one, which Ctrl-C interrupts only between runs."""
    episodes, seeds = check_size(episodes, seeds)
    schedule = agent.rates(episodes)
    limit = check_limit(world.draw(seeds[0]), max_steps)
    budget = FOREVER if updates is None else as_whole("updates", updates, 1)
    stop = np.zeros(1, dtype=np.uint8)
    if threads:
        prepare(world, agent, seeds[0], limit)  # compile before there are threads
    results = _share(lambda seed: one_run(world, agent, seed, schedule, limit, stop, budget), seeds, threads, stop)
    return collect(world.name, agent, seeds, results)


def usual_threads() -> int:
    """One more than there are cores to use; one if there is only one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 1 if cores > 1 else 1


def _share(work: Callable[[int], T], seeds: Sequence[int], threads: int, stop: NDArray[np.uint8]) -> list[T]:
    """The work of all seeds, in their order, by threads that take the next seed when they are free.

    An error or Ctrl-C raises the flag that the compiled loops look at, waits for them, and goes on its way.
    """
    if not threads:
        return [work(seed) for seed in seeds]
    results: dict[int, T] = {}
    left = enumerate(seeds)

    def take() -> None:
        for place, seed in left:
            if stop[0]:
                return
            results[place] = work(seed)

    with _quick_switching(), ThreadPoolExecutor(min(threads, len(seeds)), thread_name_prefix="backcast") as pool:
        takers = []
        try:
            takers += [pool.submit(take) for _ in range(min(threads, len(seeds)))]
            while not any(taker.done() and taker.exception() for taker in takers):
                if not wait(takers, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                    break
        finally:
            stop[0] = 1
    for taker in takers:
        taker.result()
    return [results[place] for place in range(len(seeds))]


@contextlib.contextmanager
def _quick_switching() -> Iterator[None]:
    """Let a thread that returns from a kernel have the interpreter soon, not after 5 ms."""
    global _quick_runs, _usual_interval
    with _switching:
        if _quick_runs == 0:
            _usual_interval = sys.getswitchinterval()
            sys.setswitchinterval(min(_usual_interval, 1e-4))
        _quick_runs += 1
    try:
        yield
    finally:
        with _switching:
            _quick_runs -= 1
            if _quick_runs == 0:
                sys.setswitchinterval(_usual_interval)


def prepare(world: World, agent: Agent, seed: int, limit: int) -> None:
    """Have compiled, or loaded, what runs of an agent in a world need, by a run of no episodes."""
    with compiling_for(f"{agent.name} in {world.name}"):
        one_run(world, agent, seed, np.empty((0, 4)), limit)


def one_run(
    world: World,
    agent: Agent,
    seed: int,
    schedule: Vector,
    limit: int,
    stop: NDArray[np.uint8] | None = None,
    budget: int = FOREVER,
) -> tuple[Record, Parts, float]:
    """One run in this thread: what it recorded, the agent as it was left, and processor seconds.

    Everything it writes is its own.
    """
    stop = np.zeros(1, dtype=np.uint8) if stop is None else stop
    drawn = world.draw(seed)
    parts = agent.build(setup_for(drawn, seed, limit))
    record = empty_record(len(schedule), drawn)
    tables, randomness = drawn.tables, streams(seed)
    started = time.thread_time()
    run_episodes(tables, parts, schedule, *randomness, limit, budget, record, stop)
    return record, parts, time.thread_time() - started


def setup_for(world: World, seed: int, limit: int) -> Setup:
    """What an agent is told about a world, as drawn for the seed, in which episodes are cut off at this limit."""
    cut_off = None if limit >= FOREVER else limit
    return Setup(world.n_states, world.n_actions, world.discount, world, seed, cut_off)


def empty_record(episodes: int, world: World | None) -> Record:
    """Room for what a run leaves behind; errors are measured in a prediction world."""
    truth = inner = np.empty(0)
    if world is not None and world.is_prediction:
        truth, inner = world.truth, np.where(world.mdp.terminal, 0.0, 1.0)
    errors = episodes if truth.size else 0
    steps, made = np.zeros(episodes, dtype=np.int64), np.zeros(episodes, dtype=np.int64)
    reward, rmsve, rmsve_inner = np.zeros(episodes), np.zeros(errors), np.zeros(errors)
    return Record(steps, made, reward, rmsve, rmsve_inner, truth, inner, np.zeros(1, dtype=np.int64))


def check_world(world: World) -> None:
    """Raise InputError unless `world` is a World, and say how to make one of what is given."""
    if isinstance(world, World):
        return
    how = ", made by backcast.worlds"
    if isinstance(world, FiniteMDP):
        how = ": backcast.worlds.from_mdp(mdp) makes one"
    elif hasattr(world, "unwrapped"):
        how = ": backcast.worlds.from_gymnasium(env) makes one if it carries its table; if not, see backcast.train"
    raise InputError(f"world: {type(world).__name__} given, expected a World{how}")


def check_agent(agent: Agent) -> None:
    """Refuse what is no agent."""
    if not isinstance(agent, Agent):
        raise InputError(f"agent: {agent!r} given, expected one made by backcast.agent(...)")


def check_size(episodes: int, seeds: Sequence[Any]) -> tuple[int, list[Any]]:
    """The number of episodes, and the seeds; refused if what is recorded of them would be too much."""
    episodes = as_whole("episodes", episodes, 1)
    refuse_many("episodes × seeds", "episodes", episodes * len(seeds))
    return episodes, list(seeds)


def check_seeds(seeds: int | Iterable[Seed]) -> Sequence[Any]:
    """The seeds 0 … n − 1 for a number n, else the seeds given; None becomes entropy drawn from the system."""
    if not _is_iterable(seeds):
        return range(as_whole("seeds", seeds, 1))
    chosen = [_as_seed(seed) for seed in seeds]  # type: ignore[union-attr]
    if not chosen:
        raise InputError("seeds: an empty list given, expected a number or a list of numbers, 0 or more")
    if len(set(chosen)) < len(chosen):
        raise InputError("seeds: a seed is given twice, which would count one run as two")
    return chosen


def _as_seed(seed: Seed) -> int | tuple[int, ...]:
    """A seed as NumPy's SeedSequence takes it: a whole number of any size, or several."""
    if seed is None:
        return _as_seed(np.random.SeedSequence().entropy)
    numbers = tuple(as_whole("seeds", n, 0, np.inf) for n in (seed if _is_iterable(seed) else [seed]))  # type: ignore[union-attr]
    if not numbers:
        raise InputError("seeds: an empty list given as one of them, expected a number, 0 or more, or several")
    return numbers[0] if len(numbers) == 1 else numbers


def _is_iterable(given: Any) -> bool:
    """Whether it is a list, a generator, an array, …; not a number or a text."""
    return hasattr(given, "__iter__") and not isinstance(given, (str, bytes)) and getattr(given, "ndim", 1) > 0


def check_limit(world: World, max_steps: int | None) -> int:
    """Where episodes are truncated; refused if an episode could go on for ever."""
    if max_steps is not None:
        return as_whole("max_steps", max_steps, 1)
    if world.max_steps is not None:
        return world.max_steps
    ends = reachable(world.mdp.graph.T.tocsr(), world.mdp.terminal)
    if (world.mdp.reachable & ~ends).any():
        state = int(np.argmax(world.mdp.reachable & ~ends))
        raise InputError(
            f"max_steps: none given, but in {world.name} no episode that comes to state {state} ever ends;"
            " give a number"
        )
    return FOREVER
