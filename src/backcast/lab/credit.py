"""Credit: which states a step changed, which states informed them, and the same in words."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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

    def pairs(self) -> tuple[Indices, Vector]:
        """The pairs s·A + a that changed by more than rounding, the largest change first, and by how much."""
        by = (self.after - self.before).ravel()
        tiny = _ROUNDING * max(1.0, float(np.abs(self.after).max(initial=0.0)))
        changed = np.flatnonzero(np.abs(by) > tiny)
        changed = changed[np.argsort(-np.abs(by[changed]), kind="stable")]
        return changed, by[changed]

    def states(self) -> dict[int, float]:
        """The states that changed, the largest change first, and by how much their value of one action did at most."""
        pairs, by = self.pairs()
        found: dict[int, float] = {}
        for s, change in zip((pairs // self.before.shape[1]).tolist(), by.tolist(), strict=True):
            found.setdefault(s, change)
        return found


@dataclass(frozen=True)
class Credit:
    """What the page shows of a step.

    Attributes:
        arrows: from the state that informs, to the state that changed, by how much; the largest first.
        more: how many more there are.
        learned: states that learning changed, and by how much.
        words: one sentence or two.
    """

    arrows: list[Arrow] = field(default_factory=list)
    more: int = 0
    learned: list[tuple[int, float]] = field(default_factory=list)
    words: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For the page."""
        return {"arrows": self.arrows, "more": self.more, "learned": self.learned, "words": self.words}


def credit_of(changes: Sequence[Change], name_of: Callable[[int], str]) -> Credit:
    """The credit of a step that did all this."""
    arrows: list[Arrow] = []
    marks: list[tuple[int, float]] = []
    for change in changes:
        if change.how == "learning":
            marks += list(change.states().items())[:ARROWS]
        else:
            arrows += arrows_of(change)
    arrows.sort(key=lambda arrow: -abs(arrow[2]))
    words = " ".join(filter(None, (_sentence(change, name_of) for change in changes)))
    return Credit(arrows[:ARROWS], max(0, len(arrows) - ARROWS), marks, words or "Nothing changed.")


def arrows_of(change: Change) -> list[Arrow]:
    """Backward: from the origin to all that changed. Else: to what changed, from all that may follow it."""
    if change.how == "backward":
        return [(_origin(change, s), s, by) for s, by in change.states().items()]
    n_actions = change.before.shape[1]
    gathered: dict[tuple[int, int], float] = defaultdict(float)
    pairs, changes = change.pairs()
    for pair, by in zip(pairs[:ARROWS].tolist(), changes.tolist(), strict=False):
        s, a = divmod(pair, n_actions)
        for successor, p in successors(change.model, s, a, len(change.before), n_actions):
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
    found = change.states()
    largest = max((abs(by) for by in found.values()), default=0.0)
    main = {s: by for s, by in found.items() if abs(by) >= _MINOR * largest}
    first = next(iter(found.items()), (0, 0.0))
    most = f"{name_of(first[0])} by {signed(first[1])}"
    origin = name_of(change.origins[0]) if change.origins else ""
    if change.how == "learning":
        others = f", and {counted(len(main) - 1, 'more state')}" if len(main) > 1 else ""
        return f"Learned: {most}{others}." if found else ""
    if change.how == "backward":
        if not found:
            return f"Planned backward from {origin}: nothing to correct."
        rest = f" The other {len(found) - len(main)} moved a little, too." if len(found) > len(main) else ""
        word = "corrected" if len(main) == 1 else f"corrected {counted(len(main), 'state')}, most of all"
        return f"Planned backward from {origin}: {word} {most}.{rest}"
    if change.how == "forward":
        informing = len({arrow[0] for arrow in arrows_of(change)})
        by = f"it changed by {signed(first[1])}, from {counted(informing, 'state')} that may follow"
        return f"Planned forward for {origin}: {by if found else 'nothing to change'}."
    return f"Planned: changed {counted(len(main), 'state')}, most of all {most}." if found else ""


def counted(n: int, thing: str) -> str:
    """1 state, 2 states."""
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def signed(amount: float) -> str:
    """+0.25 or −0.25, to three digits."""
    return f"{amount:+.3g}".replace("-", "−")
