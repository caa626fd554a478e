"""Dyna: between real steps, imagine steps from pairs of state and action that were experienced before."""

from typing import Any, NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.core.randomness import Stream, uniform
from backcast.planners.forward import draw_outlook
from backcast.values.contract import Values


class Pairs(NamedTuple):
    """Search control: a list of pairs s·A + a, none of them twice, of which all are equally likely to be drawn.

    Attributes:
        listed: (S·A,) whether a pair is in the list.
        pairs: (S·A,) the list, in the order in which pairs were added.
        length: (1,) how many there are.
    """

    listed: Mask
    pairs: Indices
    length: Indices


@kernel
def enlist(known: Pairs, pair: int) -> None:
    """Add a pair, if it is not there yet."""
    if not known.listed[pair]:
        known.listed[pair] = True
        known.pairs[known.length[0]] = pair
        known.length[0] += 1


@kernel
def draw_pair(known: Pairs, stream: Stream) -> int:
    """One of the pairs, uniformly."""
    return known.pairs[int(uniform(stream) * known.length[0])]


@part
class Dyna(NamedTuple):
    """Dyna-Q: after each real step, `samples` one-step updates of pairs drawn from all that were experienced.

    Attributes:
        samples: updates for each real step.
        known: those experienced.
        stream: random numbers, for pairs and for what follows them.
    """

    samples: int
    known: Pairs
    stream: Stream

    def plan(self, model: Any, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Draw (s, a), imagine s' ~ P(s, a), update q(s, a) towards r + γ̄(s') max_a' q(s', a'); and again."""
        enlist(self.known, step.s * values.n_actions + step.a)
        for _ in range(self.samples):
            pair = draw_pair(self.known, self.stream)
            target = draw_outlook(model, values, pair, discount, self.stream)
            values.move(pair, target, rates[ALPHA_PLAN])
        return self.samples


@part
class DynaPlus(NamedTuple):
    """Dyna-Q+: the same, and what was not tried for long is imagined to earn more; all actions of a state are planned.

    Attributes:
        samples: updates for each real step.
        known: all actions of the states in which one was taken.
        last: (S·A,) the real step in which a pair was last tried; 0 before it was.
        clock: (1,) real steps so far.
        bonus: κ.
        stream: random numbers, for pairs and for what follows them.
    """

    samples: int
    known: Pairs
    last: Indices
    clock: Indices
    bonus: float
    stream: Stream

    def plan(self, model: Any, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Update drawn pairs towards r + κ √τ + γ̄(s') max_a' q(s', a'), τ real steps after they were last tried.

        A pair never tried is imagined to lead back to s and to earn 0; its τ counts from the beginning of the run.
        """
        first = step.s * values.n_actions
        for pair in range(first, first + values.n_actions):
            enlist(self.known, pair)
        self.clock[0] += 1
        self.last[first + step.a] = self.clock[0]
        for _ in range(self.samples):
            pair = draw_pair(self.known, self.stream)
            if model.rows.used[pair] > 0:
                target = draw_outlook(model, values, pair, discount, self.stream)
            else:
                target = discount * values.best(pair // values.n_actions)
            target += self.bonus * np.sqrt(float(self.clock[0] - self.last[pair]))
            values.move(pair, target, rates[ALPHA_PLAN])
        return self.samples


def no_pairs(n_pairs: int) -> Pairs:
    """An empty list with room for so many pairs."""
    return Pairs(np.zeros(n_pairs, dtype=np.bool_), np.zeros(n_pairs, dtype=np.int64), np.zeros(1, dtype=np.int64))
