"""What the loop may ask of a learner."""

from typing import Any, Protocol

from backcast.core.arrays import Vector
from backcast.core.compiling import optional
from backcast.core.interaction import Step
from backcast.values.contract import Values


class LearnerPart(Protocol):
    """What an author writes: it learns values, those that its kind gives it, from real steps."""

    def update(self, values: Any, step: Step, discount: float, rates: Vector) -> int:
        """Learn from one step; the number of value updates."""


class Learner(LearnerPart, Protocol):
    """What may be asked; `part` has added the defaults."""

    def conclude(self, values: Any, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """Learn when an episode is over, which `ends` in s or was cut off there; the number of value updates."""


@optional("conclude")
def _has_learned(self: object, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
    """Most learners have learned everything when an episode is over."""
    return 0
