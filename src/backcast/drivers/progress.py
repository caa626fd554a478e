"""Progress on the terminal, for what takes long in Python."""

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[], None]


@contextlib.contextmanager
def watching(what: str, total: int, wanted: bool | None) -> Iterator[Advance]:
    """A bar on stderr, and a function that is called when one of `total` steps is done.

    Args:
        what: is written before the bar.
        total: how many steps there are.
        wanted: whether there is a bar; None: if stderr is a terminal.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task(what, total=total)
        yield lambda: bars.advance(task)
