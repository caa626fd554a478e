"""The interface of learners."""

from typing import Any, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import optional
from backcast.core.interaction import Step
from backcast.values.contract import Values


class LearnerPart(Protocol):
    """The methods an author writes: learn values, given by the kind, from real steps."""

    def update(self, values: Any, step: Step, discount: float, rates: Vector) -> int:
        """Learn from one step; return the number of value updates."""


class Learner(LearnerPart, Protocol):
    """The full interface; `part` adds the defaults."""

    def conclude(self, values: Any, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Learn at the end of an episode (`ends` in s, or truncated there); return the number of value updates."""


@optional("conclude")
def _has_learned(self: object, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
    """By default, nothing is left to learn when an episode is over."""
    return 0
