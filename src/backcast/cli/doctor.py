"""`backcast doctor`: show this installation and check its results."""

import os
import time
from collections.abc import Callable

import numpy as np

from backcast import exact, worlds
from backcast.agents import Setup, agent
from backcast.core.compiling import cache_directory, cache_trouble
from backcast.drivers.loop import observe
from backcast.drivers.run import run
from backcast.studies.store import machine
from backcast.twins.dense import DenseTwin


def examine() -> bool:
    """Print versions, cores and directories, and run the self-checks; return whether all passed."""
    for name, value in machine().items():
        print(f"{name:<10} {value or '(none)'}")
    print(f"{'cores':<10} {os.cpu_count()}")
    trouble = cache_trouble()
    print(f"{'cache':<10} {cache_directory()}{f' (not used: {trouble})' if trouble else ''}\n")
    passed = [_passes(name, check) for name, check in CHECKS.items()]
    return all(passed)


def _passes(name: str, check: Callable[[], str]) -> bool:
    start = time.perf_counter()
    try:
        said, good = check(), True
    except Exception as error:
        said, good = f"{type(error).__name__}: {error}", False
    print(f"{'ok  ' if good else 'FAIL'} {name}: {said} ({time.perf_counter() - start:.1f} s)")
    return good


def _theory() -> str:
    world = worlds.chain((20, 10, 5))
    gap = max(equivalence.gap for equivalence in exact.equivalences(world.mdp))
    assert gap < 1e-10, f"forward and backward view differ by {gap}"
    return f"forward and backward view agree to {gap:.0e}"


def _kernels() -> str:
    world, chosen = worlds.maze(), agent("backward", frame="previous")
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    parts, twin = chosen.build(setup), DenseTwin(chosen, setup)
    rng, table, rates, s = np.random.default_rng(0), world.steps_table, chosen.rates(2)[1], 16
    for step in range(1000):
        a = int(rng.integers(4))
        outcome = table.draw_outcome(s, a, rng.random())
        s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
        ends = bool(table.terminal[s2])
        observe(parts, rates, s, a, r, s2, ends, step == 0)
        twin.observe(rates, s, a, r, s2, ends, step == 0)
        s = 16 if ends else s2
    gap = float(np.abs(parts.values.as_array() - twin.q).max())
    assert gap < 1e-10, f"kernel and dense twin differ by {gap}"
    return f"kernel and dense NumPy twin agree to {gap:.0e} after 1,000 steps"


def _workers() -> str:
    one, two = (run(worlds.maze(), agent("forward"), 50, 8, workers=n) for n in (1, 2))
    assert np.array_equal(one.values, two.values), "the result depends on the number of workers"
    return "one worker and two give the same bytes"


def _speed() -> str:
    world, chosen = worlds.maze(), agent("backward")
    run(world, chosen, 2, 2)
    start = time.perf_counter()
    runs = run(world, chosen, 100, 400)
    return f"{runs.steps.sum() / (time.perf_counter() - start) / 1e6:.1f} million steps per second on the paper's maze"


CHECKS = {"theory": _theory, "kernels": _kernels, "workers": _workers, "speed": _speed}
