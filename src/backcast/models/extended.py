"""Backward and forward models that are learned along the trajectory: counts, n steps, mixtures, λ, options.

At each arrival in s the model looks back along the trajectory once, to the s̃ at which the backward process stops
(appendix A.3, by Monte Carlo). It records how s̃ and s were connected: how often, the reward on the path, and the
discount of s as seen from s̃. These are the three quantities of `backcast.exact.TimeExtended`.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.core.randomness import uniform
from backcast.models.contract import OutcomeRows
from backcast.models.counts import CountRows, draw_restart
from backcast.models.readable import Known
from backcast.models.rows import connect, known_of, places_of
from backcast.models.trajectory import Stop, Trajectory, importance, look_back
from backcast.values.contract import Values

_NEGLIGIBLE = 1e-12  # the weight of a less likely path is lost in rounding, and its inverse is useless for planning


@part
class ExtendedModel(NamedTuple):
    """Looking back: P←(s̃, ã | s). Looking ahead (`forward`): P(s | s̃, ã) over the same paths.

    Attributes:
        rows: softmax or counts. A row for each s over pairs s̃·A + ã; `conditioned`, for each s·A + ã over s̃; `forward`,
            for each s̃·A + ã over s.
        restarts: how often a path to s began at a terminal state, which is not a step that could be corrected.
        led: (S·A,), how often a path to s began with ã; π←(ã | s) = led / arrivals.
        arrivals: (S,), number of arrivals in s.
        weight: (S,), weight of a planning step from s: the probability that an option terminates there.
        past: the trajectory.
        stop: where looking back stops.
        usual_discount: the discount of pairs never observed, γⁿ, which a softmax needs.
        target_policy: the policy of importance weights, see `importance`.
        forgets: rate at which a row decays before each observation of it.
        n_actions: A.
        conditioned: whether rows are conditioned on ã.
        forward: whether it looks forward.
        terminates: whether it is an option that looks forward to its termination.
        learns: False for a true model.
    """

    rows: OutcomeRows
    restarts: CountRows
    led: Vector
    arrivals: Vector
    weight: Vector
    past: Trajectory
    stop: Stop
    usual_discount: float
    target_policy: Vector
    forgets: float
    n_actions: int
    conditioned: bool
    forward: bool
    terminates: bool
    learns: bool

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Remember the step; look back from the state that it led to."""
        if not self.learns:
            return
        past = self.past
        ratio = 1.0 if self.target_policy.size == 0 else importance(self.target_policy, values, step, rates)
        past.remember(step.s * self.n_actions + step.a, step.r, 0.0 if step.ends else discount, ratio)
        past.ended[0] = step.s2 if step.ends else -1
        if self.terminates:
            terminate(self, step.s2, step.ends, rates[ALPHA_MODEL])
        else:
            arrive(self, step.s2, rates[ALPHA_MODEL])

    def restart(self, s: int, rates: Vector) -> None:
        """Remember the restart, if the last episode ended, and look back from s; a truncation cuts the trajectory."""
        past = self.past
        if past.ended[0] < 0:
            past.clock[0] = 0
            past.mark(False)
        elif self.learns:
            past.remember(-1 - past.ended[0], 0.0, 0.0, 1.0)
            past.ended[0] = -1
            if not self.terminates:
                arrive(self, s, rates[ALPHA_MODEL])

    def describes(self, first: bool, back: int) -> bool:
        """Whether the row describes the arrival: not if the path is too short or, in a softmax, a restart."""
        return self.past.told[back] or not self.learns

    def ended_before(self, s: int, left: float) -> int:
        """The terminal state that a path to s begins in, for the remainder of a uniform number after the row, or −1."""
        return draw_restart(self.restarts, self.arrivals, s, left)

    def first_row(self, s: int) -> int:
        """The first row with predecessors of s."""
        return s * self.n_actions if self.conditioned else s

    def last_row(self, s: int) -> int:
        """One after the last row with predecessors of s."""
        return (s + 1) * self.n_actions if self.conditioned else s + 1

    def factor(self, row: int) -> float:
        """The weight of a row: its portion times the weight of s."""
        return self.weight[row // self.n_actions if self.conditioned else row] * self.portion(row)

    def portion(self, row: int) -> float:
        """The share of a state's predecessors in a row: π←(ã | s) if rows are conditioned on ã."""
        if not self.conditioned:
            return 1.0
        s = row // self.n_actions
        return self.led[row] / self.arrivals[s] if self.arrivals[s] > 0.0 else 0.0

    def pair(self, row: int, key: int) -> int:
        """The index s̃·A + ã of an entry."""
        return key * self.n_actions + row % self.n_actions if self.conditioned else key

    def base(self, s: int, best: float, discount: float) -> float:
        """The target of pairs never observed: γⁿ max_a q(s, a), or 0 if s ends the episode."""
        return self.usual_discount * best if discount > 0.0 else 0.0

    @in_python
    def predecessors(self, s: int) -> Known | None:
        """The pairs with which paths to s began, and the terminal states before which they did."""
        if self.forward:
            return None
        found = [self._known_of(row) for row in range(self.first_row(s), self.last_row(s))]
        columns = zip(*(known[:4] for known in found), strict=True)
        keys, probability, reward, carried = map(np.concatenate, columns)
        if self.rows.width:
            return Known(keys, probability, reward, carried, each_other=found[0].each_other)
        places = places_of(self.restarts, s)
        ended, chances = self.restarts.key[places].copy(), self.restarts.weight[places] / self.arrivals[s]
        return Known(keys, probability, reward, carried, ended=ended, ended_probability=chances)

    def _known_of(self, row: int) -> Known:
        """The content of a row, weighted by π←(ã | s) if it is conditioned on ã, with pairs as keys."""
        known = known_of(self.rows, row)
        if not self.conditioned:
            return known
        arrivals = self.arrivals[row // self.n_actions]
        share = self.led[row] / arrivals if arrivals > 0 else 0.0
        keys, weight = known.keys * self.n_actions + row % self.n_actions, self.rows.weight[places_of(self.rows, row)]
        return known._replace(keys=keys, probability=share * weight * self.rows.share[row])

    @in_python
    def successors(self, s: int, a: int) -> Known | None:
        """The states to which paths from (s, a) led."""
        return known_of(self.rows, s * self.n_actions + a) if self.forward else None

    @in_python
    def contains_restarts(self) -> bool:
        """Whether rows contain restarts: counts and true rows do; a softmax has no place for them."""
        return self.rows.width == 0


@kernel
def arrive(model: ExtendedModel, s: int, alpha: float) -> None:
    """Look back from s once, and record what is found."""
    way = look_back(model.past, model.stop, model.n_actions)
    starts = way.found == 1 and way.origin >= 0
    model.past.mark(starts or (way.found >= 0 and model.rows.width == 0))
    if way.found < 0 or way.ratio < _NEGLIGIBLE:
        return
    if model.forward:
        if starts:
            if model.forgets > 0.0:
                model.rows.forget(way.origin, model.forgets)
            connect(model.rows, way.origin, s, way.reward, way.discount, alpha, way.ratio)
        return
    if model.forgets > 0.0:
        _forget(model, s)
    model.arrivals[s] += way.ratio
    if starts and model.conditioned:
        row = s * model.n_actions + way.origin % model.n_actions
        model.led[row] += way.ratio
        connect(model.rows, row, way.origin // model.n_actions, way.reward, way.discount, alpha, way.ratio)
    elif starts:
        connect(model.rows, s, way.origin, way.reward, way.discount, alpha, way.ratio)
    elif not model.conditioned:
        model.rows.observe_none(s, way.ratio)
    if way.found == 1 and not starts:
        model.restarts.observe(s, -1 - way.origin, alpha, way.ratio)


@kernel
def terminate(model: ExtendedModel, s: int, ends: bool, alpha: float) -> None:
    """An option, looking forward: if it terminates at s, record all paths to s on which it did not terminate before.

    It may have been initiated at each state of the path, and always terminates with the episode.
    """
    past, stop = model.past, model.stop
    if not ends and uniform(stop.stream) >= model.weight[s]:
        return
    reward, discount, ratio = 0.0, 1.0, 1.0
    at = past.clock[1]
    for _ in range(past.clock[0]):
        at = at - 1 if at > 0 else past.pairs.size - 1
        pair = past.pairs[at]
        if pair < 0:
            return
        reward = past.reward[at] + past.discount[at] * reward
        discount *= past.discount[at]
        x = pair // model.n_actions
        mass = ratio * stop.stop[x]
        if mass > _NEGLIGIBLE:
            if model.forgets > 0.0:
                model.rows.forget(pair, model.forgets)
            connect(model.rows, pair, s, reward, discount, alpha, mass)
        ratio *= past.ratio[at]  # the row is conditioned on its own action
        if ratio < _NEGLIGIBLE or uniform(stop.stream) < model.weight[x]:
            return


@kernel
def _forget(model: ExtendedModel, s: int) -> None:
    for row in range(model.first_row(s), model.last_row(s)):
        model.rows.forget(row, model.forgets)
        if model.conditioned:
            model.led[row] *= 1.0 - model.forgets
    model.restarts.forget(s, model.forgets)
    model.arrivals[s] *= 1.0 - model.forgets
