"""What learners and planners may ask of values, whether they stand in a table or are linear in features.

A pair of a state and an action is the number s·A + a; in prediction A is 1, and q is v. What only a table can do
(set one value without changing others, blend all of them with a number) is asked of `TableValues` by name.
"""

from typing import Protocol

from backcast.core.arrays import Vector


class Values(Protocol):
    """Action values q(s, a) that can be read and moved."""

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
        """A number that is large where q(s, a) explodes."""

    def predicted(self, s: int) -> float:
        """v(s), in prediction."""

    def move(self, pair: int, target: float, alpha: float) -> None:
        """A step of size α towards a target: of q(s, a) in a table, along φ(s, a) if values are linear."""

    def nudge(self, pair: int, amount: float) -> None:
        """Add an amount: to q(s, a) in a table; times φ(s, a) to the weights if values are linear."""

    def prefetch_pair(self, pair: int) -> None:
        """Ask memory for q(s, a) of a pair, which will be needed soon."""

    def as_array(self) -> Vector:
        """All values, (S, A); in Python only. If arrays of several are stacked, theirs, (n, S, A)."""

    def as_weights(self) -> Vector | None:
        """The weights of the features that were given, (A, d); None of a table. Likewise."""
