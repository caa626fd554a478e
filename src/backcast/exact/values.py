"""Values of a policy and optimal values, where episodes end in terminal states."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Mask, Matrix, Vector, as_number, as_whole
from backcast.core.errors import InputError
from backcast.core.graph import breadth_first, reachable, recurrent_classes
from backcast.exact.chains import Policy, as_policy, mix
from backcast.exact.solve import Leaky
from backcast.mdp import FiniteMDP

Method = Literal["auto", "policy-iteration", "value-iteration"]
_METHODS = ("auto", "policy-iteration", "value-iteration")
_EXACT_EVALUATION = 20_000
_IMPROVEMENTS, _SWEEPS = 1_000, 100_000
_ROUNDING, _ROUNDING_OF_MANY = 1e-13, 1e-12  # errors of values, relative to the values of the absolute rewards
_SIGNIFICANT = 1e-6


def value(mdp: FiniteMDP, policy: Policy = None) -> Vector:
    """v_π = r_π + γ P_π v_π with v_π = 0 in terminal states, (S,).

    States are eliminated without subtraction. The error of v(s) is therefore of the order of the rounding unit times
    the value of the absolute rewards |r(s, a, s')|, however long episodes are; if all rewards have one sign, every
    value is exact to rounding. Large sparse worlds that mix fast are solved iteratively, which is accepted if the error
    is certified to be at most 1e-8 max |v|.

    Raises:
        InputError: with discount 1, if π may from the start never reach a terminal state and keep earning. (If this
            holds only for states that are never reached, their values are NaN.) Also if rewards of both signs cancel so
            far that nothing certain is left of the values, or if a world is too large to be eliminated and its values
            cannot be certified.
    """
    evaluation = _Evaluation(mdp, as_policy(mdp, policy))
    if (mdp.table_reward.data >= 0).all() or (mdp.table_reward.data <= 0).all():
        return evaluation.of(mdp.expected_reward)
    absolute = _absolute_reward(mdp)
    v, size = evaluation.of(mdp.expected_reward, absolute).T
    lost = _ROUNDING * np.nanmax(size)
    if lost > _SIGNIFICANT * max(np.nanmax(np.abs(v)), absolute.max()):
        raise InputError(
            f"policy: rewards of both signs sum to up to {np.nanmax(size):.2g} and nearly cancel, so that the values"
            f" are not known in double precision beyond ±{lost:.1g}"
        )
    return v


def action_value(mdp: FiniteMDP, policy: Policy = None) -> Vector:
    """q_π(s, a) = r(s, a) + γ Σ_s' P(s' | s, a) v_π(s'), (S, A); 0 in terminal states."""
    return _look_ahead(mdp, value(mdp, policy))


@dataclass(frozen=True)
class Optimal:
    """Optimal values, as returned by `optimal`.

    Attributes:
        v: v*(s), (S,).
        q: q*(s, a), (S, A).
        policy: a deterministic optimal policy, (S, A).
        iterations: number of policy evaluations, or of sweeps of value iteration.
        residual: max_s |max_a q(s, a) − v(s)|; the error of v is at most residual / (1 − γ).
        method: the method that was used.
    """

    v: Vector = field(repr=False)
    q: Vector = field(repr=False)
    policy: Vector = field(repr=False)
    iterations: int
    residual: float
    method: str


def optimal(
    mdp: FiniteMDP, method: Method = "auto", *, tolerance: float = 1e-10, max_iterations: int | None = None
) -> Optimal:
    """The optimal values v*(s) = max_a [r(s, a) + γ Σ_s' P(s' | s, a) v*(s')] and a policy that attains them.

    Args:
        mdp: the world.
        method: `policy-iteration` (Howard: evaluate exactly, improve; the answer is exact) or `value-iteration` (in
            place, along the paths that lead to rewards and back again). `auto` is the first. With more than 20,000
            states and a discount below 1, `auto` evaluates policies iteratively, and uses the second if they cannot be
            certified. With discount 1, the result is the best among the policies that end.
        tolerance: value iteration stops when the error of v is at most this. With discount 1 it stops when a sweep
            changes less than this and its policy, evaluated exactly, cannot be improved.
        max_iterations: the most improvements of the policy (default 1,000) or sweeps (default 100,000).

    Returns:
        The values, a policy, the number of iterations and the residual.

    Raises:
        InputError: if `max_iterations` is not enough; or if episodes are so long that the better of two actions cannot
            be determined in double precision.
    """
    if not isinstance(method, str) or method not in _METHODS:
        raise InputError(f"method: {method!r} given, expected one of {', '.join(_METHODS)}")
    tolerance = as_number("tolerance", tolerance, np.nextafter(0, 1), np.inf, "a positive number")
    if max_iterations is not None:
        as_whole("max_iterations", max_iterations, 1)
    found = None
    if method != "value-iteration":
        iterative = method == "auto" and mdp.n_states > _EXACT_EVALUATION and mdp.discount < 1
        found = _policy_iteration(mdp, max_iterations or _IMPROVEMENTS, iterative)
    used = "value-iteration" if found is None else "policy-iteration"
    v, iterations = found or _value_iteration(mdp, tolerance, max_iterations or _SWEEPS)
    q = _look_ahead(mdp, v)
    best = q.max(axis=1)
    residual = float(np.abs(best - v).max())
    slack = np.maximum(tolerance if mdp.discount == 1 else 0.0, 1e-12 * np.abs(best))
    policy = as_policy(mdp, _best_and_ending(mdp, q >= (best - slack)[:, None]))
    return Optimal(v, q, policy, iterations, residual, used)


class _Judgement:
    """Whether a policy can be improved by more than rounding.

    Args:
        mdp: the world.
        actions: the policy, one action per state (S,).
        values: its values for the rewards, for their absolute values and for 1 in each step, (S, 3).

    Attributes:
        v: its values (S,).
        best: the best action of each state, (S,).
        better: where it is better than the policy's action by more than rounding, (S,).
    """

    def __init__(self, mdp: FiniteMDP, actions: Indices, values: Vector) -> None:
        self._mdp, self._actions = mdp, actions
        self.v, size, self._steps = values.T
        q = _look_ahead(mdp, self.v)
        self._relative = _ROUNDING if mdp.n_states <= _EXACT_EVALUATION else _ROUNDING_OF_MANY
        self._rounding = self._relative * _look_ahead(mdp, size, _absolute_reward(mdp)).max(axis=1)
        self._gains = q - np.take_along_axis(q, actions[:, None], axis=1)
        self.best = q.argmax(axis=1)
        self.better = self._gains.max(axis=1) > self._rounding

    def refuse_what_is_undecided(self) -> None:
        """Raise InputError if an action that looks as good as the policy's may improve the values by a relative 1e-6.

        A difference lost in rounding may add up over every step of an episode.
        """
        steps = float(np.nanmax(self._steps))
        if steps * self._relative <= _SIGNIFICANT:
            return
        earns = (self._rounding > 0) & ~self._mdp.terminal  # where nothing is ever earned, all actions are alike
        alike = (np.abs(self._gains) <= self._rounding[:, None]) & earns[:, None]
        alike &= ~_same_rows(self._mdp, self._actions)
        if alike.any():
            s, a = (int(i) for i in np.argwhere(alike)[0])
            raise InputError(
                f"discount: with {self._mdp.discount!r}, the best policy found is evaluated over up to {steps:.2g}"
                f" steps, and whether action {self._actions[s]} or {a} is better in state {s} is lost in rounding"
            )


def _policy_iteration(mdp: FiniteMDP, max_iterations: int, iterative: bool) -> tuple[Vector, int] | None:
    """Howard's algorithm; None with `iterative` if an evaluation cannot be certified.

    An action changes only if another is better by more than rounding, so that the iteration ends.
    """
    actions = _begin_with(mdp)
    for iteration in range(1, max_iterations + 1):
        judgement = _judge(mdp, actions, iterative)
        if judgement is None:
            return None
        if not judgement.better.any():
            judgement.refuse_what_is_undecided()
            return judgement.v, iteration
        actions = np.where(judgement.better, judgement.best, actions)
    raise InputError(f"max_iterations: {max_iterations} improvements were not enough for policy iteration")


def _judge(mdp: FiniteMDP, actions: Indices, iterative: bool = False) -> Any:
    """The judgement of a policy; None with `iterative` if its evaluation cannot be certified."""
    kinds = mdp.expected_reward, _absolute_reward(mdp), np.ones(mdp.expected_reward.shape)
    values = _Evaluation(mdp, as_policy(mdp, actions)).of(*kinds, iterative=iterative)
    return None if values is None else _Judgement(mdp, actions, values)


def _value_iteration(mdp: FiniteMDP, tolerance: float, max_iterations: int) -> tuple[Vector, int]:
    """Gauss–Seidel sweeps in breadth-first order from the ends of episodes and the rewards, and back again."""
    from backcast.exact.value_iteration import sweep

    v = np.zeros(mdp.n_states)
    if mdp.discount == 1:  # monotone only from below: start from a policy that reaches an end
        v = value(mdp, _begin_with(mdp))
    allowed = tolerance * (1 - mdp.discount if mdp.discount < 1 else 1)
    order = _credit_order(mdp)
    table = mdp.table
    for iteration in range(1, max_iterations + 1):
        change = sweep(table.indptr, table.indices, table.data, mdp.expected_reward, mdp.discount, order, v)
        if change <= allowed:
            if mdp.discount < 1:
                return v, iteration
            actions = _greedy_and_ending(mdp, v, tolerance)
            judgement = _judge(mdp, actions)
            if not judgement.better.any():
                judgement.refuse_what_is_undecided()
                return judgement.v, iteration
            v = np.fmax(v, judgement.v)
        order = order[::-1].copy()
    raise InputError(f"max_iterations: {max_iterations} sweeps were not enough, values still change by {change:.3g}")


def _credit_order(mdp: FiniteMDP) -> Indices:
    """The states that can still earn, nearest to a reward or an end first; terminal states are left out."""
    predecessors = mdp.graph.T.tocsr()
    order = breadth_first(predecessors, _sources(mdp))
    return order[~mdp.terminal[order]]


class _Evaluation:
    """The linear system of the values of a policy π (S, A)."""

    def __init__(self, mdp: FiniteMDP, pi: Vector) -> None:
        self._mdp, self._pi = mdp, pi
        P = mix(pi, mdp.table)
        r = (pi * mdp.expected_reward).sum(axis=1)
        solved, self._unknown = ~mdp.terminal, np.zeros(mdp.n_states, dtype=np.bool_)
        if mdp.discount == 1:
            at_rest, self._unknown = _endless(mdp, P, r)
            if (self._unknown & mdp.reachable).any():
                state = int(np.argmax(self._unknown & mdp.reachable))
                raise InputError(
                    f"policy: with discount 1, state {state} may never reach a terminal state and keep earning under"
                    " this policy, so that its value is not finite"
                )
            solved &= ~at_rest & ~self._unknown
        self._rows = np.flatnonzero(solved)
        rows = P[self._rows]
        ends = np.asarray(rows[:, np.flatnonzero(~solved)].sum(axis=1)).ravel()
        leak = 1 - mdp.discount + mdp.discount * ends
        self._system = Leaky(mdp.discount * rows[:, self._rows], leak)

    def of(self, *rewards: Vector, iterative: bool = False) -> Any:
        """The values (S,) of one reward function r(s, a), or (S, k) of several.

        With `iterative`, None if they cannot be found and certified iteratively.
        """
        earned = np.stack([(self._pi * reward).sum(axis=1) for reward in rewards], axis=1)
        b = earned[self._rows, 0] if len(rewards) == 1 else earned[self._rows]
        x = self._system.solve_iteratively(b) if iterative else self._system.solve(b)
        if x is None:
            return None
        v = np.zeros((self._mdp.n_states, *x.shape[1:]))
        v[self._unknown] = np.nan
        v[self._rows] = x
        return v


def _endless(mdp: FiniteMDP, P: Matrix, r: Vector) -> tuple[Mask, Mask]:
    """With discount 1: the states where a chain stays for ever earning nothing, and those that may keep earning."""
    back = P.T.tocsr()
    caught = np.flatnonzero(~reachable(back, mdp.terminal))
    at_rest, earning = np.zeros((2, mdp.n_states), dtype=np.bool_)
    for members in recurrent_classes(P[caught][:, caught]):
        (earning if r[caught[members]].any() else at_rest)[caught[members]] = True
    return at_rest, reachable(back, earning)


def _look_ahead(mdp: FiniteMDP, v: Vector, reward: Vector | None = None) -> Vector:
    """q(s, a) = r(s, a) + γ Σ_s' P(s' | s, a) v(s'), (S, A), 0 in terminal states."""
    q = (mdp.expected_reward if reward is None else reward) + mdp.discount * (mdp.table @ v).reshape(
        mdp.n_states, mdp.n_actions
    )
    q[mdp.terminal] = 0.0
    return q


def _best_and_ending(mdp: FiniteMDP, best: Mask) -> Indices:
    """The first of the best actions of each state; with discount 1 one that leads to a terminal state.

    With discount 1 going in circles costs nothing, and the first of several best actions may do so.
    """
    return best.argmax(axis=1) if mdp.discount < 1 else _towards(mdp, best, mdp.terminal)


def _greedy_and_ending(mdp: FiniteMDP, v: Vector, slack: float) -> Indices:
    """A policy that is greedy for v up to `slack`, except where that does not lead to a terminal state."""
    q = _look_ahead(mdp, v)
    return _towards(mdp, q >= q.max(axis=1, keepdims=True) - slack, mdp.terminal, _begin_with(mdp))


def _begin_with(mdp: FiniteMDP) -> Indices:
    """A policy that heads for rewards and ends; with discount 1 for ends only, so that its values are finite."""
    anything = np.ones((mdp.n_states, mdp.n_actions), dtype=np.bool_)
    return _towards(mdp, anything, mdp.terminal if mdp.discount == 1 else _sources(mdp))


def _sources(mdp: FiniteMDP) -> Mask:
    """The states where episodes end or rewards are earned."""
    return mdp.terminal | (mdp.expected_reward != 0).any(axis=1)


def _towards(mdp: FiniteMDP, allowed: Mask, targets: Mask, otherwise: Indices | None = None) -> Indices:
    """An allowed action of each state on a shortest path to the targets, or the given one, or the first allowed."""
    actions = (allowed.argmax(axis=1) if otherwise is None else otherwise).astype(np.int64)
    rows = np.repeat(np.arange(mdp.table.shape[0]), np.diff(mdp.table.indptr))
    usable = allowed.ravel()[rows]
    edges = sparse.csr_array(
        (np.ones(int(usable.sum())), (mdp.table.indices[usable], rows[usable])),
        shape=(mdp.n_states, mdp.table.shape[0]),
    )
    reached = targets.copy()
    front = np.flatnonzero(reached)
    while front.size:
        found = np.unique(edges[front].indices)[::-1]
        states = found // mdp.n_actions
        new = ~reached[states]
        actions[states[new]] = found[new] % mdp.n_actions
        front = np.unique(states[new])
        reached[front] = True
    return actions


def _absolute_reward(mdp: FiniteMDP) -> Vector:
    """Σ_s' P(s' | s, a) |r(s, a, s')|, (S, A)."""
    return np.asarray((mdp.table * abs(mdp.table_reward)).sum(axis=1)).reshape(mdp.expected_reward.shape)


def _same_rows(mdp: FiniteMDP, actions: Indices) -> Mask:
    """Whether each action has the same outcomes as the given action of its state, (S, A)."""
    n_states, n_actions = mdp.expected_reward.shape
    chosen = np.repeat(np.arange(n_states) * n_actions + actions, n_actions)
    moves = abs(mdp.table - mdp.table[chosen]).sum(axis=1) == 0
    return moves.reshape(n_states, n_actions) & (
        mdp.expected_reward == mdp.expected_reward.ravel()[chosen].reshape(n_states, n_actions)
    )
