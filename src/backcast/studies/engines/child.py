"""A process that performs units for another one: it reads them from its input and writes outcomes to its output.

    python -m backcast.studies.engines.child

First it says that it is ready. It ends when its input does, also in the midst of a unit: nobody is left who would want
it.
"""

import os
import pickle
import signal
import sys
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO


def main() -> None:
    """Perform units until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a unit prints must not be taken for an outcome
    requests: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()
    from backcast.studies.units import perform

    _reply(replies, "ready")
    while True:
        _reply(replies, perform(requests.get()))


def _reply(replies: BinaryIO, what: Any) -> None:
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
