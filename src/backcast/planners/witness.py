"""A planner with a witness that records the agent's trajectory, for observers of compiled loops."""

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
        trail: (places,), the last states; the k-th of the episode is at place k mod places.
        seen: (1,), number of states in the episode so far.
    """

    observed: AnyPlanner
    trail: Indices
    seen: Indices

    def begin(self, model: Model, values: Values, s: int, discount: float, rates: Vector) -> int:
        """Begin an episode in s."""
        self.seen[0] = 0
        self.note(s)
        return self.observed.begin(model, values, s, discount, rates)

    def plan(self, model: Model, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Plan after a step to s'."""
        self.note(step.s2)
        return self.observed.plan(model, values, step, discount, rates)

    def finish(self, model: Model, values: Values, s: int, ends: bool, discount: float, rates: Vector) -> int:
        """End the episode."""
        return self.observed.finish(model, values, s, ends, discount, rates)

    @in_python
    def stages(self, model: Model) -> Iterator[tuple[AnyPlanner, Model]]:
        """The parts of the observed planner."""
        yield from self.observed.stages(model)

    def note(self, s: int) -> None:
        """Record that the agent is in s."""
        self.trail[self.seen[0] % self.trail.size] = s
        self.seen[0] += 1


def witnessed(planner: AnyPlanner, places: int) -> Witness:
    """Make a planner with a witness that remembers `places` states."""
    return Witness(planner, np.zeros(places, dtype=np.int64), np.zeros(1, dtype=np.int64))


def way(witness: Witness) -> list[int]:
    """The last states of the episode, oldest first."""
    seen, places = int(witness.seen[0]), witness.trail.size
    return [int(witness.trail[k % places]) for k in range(max(0, seen - places), seen)]
