"""A planner with a witness, who notes where the agent went: for those who watch, in compiled loops too."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import Step
from backcast.models.contract import Model
from backcast.planners.contract import AnyPlanner
from backcast.values.contract import Values


@part
class Witness(NamedTuple):
    """Plans as `observed` does, and remembers the last states of an episode.

    Attributes:
        observed: the planner.
        trail: (places,) the last states; the k-th of the episode is at place k mod places.
        seen: (1,) how many states the episode has had.
    """

    observed: AnyPlanner
    trail: Indices
    seen: Indices

    def begin(self, model: Model, values: Values, s: int, discount: float, rates: Vector) -> int:
        """An episode begins in s."""
        self.seen[0] = 0
        self.note(s)
        return self.observed.begin(model, values, s, discount, rates)

    def plan(self, model: Model, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan after a step to s'."""
        self.note(step.s2)
        return self.observed.plan(model, values, step, discount, rates)

    def finish(self, model: Model, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """The episode is over."""
        return self.observed.finish(model, values, s, ends, discount, rates)

    @in_python
    def stages(self, model: Model) -> Iterator[tuple[AnyPlanner, Model]]:
        """Those of the planner that is observed."""
        yield from self.observed.stages(model)

    def note(self, s: int) -> None:
        """The agent is in s."""
        self.trail[self.seen[0] % self.trail.size] = s
        self.seen[0] += 1


def witnessed(planner: AnyPlanner, places: int) -> Witness:
    """A planner with a witness who remembers so many states."""
    return Witness(planner, np.zeros(places, dtype=np.int64), np.zeros(1, dtype=np.int64))


def way(witness: Witness) -> list[int]:
    """The last states of the episode, oldest first."""
    seen, places = int(witness.seen[0]), witness.trail.size
    return [int(witness.trail[k % places]) for k in range(max(0, seen - places), seen)]
