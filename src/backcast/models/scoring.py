"""How far a learned backward model is from the exact one.

All numbers are averages over arrivals in s under the policy. A model that describes steps, not restarts, is compared
with the exact one given that no episode began in s.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from backcast.core.arrays import Vector, as_floats
from backcast.core.errors import InputError

_LEAST = 1e-12  # what a model that leaves nothing to a pair is taken to have left, in the divergence
_MOST_ENTRIES = 50_000_000


class ModelScore(NamedTuple):
    """Errors of a backward model.

    Attributes:
        tv: the total variation ½ Σ |p − P←|, where what a model leaves to no pair counts as well.
        kl: the divergence Σ P← log(P← / p).
        correction: ‖Δ − Δ←‖ / ‖Δ←‖ of the expected corrections Δ(s)[s̃, ã] = p (r + γ max_a q(s, a) − q(s̃, ã)).
        valid: the mass on pairs of states that exist.
    """

    tv: float
    kl: float
    correction: float
    valid: float


def score_backward(learned: Any, exact: Any, values: Any) -> ModelScore:
    """The score of a model in the layout of `backcast.exact`, with `joint` and `earned`."""
    if not hasattr(exact, "joint") or not hasattr(exact, "d"):
        raise InputError(f"exact: {type(exact).__name__} given, expected backcast.exact.backward(mdp, policy)")
    S, A = learned.n_states, learned.n_actions
    if exact.mdp.n_states != S:
        raise InputError(f"exact: a model of {exact.mdp.n_states} states given, expected {S}")
    if S * S * exact.mdp.n_actions > _MOST_ENTRIES:
        raise InputError(f"exact: a model of {S:,} states is too large to be compared entry by entry")
    q = as_floats("values", values).reshape(-1)
    if q.size not in (S, S * A):
        raise InputError(f"values: {q.size} numbers given, expected {S} or {S} × {A}")
    q = np.broadcast_to(q.reshape(S, -1), (S, A))
    truth, weight = _steps(exact, A, learned.contains_restarts)
    p = np.nan_to_num(learned.joint).reshape(S, -1)
    mass = p.sum(axis=1)
    tv = 0.5 * (np.abs(p - truth).sum(axis=1) + np.maximum(0.0, 1.0 - mass))
    kl = np.where(truth > 0, truth * np.log(np.where(truth > 0, truth, 1.0) / np.maximum(p, _LEAST)), 0.0).sum(axis=1)
    goes_on = np.where(exact.mdp.terminal, 0.0, exact.mdp.discount)
    ahead = (goes_on * q.max(axis=1))[:, None] - q.reshape(1, -1)
    earned = np.repeat(np.nan_to_num(_rewards(learned, S)), A, axis=1)
    ours, theirs = p * (earned + ahead), truth * (_true_rewards(exact.mdp, A) + ahead)
    size = (weight * np.linalg.norm(theirs, axis=1)).sum()
    off = (weight * np.linalg.norm(ours - theirs, axis=1)).sum()
    return ModelScore(
        float(weight @ tv), float(weight @ kl), float(off / size) if size > 0 else float("nan"), float(weight @ mass)
    )


def _steps(exact: Any, n_actions: int, with_restarts: bool) -> tuple[Vector, Vector]:
    """P←(s̃, ã | s), (S, S·A), 0 in rows that do not exist, and how often states are arrived at, (S,)."""
    joint = exact.joint.toarray() if sparse.issparse(exact.joint) else exact.joint
    S = exact.mdp.n_states
    joint = np.nan_to_num(joint).reshape(S, S, -1)
    if n_actions == 1:
        joint = joint.sum(axis=2, keepdims=True)
    if not with_restarts:
        joint = np.where(exact.mdp.terminal[None, :, None], 0.0, joint)
    mass = joint.sum(axis=(1, 2))
    weight = exact.d * mass
    rows = joint.reshape(S, -1) / np.where(mass > 0, mass, 1.0)[:, None]
    return rows, weight / weight.sum()


def _rewards(learned: Any, n_states: int) -> Vector:
    """The mean reward of each pair of states, (S, S) [s, s̃]."""
    reward = learned.reward
    return np.broadcast_to(reward[:, None], (n_states, n_states)) if reward.ndim == 1 else reward.T


def _true_rewards(mdp: Any, n_actions: int) -> Vector:
    """r(s̃, ã, s), (S, S·A) [s, s̃ã]; where there is nothing to choose, that of the first action that can lead there."""
    S, A = mdp.n_states, mdp.n_actions
    table = np.zeros((S * A, S))
    rows = np.repeat(np.arange(S * A), np.diff(mdp.table.indptr))
    table[rows, mdp.table.indices] = mdp.table_reward.data
    if n_actions == A:
        return table.T
    chance = np.zeros((S * A, S))
    chance[rows, mdp.table.indices] = mdp.table.data
    by_state, weight = (chance * table).reshape(S, A, S).sum(axis=1), chance.reshape(S, A, S).sum(axis=1)
    return (by_state / np.where(weight > 0, weight, 1.0)).T
