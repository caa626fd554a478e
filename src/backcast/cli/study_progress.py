"""Progress of a running study: a progress bar on a terminal, plain lines elsewhere, JSON for machines."""

import contextlib
import json
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from backcast.studies.runner import Progress

Watch = Callable[[Progress], None]

EVERY = 10.0  # seconds between lines
WORKERS = 8  # most workers that are shown one by one


def watching(name: str, quiet: bool, as_json: bool) -> contextlib.AbstractContextManager[Watch]:
    """A context manager that shows the progress of a study."""
    if quiet:
        return contextlib.nullcontext(lambda progress: None)
    if as_json:
        return contextlib.nullcontext(lambda progress: print(json.dumps(_as_dict(name, progress)), flush=True))
    console = Console(stderr=True)
    return _bar(name, console) if console.is_terminal else _lines(name)


def in_words(progress: Progress) -> str:
    """Done, failed, running, rate and time left.

    Example:
        >>> import time
        >>> in_words(Progress(total=200, done=50, failed=1, steps=4_000_000, started=time.monotonic() - 2))
        '50 of 200 runs, 6 s left, 1 failed, 25 runs/s, 2.0 million steps/s'
    """
    seconds = max(progress.seconds, 1e-9)
    rate = progress.done / seconds
    parts = [f"{progress.done:,} of {progress.total:,} runs"]
    if progress.done + progress.failed < progress.total:
        parts += [f"{_duration(progress.seconds_left)} left"]
    parts += [f"{progress.failed:,} failed"] if progress.failed else []
    running = progress.running()
    parts += [f"{len(running)} running"] if running else []
    parts += [f"{rate:,.0f} runs/s" if rate >= 10 else f"{rate:.2g} runs/s"]
    parts += [f"{progress.steps / seconds / 1e6:.1f} million steps/s"]
    return ", ".join(parts)


def by_worker(progress: Progress) -> list[str]:
    """What each worker has done and is doing; of many workers, those that did the most."""
    running = progress.running()
    names = sorted({*progress.by, *running}, key=lambda name: (-progress.by[name], name))
    lines = [f"{name:<24} {progress.by[name]:>9,} runs  {running.get(name, '')}" for name in names[:WORKERS]]
    return lines + ([f"and {len(names) - WORKERS} more workers"] if len(names) > WORKERS else [])


def _as_dict(name: str, progress: Progress) -> dict[str, object]:
    left = progress.seconds_left
    return {
        "study": name,
        "total": progress.total,
        "done": progress.done,
        "failed": progress.failed,
        "steps": progress.steps,
        "seconds": round(progress.seconds, 3),
        "seconds_left": round(left, 1) if math.isfinite(left) else None,
        "workers": dict(progress.by),
        "running": progress.running(),
        "label": progress.label,
    }


@contextlib.contextmanager
def _bar(name: str, console: Console) -> Iterator[Watch]:
    with _WorkerBars(console=console) as bars:
        task = bars.add_task(name, total=None)

        def watch(progress: Progress) -> None:
            bars.shown = progress
            bars.update(task, total=progress.total, completed=progress.done + progress.failed)

        yield watch


class _WorkerBars(Bars):
    """A bar for the study, its progress in words, and a line for each worker."""

    def __init__(self, console: Console) -> None:
        self.shown: Progress | None = None
        super().__init__(
            TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn(), console=console
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.shown is not None:
            lines = [in_words(self.shown), *by_worker(self.shown)]
            yield Text("\n".join(f"  {line}" for line in lines), no_wrap=True, overflow="ellipsis")


@contextlib.contextmanager
def _lines(name: str) -> Iterator[Watch]:
    """Print a line every ten seconds, also while waiting, and one at the end, with the work of each worker."""
    shown: list[Progress] = []
    over = threading.Event()

    def watch(progress: Progress) -> None:
        shown[:] = [progress]
        if progress.done + progress.failed == progress.total:
            over.set()
            _print_lines(name, progress, [] if len(progress.by) < 2 else by_worker(progress))

    def repeat() -> None:
        while not over.wait(EVERY):
            for progress in shown:
                _print_lines(name, progress, by_worker(progress))

    reminder = threading.Thread(target=repeat, daemon=True)
    reminder.start()
    try:
        yield watch
    finally:
        over.set()
        reminder.join()


def _print_lines(name: str, progress: Progress, workers: list[str]) -> None:
    print(f"{name}: {in_words(progress)}", *workers, sep="\n    ", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    """Seconds in words: 45 s, 12 min, 3 h 20 min, 2 days 4 h.

    Examples:
        >>> [_duration(seconds) for seconds in (45, 725, 12_000, 187_200, float("inf"))]
        ['45 s', '12 min', '3 h 20 min', '2 days 4 h', 'unknown time']
    """
    if not math.isfinite(seconds):
        return "unknown time"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if hours < 48 else f"{hours // 24} days {hours % 24} h"
