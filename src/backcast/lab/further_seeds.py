"""The mean over further seeds, computed in the background while the page shows one of them."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.core.arrays import Vector
from backcast.core.errors import InputError
from backcast.drivers.run import one_run, prepare
from backcast.lab.compile_in_child import AbandonedError, with_kernels
from backcast.lab.scene import Scene
from backcast.studies.statistics import band

SEEDS = 100
_MOST_SECONDS = 120.0  # most seconds of computing for one page
_TELL_EVERY = 0.4  # seconds
_RESAMPLES = 1_000  # few, because the band is redrawn frequently
_background = ThreadPoolExecutor(1, thread_name_prefix="backcast-further")  # for one page at a time


class Further:
    """The seeds after that of the scene, run for both agents from `start` on, until it is stopped.

    scene: the scene on the screen.
    tell: called at intervals, in another thread, with a report.
    """

    def __init__(self, scene: Scene, tell: Callable[[dict[str, Any]], Any]) -> None:
        self.scene, self.tell = scene, tell
        self._stop = np.zeros(1, dtype=np.uint8)
        self._found: tuple[list[Vector], list[Vector]] = ([], [])
        self._done: Future[None] | None = None

    def start(self) -> None:
        """Start after the seeds of other pages are done."""
        self._done = _background.submit(self._work)

    def stop(self) -> None:
        """Stop soon, also in the middle of a run or before the start."""
        self._stop[0] = 1
        if self._done is not None:
            self._done.cancel()

    def wait(self) -> None:
        """Wait until it has ended; raise its errors."""
        if self._done is not None and not self._done.cancelled():
            self._done.result()

    def _work(self) -> None:
        """Run seed after seed, and report at intervals. A timer stops it after too long."""
        timer = threading.Timer(_MOST_SECONDS, self.stop)
        timer.daemon = True
        timer.start()
        try:
            self._run_seeds()
        except AbandonedError:
            pass
        except InputError as error:
            self.tell({"is": "error", "message": f"further seeds: {error}", "about": "further"})
        except Exception as error:
            self.tell({"is": "error", "message": f"further seeds: {error}", "about": "further"})
            raise
        finally:
            timer.cancel()

    def _run_seeds(self) -> None:
        if self.scene.config.changes:
            raise InputError("the world was changed by hand at a moment of this seed; other seeds have no such moment")
        config, begin = self.scene.config.given(), partial(begin_runs, self.scene, self._stop)
        with_kernels("further", config, self._stop, begin)
        told = 0.0
        for seed in range(self.scene.config.seed + 1, self.scene.config.seed + 1 + SEEDS):
            curves = [_curve(self.scene, agent, seed, self.scene.episodes, self._stop) for agent in self.scene.agents]
            if self._stop[0]:
                break
            for found, curve in zip(self._found, curves, strict=True):
                found.append(curve)
            if time.monotonic() - told > _TELL_EVERY:
                self.tell(self.report())
                told = time.monotonic()
        if self._found[0]:
            self.tell(self.report())

    def report(self) -> dict[str, Any]:
        """Means over the seeds so far, with 95 % intervals."""
        return {
            "is": "further",
            "done": len(self._found[0]),
            "of": SEEDS,
            "agents": [_band(np.stack(found)) for found in self._found],
        }


def begin_runs(scene: Scene, stop: NDArray[np.uint8]) -> None:
    """Run no episodes with each agent, which loads or compiles its kernels."""
    for agent in scene.agents:
        if not stop[0]:
            prepare(scene.family, agent, scene.config.seed + 1, scene.limit)


def _curve(scene: Scene, agent: Agent, seed: int, episodes: int, stop: NDArray[np.uint8]) -> Vector:
    """The metric of the scene in each of the first episodes."""
    schedule = agent.rates(scene.episodes)[:episodes]
    record, _, _ = one_run(scene.family, agent, seed, schedule, scene.limit, stop)
    return np.asarray(getattr(record, scene.metric), dtype=np.float64)


def _band(curves: Vector) -> dict[str, list[float | None]]:
    """The intervals of curves (seeds, episodes); None if a run diverged, or with a single seed."""
    lines = np.full((3, curves.shape[1]), np.nan)
    known = np.isfinite(curves).all(axis=0)
    if known.any():
        lines[:, known] = band(curves[:, known], seed=0, resamples=_RESAMPLES)
    named = zip(("mean", "low", "high"), lines, strict=True)
    return {name: [float(y) if np.isfinite(y) else None for y in line] for name, line in named}
