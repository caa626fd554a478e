"""The model of an agent that has none."""

from typing import NamedTuple

from backcast.compiling import part


@part
class NoModel(NamedTuple):
    """Learns nothing."""

    unused: int = 0

    def learn(self, s: int, a: int, r: float, s2: int, ends: bool, alpha: float) -> None:
        """Nothing."""
