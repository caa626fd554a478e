"""`backcast bench`: speed, compared with slower implementations of the same in the same run.

Machines are noisy and differ, so look at the ratios. Each figure is the best of several short measurements,
interleaved with those of what it is compared with.
"""

import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from backcast.agents import Agent, agent
from backcast.agents.kinds import KINDS
from backcast.agents.setup import Setup
from backcast.cli.fitted_costs import costs
from backcast.cli.neural_speed import neural
from backcast.cli.start_up import start_up
from backcast.cli.turns import take_turns
from backcast.core.errors import InputError, nearest
from backcast.drivers.run import one_run, run
from backcast.features import random_binary
from backcast.studies.overhead import overheads
from backcast.twins.dense import DenseTwin
from backcast.twins.linear import LinearTwin
from backcast.worlds import World, chain, maze, random_walk

_CC = ("cc", "-O3", "-march=native", "-ffast-math")
DENSE_PROGRAMS = Path(__file__).parent / "dense"
_GRIDS = (50, 200, 1000)
_WALKED = 4_000_000  # steps in each of them, about
_GROWING: list[tuple[str, dict[str, Any]]] = [
    ("q", {"alpha": 0.5}),
    ("backward", {"alpha": 0.5, "frame": "previous"}),
    ("forward", {"alpha": 0.5, "frame": "current"}),
    ("small-backups", {}),
    ("dyna", {"alpha": 0.5}),
]
_WORLDS = ((maze(), 100), (maze(slip=0.5), 100), (chain((500, 50, 5)), 1500), (chain((5, 50, 500)), 1500))
_TWINS = ("td", "q", "forward", "backward", "true-forward", "true-backward")
_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "forward": [{"model": "counts"}, {"model": "counts", "horizon": 3}, {"sample": 5}, {"model": "counts", "top": 3}],
    "backward": [
        {"model": "counts"},
        {"horizon": 3},
        {"model": "counts", "horizon": 3},
        {"model": "counts", "lam": 0.8},
        {"lam": 0.8, "lam_by": "td"},
        {"conditioned": True},
        {"sample": 5},
        {"model": "counts", "sample": 5},
        {"model": "counts", "top": 5},
        {"model": "counts", "depth": 2},
        {"model": "counts", "forget": 0.05},
        {"model": "counts", "importance": True},
    ],
    "td": [{"horizon": 10}],
    "q": [{"horizon": 10}],
    "sweeping": [{"variant": "peng-williams"}, {"variant": "mcmahan-gordon"}],
    "td-lambda": [{"traces": "replacing"}],
    "q-lambda": [{"traces": "replacing"}],
}
_OWN = tuple(name for name, kind in KINDS.items() if kind.is_builtin)
_USUAL: list[tuple[str, dict[str, Any]]] = [(kind, {}) for kind in KINDS]
_EVERYTHING = [(kind, settings) for kind in KINDS for settings in [{}, *_VARIANTS.get(kind, [])]]
Row = dict[str, Any]
Worlds = tuple[tuple[World, int], ...]  # with episodes


def bench(
    anchors: Path | None = None, quick: bool = False, only: str | None = None, against: Path | None = None
) -> Iterator[Row]:
    """Yield one row for each measurement when it is finished; a row has a `section` and its figures.

    Args:
        anchors: a directory with dense_maze.c and dense_chain.c to compile and compare with; None: Backcast's own, if
            there is a C compiler.
        quick: fewer repetitions, two worlds, every kind with its default settings only, no world of a million states,
            no store of 100,000 units.
        only: one section. "costs", which updates a stored table, and "neural", which needs an extra, are measured only
            if named here.
        against: a checkout of another version, whose start-up is measured as well.
    """
    repeats, worlds = (2, _WORLDS[::2]) if quick else (5, _WORLDS)
    sections: dict[str, Callable[[], Iterator[Row]]] = {
        "kinds": lambda: kinds_on_the_papers_worlds(repeats, worlds),
        "value updates": lambda: value_updates(repeats, worlds, _USUAL if quick else _EVERYTHING),
        "costs": lambda: costs(repeats) if only else iter(()),
        "linear": lambda: linear(repeats, ("lms",) if quick else ("lms", "rls")),
        "dense C": lambda: against_c(anchors or DENSE_PROGRAMS, repeats) if anchors or only or _has_cc() else iter(()),
        "growth": lambda: growth(_GRIDS[:2] if quick else _GRIDS, repeats),
        "cores": lambda: cores(repeats),
        "start-up": lambda: start_up(("q",) if quick else _OWN, 1 if quick else 3, against),
        "engines": lambda: overheads(*((500, 2_000) if quick else (5_000, 100_000))),
        "lab": lambda: lab(repeats),
        "neural": lambda: neural(2 if quick else 3, quick) if only else iter(()),
    }
    if only is not None and only not in sections:
        raise InputError(f"--only: {only!r} given, expected one of {', '.join(sections)}{nearest(only, sections)}")
    for name, measure in sections.items():
        if only in (None, name):
            yield from measure()


