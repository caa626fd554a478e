"""A process that runs two agents interpreted until they are compiled: `python -m backcast.lab.interpreter`.

It reads a line of JSON, executes it, and writes the length of its answer (four bytes), the length of the text in it
(four bytes), the text (JSON: the positions of the agents, and the result), and the bytes of a frame if one was
requested. The first line is a scene, with the modules that registered its kinds. The process ends with its input.
"""

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

HEAD = struct.Struct("<II")  # the lengths of an answer and of the text in it


def main() -> None:
    """Answer until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of modules must not be mistaken for an answer
    from backcast.core.errors import InputError
    from backcast.lab import lockstep, pair, scene  # noqa: F401  while nobody waits yet

    serve: Callable[[dict[str, Any]], tuple[dict[str, Any], bytes]] = _open
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told, content = serve(asked)
        except InputError as error:
            told, content = {"refused": str(error)}, b""
        if isinstance(told.get("serve"), _Pair):
            serve = told.pop("serve").do
        text = json.dumps(told, allow_nan=False).encode()
        out.write(HEAD.pack(len(text) + len(content), len(text)) + text + content)
        out.flush()


def _open(asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    from backcast.lab.config import read_config
    from backcast.lab.lockstep import Lockstep
    from backcast.lab.pair import Here
    from backcast.lab.scene import Scene
    from backcast.studies.plugins import import_plugins

    import_plugins(asked["plugins"])
    pair = _Pair(Here(Lockstep(Scene(read_config(asked["config"])))))
    return {"serve": pair, "moment": pair.here.moment}, b""


class _Pair:
    """Both agents and their trajectories."""

    def __init__(self, here: Any) -> None:
        self.here = here
        self._way: Callable[[float], bool] = lambda seconds: True

    def do(self, asked: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Process a line; return the state of both agents."""
        told, content = getattr(self, f"_{asked.pop('do')}")(**asked)
        return {**told, "moment": self.here.moment}, content

    def _play(self, ticks: int, seconds: float) -> tuple[dict[str, Any], bytes]:
        self.here.play(ticks, seconds)
        return {}, b""

    def _aim(self, at: int, episode: int) -> tuple[dict[str, Any], bytes]:
        self._way = self.here.way_to(at, episode)
        return {}, b""

    def _go(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        return {"there": self._way(seconds)}, b""

    def _frame(self, state: dict[str, Any], known: int) -> tuple[dict[str, Any], bytes]:
        content, known = self.here.frame(state, known)
        return {"known": known}, content

    def _answer(self, s: int) -> tuple[dict[str, Any], bytes]:
        return {"answer": self.here.answer(s)}, b""


if __name__ == "__main__":
    main()
