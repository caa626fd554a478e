"""A process that performs units for another one: it reads them from its input and writes outcomes to its output.

    python -m backcast.studies.engines.child

First it says that it is ready, then of each unit how far it is compiled, when that is done and what came of it. It ends
when its input does, also in the midst of a unit: nobody is left who would want it.
"""

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO

COMPILED = "compiled"


def main() -> None:
    """Perform units until the input ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a unit prints must not be taken for an outcome
    requests: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    from backcast.core.waiting import listening
    from backcast.studies.units import compile_for, perform

    compiled = set()
    _reply(replies, "ready")
    while True:
        unit = requests.get()
        what = unit.cell.world, unit.cell.agent.kind, unit.cell.agent.settings
        if what not in compiled:
            with listening(lambda compilation: _reply(replies, str(compilation))):
                compile_for(unit)
            compiled.add(what)
        _reply(replies, COMPILED)
        _reply(replies, perform(unit))


def _reply(replies: BinaryIO, what: object) -> None:
    try:
        pickle.dump(what, replies)
        replies.flush()
    except BrokenPipeError:
        os._exit(1)


def _read(source: BinaryIO, requests: "SimpleQueue[Any]") -> None:
    while True:
        try:
            requests.put(pickle.load(source))
        except EOFError:
            os._exit(0)


if __name__ == "__main__":
    main()