def kinds_on_the_papers_worlds(repeats: int, worlds: Worlds) -> Iterator[Row]:
    """Steps per second of the paper's kinds on one core, and of their dense NumPy twins on random transitions."""
    for world, episodes in worlds:
        for chosen in _fitting(world, [agent(name) for name in _TWINS]):
            kernel, twin = take_turns(
                repeats,
                partial(_steps_per_second, world, chosen, episodes),
                partial(_twin_steps_per_second, world, chosen),
            )
            yield _row("kinds", world=world.name, agent=chosen.name, steps_per_second=kernel, dense_numpy=twin)


def value_updates(repeats: int, worlds: Worlds, agents: list[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
    """Nanoseconds per value update of every kind and setting, compared with the one-step model-free kind of the world.

    The other costs of a step (stepping the world, acting, measuring the error) are divided among its value updates.
    """
    for world, episodes in worlds:
        others = _fitting(world, [agent(kind, **settings) for kind, settings in agents])
        speeds = take_turns(repeats, *(partial(_updates_per_second, world, chosen, episodes) for chosen in others))
        for chosen, speed in zip(others, speeds, strict=True):
            yield {
                "section": "value updates",
                "world": world.name,
                "agent": chosen.name,
                "nanoseconds_per_update": 1e9 / speed,
                "updates_per_step": _updates_per_step(world, chosen, episodes),
                "ratio": speed / speeds[0],
            }


def linear(repeats: int, ways: tuple[str, ...]) -> Iterator[Row]:
    """Steps per second of linear agents with 1,000 features, and of a plain NumPy loop on the same transitions."""
    world, features = random_walk(), random_binary(d=1000, active=10)
    kinds: list[tuple[str, dict[str, Any], int]] = [("td", {}, 500)]
    kinds += [(kind, {"learn_by": how}, 50) for kind in ("forward", "backward") for how in ways]
    for kind, settings, episodes in kinds:
        chosen = agent(kind, features=features, alpha=0.02, **settings)
        kernel, plain = take_turns(
            repeats, partial(_steps_per_second, world, chosen, episodes), partial(_twin_steps_per_second, world, chosen)
        )
        yield _row("linear", world=world.name, agent=chosen.name, steps_per_second=kernel, plain_numpy=plain)


def against_c(anchors: Path, repeats: int) -> Iterator[Row]:
    """Steps per second on one core, compared with the dense C loops."""
    with tempfile.TemporaryDirectory() as directory:
        c_maze, c_chain = (_compile(anchors / f"dense_{name}.c", Path(directory)) for name in ("maze", "chain"))
        work: list[tuple[World, Agent, int, list[str]]] = [
            (maze(), agent("backward", frame="previous"), 100, [c_maze, "60"])
        ]
        for levels in ((500, 50, 5), (5, 50, 500)):
            for kind in ("backward", "forward"):
                work.append((chain(levels), agent(kind), 4000, [c_chain, kind, *map(str, levels)]))
        for world, chosen, episodes, command in work:
            ours, c = take_turns(
                repeats,
                partial(_steps_per_second, world, chosen, episodes),
                partial(_c_steps_per_second, command),
            )
            yield _row("dense C", world=world.name, agent=chosen.name, steps_per_second=ours, dense_c=c)


def growth(sides: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """Nanoseconds per step of a random walk over open grids of growing size: the cost depends on the degree.

    The agent walks at random, so that it gets everywhere and its tables are used as a whole.
    """
    worlds = [_open_grid(side) for side in sides]
    for kind, settings in _GROWING:
        chosen = agent(kind, epsilon=1.0, schedule="constant", **settings)
        speeds = take_turns(repeats, *(partial(_long_walk, world, chosen) for world in worlds))
        for side, speed in zip(sides, speeds, strict=True):
            yield {
                "section": "growth",
                "world": f"grid {side} × {side}",
                "agent": chosen.name,
                "nanoseconds_per_step": 1e9 / speed,
                "ratio": speeds[0] / speed,
                "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            }


def cores(repeats: int) -> Iterator[Row]:
    """Many seeds with one worker and on all cores, without models, as studies run them; the share that needs the GIL.

    That share is what a run of one episode in a world of few states takes, in processor time: the same calls of Python,
    and next to nothing to compute. Last, long runs, which need the lock not at all: what the cores can give.
    """
    short, drawn = agent("backward", frame="previous"), agent("backward")
    tiny_maze, tiny_chain = maze("S.G"), chain((3, 2, 2), seed=None)
    for label, world, tiny, chosen, episodes, seeds in (
        ("short runs", maze(), tiny_maze, short, 100, 2000),
        ("a chain for each seed", chain((500, 50, 5), seed=None), tiny_chain, drawn, 1500, 300),
        ("one chain", chain((500, 50, 5)), chain((3, 2, 2)), drawn, 1500, 300),
        ("long runs", maze(), tiny_maze, short, 20_000, 4),
    ):
        all_cores, one_worker, *per_second = take_turns(
            repeats,
            partial(_throughput, world, chosen, episodes, seeds, None),
            partial(_throughput, world, chosen, episodes, seeds, 1),
            partial(_runs_per_processor_second, world, chosen, episodes, seeds),
            partial(_runs_per_processor_second, tiny, chosen, 1, 2000),
        )
        row = _row(
            "cores",
            world=world.name,
            agent=f"{chosen.name}, {label}",
            steps_per_second=all_cores,
            one_worker=one_worker,
        )
        yield {**row, "percent_under_the_lock": 100 * per_second[0] / per_second[1]}


def lab(repeats: int) -> Iterator[Row]:
    """Speed of the lab's server for one page: frames per second of 70 ticks each, and unwatched ticks per second."""
    from backcast.lab.config import read_config
    from backcast.lab.frames import encode
    from backcast.lab.lockstep import Lockstep
    from backcast.lab.scene import Scene

    for world, given in (("maze", {}), ("grid 50 × 50", {"text": _grid_text(50)})):
        agents = {"left": {"kind": "forward"}, "right": {"kind": "backward"}}
        scene = Scene(read_config({"world": {"kind": "maze", **given}, **agents, "episodes": 5_000}))

        def frames(scene: Scene = scene, n: int = 60) -> float:
            pair, start = Lockstep(scene), time.perf_counter()
            for number in range(n):
                pair.play(70, 1.0)
                encode(pair, {"frame": number}, len(pair.curves[0].steps))
            return n / (time.perf_counter() - start)

        def ticks(scene: Scene = scene, n: int = 100_000) -> float:
            pair, start = Lockstep(scene), time.perf_counter()
            pair.play(n, 60.0)
            return pair.at / (time.perf_counter() - start)

        shown, unwatched = take_turns(repeats, frames, ticks)
        yield {"section": "lab", "world": world, "frames_per_second": shown, "ticks_per_second": unwatched}


def _row(section: str, *, world: str, agent: str, **speeds: float) -> Row:
    first, second = speeds.values()
    return {"section": section, "world": world, "agent": agent, **speeds, "ratio": first / second}


def _fitting(world: World, agents: list[Agent]) -> list[Agent]:
    """The agents that work in a world."""
    here = "prediction" if world.is_prediction else "control"
    return [
        chosen
        for chosen in agents
        if KINDS[chosen.kind].only in (None, here) and not (world.is_prediction and chosen.get("importance"))
    ]


def _limit(world: World) -> int:
    return world.max_steps or 2**62


def _steps_per_second(world: World, chosen: Agent, episodes: int) -> float:
    """Steps per second of `backcast.run` in one thread, with as many seeds as take 0.1 s; drawing worlds not timed."""
    drawn, seeds, seconds = world.draw(0), 1, 0.0
    while seconds < 0.1:
        start = time.perf_counter()
        steps = int(run(drawn, chosen, episodes, seeds, workers=1, models=False).steps.sum())
        seconds, seeds = time.perf_counter() - start, 2 * seeds
    return steps / seconds


def _updates_per_second(world: World, chosen: Agent, episodes: int) -> float:
    """Value updates per second, without making the agent's tables, which are large for models over many steps."""
    schedule = chosen.rates(episodes)
    seconds, updates, seed = 0.0, 0, 0
    while seconds < 0.05:
        record, _, took = one_run(world, chosen, seed, schedule, _limit(world))
        seconds, updates, seed = seconds + took, updates + int(record.made[-1]), seed + 1
    return updates / seconds


def _updates_per_step(world: World, chosen: Agent, episodes: int) -> float:
    record = one_run(world, chosen, 0, chosen.rates(episodes), _limit(world))[0]
    return float(record.made[-1] / record.steps.sum())


def _throughput(world: World, chosen: Agent, episodes: int, seeds: int, workers: int | None) -> float:
    start = time.perf_counter()
    runs = run(world, chosen, episodes, seeds, workers=workers, models=False)
    return float(runs.steps.sum() / (time.perf_counter() - start))


def _runs_per_processor_second(world: World, chosen: Agent, episodes: int, seeds: int) -> float:
    start = time.process_time()
    run(world, chosen, episodes, seeds, workers=1, models=False)
    return seeds / (time.process_time() - start)


def _long_walk(world: World, chosen: Agent) -> float:
    """Steps per second over a few million steps, without making the agent's tables."""
    episodes = max(1, _WALKED // (world.n_states * 8))  # a random walk reaches the goal after about 8 S steps
    record, _, took = one_run(world, chosen, 0, chosen.rates(episodes), _WALKED)
    return float(record.steps.sum() / took)


def _twin_steps_per_second(world: World, chosen: Agent) -> float:
    """The dense twin, fed with random transitions of the world; drawing them is not timed."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    twin = DenseTwin(chosen, setup) if chosen.get("features") is None else LinearTwin(chosen, setup)
    rng, table, rates = np.random.default_rng(0), world.steps_table, chosen.rates(2)[1]
    seconds, steps, s = 0.0, 0, -1
    while seconds < 0.1:
        first = s < 0
        s = int(table.draw_start(rng.random())) if first else s
        a = int(rng.integers(world.n_actions))
        outcome = table.draw_outcome(s, a, rng.random())
        s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
        ends = bool(table.terminal[s2])
        start = time.perf_counter()
        twin.observe(rates, s, a, r, s2, ends, first)
        seconds += time.perf_counter() - start
        s = -1 if ends else s2
        steps += 1
    return steps / seconds


def _compile(source: Path, directory: Path) -> str:
    if not source.exists():
        raise InputError(f"anchors: no file {source}; expected a directory with dense_maze.c and dense_chain.c")
    if not _has_cc():
        raise InputError("anchors: there is no C compiler (cc), and the C programs must be compiled on this machine")
    program = directory / source.stem
    subprocess.run([*_CC, "-o", str(program), str(source), "-lm"], check=True)
    return str(program)


def _has_cc() -> bool:
    return shutil.which(_CC[0]) is not None


def _c_steps_per_second(command: list[str]) -> float:
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.split()[-1])


def _open_grid(side: int) -> World:
    """An open grid whose start is in the middle and whose goal is in a corner."""
    return maze(_grid_text(side), max_steps=None)


def _grid_text(side: int) -> str:
    rows = [["."] * side for _ in range(side)]
    rows[0][0], rows[side // 2][side // 2] = "G", "S"
    return "\n".join(map("".join, rows))
