"""Appendix B as executable statements: both sides of each equivalence, computed separately.

for equivalence in bc.exact.equivalences(mdp, policy):
    print(equivalence)
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from backcast.core.arrays import Indices, Vector, as_floats, dense
from backcast.core.errors import InputError
from backcast.exact.chains import OneStep, Policy
from backcast.exact.corrections import tabular_correction
from backcast.exact.reversal import backward, by_bayes
from backcast.exact.stationary import stationary, visits
from backcast.exact.time_extended import TimeExtended, n_step
from backcast.mdp import FiniteMDP


@dataclass(frozen=True)
class Equivalence:
    """The two sides of an equation of the paper, and the gap between them."""

    name: str
    left: Vector = field(repr=False)
    right: Vector = field(repr=False)

    @property
    def gap(self) -> float:
        """The largest |left − right|: 0 up to rounding if the statement holds, NaN if a side is undefined."""
        return float(np.abs(self.left - self.right).max(initial=0.0))

    def __str__(self) -> str:
        return f"{self.name}: largest difference {self.gap:.1e}"


def equivalences(
    mdp: FiniteMDP, policy: Policy = None, values: ArrayLike | None = None, n: int = 3
) -> list[Equivalence]:
    """Return all equivalences of appendices B.2 and B.3 for a world and a policy.

    Args:
        mdp: the world.
        policy: its policy.
        values: v (S,) for the corrections; by default the numbers of the states.
        n: steps of the corrections.
    """
    v = np.arange(mdp.n_states, dtype=np.float64) if values is None else as_floats("values", values)
    return [
        detailed_balance(mdp, policy),
        same_stationary_distribution(mdp, policy),
        reversal_matrix(mdp, policy),
        n_step_corrections(mdp, policy, v, n),
    ]


def detailed_balance(mdp: FiniteMDP, policy: Policy = None) -> Equivalence:
    """d(s') P←(s | s') = P(s' | s) d(s), for visited s' (appendix B.2), (S', S)."""
    d = stationary(mdp, policy)
    seen = _seen(d)
    back = dense(backward(mdp, policy).states)[seen]
    forth = dense(OneStep(mdp, policy).P)[:, seen]
    return Equivalence("detailed balance", d[seen, None] * back, (d[:, None] * forth).T)


def same_stationary_distribution(mdp: FiniteMDP, policy: Policy = None) -> Equivalence:
    """Σ_s' P←(s | s') d(s') = d(s): the backward chain has the forward chain's stationary distribution."""
    d = stationary(mdp, policy)
    seen = _seen(d)
    return Equivalence("same stationary distribution", d[seen] @ dense(backward(mdp, policy).states)[seen], d)


def reversal_matrix(mdp: FiniteMDP, policy: Policy = None) -> Equivalence:
    """P←_π = diag(d_π)⁻¹ P_πᵀ diag(d_π), against the marginal of Bayes' joint model, for visited states."""
    d = stationary(mdp, policy)
    seen = _seen(d)
    joint = dense(backward(mdp, policy).joint).reshape(mdp.n_states, mdp.n_states, mdp.n_actions)
    right = np.diag(1 / d[seen]) @ dense(OneStep(mdp, policy).P)[:, seen].T @ np.diag(d)
    return Equivalence("backward transition matrix", joint.sum(axis=2)[seen], right)


def n_step_corrections(mdp: FiniteMDP, policy: Policy, values: ArrayLike, n: int) -> Equivalence:
    """Expected n-step corrections over the forward chain, given its final state, and over the backward chain.

    E_F[(r⁽ⁿ⁾ + γⁿ v(S_{t+n}) − v(S_t)) ∇v(S_t) | S_{t+n} = s, S_t ~ d] against
    E_B[(r⁽ⁿ⁾ + γⁿ v(S_t) − v(S_{t−n})) ∇v(S_{t−n}) | S_t = s] (appendix B.3), for visited s, (S, S) [s, s̃].
    """
    seen = _seen(stationary(mdp, policy))
    forward = tabular_correction(mdp, _given_the_end(mdp, policy, n), values)
    back = tabular_correction(mdp, n_step(mdp, policy, n), values)
    return Equivalence(f"{n}-step corrections", dense(forward)[seen], dense(back)[seen])


def offline_td(
    states: ArrayLike,
    rewards: ArrayLike,
    values: ArrayLike,
    discount: float,
    features: ArrayLike | None = None,
) -> Equivalence:
    """The offline TD(1) update over an episode, forward and backward view (appendix B.1), (d,) with α = 1.

    Forward: Σ_t (Σ_{k≥t} γ^{k−t} R_{k+1} − v(S_t)) x(S_t). Backward: Σ_t δ_t Σ_{k≤t} γ^{t−k} x(S_k), where
    δ_t = R_{t+1} + γ v(S_{t+1}) − v(S_t).

    Args:
        states: S_0 … S_{T−1}, the non-terminal states of the episode.
        rewards: R_1 … R_T.
        values: v (S,).
        discount: γ.
        features: X (S, d), the gradients of v; by default the identity (a table).
    """
    visited = np.asarray(states)
    R, v = as_floats("rewards", rewards), as_floats("values", values)
    if visited.size and (
        not np.issubdtype(visited.dtype, np.integer) or not 0 <= visited.min() <= visited.max() < v.size
    ):
        raise InputError(f"states: expected whole numbers from 0 to {v.size - 1}, one for each value")
    if R.shape != visited.shape or R.ndim != 1:
        raise InputError(f"rewards: shape {R.shape} given, expected {visited.shape}, one per state")
    X = np.eye(len(v)) if features is None else as_floats("features", features)
    if X.ndim != 2 or len(X) != len(v):
        raise InputError(f"features: shape {X.shape} given, expected ({len(v)}, d), a row per state")
    X = X[visited]
    before = v[visited]
    after = np.append(before[1:], 0.0)
    forward, returns = np.zeros(X.shape[1]), 0.0
    for t in reversed(range(len(R))):
        returns = R[t] + discount * returns
        forward += (returns - before[t]) * X[t]
    back, trace = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t in range(len(R)):
        trace = discount * trace + X[t]
        back += (R[t] + discount * after[t] - before[t]) * trace
    return Equivalence("offline TD, forward and backward view", forward, back)


def _given_the_end(mdp: FiniteMDP, policy: Policy, n: int) -> TimeExtended:
    """The n-step model by walking the *forward* chain and Bayes' rule at the end, independently of `n_step`."""
    d, forward = visits(mdp, policy), n_step(mdp, policy, n, "forward")
    states, earned, discounted = (by_bayes(part, d, d) for part in (forward.states, forward.earned, forward.discounted))
    return TimeExtended(states, forward.reward, earned, discounted, d.never)


def _seen(d: Vector) -> Indices:
    """The visited states, except those whose probability is too small to be exact in double precision."""
    return np.flatnonzero(d >= np.finfo(float).tiny)
