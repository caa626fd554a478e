"""Credit: which states a step changed, which states informed them, and the same in words."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from backcast.arrays import Indices, Vector
from backcast.models.both import BothModels
from backcast.models.learned import LearnedForward, learned
from backcast.planners.replay import Memory, PrioritizedMemory, held

How = Literal["learning", "backward", "forward", "elsewhere"]
Arrow = tuple[int, int, float]

ARROWS = 64
_ROUNDING = 1e-12
_MINOR = 0.01  # of the largest change: what is less is counted, not named


@dataclass(frozen=True)
class Change:
    """What one part of a step did to the values.

    Attributes:
        how: by learning from the step; by planning backward from the states `origins`; by planning forward for them; or
            by planning elsewhere, as Dyna and sweeping do.
        origins: the states that were planned from.
        before: (S, A) q before it.
        after: (S, A) q after it.
        model: the agent's model.
    """

    how: How
    origins: tuple[int, ...]
    before: Vector
    after: Vector
    model: Any

    @cached_property
    def pairs(self) -> tuple[Indices, Vector]:
        """The pairs s·A + a that changed by more than rounding, the largest change first, and by how much."""
        return self._largest_first((self.after - self.before).ravel())

    @cached_property
    def states(self) -> tuple[Indices, Vector]:
        """The states that changed, the largest change first, and by how much: that of the action that changed most."""
        by = self.after - self.before
        most = np.abs(by).argmax(axis=1)
        return self._largest_first(by[np.arange(len(by)), most])

    def _largest_first(self, by: Vector) -> tuple[Indices, Vector]:
        tiny = _ROUNDING * max(1.0, float(np.abs(self.after).max(initial=0.0)))
        changed = np.flatnonzero(np.abs(by) > tiny)
        changed = changed[np.argsort(-np.abs(by[changed]), kind="stable")]
        return changed, by[changed]


@dataclass(frozen=True)
class Credit:
    """What the page shows of a step.

    Attributes:
        arrows: from the state that informs, to the state that changed, by how much; the largest first.
        more: how many more there are.
        origins: the states that were planned from.
        learned: states that learning changed, and by how much.
        words: one sentence or two.
    """

    arrows: list[Arrow] = field(default_factory=list)
    more: int = 0
    origins: list[int] = field(default_factory=list)
    learned: list[tuple[int, float]] = field(default_factory=list)
    words: str = ""


def credit_of(changes: Sequence[Change], name_of: Callable[[int], str]) -> Credit:
    """The credit of a step that did all this."""
    planned = [change for change in changes if change.how != "learning"]
    arrows = [arrow for change in planned for arrow in arrows_of(change)]
    arrows.sort(key=lambda arrow: -abs(arrow[2]))
    unseen = sum(max(0, change.states[0].size - ARROWS) for change in planned if change.how == "backward")
    marks = [_first(change.states) for change in changes if change.how == "learning"]
    words = " ".join(filter(None, (_sentence(change, name_of) for change in changes)))
    return Credit(
        arrows[:ARROWS],
        max(0, len(arrows) - ARROWS) + unseen,
        [origin for change in planned for origin in change.origins],
        [mark for those in marks for mark in those],
        words or "Nothing changed.",
    )


def _first(found: tuple[Indices, Vector]) -> list[tuple[int, float]]:
    """The largest changes, as many as are shown."""
    return list(zip(found[0][:ARROWS].tolist(), found[1][:ARROWS].tolist(), strict=True))


def arrows_of(change: Change) -> list[Arrow]:
    """Backward: from the origin to what changed. Else: to what changed, from all that may follow it."""
    if change.how == "backward":
        return [(_origin(change, s), s, by) for s, by in _first(change.states)]
    n_actions = change.before.shape[1]
    gathered: dict[tuple[int, int], float] = defaultdict(float)
    for pair, by in _first(change.pairs):
        s, a = divmod(pair, n_actions)
        for successor, p in successors(change.model, s, a, *change.before.shape):
            gathered[successor, s] += p * by
    return [(origin, s, by) for (origin, s), by in gathered.items()]


def _origin(change: Change, s: int) -> int:
    """Where a correction of s came from: where two states were planned from, the one that s is known to lead to."""
    if len(change.origins) == 1:
        return change.origins[0]
    asked = learned(change.model, *change.before.shape)
    known = [origin for origin in change.origins if s in asked.predict(origin).states]
    return known[0] if known else change.origins[0]


def successors(model: Any, s: int, a: int, n_states: int, n_actions: int) -> list[tuple[int, float]]:
    """The states that are known to follow (s, a), with their probabilities, the most probable first."""
    if isinstance(model, BothModels):
        model = model.forward
    if isinstance(model, Memory | PrioritizedMemory):
        return _remembered(model.memory if isinstance(model, PrioritizedMemory) else model, s, a)
    asked = learned(model, n_states, n_actions)
    if not isinstance(asked, LearnedForward):
        return []
    return [(s2, p) for s2, _, p in asked.predict(s, a)]


def _remembered(memory: Memory, s: int, a: int) -> list[tuple[int, float]]:
    n = held(memory)
    following = memory.s2[:n][(memory.s[:n] == s) & (memory.a[:n] == a)]
    states, times = np.unique(following, return_counts=True)
    order = np.argsort(-times, kind="stable")
    return [(int(states[k]), float(times[k] / times.sum())) for k in order]


def _sentence(change: Change, name_of: Callable[[int], str]) -> str:
    states, by = change.states
    if not states.size:
        return _nothing(change, name_of)
    main = int((np.abs(by) >= _MINOR * abs(by[0])).sum())
    most = f"{name_of(int(states[0]))} by {signed(by[0])}"
    if change.how == "learning":
        return f"Learned: {most}" + (f", and {counted(main - 1, 'more state')}." if main > 1 else ".")
    if change.how == "backward":
        rest = f" The other {states.size - main:,} moved a little, too." if states.size > main else ""
        whom = most if main == 1 else f"{counted(main, 'state')}, most of all {most}"
        return f"Planned backward from {name_of(change.origins[0])}: corrected {whom}.{rest}"
    if change.how == "forward":
        informing = len({arrow[0] for arrow in arrows_of(change)})
        changed = f"it changed by {signed(by[0])}, from {counted(informing, 'state')} that may follow"
        return f"Planned forward for {name_of(change.origins[0])}: {changed}."
    return f"Planned: changed {counted(main, 'state')}, most of all {most}."


def _nothing(change: Change, name_of: Callable[[int], str]) -> str:
    if change.how == "backward":
        return f"Planned backward from {name_of(change.origins[0])}: nothing to correct."
    if change.how == "forward":
        return f"Planned forward for {name_of(change.origins[0])}: nothing to change."
    return ""


def counted(n: int, thing: str) -> str:
    """1 state, 2 states."""
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def signed(amount: float) -> str:
    """+0.25 or −0.25, to three digits."""
    return f"{amount:+.3g}".replace("-", "−")
