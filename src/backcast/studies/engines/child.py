"""A process that performs units for its parent: it reads them from its input and writes outcomes to its output.

    python -m backcast.studies.engines.child

It reports that it is ready and then, for each unit, the progress of compilation, its end, and the outcome. It ends when
its input does, even in the middle of a unit, because nobody is left to receive it.
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
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of a unit must not be mistaken for an outcome
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
