"""Report runs that diverged."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from backcast.core.arrays import Indices


class DivergenceResults(Protocol):
    """What this module needs of a study."""

    @property
    def worlds(self) -> Sequence[str]:
        """The names of its worlds."""

    def agents(self, world: str) -> Sequence[str]:
        """The names of the agents that were run in a world."""

    def diverged(self, world: str, agent: str) -> Indices:
        """The step at which the values of each seed diverged, (seeds,), or 0."""


def divergences(results: DivergenceResults) -> Iterator[tuple[str, str, str]]:
    """Yield each world and agent with runs that diverged, and a sentence."""
    for world in results.worlds:
        for agent in results.agents(world):
            words = in_words(results.diverged(world, agent))
            if words:
                yield world, agent, words


def in_words(diverged: Indices) -> str:
    """Say in how many seeds values diverged, and when first; empty if none did.

    Args:
        diverged: (seeds,), the step at which it happened, counted from 1; 0 where it did not.

    Examples:
        >>> import numpy as np
        >>> in_words(np.array([0, 2345, 1234]))
        'diverged in 2 of 3 seeds, first at step 1,234'
        >>> in_words(np.array([0, 7]))
        'diverged in 1 of 2 seeds, at step 7'
    """
    lost = diverged[diverged > 0]
    if lost.size == 0:
        return ""
    where = "" if diverged.size == 1 else f" in {lost.size} of {diverged.size} seeds,{' first' * (lost.size > 1)}"
    return f"diverged{where} at step {lost.min():,}"
