"""`backcast bench --only neural`: steps per processor second of agents with a network, on one core.

It compares them with a Python loop of the usual form (`backcast.cli.plain_dqn`), and measures the time to a first step.
"""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium

from backcast.agents import Agent, agent
from backcast.cli.start_up import seconds_of
from backcast.cli.turns import take_turns
from backcast.drivers.run import run
from backcast.drivers.train import train
from backcast.networks import mlp
from backcast.networks.backend import require_jax
from backcast.worlds import World, cartpole, maze

Row = dict[str, Any]
_SETTINGS: dict[str, dict[str, Any]] = {
    "64-64, batch 32 every 4": {"network": mlp(64, 64), "batch": 32, "every": 4, "alpha": 1e-3},
    "120-84, batch 128 every 10": {"network": mlp(120, 84), "batch": 128, "every": 10, "alpha": 2.5e-4},
}
_COMMON: dict[str, Any] = {"memory": 10_000, "target_every": 500, "epsilon": 0.3, "schedule": "constant"}
_AGENT = "bc.agent({kind!r}, network=bc.networks.mlp(64, 64))"
_FIRST = f"import backcast as bc; bc.run(bc.worlds.{{world}}, {_AGENT}, steps=1, seeds=1)"
_IMPORT = "from backcast.networks.backend import require_jax; require_jax(); import jax, optax, equinox"


def neural(repeats: int, quick: bool) -> Iterator[Row]:
    """All figures of agents with a network; speeds are steps per processor second.

    Args:
        repeats: number of measurements of each, of which the best counts.
        quick: whether to make shorter runs.
    """
    steps = 2_000 if quick else 20_000
    with _on_one_core():
        require_jax()
        yield from against_a_plain_loop(repeats, steps)
        yield from in_the_maze(repeats, steps // 4)
        yield from many_seeds(repeats, steps // 4)
        yield from first_steps()


@contextlib.contextmanager
def _on_one_core() -> Iterator[None]:
    """Keep the process on one core, where the system can.

    XLA has a thread for each core that is allowed. While one run is made, the others look for work without sleeping,
    which would count as processor time.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def against_a_plain_loop(repeats: int, steps: int) -> Iterator[Row]:
    """CartPole: `backcast.run`, `backcast.train` in Gymnasium's environment, and plain loops there, interleaved."""
    from backcast.cli.plain_dqn import PlainDQN

    world, env = cartpole(), gymnasium.make("CartPole-v1")
    for label, settings in _SETTINGS.items():
        chosen = agent("q", **settings, **_COMMON)
        plain, lean = (PlainDQN("CartPole-v1", chosen, world.discount, lean) for lean in (False, True))
        program, stepwise, loop, leaner = take_turns(
            repeats,
            partial(_speed_of_runs, world, chosen, steps, 1),
            partial(_speed_of_training, env, chosen, steps),
            partial(_speed_of_a_plain_loop, plain, steps),
            partial(_speed_of_a_plain_loop, lean, steps),
        )
        for how, speed in (("bc.run", program), ("bc.train", stepwise)):
            row = {"section": "neural", "world": f"cartpole, {how}", "agent": label, "steps_per_second": speed}
            yield {**row, "plain_loop": loop, "ratio": speed / loop, "lean_loop": leaner, "lean_ratio": speed / leaner}


def in_the_maze(repeats: int, steps: int) -> Iterator[Row]:
    """DQN and contrastive planning in the paper's maze, one-hot: batch 32, an update every step, 64 candidates."""
    world, net = maze(), mlp(64, 64)
    agents = [
        agent("q", network=net),
        *(agent(kind, network=net, candidates=64) for kind in ("backward", "forward")),
        agent("replay", network=net, sample=96),
    ]
    speeds = take_turns(repeats, *(partial(_speed_of_runs, world, chosen, steps, 1) for chosen in agents))
    for chosen, speed in zip(agents, speeds, strict=True):
        yield {"section": "neural", "world": world.name, "agent": chosen.name, "steps_per_second": speed}


def many_seeds(repeats: int, steps: int) -> Iterator[Row]:
    """Steps per processor second of 16 seeds, and of one."""
    world, chosen = maze(), agent("q", network=mlp(64, 64))
    many, one = take_turns(
        repeats,
        partial(_speed_of_runs, world, chosen, steps // 4, 16),
        partial(_speed_of_runs, world, chosen, steps, 1),
    )
    row = {"section": "neural", "world": world.name, "agent": "q, 16 seeds", "steps_per_second": many}
    yield {**row, "one_seed": one, "ratio": many / one}


def first_steps() -> Iterator[Row]:
    """Processor seconds of a process that takes one step, with an empty and with a warm cache."""
    for label, code in (
        ("import of JAX", _IMPORT),
        ("q in maze", _FIRST.format(world="maze()", kind="q")),
        ("backward in maze", _FIRST.format(world="maze()", kind="backward")),
        ("q in cartpole", _FIRST.format(world="cartpole()", kind="q")),
    ):
        with tempfile.TemporaryDirectory() as directory:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "BACKCAST_CACHE_DIR": directory}
            cold, warm = (seconds_of(code, environment) for _ in range(2))
        yield {"section": "neural", "agent": f"first step, {label}", "cold_seconds": cold, "warm_seconds": warm}


def _speed_of_runs(world: World, chosen: Agent, steps: int, seeds: int) -> float:
    start = time.process_time()
    run(world, chosen, steps=steps, seeds=seeds, workers=1, models=False)
    return steps * seeds / (time.process_time() - start)


def _speed_of_training(env: "gymnasium.Env[Any, Any]", chosen: Agent, steps: int) -> float:
    start = time.process_time()
    train(env, chosen, steps=steps, seed=0, progress=False)
    return steps / (time.process_time() - start)


def _speed_of_a_plain_loop(plain: Any, steps: int) -> float:
    start = time.process_time()
    plain.run(steps, 0)
    return steps / (time.process_time() - start)
