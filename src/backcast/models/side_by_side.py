"""A model of each direction."""

from typing import NamedTuple, cast

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import Step
from backcast.models.contract import BackwardRows, ForwardRows
from backcast.models.readable import Known, LearnedBackward, LearnedBoth, LearnedForward
from backcast.values.contract import Values


@part
class BothModels(NamedTuple):
    """A forward and a backward model, learned side by side."""

    forward: ForwardRows
    backward: BackwardRows

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Both models learn from the step."""
        self.forward.learn(values, step, discount, rates)
        self.backward.learn(values, step, discount, rates)

    def restart(self, s: int, rates: Vector) -> None:
        """Tell both models where an episode begins."""
        self.forward.restart(s, rates)
        self.backward.restart(s, rates)

    @in_python
    def predecessors(self, s: int) -> Known | None:
        """As in the backward model."""
        known: Known | None = self.backward.predecessors(s)
        return known

    @in_python
    def successors(self, s: int, a: int) -> Known | None:
        """As in the forward model."""
        known: Known | None = self.forward.successors(s, a)
        return known

    @in_python
    def contains_restarts(self) -> bool:
        """As in the backward model."""
        return bool(self.backward.contains_restarts())

    @in_python
    def readable(self, values: Values) -> LearnedBoth:
        """Both readable models."""
        forward, backward = self.forward.readable(values), self.backward.readable(values)
        return LearnedBoth(cast(LearnedForward, forward), cast(LearnedBackward, backward))
