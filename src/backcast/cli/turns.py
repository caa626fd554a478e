"""Interleaved measurements for `backcast bench`, so that a busy moment of the machine affects all of them."""

from collections.abc import Callable


def take_turns(repeats: int, *measures: Callable[[], float]) -> list[float]:
    """Return the best of several interleaved measurements of each, after one that does not count."""
    for measure in measures:
        measure()
    results = [[measure() for measure in measures] for _ in range(repeats)]
    return [max(column) for column in zip(*results, strict=True)]
