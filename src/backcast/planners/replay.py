"""Experience replay: learn again from remembered transitions.

The memory takes the place of a model: the successors of a state are those remembered. Planners use both kinds of memory
through one interface: `draw_place` samples a transition, `transition_at` returns it, `importance_of` is the weight of
its update, and `note_error` records the error found.
"""

from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from backcast.core.arrays import Indices, Mask, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.core.randomness import Stream, uniform
from backcast.models.readable import Known
from backcast.planners.edges import UNCOUNTED, EdgeCount
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes
from backcast.values.targets import td_error

_NEVER_ZERO = 1e-6  # added to |δ| / ρ, so that transitions without error can be drawn again
_LEAST, _MOST = 1e-100, 1e100  # bounds of powered priorities, so that their sums and ratios are finite


@part
class Memory(NamedTuple):
    """The last transitions, in a ring buffer, drawn uniformly.

    Attributes:
        s: (places,) states.
        a: (places,) actions.
        r: (places,) rewards.
        s2: (places,) next states.
        ends: (places,) whether the next state ended the episode.
        stored: (1,), transitions stored so far; the next one goes to place stored mod places.
    """

    s: Indices
    a: Indices
    r: Vector
    s2: Indices
    ends: Mask
    stored: Indices

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Remember a transition."""
        write_transition(self, step)

    def transition_at(self, place: int) -> Step:
        """The transition at a place."""
        return Step(self.s[place], self.a[place], self.r[place], self.s2[place], self.ends[place], False)

    def draw_place(self, stream: Stream) -> int:
        """Draw the place of a transition uniformly."""
        return int(uniform(stream) * held(self))

    def importance_of(self, place: int) -> float:
        """1: all transitions have the same weight."""
        return 1.0

    def note_error(self, place: int, delta: float) -> None:
        """Do nothing: errors are not used."""

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Forget transitions from or to these states, whose numbers are reused."""
        keep_transitions(self, states)

    @in_python
    def successors(self, s: int, a: int) -> Known:
        """The remembered successors of (s, a), and whether they ended the episode."""
        return remembered(self, s, a)

    @in_python
    def readable(self, values: Values) -> "Memory":
        """The memory itself."""
        return self


