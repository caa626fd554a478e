"""What one sees while a study runs: a progress bar on a terminal, plain lines elsewhere, JSON for machines."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from backcast.studies.runner import Progress as Step

Watch = Callable[[Step], None]


def watching(name: str, quiet: bool, as_json: bool) -> contextlib.AbstractContextManager[Watch]:
    """What is told of each finished unit, as a context that cleans up after itself."""
    if quiet:
        return contextlib.nullcontext(lambda step: None)
    if as_json:
        return contextlib.nullcontext(lambda step: print(json.dumps({"study": name, **vars(step)}), flush=True))
    console = Console(stderr=True)
    return _bar(name, console) if console.is_terminal else _lines(name)


@contextlib.contextmanager
def _bar(name: str, console: Console) -> Iterator[Watch]:
    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]:>18}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[label]}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(name, total=None, speed="", label="")

        def watch(step: Step) -> None:
            progress.update(task, total=step.total, completed=step.done, speed=_speed(step), label=step.label)

        yield watch


@contextlib.contextmanager
def _lines(name: str) -> Iterator[Watch]:
    """A line when a study begins and ends, and at most one every ten seconds between."""
    last = time.monotonic()

    def watch(step: Step) -> None:
        nonlocal last
        if step.done == step.total or time.monotonic() - last > 10:
            last = time.monotonic()
            left = step.seconds / step.done * (step.total - step.done)
            words = f"{step.done} of {step.total} units, {_speed(step)}, {left:.0f} s left"
            print(f"{name}: {words}", file=sys.stderr, flush=True)

    yield watch


def _speed(step: Step) -> str:
    return f"{step.steps / max(step.seconds, 1e-9) / 1e6:.1f} million steps/s"
