"""Backward planning that corrects only some predecessors: sampled or most probable ones, and theirs in turn."""

from typing import NamedTuple

from backcast.core.arrays import Indices
from backcast.core.compiling import in_python, kernel, part
from backcast.core.randomness import Stream, uniform
from backcast.models.contract import BackwardRows
from backcast.models.rows import draw_unobserved
from backcast.planners.backward import correct_all
from backcast.planners.edges import UNCOUNTED, EdgeCount, observed_before
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.table import TableValues

NOTHING, UNSEEN = -1, -2


@part
class SampledPredecessors(NamedTuple):
    """Algorithm 1 as printed: s̃ ~ P←(s), then an update of v(s̃) towards s; `samples` times.

    With a depth, each sample continues from s̃ to one of its own predecessors, and so on; across a restart, it continues
    from the terminal state. So each level plans from all states as often as the agent visits them.
    """

    samples: int
    depth: int
    stream: Stream
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def correct(self, model: BackwardRows, values: Values, s: int, discount: float, onward: float, alpha: float) -> int:
        """Make corrections from s, with its discount and `onward` for earlier states; return the number of updates."""
        updates = 0
        for _ in range(self.samples):
            later, carried = s, discount
            for _ in range(self.depth):
                drawn = correct_one(model, values, later, carried, alpha, self.step_size, self.stream)
                updates += 1 if drawn.corrected != NOTHING else 0
                self.edges.touch(1)
                if drawn.state < 0:
                    break
                later, carried = drawn.state, 0.0 if drawn.corrected == NOTHING else onward
        return updates


class DrawnUpdate(NamedTuple):
    """What was corrected (a pair, `UNSEEN` or `NOTHING`), and the state to continue from, −1 if none."""

    corrected: int
    state: int


@kernel
def correct_one(
    model: BackwardRows, values: Values, s: int, discount: float, alpha: float, step_size: StepSizes, stream: Stream
) -> DrawnUpdate:
    """Draw s̃, ã ~ P←(s) and update q(s̃, ã) with step size α.

    The row's probabilities may sum to less than 1 (a restart, the end of an option): for the rest nothing is corrected.
    For a pair that was never observed it is unknown whether it is terminal: planning does not continue from there.
    """
    rows = model.rows
    best = values.best(s)
    base = model.base(s, best, discount)
    left = uniform(stream)
    for row in range(model.first_row(s), model.last_row(s)):
        factor = rows.share[row] * model.factor(row)
        first = rows.offset[row]
        last = first + rows.used[row]
        for k in range(first, last):
            left -= factor * rows.weight[k]
            if left < 0.0:
                pair = model.pair(row, rows.key[k])
                values.move(pair, model.target(k, base, best), step_size.of(pair, alpha, 1.0))
                return DrawnUpdate(pair, pair // values.n_actions)
        if rows.unobserved(row) > 0:
            pair = draw_unobserved(rows, first, last, stream)
            values.move(pair, base, step_size.of(pair, alpha, 1.0))
            return DrawnUpdate(UNSEEN, -1)
    return DrawnUpdate(NOTHING, model.ended_before(s, left))


@part
class Predecessors(NamedTuple):
    """Correct the `top` most probable predecessors (0: all), then the predecessors of each, down to a depth.

    Depth first: the corrections from a state are made at once, then those from its predecessors, in turn.

    Attributes:
        top: number of predecessors corrected from each state; 0 for all, including those a softmax has never observed.
        depth: number of levels of predecessors; 1 for those of the reference state only.
        state: (depth,), the states on the current branch.
        place: (depth,), the place in its rows that the branch goes through.
        taken: (depth,), number of branches taken there.
        step_size: step size of an update of a pair, weighted by its probability.
        edges: edges touched.
    """

    top: int
    depth: int
    state: Indices
    place: Indices
    taken: Indices
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def correct(
        self, model: BackwardRows, values: TableValues, s: int, discount: float, onward: float, alpha: float
    ) -> int:
        """Make corrections from s, with its discount and `onward` for earlier states; return the number of updates."""
        updates = correct_top(model, values, s, discount, alpha, self.step_size, self.top)
        self.edges.touch(observed_before(model, s))
        self.state[0], self.place[0], self.taken[0] = s, -1, 0
        level = 0
        while level >= 0:
            branch = -1
            if level < self.depth - 1 and (self.top == 0 or self.taken[level] < self.top):
                branch = next_place(model, self.state[level], self.place[level], self.top > 0)
            if branch < 0:
                level -= 1
                continue
            self.place[level] = branch
            self.taken[level] += 1
            earlier = pair_at(model, self.state[level], branch) // values.n_actions
            updates += correct_top(model, values, earlier, onward, alpha, self.step_size, self.top)
            self.edges.touch(observed_before(model, earlier))
            level += 1
            self.state[level], self.place[level], self.taken[level] = earlier, -1, 0
        return updates

    @in_python
    def needs_table(self) -> bool:
        """Corrections are made one after the other, or by one map of the table."""
        return True


@kernel
def correct_top(
    model: BackwardRows, values: TableValues, s: int, discount: float, alpha: float, step_size: StepSizes, top: int
) -> int:
    """Correct the `top` most probable predecessors of s, each by α P←; all of them if top is 0."""
    if top == 0:
        return correct_all(model, values, s, discount, alpha, step_size)
    best = values.best(s)
    base = model.base(s, best, discount)
    place = -1
    for taken in range(top):
        place = next_place(model, s, place, True)
        if place < 0:
            return taken
        row = _row_of(model, s, place)
        pair, weight = pair_at(model, s, place), model.rows.share[row] * model.factor(row) * model.rows.weight[place]
        values.move(pair, model.target(place, base, best), step_size.of(pair, alpha * weight, weight))
    return top


@kernel
def next_place(model: BackwardRows, s: int, after: int, ranked: bool) -> int:
    """The place of a predecessor of s after a given one (−1: the first); −1 if there are no more.

    Predecessors are in the order of the rows or, if `ranked`, from the most to the least probable.
    """
    rows = model.rows
    bound = 2.0 if after < 0 else _probability(model, s, after)
    found, most = -1, -1.0
    for row in range(model.first_row(s), model.last_row(s)):
        portion = rows.share[row] * model.portion(row)
        first = rows.offset[row]
        for k in range(first, first + rows.used[row]):
            if not ranked and k > after:
                return k
            p = portion * rows.weight[k]
            if ranked and p > most and (p < bound or (p == bound and k > after)):
                found, most = k, p
    return found


@kernel
def pair_at(model: BackwardRows, s: int, place: int) -> int:
    """The index s̃·A + ã of the predecessor of s at a place."""
    return model.pair(_row_of(model, s, place), model.rows.key[place])


@kernel
def _probability(model: BackwardRows, s: int, place: int) -> float:
    row = _row_of(model, s, place)
    return model.rows.share[row] * model.portion(row) * model.rows.weight[place]


@kernel
def _row_of(model: BackwardRows, s: int, place: int) -> int:
    row = model.first_row(s)
    while place >= model.rows.offset[row + 1]:
        row += 1
    return row
