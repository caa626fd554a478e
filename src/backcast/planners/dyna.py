"""Dyna: between real steps, imagine steps from state-action pairs experienced before."""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import kernel, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.core.locality import prefetch
from backcast.core.randomness import Stream, uniform
from backcast.models.contract import ForwardRows
from backcast.models.rows import likely_place
from backcast.planners.edges import UNCOUNTED, EdgeCount
from backcast.planners.forward import draw_outlook, draw_place
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes

MANY = 2**14  # number of pairs beyond which most are not in a core's own cache


class Pairs(NamedTuple):
    """Search control: a list of distinct pairs s·A + a, drawn uniformly.

    Attributes:
        listed: (S·A,), whether a pair is in the list.
        pairs: (S·A,), the list, in the order in which pairs were added.
        length: (1,), the length of the list.
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
def pair_for(known: Pairs, u: float, length: int) -> int:
    """One of the first `length` pairs, for a uniform u."""
    return known.pairs[int(u * length)]


@kernel
def draw_pair(known: Pairs, stream: Stream) -> int:
    """One of the pairs, uniformly."""
    return pair_for(known, uniform(stream), known.length[0])


class Draws(NamedTuple):
    """Random numbers for the samples of this step and of the next two, drawn before they are needed.

    Attributes:
        numbers: (3, 2·samples), uniform numbers, two for each sample: for the pair and for its successor.
        turn: (1,), which of the three rows belongs to this step; −1 before anything was drawn.
        pairs: (samples,), the pairs of this step.
        places: (samples,), the places of their successors in the rows of a model.
    """

    numbers: Vector
    turn: Indices
    pairs: Indices
    places: Indices


@part
class Dyna(NamedTuple):
    """Dyna-Q: after each real step, `samples` one-step updates of pairs drawn from all pairs experienced.

    The rows of the model leave nothing to outcomes never observed. In a large world pairs are scattered in memory and
    are prefetched one step ahead; only the successors have to be waited for, for all samples together.

    Attributes:
        samples: updates after each real step.
        known: the pairs experienced.
        stream: random numbers for pairs and successors.
        draws: numbers drawn in advance.
        step_size: step size of an update of a pair.
        edges: edges touched.
    """

    samples: int
    known: Pairs
    stream: Stream
    draws: Draws
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def plan(self, model: ForwardRows, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Draw (s, a), imagine s' ~ P(s, a), update q(s, a) towards r + γ̄(s') max_a' q(s', a'); and again."""
        known, draws, rows = self.known, self.draws, model.rows
        enlist(known, step.s * values.n_actions + step.a)
        large = known.length[0] > MANY
        draw_numbers(draws, self.stream)
        numbers = draws.numbers[draws.turn[0]]
        for k in range(self.samples):
            pair = pair_for(known, numbers[2 * k], known.length[0])
            place = draw_place(rows, pair, numbers[2 * k + 1])
            draws.pairs[k], draws.places[k] = pair, place
            if large:
                values.prefetch_pair(rows.key[place] * values.n_actions)
                model.prefetch_ahead(rows.key[place])
        if large:
            prepare(self, model, values, step.s * values.n_actions + step.a)
        for k in range(self.samples):
            place = draws.places[k]
            target = model.outlook(place, model.look_ahead(values, rows.key[place], discount))
            pair = draws.pairs[k]
            values.move(pair, target, self.step_size.of(pair, rates[ALPHA_PLAN], 1.0))
        self.edges.touch(self.samples)
        return self.samples


@kernel
def draw_numbers(draws: Draws, stream: Stream) -> None:
    """Advance to the numbers of this step, and draw those of the step after the next."""
    if draws.turn[0] < 0:
        for turn in range(2):
            _draw(draws, turn, stream)
        draws.turn[0] = 2
    _draw(draws, draws.turn[0], stream)
    draws.turn[0] = (draws.turn[0] + 1) % 3


@kernel
def _draw(draws: Draws, turn: int, stream: Stream) -> None:
    for k in range(draws.numbers.shape[1]):
        draws.numbers[turn, k] = uniform(stream)


@kernel
def prepare(planner: Dyna, model: ForwardRows, values: Values, here: int) -> None:
    """Prefetch the pairs of the next step, and the list entries that the step after it will need.

    Whether the next step lengthens the list is unknown: both cases are prepared.
    """
    known, draws, turn = planner.known, planner.draws, planner.draws.turn[0]
    soon, later = draws.numbers[(turn + 1) % 3], draws.numbers[(turn + 2) % 3]
    length = known.length[0]
    for k in range(planner.samples):
        prefetch(known.pairs, int(later[2 * k] * length))
    for k in range(2 * planner.samples):
        pair = pair_for(known, soon[k - (k & 1)], length + (k & 1))
        prefetch(model.rows.used, pair)
        prefetch(model.rows.key, likely_place(model.rows, pair, here))
        values.prefetch_pair(pair)


@part
class DynaPlus(NamedTuple):
    """Dyna-Q+: Dyna-Q with an imagined bonus for pairs not tried for long; it plans all actions of visited states.

    Attributes:
        samples: updates after each real step.
        known: all actions of the states in which one was taken.
        last: (S·A,), the real step in which a pair was last tried; 0 before.
        clock: (1,), real steps so far.
        bonus: κ.
        stream: random numbers for pairs and successors.
        step_size: step size of an update of a pair.
        edges: edges touched.
    """

    samples: int
    known: Pairs
    last: Indices
    clock: Indices
    bonus: float
    stream: Stream
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def plan(self, model: ForwardRows, values: Values, step: Step, discount: float, rates: Vector) -> int:
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
            values.move(pair, target, self.step_size.of(pair, rates[ALPHA_PLAN], 1.0))
        self.edges.touch(self.samples)
        return self.samples


def no_pairs(n_pairs: int) -> Pairs:
    """An empty list with room for a number of pairs."""
    return Pairs(np.zeros(n_pairs, dtype=np.bool_), np.zeros(n_pairs, dtype=np.int64), np.zeros(1, dtype=np.int64))


def no_draws(samples: int) -> Draws:
    """Room for the random numbers of a number of samples, with none drawn yet."""
    pairs, places = np.zeros(samples, dtype=np.int64), np.zeros(samples, dtype=np.int64)
    return Draws(np.zeros((3, 2 * samples)), np.full(1, -1), pairs, places)
