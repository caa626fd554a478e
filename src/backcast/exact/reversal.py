"""Backward models: the chain reversed in time.

By Bayes' rule the state and action before s' are distributed as (appendix A.1)

    P←_π(s, a | s') = d_π(s) π(a | s) P(s' | s, a) / d_π(s'),

which depends on the policy. So does the model that is also conditioned on the action (appendix A.2). A state that
is never visited has no past: its row is undefined. It is NaN here, and listed in `undefined`.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Matrix, Vector
from backcast.exact.chains import Policy, as_chain, as_policy, in_given_form, mix, restarting, scale
from backcast.exact.stationary import Visits, visits, visits_at, visits_of_chain
from backcast.mdp import FiniteMDP

_HEADROOM = 300  # bits, so that products of scaled probabilities neither underflow nor overflow


@dataclass(frozen=True)
class Backward:
    """A backward model of a policy; S' is the state conditioned on, S its predecessor.

    For a sparse world, `joint` is csr (S', S*A), `states` csr (S', S) and `given_action` csr (S'*A, S), and a
    row that is undefined holds a single NaN, so that everything computed from it is NaN too.

    Attributes:
        joint: P←(s, a | s'), (S', S, A).
        states: P←(s | s') = Σ_a P←(s, a | s'), (S', S).
        given_action: P←(s | s', a) = P←(s, a | s') / π←(a | s'), (S', A, S); NaN where π←(a | s') is 0.
        action: the backward policy π←(a | s') = Σ_s P←(s, a | s'), (S', A).
        undefined: the states s' that are never visited, whose rows are undefined.
        d: (S',), the probability of s'.
        mdp: the world.
    """

    joint: Matrix = field(repr=False)
    states: Matrix = field(repr=False)
    given_action: Matrix = field(repr=False)
    action: Vector = field(repr=False)
    undefined: Indices
    d: Vector = field(repr=False)
    mdp: FiniteMDP = field(repr=False)


def backward(mdp: FiniteMDP, policy: Policy = None) -> Backward:
    """The backward model P←_π of the stationary chain (appendix A.1 and A.2).

    Examples:
        >>> mdp = FiniteMDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[0.0], [1.0]], 0.9, [1.0, 0.0])
        >>> backward(mdp).states   # d = (2/3, 1/3): half of the visits to 0 come from 1, all visits to 1 from 0
        array([[0.5, 0.5],
               [1. , 0. ]])
    """
    d = visits(mdp, policy)
    return _backward(mdp, policy, d, d)


def backward_at(mdp: FiniteMDP, policy: Policy = None, *, t: int) -> Backward:
    """The backward model from step t + 1 to step t of a chain that began at `start` (equation 2).

    P←_{π,t}(s, a | s') = d_{π,t}(s) π(a | s) P(s' | s, a) / d_{π,t+1}(s').
    Rows of states that cannot be reached in exactly t + 1 steps are undefined; all others are defined, however small.
    """
    before, after = (visits_at(mdp, policy, t=time) for time in (t, t + 1))
    return _backward(mdp, policy, before, after)


def reverse(P: object) -> Matrix:
    """The chain P reversed in time: diag(d)⁻¹ · Pᵀ · diag(d), with d its stationary distribution.

    Args:
        P: (S, S) [s, s'], a chain with one recurrent class, dense or scipy.sparse.

    Returns:
        P←(s̃ | s), (S, S) [s, s̃], dense or csr like P. States that are never visited in the long run have no past:
        their rows are NaN, in a sparse result a single NaN at [s, s].

    Raises:
        InputError: if the rows of P are not distributions, or if P has more than one recurrent class.

    Examples:
        >>> reverse([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])   # d = (2/5, 2/5, 1/5)
        array([[0.5, 0. , 0.5],
               [0.5, 0.5, 0. ],
               [0. , 1. , 0. ]])
    """
    chain = as_chain("P", P)
    d = visits_of_chain(chain)
    return undefine(by_bayes(chain, d, d), d.never)


def by_bayes(forward: Matrix, before: Visits, after: Visits) -> Matrix:
    """diag(after)⁻¹ · forwardᵀ · diag(before): [s̃, s] becomes [s, s̃]; rows with after(s) = 0 are 0."""
    bits = bool(before.bits.any() or after.bits.any())
    weighed = scale(np.ldexp(before.scaled, _HEADROOM) if bits else before.scaled, forward).T
    share, never = after.scaled, after.scaled == 0
    if not sparse.issparse(weighed):
        back = np.divide(weighed, share[:, None], out=np.zeros(weighed.shape), where=~never[:, None])
        return np.ldexp(back, after.bits[:, None] - before.bits - _HEADROOM) if bits else back
    weighed = weighed.tocsr()
    rows = np.repeat(np.arange(len(share)), np.diff(weighed.indptr))
    weighed.data /= np.where(never, np.inf, share)[rows]
    if bits:
        weighed.data = np.ldexp(weighed.data, after.bits[rows] - before.bits[weighed.indices] - _HEADROOM)
    return weighed


def undefine(rows: Matrix, undefined: Indices, width: int = 1) -> Matrix:
    """Mark rows as undefined: all NaN if dense, one NaN (at the state itself) if sparse.

    Args:
        rows: (n, m), dense or csr, in which the rows to mark are 0.
        undefined: the rows to mark.
        width: columns per state.
    """
    if not sparse.issparse(rows):
        rows[undefined] = np.nan
        return rows
    marks = (np.full(len(undefined), np.nan), (undefined, (undefined * width) % rows.shape[1]))
    return (rows + sparse.csr_array(marks, shape=rows.shape)).tocsr()


def _backward(mdp: FiniteMDP, policy: Policy, before: Visits, after: Visits) -> Backward:
    """P←(s, a | s') = before(s) π(a | s) P(s' | s, a) / after(s')."""
    pi = as_policy(mdp, policy)
    n_states, n_actions = pi.shape
    table = restarting(mdp)
    acting = Visits((before.scaled[:, None] * pi).ravel(), np.repeat(before.bits, n_actions))
    joint = by_bayes(table, acting, after).tocsr()
    states = by_bayes(mix(pi, table), before, after)
    by_action = [joint[:, np.arange(a, n_states * n_actions, n_actions)] for a in range(n_actions)]
    action = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in by_action], axis=1)
    given_action = sparse.vstack(by_action, format="csr")
    # vstack orders rows by (a, s'); the layout is (s', a)
    given_action = given_action[np.arange(n_states * n_actions).reshape(n_actions, n_states).T.ravel()]
    odds = np.divide(1.0, action, out=np.zeros_like(action), where=action > 0)
    given_action = scale(odds.ravel(), given_action)
    undefined = after.never
    never = np.flatnonzero(action.ravel() == 0)
    action[undefined] = np.nan
    shape = (n_states, n_states, n_actions)
    joint = undefine(in_given_form(mdp, joint), undefined, n_actions)
    states = undefine(in_given_form(mdp, states), undefined)
    given_action = undefine(in_given_form(mdp, given_action), never)
    if not mdp.is_sparse:
        joint = joint.reshape(shape)
        given_action = given_action.reshape(n_states, n_actions, n_states)
    return Backward(joint, states, given_action, action, undefined, after.d, mdp)
