"""Values of a policy and optimal values, where an episode ends at its terminal states."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import sparse

from backcast.arrays import Indices, Mask, Matrix, Vector, as_whole
from backcast.errors import InputError
from backcast.exact.chains import Policy, as_policy, mix
from backcast.exact.solve import certified_krylov, solve_leaky
from backcast.graph import breadth_first, reachable, recurrent_classes
from backcast.mdp import FiniteMDP

Method = Literal["auto", "policy-iteration", "value-iteration"]
_METHODS = ("auto", "policy-iteration", "value-iteration")
_EXACT_EVALUATION = 20_000


def value(mdp: FiniteMDP, policy: Policy = None) -> Vector:
    """v_π = r_π + γ P_π v_π with v_π = 0 in terminal states, (S,).

    Raises:
        InputError: with discount 1, if π may from the start never reach a terminal state and keep earning. (Where that
            is so only in states never reached, their value is NaN.)
    """
    return _evaluate(mdp, as_policy(mdp, policy), mdp.expected_reward)


def action_value(mdp: FiniteMDP, policy: Policy = None) -> Vector:
    """q_π(s, a) = r(s, a) + γ Σ_s' P(s' | s, a) v_π(s'), (S, A); 0 in terminal states."""
    return _look_ahead(mdp, value(mdp, policy))


@dataclass(frozen=True)
class Optimal:
    """Optimal values, as `optimal` gives them back.

    Attributes:
        v: v*(s), (S,).
        q: q*(s, a), (S, A).
        policy: a deterministic optimal policy, (S, A).
        iterations: evaluations of a policy, or sweeps of value iteration.
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
    mdp: FiniteMDP, method: Method = "auto", *, tolerance: float = 1e-10, max_iterations: int = 100_000
) -> Optimal:
    """The optimal values v*(s) = max_a [r(s, a) + γ Σ_s' P(s' | s, a) v*(s')] and a policy that earns them.

    Args:
        mdp: the world.
        method: `policy-iteration` (Howard: evaluate exactly, improve; ends with the exact answer) or
            `value-iteration` (in place, along the ways that lead to rewards and back again); `auto` is the first, but
            with more than 20,000 states the second if policies cannot be evaluated iteratively. With discount 1, the
            best among the policies that end.
        tolerance: value iteration stops when the error of v is at most this (with discount 1: when the
            residual is).
        max_iterations: give up after so many improvements of the policy or sweeps.

    Returns:
        The values, a policy, the number of iterations and the residual.
    """
    if not isinstance(method, str) or method not in _METHODS:
        raise InputError(f"method: {method!r} given, expected one of {', '.join(_METHODS)}")
    if not tolerance > 0:
        raise InputError(f"tolerance: {tolerance} given, expected a positive number")
    as_whole("max_iterations", max_iterations, 1)
    found = None
    if method != "value-iteration":
        large = method == "auto" and mdp.n_states > _EXACT_EVALUATION
        found = _policy_iteration(mdp, max_iterations, _evaluate_iteratively if large else _evaluate)
    used = "value-iteration" if found is None else "policy-iteration"
    v, iterations = found or _value_iteration(mdp, tolerance, max_iterations)
    q = _look_ahead(mdp, v)
    best = q.max(axis=1)
    residual = float(np.abs(best - v).max())
    slack = np.maximum(tolerance if mdp.discount == 1 else 0.0, 1e-12 * np.abs(best))
    policy = as_policy(mdp, _best_and_ending(mdp, q >= (best - slack)[:, None]))
    return Optimal(v, q, policy, iterations, residual, used)


def _policy_iteration(mdp: FiniteMDP, max_iterations: int, evaluate: Any) -> tuple[Vector, int] | None:
    """Howard's algorithm; None if `evaluate` gives up on a policy.

    An action changes only if another is better beyond rounding, so that it ends. The rounding error of a value is in
    proportion to the value of the absolute rewards: where all rewards have one sign, to the value itself.
    """
    actions = _begin_with(mdp)
    sizes = np.abs(mdp.expected_reward)
    for iteration in range(1, max_iterations + 1):
        pi = as_policy(mdp, actions)
        v, size = evaluate(mdp, pi, mdp.expected_reward), evaluate(mdp, pi, sizes)
        if v is None or size is None:
            return None
        q, rounding = _look_ahead(mdp, v), 1e-12 * _look_ahead(mdp, size, sizes).max(axis=1)
        best, old = q.max(axis=1), np.take_along_axis(q, actions[:, None], axis=1)[:, 0]
        better = best - old > rounding
        if not better.any():
            return v, iteration
        actions = np.where(better, q.argmax(axis=1), actions)
    raise InputError(f"max_iterations: {max_iterations} were not enough for policy iteration")


def _value_iteration(mdp: FiniteMDP, tolerance: float, max_iterations: int) -> tuple[Vector, int]:
    """Gauss–Seidel sweeps in breadth-first order from where episodes end or rewards fall, and back again."""
    from backcast.exact.sweeps import sweep

    v = np.zeros(mdp.n_states)
    if mdp.discount == 1:  # monotone only from below: begin with a policy that reaches an end
        v = value(mdp, _begin_with(mdp))
    allowed = tolerance * (1 - mdp.discount if mdp.discount < 1 else 1)
    order = _credit_order(mdp)
    table = mdp.table
    for iteration in range(1, max_iterations + 1):
        change = sweep(table.indptr, table.indices, table.data, mdp.expected_reward, mdp.discount, order, v)
        if change <= allowed:
            return v, iteration
        order = order[::-1].copy()
    raise InputError(f"max_iterations: {max_iterations} sweeps were not enough, values still change by {change:.3g}")


def _credit_order(mdp: FiniteMDP) -> Indices:
    """The states that can still earn, nearest to a reward or an end first; terminal states are left out."""
    predecessors = mdp.graph.T.tocsr()
    order = breadth_first(predecessors, _sources(mdp))
    return order[~mdp.terminal[order]]


def _evaluate(mdp: FiniteMDP, pi: Vector, reward: Vector) -> Vector:
    """The value of a policy for rewards r(s, a)."""
    P = mix(pi, mdp.table)
    r = (pi * reward).sum(axis=1)
    v = np.zeros(mdp.n_states)
    solved = ~mdp.terminal
    if mdp.discount == 1:
        at_rest, earning = _endless(mdp, P, r)
        if (earning & mdp.reachable).any():
            state = int(np.argmax(earning & mdp.reachable))
            raise InputError(
                f"policy: with discount 1, state {state} may never reach a terminal state and keep earning under this"
                " policy, so that its value is not finite"
            )
        v[earning] = np.nan
        solved &= ~at_rest & ~earning
    rows = np.flatnonzero(solved)
    v[rows] = solve_leaky(mdp.discount * P[rows][:, rows], r[rows], dense=not mdp.is_sparse)
    return v


def _evaluate_iteratively(mdp: FiniteMDP, pi: Vector, reward: Vector) -> Vector | None:
    """The same where an iterative solution can be certified (the discount is below 1, the chain mixes); else None."""
    if mdp.discount == 1:
        return None
    rows = np.flatnonzero(~mdp.terminal)
    Q = mdp.discount * mix(pi, mdp.table)[rows][:, rows]
    x = certified_krylov((sparse.eye_array(len(rows)) - Q).tocsr(), (pi * reward).sum(axis=1)[rows])
    if x is None:
        return None
    v = np.zeros(mdp.n_states)
    v[rows] = x
    return v


def _endless(mdp: FiniteMDP, P: Matrix, r: Vector) -> tuple[Mask, Mask]:
    """With discount 1: the states where a chain stays for ever earning nothing, and those that may end up earning."""
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

    With discount 1 going in circles costs nothing, and the first of several best actions might do that.
    """
    return best.argmax(axis=1) if mdp.discount < 1 else _towards(mdp, best, mdp.terminal)


def _begin_with(mdp: FiniteMDP) -> Indices:
    """A policy that heads for where credit comes from; with discount 1 for the ends, so that its values are finite."""
    anything = np.ones((mdp.n_states, mdp.n_actions), dtype=np.bool_)
    return _towards(mdp, anything, mdp.terminal if mdp.discount == 1 else _sources(mdp))


def _sources(mdp: FiniteMDP) -> Mask:
    """Where episodes end or rewards fall."""
    return mdp.terminal | (mdp.expected_reward != 0).any(axis=1)


def _towards(mdp: FiniteMDP, allowed: Mask, targets: Mask) -> Indices:
    """An allowed action of each state on a shortest way to the targets; else the first allowed one."""
    actions = allowed.argmax(axis=1).astype(np.int64)
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