@part
class PrioritizedMemory(NamedTuple):
    """A memory whose transitions are drawn in proportion to their priorities: P(i) = p_i^ω / Σ_k p_k^ω.

    With ρ the largest |reward| so far, p_i = |δ_i| / ρ + 10⁻⁶, which does not depend on the unit of reward.
    Powers of priorities are the leaves of two binary trees, kept in arrays: 2 i and 2 i + 1 are the children of node i,
    and the second half of an array holds the leaves, one for each place. All stored transitions are below one node,
    `top`; nodes above it are not updated: a tree is as high as its memory is full.

    Attributes:
        memory: the transitions.
        sums: (2 · leaves,), Σ p^ω below each node; 0 where nothing is stored.
        minima: (2 · leaves,), the least p^ω below each node; infinite where nothing is stored.
        top: (1,), a node above everything stored, an even number of levels above the leaves.
        highest: (1,), the highest p^ω so far, which new transitions get; 1 before any.
        exponent: ω.
        largest: (1,), ρ.
    """

    memory: Memory
    sums: Vector
    minima: Vector
    top: Indices
    highest: Vector
    exponent: float
    largest: Vector

    def learn(self, values: Values, step: Step, discount: float, rates: Vector) -> None:
        """Remember a transition with the highest priority, so that it is soon drawn."""
        place = write_transition(self.memory, step)
        self.largest[0] = max(self.largest[0], abs(step.r))
        while place >= self.sums.size // 2 // self.top[0]:
            self.top[0] //= 4
        write_priority(self, place, self.highest[0])

    def transition_at(self, place: int) -> Step:
        """The transition at a place."""
        return self.memory.transition_at(place)

    def draw_place(self, stream: Stream) -> int:
        """Draw the place i of a transition with probability P(i): descend the tree to the leaf of a random sum.

        Rounding may lead past the last transition, to leaves where nothing is stored.
        """
        leaves = self.sums.size // 2
        node = self.top[0]
        left = uniform(stream) * self.sums[node]
        while node < leaves:
            # Two levels at once, so that all three sums are read together. The choices are unpredictable, so they
            # are made without a branch.
            first, second, third = self.sums[2 * node], self.sums[4 * node], self.sums[4 * node + 2]
            right = left >= first
            left = left - first if right else left
            below = third if right else second
            node = 2 * node + (1 if right else 0)
            right = left >= below
            left = left - below if right else left
            node = 2 * node + (1 if right else 0)
        return min(node - leaves, held(self.memory) - 1)

    def importance_of(self, place: int) -> float:
        """(n P(i))^−β divided by the highest such weight of all n stored, which leaves (min_k p_k^ω / p_i^ω)^β.

        The importance exponent is fixed at β = 1/2; the paper anneals it to 1.
        """
        return np.sqrt(self.minima[self.top[0]] / self.sums[place + self.sums.size // 2])

    def note_error(self, place: int, delta: float) -> None:
        """Set the priority of a drawn transition by its error."""
        power = power_of(delta / self.largest[0] if self.largest[0] > 0.0 else delta, self.exponent)
        self.highest[0] = max(self.highest[0], power)
        write_priority(self, place, power)

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Forget transitions from or to these states, and their priorities."""
        leaves = self.sums.size // 2
        powers = self.sums[leaves : leaves + held(self.memory)][keep_transitions(self.memory, states)]
        self.sums[:], self.minima[:] = 0.0, np.inf
        for place, power in enumerate(powers.tolist()):
            write_priority(self, place, power)

    @in_python
    def successors(self, s: int, a: int) -> Known:
        """As the memory."""
        return remembered(self.memory, s, a)

    @in_python
    def readable(self, values: Values) -> "PrioritizedMemory":
        """The memory itself."""
        return self


@kernel
def write_transition(memory: Memory, step: Step) -> int:
    """Write a transition, over the oldest one if the memory is full; return its place."""
    place = memory.stored[0] % memory.s.size
    memory.s[place], memory.a[place], memory.r[place] = step.s, step.a, step.r
    memory.s2[place], memory.ends[place] = step.s2, step.ends
    memory.stored[0] += 1
    return place


@kernel
def held(memory: Memory) -> int:
    """The number of transitions in memory."""
    return min(memory.stored[0], memory.s.size)


def keep_transitions(memory: Memory, forgotten: Indices) -> Indices:
    """Remove transitions from or to some states and close the gaps; return the former places of the others."""
    n = held(memory)
    kept = np.flatnonzero(~np.isin(memory.s[:n], forgotten) & ~np.isin(memory.s2[:n], forgotten))
    for column in memory[:-1]:
        column[: kept.size] = column[kept]
    memory.stored[0] = kept.size
    return kept


def remembered(memory: Memory, s: int, a: int) -> Known:
    """The states that followed (s, a), with mean rewards, and whether they ended the episode."""
    n = held(memory)
    here = np.flatnonzero((memory.s[:n] == s) & (memory.a[:n] == a))
    states, which, count = np.unique(memory.s2[here], return_inverse=True, return_counts=True)
    reward = np.bincount(which, memory.r[here], len(states)) / count
    ends = np.bincount(which, memory.ends[here], len(states)) > 0
    return Known(states, count / max(1, here.size), reward, ends=ends)


@partial(kernel, overflows=True)
def power_of(delta: float, exponent: float) -> float:
    """The power (|δ| + 10⁻⁶)^ω of a relative error, bounded so that sums and ratios of powers are finite."""
    return min(_MOST, max(_LEAST, np.float64(abs(delta) + _NEVER_ZERO) ** exponent))


@kernel
def write_priority(memory: PrioritizedMemory, place: int, power: float) -> None:
    """Write p^ω of a place, and update the nodes above."""
    node = place + memory.sums.size // 2
    total = least = power
    while node >= memory.top[0]:
        memory.sums[node], memory.minima[node] = total, least
        sibling = node ^ 1
        total, least = total + memory.sums[sibling], min(least, memory.minima[sibling])
        node >>= 1


class ReplayMemory(Protocol):
    """The interface of a memory of transitions."""

    def draw_place(self, stream: Stream) -> int:
        """Draw the place of a transition."""

    def transition_at(self, place: int) -> Step:
        """The transition at a place."""

    def importance_of(self, place: int) -> float:
        """The importance weight that corrects for the sampling."""

    def note_error(self, place: int, error: float) -> None:
        """Record the TD error of a transition."""


@part
class Replay(NamedTuple):
    """After each real step, makes `samples` updates by transitions drawn from the memory, the newest included."""

    samples: int
    stream: Stream
    step_size: StepSizes = SCHEDULED
    edges: EdgeCount = UNCOUNTED

    def plan(self, model: ReplayMemory, values: Values, step: Step, discount: float, rates: Vector) -> int:
        """Repeatedly draw s, a, r, s', update q(s, a) by its current TD error, and record the error in the memory."""
        for _ in range(self.samples):
            place = model.draw_place(self.stream)
            past = model.transition_at(place)
            delta = td_error(values, past, discount)
            pair, weight = past.s * values.n_actions + past.a, model.importance_of(place)
            values.nudge(pair, self.step_size.of(pair, rates[ALPHA_PLAN] * weight, weight) * delta)
            model.note_error(place, delta)
        self.edges.touch(self.samples)
        return self.samples


def empty_memory(places: int) -> Memory:
    """An empty memory with room for a number of transitions."""
    s, a, s2, stored = (np.zeros(size, dtype=np.int64) for size in (places, places, places, 1))
    return Memory(s, a, np.zeros(places), s2, np.zeros(places, dtype=np.bool_), stored)


def empty_prioritized_memory(places: int, exponent: float) -> PrioritizedMemory:
    """An empty memory with priorities; the number of leaves is a power of four, so that all have the same depth."""
    leaves = 4 ** ((places - 1).bit_length() + 1 >> 1)
    sums, minima, top = np.zeros(2 * leaves), np.full(2 * leaves, np.inf), np.array([leaves])
    return PrioritizedMemory(empty_memory(places), sums, minima, top, np.ones(1), exponent, np.zeros(1))
