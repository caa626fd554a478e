"""A planner that chooses where to plan, in which direction, and whether at all.

Hindsight says where: at the predecessors of a state whose value has changed, ranked by their gain from it. Forethought
says what: the value expected under the counted model, so that there is no step size. A gate says whether: an update
must promise at least the average gain of a real step, |E − v| ≥ g. (Charnov's marginal value theorem: leave a patch
when it yields less than the average.)

    real step (s, a, r, s'):   count it;  E(s, a) ← Σ_s' P(s' | s, a) (r + γ v(s'));  commit(s)
    at most `backups` times:   take the state x that promises most;  stop if it promises less than g;  commit(x)

    promise(x) = max(|E(x, π) − v(x)|, max_a E(x, a) − E(x, π))
    commit(x):   if the second term is the larger, π(x) ← argmax_a E(x, a);  v(x) ← E(x, π);  tell those before x
    tell(x):     each edge (s̃, ã) → x:  E(s̃, ã) ← E(s̃, ã) + γ P (v(x) − u),  u ← v(x),  if that passes the gate

u is the value of x that E(s̃, ã) contains, stored beside each edge (`backcast.models.linked`). The policy π changes only
where this gains more than re-evaluating it: with random rewards a maximum over fresh estimates counts to infinity.

A commit costs O(degree · log S). Without a gate and with unlimited backups, v solves the counted model (certainty
equivalence); with none it is forward planning from s with counts and step size 1.
"""

from collections.abc import Callable
from typing import NamedTuple

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import Step
from backcast.models.linked import LinkedModel, twin_of
from backcast.planners.contract import Direction
from backcast.planners.edges import Edges
from backcast.planners.prior import NoPrior, Prior
from backcast.planners.queue import Queue, dequeue, first_priority, is_negligible, note_observed, settle, withdraw
from backcast.values.table import TableValues

FADES = 0.01  # decay of the mean gain: real steps a few hundred steps ago no longer count
BELOW = 1e-12  # relative distance at which actions that are not chosen are shown below the chosen one
MOST = 16  # choices that are remembered for observers
NAMED = 3  # choices that are named in words


class Gate(NamedTuple):
    """The threshold of updates.

    Attributes:
        kappa: κ; 1: the mean gain of a real step; 0: no threshold.
        brings: (2,), the mean |gain| of real steps, and their number.
    """

    kappa: float
    brings: Vector


class Choices(NamedTuple):
    """The choices after the last real step.

    Attributes:
        states: (MOST,), the committed states, the one of the step first.
        promised: (MOST,), what each promised.
        number: (1,), their number, remembered or not.
    """

    states: Indices
    promised: Vector
    number: Indices


