"""Errors of a learned backward model relative to the exact one.

All numbers are averages over arrivals in s under the policy. A model that describes steps, not restarts, is compared
with the exact model given that no episode began in s.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.core.arrays import Matrix, Vector, as_floats
from backcast.core.errors import InputError
from backcast.mdp import FiniteMDP

_LEAST = 1e-12  # smallest probability in the divergence
_MOST_ENTRIES = 50_000_000


class ModelScore(NamedTuple):
    """Errors of a backward model.

    Attributes:
        tv: the total variation ½ Σ |p − P←|, including probability that a model gives to no pair.
        kl: the divergence Σ P← log(P← / p).
        correction: ‖Δ − Δ←‖ / ‖Δ←‖ of the expected corrections Δ(s)[s̃, ã] = p (r + γ max_a q(s, a) − q(s̃, ã)).
        valid: the probability of pairs whose states exist.
    """

    tv: float
    kl: float
    correction: float
    valid: float


class Scored(Protocol):
    """A learned backward model, as `backcast.models.readable.LearnedBackward`."""

    contains_restarts: bool
    joint: Vector
    states: Vector
    earned: Vector
    discounted: Vector


class Truth(Protocol):
    """The exact model: `joint` for one step, the other attributes for several."""

    mdp: FiniteMDP
    d: Vector
    joint: Matrix
    states: Matrix
    earned: Matrix
    discounted: Matrix


def score_backward(learned: Any, exact: Any, values: ArrayLike) -> ModelScore:
    """Score a model against an exact one, by `joint` for one step and by `states` for several."""
    joint = hasattr(exact, "joint")
    if not (joint or hasattr(exact, "discounted")) or getattr(exact, "d", None) is None:
        raise InputError(
            f"exact: {type(exact).__name__} given, expected backcast.exact.backward(mdp, policy), or n_step(…) of the"
            " steps that the model looks back"
        )
    S, A = learned.n_states, learned.n_actions
    if exact.mdp.n_states != S:
        raise InputError(f"exact: a model of {exact.mdp.n_states} states given, expected {S}")
    if S * S * exact.mdp.n_actions > _MOST_ENTRIES:
        raise InputError(f"exact: a model of {S:,} states is too large to be compared entry by entry")
    q = as_floats("values", values).reshape(-1)
    if q.size not in (S, S * A):
        raise InputError(f"values: {q.size} numbers given, expected {S} or {S} × {A}")
    q = np.broadcast_to(q.reshape(S, -1), (S, A))
    return (_score_steps if joint else _score_ways)(learned, exact, q)


def _score_steps(learned: Scored, exact: Truth, q: Vector) -> ModelScore:
    """The score for one step, over pairs s̃, ã, with values (S, A)."""
    S, A = q.shape
    truth, weight = _steps(exact, A, learned.contains_restarts)
    p = np.nan_to_num(learned.joint).reshape(S, -1)
    goes_on = np.where(exact.mdp.terminal, 0.0, exact.mdp.discount)
    ahead = (goes_on * q.max(axis=1))[:, None] - q.reshape(1, -1)
    earned = np.repeat(np.nan_to_num(_rewards(learned, S)), A, axis=1)
    return _compare(p, truth, p * (earned + ahead), truth * (_true_rewards(exact.mdp, A) + ahead), weight)


def _score_ways(learned: Scored, exact: Truth, q: Vector) -> ModelScore:
    """The score for several steps, over states s̃ without actions; in control, with values max_a q(s, a)."""
    v = q.max(axis=1)
    truth, earned, discounted = (_dense(part) for part in (exact.states, exact.earned, exact.discounted))
    if not learned.contains_restarts:
        truth, earned, discounted = (np.where(exact.mdp.terminal, 0.0, part) for part in (truth, earned, discounted))
    mass = truth.sum(axis=1)
    weight, share = exact.d * mass, np.where(mass > 0, mass, 1.0)[:, None]
    p = np.nan_to_num(learned.states)
    ours = np.nan_to_num(learned.earned) + np.nan_to_num(learned.discounted) * v[:, None] - p * v
    theirs = (earned + discounted * v[:, None] - truth * v) / share
    return _compare(p, truth / share, ours, theirs, weight / weight.sum())


def _compare(p: Vector, truth: Vector, ours: Vector, theirs: Vector, weight: Vector) -> ModelScore:
    """Compare rows of probabilities and of corrections, (S, n) each, averaged over arrivals (S,)."""
    mass = p.sum(axis=1)
    tv = 0.5 * (np.abs(p - truth).sum(axis=1) + np.maximum(0.0, 1.0 - mass))
    kl = np.where(truth > 0, truth * np.log(np.where(truth > 0, truth, 1.0) / np.maximum(p, _LEAST)), 0.0).sum(axis=1)
    size = (weight * np.linalg.norm(theirs, axis=1)).sum()
    off = (weight * np.linalg.norm(ours - theirs, axis=1)).sum()
    return ModelScore(
        float(weight @ tv), float(weight @ kl), float(off / size) if size > 0 else float("nan"), float(weight @ mass)
    )


def _dense(part: Matrix) -> Vector:
    """Convert to a dense matrix (S, S), with 0 in undefined rows."""
    return np.nan_to_num(part.toarray() if sparse.issparse(part) else np.asarray(part))


def _steps(exact: Truth, n_actions: int, with_restarts: bool) -> tuple[Vector, Vector]:
    """P←(s̃, ã | s), (S, S·A), 0 in undefined rows, and how often states are reached, (S,)."""
    S = exact.mdp.n_states
    joint = _dense(exact.joint).reshape(S, S, -1)
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


def _true_rewards(mdp: FiniteMDP, n_actions: int) -> Vector:
    """r(s̃, ã, s), (S, S·A) [s, s̃ã]; in prediction, that of the first action that can lead there."""
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
