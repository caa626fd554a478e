"""Time-extended backward models: n steps, mixtures, λ-models and options (section 3 and appendix A.3).

All of them answer: which state s̃, some number of steps before s, should be re-evaluated, what was earned on
the way from s̃ to s, and how far is s discounted? Each is computed over the forward chain as three matrices
[s̃, s] and then reversed once by Bayes' rule, P←(s̃ | s) = d(s̃) F(s̃, s) / d(s):

    F(s̃, s)   the probability of going on from s̃ to s (and of stopping at s̃, seen backward),
    W(s̃, s)   that probability times the discounted reward earned on the way,
    D(s̃, s)   that probability times the discount γ(s̃→…→s).

A way that passes a terminal state earns nothing after it and carries no discount. Where the paper's formulas
disagree with each other, docs/theory.md says which reading this is and why.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from backcast.arrays import Indices, Matrix, Vector, as_floats, as_whole, ratio, refuse_non_finite
from backcast.errors import InputError
from backcast.exact.chains import OneStep, Policy
from backcast.exact.reversal import reverse, undefine
from backcast.exact.solve import solve_leaky
from backcast.exact.stationary import stationary
from backcast.mdp import FiniteMDP

_NEVER = 1e-9  # a smaller chance to stop is lost in rounding


@dataclass(frozen=True)
class TimeExtended:
    """A backward model over several steps. `np.asarray(model)` is `model.states`.

    In every model `states[s, s̃] * reward[s̃, s] = earned[s, s̃]`.

    Attributes:
        states: P←(s̃ | s), (S, S) [s, s̃]; rows of never-visited states are NaN.
        reward: the discounted reward on the way given both ends, (S, S) [s̃, s]; 0 where no way leads.
        earned: E[reward on the way; S̃ = s̃ | s], (S, S) [s, s̃].
        discounted: E[discount on the way; S̃ = s̃ | s], (S, S) [s, s̃]; γⁿ P←(s̃ | s) for n steps that pass no
            terminal state.
        undefined: the states s that are never visited.
    """

    states: Matrix = field(repr=False)
    reward: Matrix = field(repr=False)
    earned: Matrix = field(repr=False)
    discounted: Matrix = field(repr=False)
    undefined: Indices

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        states = self.states.toarray() if sparse.issparse(self.states) else self.states
        return np.array(states, dtype=dtype, copy=copy)


def n_step(mdp: FiniteMDP, policy: Policy = None, n: int = 1, looking: str = "backward") -> TimeExtended:
    """P←⁽ⁿ⁾ = (P←_π)ⁿ and r⁽ⁿ⁾(s̃, s) = E[Σ_{t<n} γᵗ R_{t+1} | S_0 = s̃, S_n = s] (section 3).

    A sparse world gives sparse results; their fill grows with n. looking="forward" gives the forward model
    P⁽ⁿ⁾(s | s̃), indexed [s̃, s] throughout.
    """
    weights = np.zeros(as_whole("n", n, 1))
    weights[-1] = 1.0
    return multi_time(mdp, policy, weights, looking)


def multi_time(
    mdp: FiniteMDP, policy: Policy = None, weights: ArrayLike = (1.0,), looking: str = "backward"
) -> TimeExtended:
    """The mixture Σ_n w_n P←⁽ⁿ⁾ of n-step models, n = 1 … len(weights) (appendix A.3).

    `reward` is the expected reward given both ends, the number of steps not being given: each r⁽ⁿ⁾(s̃, s)
    counts by the probability that s̃ was n steps before. (The paper writes Σ_n w_n r⁽ⁿ⁾, which no planning
    update can use: see docs/theory.md.) `looking` is as in `n_step`.
    """
    w = as_floats("weights", weights)
    if w.ndim != 1 or w.size == 0:
        raise InputError(f"weights: shape {w.shape} given, expected (N,), the weights of 1 to N steps")
    refuse_non_finite("weights", w)
    if (w < 0).any() or abs(w.sum() - 1) > 1e-8:
        raise InputError(f"weights: they sum to {w.sum():.10g}, smallest {w.min():g}; expected a distribution")
    one = OneStep(mdp, policy)
    F_n, W_n, D_n = one.P, one.R, one.G
    F = W = D = 0.0
    for n, weight in enumerate(w, start=1):
        if n > 1:
            W_n = one.R @ F_n + one.G @ W_n
            F_n, D_n = one.P @ F_n, one.G @ D_n
        if weight:
            F, W, D = F + weight * F_n, W + weight * W_n, D + weight * D_n
    if _looks_forward(looking):
        return _forward(F, W, D)
    return _reversed(F, W, D, stationary(mdp, policy))


def lambda_model(
    mdp: FiniteMDP, policy: Policy = None, lam: ArrayLike = 0.0, looking: str = "backward"
) -> TimeExtended:
    """The λ-model: going backward, stop at each predecessor s̃ with probability 1 − λ(s̃) (appendix A.3).

    P←_λ(s̃ | s) = (1 − λ(s̃)) P←(s̃ | s) + Σ_x λ(x) P←(x | s) P←_λ(s̃ | x), which is
    P←_λ = (I − P← Λ)⁻¹ P← (I − Λ), and (1 − λ) Σ_{n≥1} λⁿ⁻¹ P←⁽ⁿ⁾ for a constant λ.

    Args:
        mdp: the world.
        policy: the policy that the model is tied to.
        lam: λ in [0, 1], a number or one per state (S,); it must be below 1 in some visited state.
        looking: as in `n_step`; looking forward, λ is a number.

    Returns:
        The model, dense: everything that is visited can be a predecessor.
    """
    if _looks_forward(looking) and np.ndim(lam) > 0:
        raise InputError("lam: one for each state belongs to the predecessors; looking forward give a number")
    lam = _per_state("lam", lam, mdp.n_states)
    d = stationary(mdp, policy)
    visited = np.flatnonzero(d > 0)
    if (1 - lam[visited]).max() < _NEVER:
        raise InputError("lam: it is 1 (or nearly) in every visited state: the model stops at no predecessor")
    return stopping_model(mdp, policy, 1 - lam, lam, looking)


def stopping_model(
    mdp: FiniteMDP, policy: Policy, stop: Vector, go_on: Vector, looking: str = "backward"
) -> TimeExtended:
    """The model that, going backward, stops at s̃ with probability `stop` and goes on with `go_on`, each (S,).

    What is left of 1 breaks the way off: rows then sum to less than 1.
    """
    d = stationary(mdp, policy)
    visited = np.flatnonzero(d > 0)
    one = OneStep(mdp, policy)
    P, R, G = (_part(matrix, visited) for matrix in (one.P, one.R, one.G))
    go_on, stop = go_on[visited], stop[visited][:, None]
    X = solve_leaky(P * go_on, P)
    F = stop * X
    D = stop * solve_leaky(G * go_on, G)
    W = stop * solve_leaky(G * go_on, R + (R * go_on) @ X)
    F, W, D = (_whole(matrix, visited, mdp.n_states) for matrix in (F, W, D))
    return _forward(F, W, D) if _looks_forward(looking) else _reversed(F, W, D, d)


def ending_model(mdp: FiniteMDP, policy: Policy, termination: ArrayLike) -> TimeExtended:
    """The forward model of an option: from s̃ on, terminate at each state s that is reached with probability β(s).

    F = P B + P (I − B) F, with β = 1 where an episode ends; likewise what is earned on the way and the discount
    (Sutton, Precup and Singh, Between MDPs and semi-MDPs, 1999). Rows of terminal states are 0.

    Args:
        mdp: the world.
        policy: the option's policy.
        termination: β(s) in [0, 1], a number or (S,).
    """
    stop = np.where(mdp.terminal, 1.0, _per_state("termination", termination, mdp.n_states))
    go_on, lives = 1 - stop, np.where(mdp.terminal, 0.0, 1.0)[:, None]
    everywhere = np.arange(mdp.n_states)
    one = OneStep(mdp, policy)
    P, R, G = (lives * _part(matrix, everywhere) for matrix in (one.P, one.R, one.G))
    F = solve_leaky(P * go_on, P * stop)
    D = solve_leaky(G * go_on, G * stop)
    W = solve_leaky(G * go_on, R * stop + (R * go_on) @ F)
    return _forward(F, W, D)


def option_model(mdp: FiniteMDP, policy: Policy, initiation: ArrayLike, termination: ArrayLike | None = None) -> Matrix:
    """The backward model of an option that follows `policy` from where it was initiated (appendix A.3).

    P←_o(s̃ | s) = ι(s̃) P←(s̃ | s) + Σ_x (1 − ι(x)) P←(x | s) P←_o(s̃ | x): the λ-model with λ = 1 − ι, whose
    rewards and discounts `lambda_model(mdp, policy, 1 - initiation)` has.

    Args:
        mdp: the world.
        policy: the option's policy π_o.
        initiation: ι(s̃) in [0, 1], the probability that the option was initiated at s̃; (S,) or a number.
        termination: β(s) in [0, 1], (S,) or a number. A way back does not lead through states at which the option
            terminated: the second term has (1 − ι(x)) (1 − β(x)), and rows sum to less than 1. None: never.

    Returns:
        P←_o(s̃ | s), (S, S) [s, s̃].
    """
    iota = _per_state("initiation", initiation, mdp.n_states)
    if (iota[stationary(mdp, policy) > 0] == 0).all():
        raise InputError("initiation: it is 0 in every visited state, so that the option begins nowhere")
    if termination is None:
        return lambda_model(mdp, policy, 1 - iota).states
    beta = _per_state("termination", termination, mdp.n_states)
    return stopping_model(mdp, policy, iota, (1 - iota) * (1 - beta)).states


def _looks_forward(looking: str) -> bool:
    if looking not in ("backward", "forward"):
        raise InputError(f"looking: {looking!r} given, expected 'backward' or 'forward'")
    return looking == "forward"


def _forward(F: Matrix, W: Matrix, D: Matrix) -> TimeExtended:
    return TimeExtended(F, ratio(W, F), W, D, np.zeros(0, dtype=np.int64))


def _reversed(F: Matrix, W: Matrix, D: Matrix, d: Vector) -> TimeExtended:
    undefined = np.flatnonzero(d == 0)
    states, earned, discounted = (undefine(reverse(part, d, d), undefined) for part in (F, W, D))
    return TimeExtended(states, ratio(W, F), earned, discounted, undefined)


def _per_state(name: str, given: ArrayLike, n_states: int) -> Vector:
    values = as_floats(name, given)
    if values.shape not in ((), (n_states,)):
        raise InputError(f"{name}: shape {values.shape} given, expected a number or ({n_states},)")
    values = np.broadcast_to(values, n_states).copy()
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        state = int(np.argmax(bad))
        raise InputError(f"{name}: {values[state]:g} in state {state}, expected a number in [0, 1]")
    return values


def _part(matrix: Matrix, states: Indices) -> Vector:
    part = matrix[states][:, states]
    return part.toarray() if sparse.issparse(part) else part


def _whole(part: Vector, states: Indices, size: int) -> Vector:
    matrix = np.zeros((size, size))
    matrix[np.ix_(states, states)] = part
    return matrix