@part
class Blend(NamedTuple):
    """Forethought, hindsight and a gate.

    Attributes:
        backups: most states that are committed after each real step.
        gate: the threshold of updates.
        expected: (S·A,), E(s, a); 0 for a pair never tried.
        value: (S,), v(s), the value that others bootstrap from.
        policy: (S,), π(s).
        announced: (S,), v(s) when s last told its predecessors.
        reach: (S,), at least the largest γ P of an edge into s whose beginning may not know v(s).
        queue: the states, with what they promise.
        prior: what is shown in place of E, and assumptions about unseen states and pairs.
        choices: the choices, for observers.
        edges: edges touched.
    """

    backups: int
    gate: Gate
    expected: Vector
    value: Vector
    policy: Indices
    announced: Vector
    reach: Vector
    queue: Queue
    prior: NoPrior | Prior
    choices: Choices
    edges: Edges

    def begin(self, model: LinkedModel, values: TableValues, s: int, discount: float, rates: Vector) -> int:
        """Begin an episode in s."""
        return self.prior.meet(values, s, False)

    def plan(self, model: LinkedModel, values: TableValues, step: Step, discount: float, rates: Vector) -> int:
        """Process the step, then plan where this promises most; return the number of value updates."""
        updates, shown = self.prior.meet(values, step.s2, step.ends), values.get(step.s, step.a)
        foresee(self, model, step, discount)
        gained = wait(self, model, values.n_actions, step.s)
        _compare(self.gate, gained)
        self.choices.number[0] = 0
        if values.n_actions == 1 or not is_negligible(self.queue, gained):
            withdraw(self.queue, step.s)
            _note(self.choices, step.s, gained)
            updates += commit(self, model, values, step.s)
        if values.n_actions > 1 and not step.ends:
            wait(self, model, values.n_actions, step.s2)  # an action never tried may look better by now
        for _ in range(self.backups):
            promised = first_priority(self.queue)
            if promised <= 0.0 or promised < worth(self.gate):
                break
            s = dequeue(self.queue)
            _note(self.choices, s, promised)
            updates += commit(self, model, values, s)
        return updates + (values.get(step.s, step.a) == shown)  # E(s, a) and q(s, a) of the step count as one

    def finish(
        self, model: LinkedModel, values: TableValues, s: int, ends: bool, discount: float, rates: Vector
    ) -> int:
        """End an episode; return the number of value updates."""
        return self.prior.assume(values, worth(self.gate))

    @in_python
    def chosen(self) -> list[tuple[int, float]]:
        """The states committed after the last real step, and what each promised; the state of the step first."""
        number = min(int(self.choices.number[0]), MOST)
        return list(zip(self.choices.states[:number].tolist(), self.choices.promised[:number].tolist(), strict=True))

    @in_python
    def direction(self) -> Direction:
        """It assigns new values to states, and their actions follow."""
        return "values"

    @in_python
    def explain(self, name_of: Callable[[int], str]) -> str:
        """Explain the choice after the last real step: what each candidate promised."""
        if not self.choices.number[0]:
            return f"No update promises more than the gain of a real step, {worth(self.gate):.2g}: no planning."
        (s, gained), *planned = self.chosen()
        words = f"Forethought: {name_of(s)} gained {gained:.2g}."
        if planned:
            named = [f"{name_of(x)} ({promised:.2g})" for x, promised in planned[:NAMED]]
            more = int(self.choices.number[0]) - 1 - len(named)
            words += f" Hindsight, by what they promised: {', '.join(named)}{f' and {more:,} more' if more else ''}."
        return f"{words} {self._left_out(name_of)}"

    def _left_out(self, name_of: Callable[[int], str]) -> str:
        """Explain why planning stopped."""
        least, promised = worth(self.gate), first_priority(self.queue)
        if promised <= 0.0:
            return "Nothing else is queued."
        x = int(self.queue.priority[: self.value.size].argmax())
        if promised < least:
            return f"It stops: {name_of(x)} promises {promised:.2g}, less than the gain of a real step, {least:.2g}."
        return f"{name_of(x)[:1].upper()}{name_of(x)[1:]} promises {promised:.2g}, but the limit on updates is reached."


@kernel
def foresee(planner: Blend, model: LinkedModel, step: Step, discount: float) -> None:
    """Compute E(s, a) from all observed successors of (s, a), with their current values."""
    rows, pair = model.counts.rows, step.s * model.counts.n_actions + step.a
    share, expected = rows.share[pair], 0.0
    planner.edges.touch(rows.used[pair])
    for k in range(rows.offset[pair], rows.offset[pair] + rows.used[pair]):
        s2 = rows.key[k]
        model.told[k] = planner.value[s2]
        expected += rows.weight[k] * (rows.reward[k] + rows.carried[k] * planner.value[s2])
        if s2 == step.s2:
            planner.reach[s2] = max(planner.reach[s2], rows.weight[k] * share * rows.carried[k])
    expected *= share
    target = step.r if step.ends else step.r + discount * planner.value[step.s2]
    note_observed(planner.queue, target)
    planner.prior.try_once_more(pair, planner.expected[pair], expected, target, share)
    planner.expected[pair] = expected


@kernel
def expect(planner: Blend, model: LinkedModel, pair: int) -> float:
    """E(s, a), or the assumption for a pair that was never tried."""
    return planner.expected[pair] if model.counts.rows.used[pair] > 0 else planner.prior.untried()


