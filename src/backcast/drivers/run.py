"""`backcast.run`: many seeds of one agent in one world, compiled, on all cores."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.parts import Parts
from backcast.core.arrays import Vector, as_whole
from backcast.core.errors import InputError
from backcast.core.graph import reachable
from backcast.drivers.loop import Record
from backcast.drivers.runs import RunRows, Runs, collect
from backcast.drivers.seed_blocks import Job, SeedBlocks
from backcast.drivers.steps import StepsJob, check_length, refuse_no_steps
from backcast.mdp import FiniteMDP
from backcast.networks.backend import require_jax
from backcast.worlds.stepping import FOREVER
from backcast.worlds.world import World

Seed = int | Sequence[int] | None

_switching, _quick_runs, _usual_interval = threading.Lock(), 0, 5e-3


def run(
    world: World,
    agent: Agent,
    episodes: int | None = None,
    seeds: int | Iterable[Seed] | None = None,
    max_steps: int | None = None,
    workers: int | None = None,
    updates: int | None = None,
    models: bool = True,
    steps: int | None = None,
) -> Runs:
    """Run an agent in a world, once for each seed, for a number of episodes or of real steps.

    The result does not depend on the number of workers. Ctrl-C stops it within a second.

    Args:
        world: a world from `backcast.worlds`.
        agent: an agent from `backcast.agent`.
        episodes: number of episodes of each run.
        seeds: a number n for the seeds 0 … n − 1, or an iterable of seeds as `numpy.random.SeedSequence` takes them:
            whole numbers of any size, sequences of them, or None for fresh entropy, which `Runs.seeds` records.
        max_steps: number of steps after which an episode is truncated (its last step still bootstraps); by
            default the world's limit.
        workers: threads; by default the number of cores.
        updates: budget of value updates, to compare agents at equal computation. A run is over after the episode in
            which it reaches the budget; that episode is then repeated up to the number of episodes.
        models: False omits `Runs.models`, which take most of the memory if there are very many seeds.
        steps: number of real steps of each run, in place of `episodes`. Falling rates then fall from step to step, and
            the last episode is truncated. Runs may differ in their number of episodes: arrays are as wide as the
            longest run, padded with NaN (−1 for integers).

    Returns:
        Steps and reward per episode, errors in prediction, counted value updates, final values and models.

    Examples:
        >>> from backcast import worlds
        >>> from backcast.agents import agent
        >>> run(worlds.maze(), agent("q"), episodes=50, seeds=4).steps.shape
        (4, 50)
        >>> run(worlds.maze(), agent("q"), steps=1000, seeds=1).steps.sum()
        np.int64(1000)
    """
    check_world(world)
    check_agent(agent)
    threads = cores() if workers is None else as_whole("workers", workers, 1)
    if not isinstance(models, bool):
        raise InputError(f"models: {models!r} given, expected True or False")
    if seeds is None:
        raise InputError("seeds: None given, expected a number or a list of numbers, 0 or more")
    length = check_length(episodes, steps, check_seeds(seeds))
    if length.episodes is not None:
        return run_in_threads(world, agent, length.episodes, length.seeds, max_steps, threads, updates, models)
    if updates is not None:
        raise InputError(f"updates: {updates!r} given with steps; a run has one budget, give one of them")
    return _run_steps(world, agent, length.steps or 0, length.seeds, max_steps, threads, models)


def run_in_threads(
    world: World,
    agent: Agent,
    episodes: int,
    seeds: Sequence[int],
    max_steps: int | None,
    threads: int,
    updates: int | None,
    models: bool = True,
) -> Runs:
    """As `run`. With 0 threads it runs in the calling thread, and Ctrl-C interrupts it only between blocks."""
    seeds = check_length(episodes, None, seeds).seeds
    schedule = agent.rates(int(episodes))
    limit = check_limit(world.draw(seeds[0]), max_steps)
    budget = FOREVER if updates is None else as_whole("updates", updates, 1)
    job: AnyJob = Job(world, agent, schedule, limit, budget, models=models)
    if agent.has_network:
        job = _neural_job(world, agent, limit, episodes=len(schedule), budget=budget, models=models)
    if threads:
        job.prepare(seeds[0])  # compile before there are threads
    if len(seeds) > 1:
        job.allow_blocks(seeds[0])
    return collect(world.name, agent, seeds, _share(job, seeds, threads))


def _run_steps(
    world: World, agent: Agent, steps: int, seeds: Sequence[Any], max_steps: int | None, threads: int, models: bool
) -> Runs:
    """Runs of `steps` real steps, in threads."""
    drawn = world.draw(seeds[0])
    limit = as_whole("max_steps", max_steps, 1) if max_steps is not None else drawn.max_steps or FOREVER
    refuse_no_steps(drawn)
    job: AnyJob = StepsJob(world, agent, steps, limit, models)
    if agent.has_network:
        job = _neural_job(world, agent, limit, steps=steps, models=models)
    job.prepare(seeds[0])
    return collect(world.name, agent, seeds, _share(job, seeds, threads))


class AnyJob(Protocol):
    """Runs of an agent in a world, made in blocks of seeds."""

    @property
    def most_seeds(self) -> int:
        """The most seeds of a block."""

    @property
    def stop(self) -> NDArray[np.uint8]:
        """(1,), set to 1 to stop all runs."""

    def prepare(self, seed: int) -> None:
        """Compile, or load, what the runs need."""

    def allow_blocks(self, seed: int) -> None:
        """Allow blocks of several seeds, if they can be made."""

    def perform(self, seeds: Sequence[Any]) -> RunRows:
        """Make the runs of a block."""


def _neural_job(world: World, agent: Agent, limit: int, **more: Any) -> AnyJob:
    """The job of an agent with a network; JAX is imported only here."""
    require_jax()
    from backcast.drivers.neural import NeuralJob

    return NeuralJob(world, agent, limit, **more)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _share(job: AnyJob, seeds: Sequence[int], threads: int) -> list[RunRows]:
    """Run all seeds, in threads that take the next block when free; results are in the order of the seeds.

    On an error or Ctrl-C, set the flag that the compiled loops poll, wait for them, and re-raise.
    """
    results: dict[int, RunRows] = {}
    blocks = SeedBlocks(seeds, job.most_seeds, max(threads, 1))

    def take() -> None:
        for first, block in blocks:
            if job.stop[0]:
                return
            started = time.perf_counter()
            results[first] = job.perform(block)
            blocks.learn(len(block), time.perf_counter() - started)

    if threads:
        _in_threads(take, min(threads, len(seeds)), job.stop)
    else:
        take()
    return [results[first] for first in sorted(results)]


def _in_threads(take: Callable[[], None], threads: int, stop: NDArray[np.uint8]) -> None:
    """Call a function in `threads` threads; if one fails, or on Ctrl-C, raise the flag for the others."""
    with _quick_switching(), ThreadPoolExecutor(threads, thread_name_prefix="backcast") as pool:
        takers = []
        try:
            takers += [pool.submit(take) for _ in range(threads)]
            while not any(taker.done() and taker.exception() for taker in takers):
                if not wait(takers, timeout=0.2, return_when=FIRST_EXCEPTION).not_done:
                    break
        finally:
            stop[0] = 1
    for taker in takers:
        taker.result()


@contextlib.contextmanager
def _quick_switching() -> Iterator[None]:
    """Let a thread that returns from a kernel acquire the GIL soon, rather than after 5 ms."""
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
    """Compile, or load, the kernels for an agent in a world, by a run of no episodes."""
    job = _neural_job(world, agent, limit) if agent.has_network else Job(world, agent, np.empty((0, 4)), limit)
    job.prepare(seed)


def one_run(
    world: World,
    agent: Agent,
    seed: int,
    schedule: Vector,
    limit: int,
    stop: NDArray[np.uint8] | None = None,
    budget: int = FOREVER,
) -> tuple[Record, Parts, float]:
    """Make one run in this thread; return its record, the agent as it was left, and processor seconds.

    It writes only to its own memory.
    """
    run, seconds = Job(world, agent, schedule, limit, budget, stop).one(seed)
    return run.record, run.agent, seconds


def check_world(world: World) -> None:
    """Raise InputError unless `world` is a World; the message says how to make one."""
    if isinstance(world, World):
        return
    how = ", made by backcast.worlds"
    if isinstance(world, FiniteMDP):
        how = ": backcast.worlds.from_mdp(mdp) makes one"
    elif hasattr(world, "unwrapped"):
        how = ": backcast.worlds.from_gymnasium(env) makes one if it carries its table; if not, see backcast.train"
    raise InputError(f"world: {type(world).__name__} given, expected a World{how}")


def check_agent(agent: Agent) -> None:
    """Raise InputError unless `agent` is an Agent."""
    if not isinstance(agent, Agent):
        raise InputError(f"agent: {agent!r} given, expected one made by backcast.agent(...)")


def check_seeds(seeds: int | Iterable[Seed]) -> Sequence[Any]:
    """Return the seeds 0 … n − 1 for a number n, otherwise the given seeds; None is replaced by system entropy."""
    if not _is_iterable(seeds):
        return range(as_whole("seeds", seeds, 1))
    chosen = [_as_seed(seed) for seed in seeds]  # type: ignore[union-attr]
    if not chosen:
        raise InputError("seeds: an empty list given, expected a number or a list of numbers, 0 or more")
    if len({tuple(np.random.SeedSequence(seed).generate_state(4).tolist()) for seed in chosen}) < len(chosen):
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


def _is_iterable(given: object) -> bool:
    """Whether it is a list, a generator, an array, …, rather than a number or text."""
    return hasattr(given, "__iter__") and not isinstance(given, (str, bytes)) and getattr(given, "ndim", 1) > 0


def check_limit(world: World, max_steps: int | None) -> int:
    """Return the limit of steps per episode; raise InputError if an episode could go on for ever."""
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
