"""Opening a scene: slow work in threads, which check between steps whether it is still needed."""

import json
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backcast.lab import memory
from backcast.lab.compile_in_child import AbandonedError, NotCompiledError, compile_elsewhere, loaded, with_kernels
from backcast.lab.config import read_config
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.presets import PRESETS
from backcast.lab.scene import Scene

_WARMING = 2.0  # seconds for which the first episode is run, to load all kernels


class Opening:
    """A requested scene, until its agents are compiled or it is abandoned.

    Args:
        config: the scene, as the page has sent it.

    Attributes:
        scene: once it is made.
        words: how far the compiler is, if something has to be compiled for it.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._config, self.words = config, ""
        self._stop = np.zeros(1, dtype=np.uint8)
        self.scene: Scene

    def abandon(self) -> None:
        """Stop soon, unless it is made already; a kernel being compiled in this process is finished first."""
        self._stop[0] = 1

    @property
    def given(self) -> dict[str, Any]:
        """The scene as plain data, for other processes."""
        return self.scene.config.given()

    def describe(self) -> str:
        """Make the scene; return the page's data on it."""
        memory.refuse_if_full()
        self._refuse_abandoned()
        self.scene = Scene(read_config(self._config))
        self._refuse_abandoned()
        return json.dumps(self.scene.describe(), allow_nan=False)

    def loaded(self) -> Lockstep | None:
        """The agents, ready to run; None if something has to be compiled for them."""
        self._refuse_abandoned()
        try:
            return loaded(partial(warmed_up, self.scene, self._stop))
        except NotCompiledError:
            return None
        finally:
            memory.give_back()

    def compiled(self) -> Lockstep:
        """The agents, ready to run, after another process has compiled what they need."""
        self._refuse_abandoned()
        try:
            return with_kernels("open", self.given, self._stop, partial(warmed_up, self.scene, self._stop), self._take)
        finally:
            memory.give_back()

    def _take(self, words: str) -> None:
        self.words = words

    def _refuse_abandoned(self) -> None:
        if self._stop[0]:
            raise AbandonedError


class Ahead:
    """The panels that a page may open next: their agents are compiled while it shows another.

    Args:
        given: the scene on the screen; if it is not a panel, nothing is compiled.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        panels = [read_config(preset.config).given() for preset in PRESETS]
        place = panels.index(given) if given in panels else None
        self._panels = [] if place is None else panels[place + 1 :] + panels[:place]
        self._stop = np.zeros(1, dtype=np.uint8)

    def compile(self) -> None:
        """Compile for one panel after the other."""
        while self._panels and not self._stop[0]:
            panel = self._panels.pop(0)
            if panel not in _compiled_ahead and compile_elsewhere("open", panel, self._stop):
                _compiled_ahead.append(panel)

    def finish(self) -> None:
        """Start no further panel: the page has opened one, perhaps the one being compiled."""
        self._panels = []

    def stop(self) -> None:
        """Stop soon: the page is closed."""
        self.finish()
        self._stop[0] = 1


_compiled_ahead: list[dict[str, Any]] = []  # panels


def warmed_up(scene: Scene, stop: NDArray[np.uint8]) -> Lockstep:
    """The agents of a scene before their first step, after a trial run has loaded or compiled their kernels."""
    lockstep = Lockstep(scene, stop)
    lockstep.tick()
    walk = lockstep.way_to(NEVER, 0)
    walk(0.0)  # compiles, which takes longer than there is time for
    walk(_WARMING)
    lockstep.start_again()
    return lockstep
