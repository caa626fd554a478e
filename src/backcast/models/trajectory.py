"""The trajectory of an agent, from which models over several steps learn.

It continues across the end of an episode: a terminal state leads to the next start, as in the recurrent chain of
`backcast.exact`. That step earns nothing and carries no discount. A truncated episode ends the trajectory.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import EPSILON, Step
from backcast.core.randomness import Stream, pick, uniform
from backcast.values.contract import Values
from backcast.values.policies import chance, greedy_chance

GREEDY = np.zeros(1)  # a target policy: the greedy one; an empty array: the behaviour policy
NOBODY = np.zeros(0)


@kernel
def importance(target_policy: Vector, values: Values, step: Step, rates: Vector) -> float:
    """Return ρ = π(a | s) / b(a | s) of a step taken by the ε-greedy agent b.

    Args:
        target_policy: (S·A,) the probabilities π(a | s); (1,) for the greedy policy.
        values: the values before this step is learned from.
        step: the step.
        rates: the rates of this episode.
    """
    pair = step.s * values.n_actions + step.a
    wanted = greedy_chance(values, step.s, step.a) if target_policy.size == 1 else target_policy[pair]
    return wanted / chance(values, step.s, step.a, rates[EPSILON])


@part
class Trajectory(NamedTuple):
    """The last steps, in a ring buffer.

    Attributes:
        pairs: (K,), s·A + a; −1 − s for the restart after a terminal state s.
        reward: (K,), r.
        discount: (K,), γ, or 0 if the step ended an episode.
        ratio: (K,), ρ.
        clock: (2,), number of remembered steps, and the place of the next one.
        ended: (1,), the terminal state that the last step ended in, or −1.
        told: (2,), whether the row of the state last reached, and of the one before it, was updated for that arrival.
    """

    pairs: Indices
    reward: Vector
    discount: Vector
    ratio: Vector
    clock: Indices
    ended: Indices
    told: Mask

    def remember(self, pair: int, r: float, discount: float, ratio: float) -> None:
        """Add a step."""
        at = self.clock[1]
        self.pairs[at], self.reward[at], self.discount[at], self.ratio[at] = pair, r, discount, ratio
        self.clock[0] = min(self.clock[0] + 1, self.pairs.size)
        self.clock[1] = at + 1 if at + 1 < self.pairs.size else 0

    def mark(self, told: bool) -> None:
        """Record an arrival, and whether the row of the state was updated for it."""
        self.told[1] = self.told[0]
        self.told[0] = told


def empty_trajectory(length: int) -> Trajectory:
    """A trajectory with room for the last `length` steps."""
    pairs, clock = np.zeros(length, dtype=np.int64), np.zeros(2, dtype=np.int64)
    told = np.zeros(2, dtype=np.bool_)
    return Trajectory(pairs, np.zeros(length), np.zeros(length), np.zeros(length), clock, np.full(1, -1), told)


@part
class Stop(NamedTuple):
    """How far a model looks back along the trajectory: a number of steps, or until it stops at a state.

    Attributes:
        cumulative: (N,), cumulative probabilities of looking 1 … N steps back.
        stop: (S,), the probability of stopping at s̃; empty if the number of steps is drawn.
        go_on: (S,), the probability of continuing at s̃; with the remaining probability the path is dropped.
        stream: random numbers.
    """

    cumulative: Vector
    stop: Vector
    go_on: Vector
    stream: Stream

    def horizon(self) -> int:
        """Draw a number of steps; 0 if states decide."""
        if self.stop.size > 0:
            return 0
        if self.cumulative.size == 1 or self.cumulative[self.cumulative.size - 2] == 0.0:
            return self.cumulative.size
        return 1 + pick(self.cumulative, 0, self.cumulative.size, uniform(self.stream))


class Stretch(NamedTuple):
    """The trajectory from an origin s̃, ã to the present; found = 1, dropped = 0, or too short to count = −1.

    A number of steps that reaches back beyond what is remembered does not count. If states decide, the path is dropped
    there: the missing memory says nothing about the states that were passed.
    """

    found: int
    origin: int
    reward: float
    discount: float
    ratio: float


@kernel
def look_back(past: Trajectory, stop: Stop, n_actions: int) -> Stretch:
    """Run the backward process once along the trajectory: return where it stops, and the reward since then.

    R = r_{t−n} + γ_{t−n} (r_{t−n+1} + …), and the product of the discounts and of the ρ.
    """
    horizon = stop.horizon()
    reward, discount, ratio = 0.0, 1.0, 1.0
    at = past.clock[1]
    for back in range(1, past.clock[0] + 1):
        at = at - 1 if at > 0 else past.pairs.size - 1
        reward = past.reward[at] + past.discount[at] * reward
        discount *= past.discount[at]
        ratio *= past.ratio[at]
        pair = past.pairs[at]
        if horizon > 0:
            stops, goes_on = back == horizon, True
        else:
            s = pair // n_actions if pair >= 0 else -1 - pair
            u = uniform(stop.stream)
            stops = u < stop.stop[s]
            goes_on = u < stop.stop[s] + stop.go_on[s]
        if stops:
            return Stretch(1, pair, reward, discount, ratio)
        if not goes_on:
            return Stretch(0, 0, 0.0, 0.0, ratio)
    return Stretch(-1 if horizon > 0 else 0, 0, 0.0, 0.0, ratio)
