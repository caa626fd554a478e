"""Progress bars for long computations in Python."""

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[], None]


@contextlib.contextmanager
def watching(what: str, total: int, wanted: bool | None) -> Iterator[Advance]:
    """Show a progress bar on stderr; yield a function to call after each of `total` steps.

    Args:
        what: text before the bar.
        total: number of steps.
        wanted: whether to show the bar; None: only if stderr is a terminal.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task(what, total=total)
        yield lambda: bars.advance(task)
