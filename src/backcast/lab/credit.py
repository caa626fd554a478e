"""Credit: which states a step changed, which states informed them, and the same in words."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.models.forward import ExtendedForward, ForwardModel
from backcast.models.lambda_td import LambdaModel
from backcast.models.rows import predict
from backcast.models.side_by_side import BothModels
from backcast.models.two_way import TwoWayModel
from backcast.planners.replay import Memory, PrioritizedMemory, held

How = Literal["learning", "backward", "forward", "elsewhere"]
Arrow = tuple[int, int, float]

ARROWS = 64
_ROUNDING = 1e-12
_MINOR = 0.01  # of the largest change: what is less is counted, not named or drawn
_HARDLY = 1e-5  # of the largest value: what is less is not worth a number


@dataclass(frozen=True)
class Change:
    """What one part of a step did to the values.

    Attributes:
        how: by learning from the step; by planning backward from a state, `origin`; by planning forward for it; or by
            planning elsewhere, as Dyna and sweeping do.
        origin: the state that was planned from; None if there was none.
        before: (S, A) q before it.
        after: (S, A) q after it.
        model: the agent's model.
        rate: the step size of planning.
        discount: γ.
    """

    how: How
    origin: int | None
    before: Vector
    after: Vector
    model: Any
    rate: float = 1.0
    discount: float = 1.0

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
        more: how many states changed to which no arrow leads.
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
    """The largest changes, as many as are shown."""
    return list(zip(found[0][:ARROWS].tolist(), found[1][:ARROWS].tolist(), strict=True))


def arrows_of(change: Change) -> list[Arrow]:
    """Backward: from the origin to what changed. Else: to what changed, from all that informed it."""
    if change.how == "backward":
        assert change.origin is not None
        return [(change.origin, s, by) for s, by in _first(change.states)]
    gathered: dict[tuple[int, int], float] = defaultdict(float)
    for pair, by in _first(change.pairs):
        s, a = divmod(pair, change.before.shape[1])
        for origin, share in _contributions(change, s, a, by):
            gathered[origin, s] += share
    return [(origin, s, by) for (origin, s), by in gathered.items()]


def _contributions(change: Change, s: int, a: int, by: float) -> list[tuple[int, float]]:
    """What each successor s' contributed to the change of q(s, a): α P(s' | s, a) (r + γ̄ max_a' q(s', a') − q(s, a)).

    Where updates were sampled, or made with older values, their sum is another: then the change is spread over what
    may follow, by probability. What nothing is known to follow was informed by itself.
    """
    known = outlooks(change.model, s, a, change.before.max(axis=1), change.discount)
    if not known:
        return [] if change.how == "forward" else [(s, by)]
    pulls = [(s2, p * (target - change.before[s, a])) for s2, p, target in known]
    if change.how == "forward":
        return [(s2, change.rate * pull) for s2, pull in pulls]
    together = sum(pull for _, pull in pulls)
    if together * by > 0 and abs(by) <= abs(together) * (1 + 1e-6):
        return [(s2, pull * by / together) for s2, pull in pulls]
    return [(s2, p * by) for s2, p, _ in known]


def successors(model: Any, s: int, a: int, n_states: int) -> list[tuple[int, float]]:
    """The states that are known to follow (s, a), with their probabilities, the most probable first."""
    known = outlooks(model, s, a, np.zeros(n_states), 1.0)
    return sorted(((s2, p) for s2, p, _ in known), key=lambda entry: -entry[1])


def looks_ahead(model: Any) -> bool:
    """Whether an agent with this model knows what follows a state."""
    forward = ForwardModel | ExtendedForward | TwoWayModel | BothModels | Memory | PrioritizedMemory
    return isinstance(model, forward) or (isinstance(model, LambdaModel) and model.forward)


def outlooks(model: Any, s: int, a: int, best: Vector, discount: float) -> list[tuple[int, float, float]]:
    """What is known to follow (s, a): s', its probability, and r + γ̄(s') max_a' q(s', a') where that is best[s']."""
    if not looks_ahead(model):
        return []
    if isinstance(model, BothModels):
        model = model.forward
    if isinstance(model, Memory | PrioritizedMemory):
        return _remembered(model.memory if isinstance(model, PrioritizedMemory) else model, s, a, best, discount)
    rows = model.rows
    row = s * (len(rows.used) // best.size) + a
    places = slice(rows.offset[row], rows.offset[row] + rows.used[row])
    states, p, _ = predict(rows, row)
    reward, carried = rows.reward[places], rows.carried[places]
    if isinstance(model, LambdaModel):  # whose rows hold what belongs to all ways together
        reward, carried = reward / rows.weight[places], carried / rows.weight[places]
    if isinstance(model, ForwardModel):
        reward, carried = reward + model.state_reward[states], np.where(model.goes_on[states] > 0, discount, 0.0)
    return list(zip(states.tolist(), p.tolist(), (reward + carried * best[states]).tolist(), strict=True))


def _remembered(memory: Memory, s: int, a: int, best: Vector, discount: float) -> list[tuple[int, float, float]]:
    n = held(memory)
    here = np.flatnonzero((memory.s[:n] == s) & (memory.a[:n] == a))
    following = memory.s2[here]
    targets = memory.r[here] + np.where(memory.ends[here], 0.0, discount) * best[following]
    return [
        (int(s2), float(np.mean(following == s2)), float(targets[following == s2].mean()))
        for s2 in np.unique(following)
    ]


def _sentence(change: Change, name_of: Callable[[int], str]) -> str:
    states, by = change.states
    origin = "" if change.origin is None else name_of(change.origin)
    if not states.size:
        nothing = {"backward": f"Planned backward from {origin}: nothing to correct."}
        nothing["forward"] = f"Planned forward for {origin}: nothing to change."
        return nothing.get(change.how, "")
    scale = float(np.abs(change.after).max())
    main = int((np.abs(by) >= _MINOR * abs(by[0])).sum())
    most = f"{name_of(int(states[0]))} by {signed(by[0], scale)}"
    if change.how == "learning":
        return f"Learned: {most}" + (f", and {counted(main - 1, 'more state')}." if main > 1 else ".")
    if change.how == "backward":
        rest = f" The other {states.size - main:,} moved a little, too." if states.size > main else ""
        whom = most if main == 1 else f"{counted(main, 'state')}, most of all {most}"
        return f"Planned backward from {origin}: corrected {whom}.{rest}"
    if change.how == "forward":
        informing = len({arrow[0] for arrow in arrows_of(change)})
        whence = f"{counted(informing, 'state')} that may follow" if informing else "states never seen to follow it"
        return f"Planned forward for {origin}: it changed by {signed(by[0], scale)}, from {whence}."
    return f"Planned: changed {counted(main, 'state')}, most of all {most}."


def counted(n: int, thing: str) -> str:
    """1 state, 2 states."""
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def signed(amount: float, scale: float = 0.0) -> str:
    """+0.25 or −0.25, to three digits; in words where that is nothing on a scale."""
    if abs(amount) < _HARDLY * scale:
        return "almost nothing"
    return f"{amount:+.3g}".replace("-", "−")