@kernel
def best_action(planner: Blend, model: LinkedModel, n_actions: int, s: int) -> int:
    """The action with the largest expected value: π(s), unless another is better; then the first of the best."""
    first, chosen = s * n_actions, planner.policy[s]
    most = expect(planner, model, first + chosen)
    for a in range(n_actions):
        other = expect(planner, model, first + a)
        if other > most:
            chosen, most = a, other
    return chosen


@kernel
def wait(planner: Blend, model: LinkedModel, n_actions: int, s: int) -> float:
    """Queue a state with what it promises, unless that is negligible; return what it promises."""
    followed = expect(planner, model, s * n_actions + planner.policy[s])
    promised = abs(followed - planner.value[s])
    if n_actions > 1:
        best = expect(planner, model, s * n_actions + best_action(planner, model, n_actions, s))
        promised = max(promised, best - followed)
    settle(planner.queue, s, promised, 1.0)
    return promised


@kernel
def commit(planner: Blend, model: LinkedModel, values: TableValues, s: int) -> int:
    """Commit s: update its policy, value, shown values and predecessors; return the number of value updates."""
    n_actions, policy = values.n_actions, planner.policy
    value = expect(planner, model, s * n_actions + policy[s])
    if n_actions > 1:
        best = best_action(planner, model, n_actions, s)
        most = expect(planner, model, s * n_actions + best)
        if most - value >= abs(value - planner.value[s]):
            policy[s], value = best, most
    planner.value[s] = value
    updates = _show(planner, model, values, s)
    if n_actions > 1:
        wait(planner, model, n_actions, s)  # a change of the policy may promise something as well
    return updates + tell(planner, model, n_actions, s)


@kernel
def _show(planner: Blend, model: LinkedModel, values: TableValues, s: int) -> int:
    """Write q(s, π) and lower larger values, so that π is greedy; return the number of value updates."""
    value, policy = planner.value[s], planner.policy[s]
    shown = planner.prior.shown(s, value) if values.n_actions == 1 else value
    updates = 0
    if values.get(s, policy) != shown:
        values.put(s, policy, shown)
        updates += 1
    for a in range(values.n_actions):
        if a != policy and values.get(s, a) > value:
            below = value - BELOW * (planner.queue.largest[0] + abs(value))
            values.put(s, a, min(below, expect(planner, model, s * values.n_actions + a)))
            updates += 1
    return updates


@kernel
def tell(planner: Blend, model: LinkedModel, n_actions: int, s: int) -> int:
    """Pass v(s) on to the pairs that led to s, where this passes the gate; return the number of value updates."""
    value, least = planner.value[s], worth(planner.gate)
    news = abs(value - planner.announced[s])
    if planner.backups == 0 or news == 0.0 or news * planner.reach[s] < least:
        return 0
    planner.announced[s] = value
    rows, led_here = model.counts.rows, model.counts.led_here
    reach, updates = 0.0, 0
    planner.edges.touch(led_here.used[s])
    for k in range(led_here.offset[s], led_here.offset[s] + led_here.used[s]):
        pair = led_here.key[k]
        weight = led_here.weight[k] * rows.share[pair] * led_here.carried[k]
        reach = max(reach, weight)
        edge = twin_of(model, k)
        change = weight * (value - model.told[edge])
        if change != 0.0 and abs(change) >= least:
            model.told[edge] = value
            planner.prior.revise(planner.expected[pair], planner.expected[pair] + change)
            planner.expected[pair] += change
            wait(planner, model, n_actions, pair // n_actions)
            updates += 1
    planner.reach[s] = reach
    return updates


@kernel
def worth(gate: Gate) -> float:
    """The least that an update must promise."""
    return gate.kappa * gate.brings[0]


@kernel
def _compare(gate: Gate, gained: float) -> None:
    """Record the gain of a real step."""
    gate.brings[1] += 1.0
    gate.brings[0] += max(1.0 / gate.brings[1], FADES) * (gained - gate.brings[0])


@kernel
def _note(choices: Choices, s: int, promised: float) -> None:
    number = choices.number[0]
    if number < choices.states.size:
        choices.states[number], choices.promised[number] = s, promised
    choices.number[0] = number + 1
