"""How speeds are compared in `backcast bench`: measurements take turns, so that a busy moment hits all of them."""

from collections.abc import Callable


def take_turns(repeats: int, *measures: Callable[[], float]) -> list[float]:
    """The best of several measurements of each, after one that does not count."""
    for measure in measures:
        measure()
    results = [[measure() for measure in measures] for _ in range(repeats)]
    return [max(column) for column in zip(*results, strict=True)]
