"""A scene in the making: long work, done by a thread that asks between its pieces whether anybody still wants it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from backcast.lab import memory
from backcast.lab.compile_in_child import AbandonedError, with_kernels
from backcast.lab.config import read_config
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.scene import Scene

T = TypeVar("T")

_WARMING = 2.0  # seconds of the first episode that are walked, so that all kernels are loaded


class Opening:
    """What a page wants to see, until it is made or abandoned.

    Args:
        config: the scene, as the page has sent it.

    Attributes:
        words: how far it is, if something has to be compiled for it.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._config, self.words = config, ""
        self._stop = np.zeros(1, dtype=np.uint8)

    def abandon(self) -> None:
        """End soon, unless it is made already; a kernel that is being compiled in this process is compiled first."""
        self._stop[0] = 1

    def make(self) -> tuple[Lockstep, str]:
        """The agents, ready to go, and what the page is told of the scene; AbandonedError if nobody wants it."""
        memory.refuse_if_full()
        try:
            return self._make()
        finally:
            memory.give_back()

    def _make(self) -> tuple[Lockstep, str]:
        scene = self._if_wanted(lambda: Scene(read_config(self._config)))
        warm_up = partial(warmed_up, scene, self._stop)
        load = partial(with_kernels, "open", scene.config.given(), self._stop, warm_up, self._take)
        lockstep = self._if_wanted(load)
        told = self._if_wanted(lambda: json.dumps(scene.describe(), allow_nan=False))
        return lockstep, told

    def _take(self, words: str) -> None:
        self.words = words

    def _if_wanted(self, piece: Callable[[], T]) -> T:
        if self._stop[0]:
            raise AbandonedError
        return piece()


def warmed_up(scene: Scene, stop: NDArray[np.uint8]) -> Lockstep:
    """The agents of a scene at its beginning; some first steps have loaded or compiled all that is needed."""
    lockstep = Lockstep(scene, stop)
    lockstep.tick()
    walk = lockstep.way_to(NEVER, 0)
    walk(0.0)  # compiles, which takes longer than there is time for
    walk(_WARMING)
    lockstep.start_again()
    return lockstep
