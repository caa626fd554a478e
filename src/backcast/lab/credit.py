"""Credit: the states that a step changed, the states that informed them, and a description in words."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.models.readable import ReadableModel

How = Literal["learning", "backward", "forward", "elsewhere", "values"]
Arrow = tuple[int, int, float]

ARROWS = 64
_ROUNDING = 1e-12
_MINOR = 0.01  # relative to the largest change: smaller changes are counted, not named or drawn
_SAME = 1e-6  # relative difference up to which two sums count as equal
_HARDLY = 1e-5  # relative to the largest value: smaller changes are not given as numbers


def _whole_way(pair: int) -> float:
    return 1.0


@dataclass(frozen=True)
class ValueChange:
    """The effect of one part of a step on the values.

    Attributes:
        how: by learning from the step; by planning backward from a state, `origin`; by planning forward for it; or by
            planning elsewhere, as Dyna and sweeping do, or in no direction that the planner says; or by giving states
            new values, which their actions follow.
        origin: the state that was planned from; None if there was none.
        before: (S, A) q before it.
        after: (S, A) q after it.
        model: the agent's model.
        rate: the step size of planning for a pair.
        discount: γ.
        why: the planner's explanation; empty if there is none.
    """

    how: How
    origin: int | None
    before: Vector
    after: Vector
    model: ReadableModel
    rate: Callable[[int], float] = _whole_way
    discount: float = 1.0
    why: str = ""

    @cached_property
    def pairs(self) -> tuple[Indices, Vector]:
        """The pairs s·A + a that changed by more than rounding, and their changes, the largest first."""
        return self._largest_first((self.after - self.before).ravel())

    @cached_property
    def states(self) -> tuple[Indices, Vector]:
        """The states that changed, and the largest change of an action of each, the largest first.

        If new values are assigned to states, the change of max_a q(s, a).
        """
        if self.how == "values":
            return self._largest_first(self.after.max(axis=1) - self.before.max(axis=1))
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
    """The page's description of a step.

    Attributes:
        arrows: from the informing state to the changed state, with the change; the largest first.
        more: number of changed states without an arrow.
        origins: the states that were planned from.
        learned: states that learning changed, and their changes.
        words: one sentence or two.
    """

    arrows: list[Arrow] = field(default_factory=list)
    more: int = 0
    origins: list[int] = field(default_factory=list)
    learned: list[tuple[int, float]] = field(default_factory=list)
    words: str = ""


def credit_of(changes: Sequence[ValueChange], name_of: Callable[[int], str]) -> Credit:
    """The credit of a step with these effects."""
    planned = [change for change in changes if change.how != "learning"]
    arrows = sorted((arrow for change in planned for arrow in arrows_of(change)), key=lambda arrow: -abs(arrow[2]))
    shown = [arrow for arrow in arrows[:ARROWS] if abs(arrow[2]) >= _MINOR * abs(arrows[0][2])]
    changed = {s for change in planned for s in change.states[0].tolist()}
    words = " ".join(filter(None, (_sentence(change, name_of) for change in changes)))
    return Credit(
        shown,
        len(changed - {arrow[1] for arrow in shown}),
        [change.origin for change in planned if change.origin is not None],
        [mark for change in changes if change.how == "learning" for mark in _first(change.states)],
        words or "Nothing changed.",
    )


def _first(found: tuple[Indices, Vector]) -> list[tuple[int, float]]:
    """The largest changes, up to the number shown."""
    return list(zip(found[0][:ARROWS].tolist(), found[1][:ARROWS].tolist(), strict=True))


def arrows_of(change: ValueChange) -> list[Arrow]:
    """Backward: from the origin to the changed states. Otherwise: from all informing states to the changed states."""
    if change.how == "backward":
        assert change.origin is not None
        return [(change.origin, s, by) for s, by in _first(change.states)]
    if change.how == "values":
        return [(origin, s, part) for s, by in _first(change.states) for origin, part in _informants(change, s, by)]
    gathered: dict[tuple[int, int], float] = defaultdict(float)
    for pair, by in _first(change.pairs):
        s, a = divmod(pair, change.before.shape[1])
        for origin, share in _contributions(change, s, a, by):
            gathered[origin, s] += share
    return [(origin, s, by) for (origin, s), by in gathered.items()]


def _informants(change: ValueChange, s: int, by: float) -> list[tuple[int, float]]:
    """What each successor s' of the best action contributed to the change of v(s) = max_a q(s, a).

    If v(s) followed their latest changes, the contribution is P(s' | s, a) γ̄ Δv(s'). Otherwise, after a real step or if
    another action is the best, it is P(s' | s, a) (r + γ̄ v(s') − v(s)). If shown values differ from expected values,
    the change is spread by probability.
    """
    known = change.model.successors(s, int(change.after[s].argmax()))
    if known is None or not known.keys.size:
        return [(s, by)]
    before, after = (known.targets(q.max(axis=1), change.discount) for q in (change.before, change.after))
    for parts in (after - before, after - change.before[s].max()):
        weighed = known.probability * parts
        if abs(weighed.sum() - by) <= _SAME * abs(by):
            return [(s2, part) for s2, part in zip(known.keys.tolist(), weighed.tolist(), strict=True) if part]
    return list(zip(known.keys.tolist(), (known.probability * by).tolist(), strict=True))


def _contributions(change: ValueChange, s: int, a: int, by: float) -> list[tuple[int, float]]:
    """What each successor s' contributed to the change of q(s, a): α P(s' | s, a) (r + γ̄ max_a' q(s', a') − q(s, a)).

    If updates were sampled, or made with older values, their sum differs: then the change is spread over possible
    successors by probability. A pair without known successors was informed by itself.
    """
    known = change.model.successors(s, a)
    if known is None or not known.keys.size:
        return [] if change.how == "forward" else [(s, by)]
    targets = known.targets(change.before.max(axis=1), change.discount)
    states, chances = known.keys.tolist(), known.probability.tolist()
    pulls = list(zip(states, (known.probability * (targets - change.before[s, a])).tolist(), strict=True))
    if change.how == "forward":
        rate = change.rate(s * change.before.shape[1] + a)
        return [(s2, rate * pull) for s2, pull in pulls]
    together = sum(pull for _, pull in pulls)
    if together * by > 0 and abs(by) <= abs(together) * (1 + _SAME):
        return [(s2, pull * by / together) for s2, pull in pulls]
    return [(s2, p * by) for s2, p in zip(states, chances, strict=True)]


def successors(model: ReadableModel, s: int, a: int) -> list[tuple[int, float]] | None:
    """The known successors of (s, a), the most probable first; None if the model does not look ahead."""
    known = model.successors(s, a)
    if known is None:
        return None
    return sorted(zip(known.keys.tolist(), known.probability.tolist(), strict=True), key=lambda entry: -entry[1])


def _sentence(change: ValueChange, name_of: Callable[[int], str]) -> str:
    if change.why:
        return change.why
    states, by = change.states
    origin = "" if change.origin is None else name_of(change.origin)
    if not states.size:
        nothing = {"backward": f"Planned backward from {origin}: nothing to correct."}
        nothing["forward"] = f"Planned forward for {origin}: nothing to change."
        nothing["elsewhere"] = f"Planned from {origin}: nothing to change." if origin else ""
        return nothing.get(change.how, "")
    scale = float(np.abs(change.after).max())
    main = int((np.abs(by) >= _MINOR * abs(by[0])).sum())
    most = f"{name_of(int(states[0]))} by {signed(by[0], scale)}"
    if change.how == "learning":
        return f"Learned: {most}" + (f", and {counted(main - 1, 'more state')}." if main > 1 else ".")
    if change.how == "backward":
        rest = f" The other {states.size - main:,} changed a little, too." if states.size > main else ""
        whom = most if main == 1 else f"{counted(main, 'state')}, most of all {most}"
        return f"Planned backward from {origin}: corrected {whom}.{rest}"
    if change.how == "forward":
        informing = len({arrow[0] for arrow in arrows_of(change)})
        whence = f"{counted(informing, 'state')} that may follow" if informing else "states never seen to follow it"
        return f"Planned forward for {origin}: it changed by {signed(by[0], scale)}, from {whence}."
    whence = f" from {origin}" if origin else ""
    return f"Planned{whence}: changed {counted(main, 'state')}, most of all {most}."


def counted(n: int, thing: str) -> str:
    """1 state, 2 states."""
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def signed(amount: float, scale: float = 0.0) -> str:
    """+0.25 or −0.25, to three digits; in words if negligible on the scale."""
    if abs(amount) < _HARDLY * scale:
        return "almost nothing"
    return f"{amount:+.3g}".replace("-", "−")
