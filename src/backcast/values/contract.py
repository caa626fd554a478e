"""The interface of values for learners and planners, whether values are a table or linear in features.

A state-action pair is the number s·A + a; in prediction A is 1, and q is v. Operations that only a table supports
(setting one value without changing others, blending all of them with a number) are methods of `TableValues`.
"""

from typing import Protocol

from backcast.core.arrays import Vector


class Values(Protocol):
    """Action values q(s, a) that can be read and updated."""

    @property
    def n_states(self) -> int:
        """S."""

    @property
    def n_actions(self) -> int:
        """A."""

    def get(self, s: int, a: int) -> float:
        """q(s, a)."""

    def best(self, s: int) -> float:
        """max_a q(s, a)."""

    def rank(self, s: int, a: int) -> float:
        """A number that orders the actions of s as q does, and is equal where q is."""

    def probe(self, s: int, a: int) -> float:
        """A number that is large where q(s, a) diverges."""

    def compare(self, truth: Vector, unit: float, errors: Vector) -> None:
        """Write unit · (v(s) − truth[s]) of each state into `errors`, in prediction."""

    def move(self, pair: int, target: float, alpha: float) -> None:
        """Make a step of size α towards a target: of q(s, a) in a table, along φ(s, a) if values are linear."""

    def nudge(self, pair: int, amount: float) -> None:
        """Add an amount: to q(s, a) in a table; times φ(s, a) to the weights if values are linear."""

    def prefetch_pair(self, pair: int) -> None:
        """Prefetch q(s, a) of a pair."""

    def as_array(self) -> Vector:
        """All values, (S, A), or (n, S, A) of n stacked values; in Python only."""

    def as_weights(self) -> Vector | None:
        """The weights of the given features, (A, d), or (n, A, d) if stacked; None for a table. In Python only."""
