"""Time-extended backward models: n steps, mixtures, λ-models and options (section 3 and appendix A.3).

All of them answer three questions: which state s̃, some number of steps before s, should be re-evaluated; what was
earned on the path from s̃ to s; how far is s discounted? One step of the forward chain is reversed by Bayes' rule,
P←(s̃ | s) = d(s̃) P(s | s̃) / d(s), and composed to paths (`backcast.exact.composition`) as three matrices [s, s̃]:

    states(s, s̃)      the probability that going backward from s ends at s̃,
    earned(s, s̃)      that probability times the discounted reward earned on the path from s̃ to s,
    discounted(s, s̃)  that probability times the discount γ(s̃→…→s).

A path that passes a terminal state earns nothing after it and carries no discount. Where the paper's formulas
disagree with each other, docs/theory.md says which reading is used here and why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from backcast.core.arrays import Indices, Matrix, Vector, as_floats, as_whole, ratio, refuse_non_finite
from backcast.core.errors import InputError
from backcast.exact import composition
from backcast.exact.chains import OneStep, Policy, scale
from backcast.exact.reversal import undefine
from backcast.exact.stationary import Visits, visits
from backcast.mdp import FiniteMDP

_NEVER = 1e-9  # a smaller probability of stopping is lost in rounding
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class TimeExtended:
    """A backward model over several steps. `np.asarray(model)` is `model.states`.

    In every model `states[s, s̃] * reward[s̃, s] = earned[s, s̃]`. With as_operator=True, `states`, `earned` and
    `discounted` are scipy LinearOperators: `op @ x` and `op.rmatvec(y)` apply them to vectors (S,), and no matrix is
    formed. `reward` is then None, and the row of a never-visited state s is a NaN at [s, s], as in a sparse matrix.

    Attributes:
        states: P←(s̃ | s), (S, S) [s, s̃]; rows of never-visited states are NaN.
        reward: the discounted reward on the path given both ends, (S, S) [s̃, s]; 0 where no path leads.
        earned: E[reward on the path; S̃ = s̃ | s], (S, S) [s, s̃].
        discounted: E[discount on the path; S̃ = s̃ | s], (S, S) [s, s̃]; γⁿ P←(s̃ | s) for n steps that pass no
            terminal state.
        undefined: the states s that are never visited.
        d: d_π, (S,), of backward models over numbers of steps, by which learned ones are compared with them; else None.
        mdp: the world, likewise.
    """

    states: Matrix = field(repr=False)
    reward: Matrix = field(repr=False)
    earned: Matrix = field(repr=False)
    discounted: Matrix = field(repr=False)
    undefined: Indices
    d: Vector | None = field(default=None, repr=False, compare=False)
    mdp: FiniteMDP | None = field(default=None, repr=False, compare=False)

    @property
    def is_operator(self) -> bool:
        """Whether the model consists of operators."""
        return self.reward is None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Vector:
        if self.is_operator:
            raise InputError("model: it consists of operators, not of matrices; leave out as_operator=True")
        states = self.states.toarray() if sparse.issparse(self.states) else self.states
        return np.array(states, dtype=dtype, copy=copy)


def n_step(
    mdp: FiniteMDP, policy: Policy = None, n: int = 1, looking: str = "backward", *, as_operator: bool = False
) -> TimeExtended:
    """P←⁽ⁿ⁾ = (P←_π)ⁿ and r⁽ⁿ⁾(s̃, s) = E[Σ_{t<n} γᵗ R_{t+1} | S_0 = s̃, S_n = s] (section 3).

    A sparse world gives sparse results; their fill grows with n. looking="forward" gives the forward model
    P⁽ⁿ⁾(s | s̃), indexed [s̃, s] throughout. as_operator=True gives operators (see `TimeExtended`); applying one takes n
    sparse products.
    """
    weights = np.zeros(as_whole("n", n, 1))
    weights[-1] = 1.0
    return multi_time(mdp, policy, weights, looking, as_operator=as_operator)


def multi_time(
    mdp: FiniteMDP,
    policy: Policy = None,
    weights: ArrayLike = (1.0,),
    looking: str = "backward",
    *,
    as_operator: bool = False,
) -> TimeExtended:
    """The mixture Σ_n w_n P←⁽ⁿ⁾ of n-step models, n = 1 … len(weights) (appendix A.3).

    `reward` is the expected reward given both ends but not the number of steps: each r⁽ⁿ⁾(s̃, s) is weighted by the
    probability that s̃ was visited n steps before s. (The paper writes Σ_n w_n r⁽ⁿ⁾, which no planning update can
    use: see docs/theory.md.) `looking` and `as_operator` are as in `n_step`.
    """
    w = as_floats("weights", weights)
    if w.ndim != 1 or w.size == 0:
        raise InputError(f"weights: shape {w.shape} given, expected (N,), the weights of 1 to N steps")
    refuse_non_finite("weights", w)
    if (w < 0).any() or abs(w.sum() - 1) > 1e-8:
        raise InputError(f"weights: they sum to {w.sum():.10g}, smallest {w.min():g}; expected a distribution")
    step, d = _one_step(mdp, policy, looking)
    undefined = _NONE if d is None else d.never
    if as_operator:
        everywhere = np.arange(mdp.n_states)
        return _operators(composition.mixture_operators(step, w), everywhere, mdp.n_states, undefined)
    model = _model(composition.mixture(step, w), undefined, step.backward)
    if d is not None:
        model = replace(model, d=d.d, mdp=mdp)
    if not undefined.size:
        return model
    # never-visited states have no past but a future: rewards given both ends exist for paths that begin there
    never = np.isin(np.arange(mdp.n_states), undefined).astype(np.float64)
    return replace(model, reward=model.reward + scale(never, multi_time(mdp, policy, w, "forward").reward))


def lambda_model(
    mdp: FiniteMDP,
    policy: Policy = None,
    lam: ArrayLike = 0.0,
    looking: str = "backward",
    *,
    weigh_by: str = "earlier",
    as_operator: bool = False,
) -> TimeExtended:
    """The λ-model: going backward, stop at each predecessor s̃ with probability 1 − λ(s̃) (appendix A.3).

    P←_λ(s̃ | s) = (1 − λ(s̃)) P←(s̃ | s) + Σ_x λ(x) P←(x | s) P←_λ(s̃ | x), which is
    P←_λ = (I − P← Λ)⁻¹ P← (I − Λ), and (1 − λ) Σ_{n≥1} λⁿ⁻¹ P←⁽ⁿ⁾ for a constant λ.

    If λ differs between states, planning with this model moves values away from v_π: the weight of a path from s̃
    depends on what happened on it. Weighting by the later end, (I − Λ) (I − P← Λ)⁻¹ P←, avoids this: the weights of all
    paths from s̃ that share their first k steps sum to λ(s₁) … λ(s_k), whatever follows, and v_π is a fixed point. But
    these rows are not distributions: they may sum to more than 1, and planning may need a smaller step size.

    Args:
        mdp: the world.
        policy: the policy that the model is tied to.
        lam: λ in [0, 1], a number or one per state (S,); it must be below 1 in some visited state.
        looking: as in `n_step`; looking forward, λ must be a number.
        weigh_by: the end whose 1 − λ weights a path: its "earlier" end s̃, as in the paper, or its "later" end s.
        as_operator: give operators (see `TimeExtended`); applying one solves one or two sparse systems.

    Returns:
        The model, dense: every visited state can be a predecessor.

    Raises:
        InputError: if the dense matrices would take more than 8 GiB.
    """
    if _looks_forward(looking) and np.ndim(lam) > 0:
        raise InputError("lam: one for each state belongs to the predecessors; looking forward give a number")
    lam = _per_state("lam", lam, mdp.n_states)
    d = visits(mdp, policy)
    if (1 - lam[d.scaled > 0]).max() < _NEVER:
        raise InputError("lam: it is 1 (or nearly) in every visited state: the model stops at no predecessor")
    if weigh_by not in ("earlier", "later"):
        raise InputError(f"weigh_by: {weigh_by!r} given, expected 'earlier' or 'later'")
    if weigh_by == "later":
        every = stopping_model(mdp, policy, np.ones_like(lam), lam, looking, as_operator=as_operator, d=d)
        weights = sparse.diags_array(1 - lam)
        rows = aslinearoperator(weights) if as_operator else weights
        return replace(every, **{part: rows @ getattr(every, part) for part in ("states", "earned", "discounted")})
    return stopping_model(mdp, policy, 1 - lam, lam, looking, as_operator=as_operator, d=d)


def stopping_model(
    mdp: FiniteMDP,
    policy: Policy,
    stop: Vector,
    go_on: Vector,
    looking: str = "backward",
    *,
    as_operator: bool = False,
    d: Visits | None = None,
) -> TimeExtended:
    """The model that, going backward, stops at s̃ with probability `stop` and goes on with `go_on`, each (S,).

    With the remaining probability the path is dropped: rows then sum to less than 1. `d` is the stationary
    distribution, where known.
    """
    d = visits(mdp, policy) if d is None else d
    visited = np.flatnonzero(d.scaled)
    if not as_operator:
        composition.refuse_large_model(len(visited))
    step, _ = _one_step(mdp, policy, looking, d)
    step, chances = step.among(visited), (stop[visited], go_on[visited])
    undefined = d.never if step.backward else _NONE
    if as_operator:
        return _operators(composition.stopping_operators(step, *chances), visited, mdp.n_states, undefined)
    parts = [_whole(part, visited, mdp.n_states) for part in composition.stopping(step, *chances)]
    return _model(parts, undefined, step.backward)


def ending_model(mdp: FiniteMDP, policy: Policy, termination: ArrayLike) -> TimeExtended:
    """The forward model of an option: from s̃ on, terminate at each state s reached with probability β(s).

    F = P B + P (I − B) F, with β = 1 where an episode ends; likewise for the reward on the path and the discount
    (Sutton, Precup and Singh, Between MDPs and semi-MDPs, 1999). Rows of terminal states are 0.

    Args:
        mdp: the world.
        policy: the option's policy.
        termination: β(s) in [0, 1], a number or (S,).
    """
    composition.refuse_large_model(mdp.n_states)
    stop = np.where(mdp.terminal, 1.0, _per_state("termination", termination, mdp.n_states))
    step, _ = _one_step(mdp, policy, "forward")
    lives = np.where(mdp.terminal, 0.0, 1.0)[:, None]
    return _model([lives * part for part in composition.stopping(step, stop, 1 - stop)], _NONE, backward=False)


def option_model(
    mdp: FiniteMDP,
    policy: Policy,
    initiation: ArrayLike,
    termination: ArrayLike | None = None,
    *,
    as_operator: bool = False,
) -> TimeExtended:
    """The backward model of an option that follows `policy` after its initiation (appendix A.3).

    P←_o(s̃ | s) = ι(s̃) P←(s̃ | s) + Σ_x (1 − ι(x)) P←(x | s) P←_o(s̃ | x): the λ-model with λ = 1 − ι, whose
    rewards and discounts `lambda_model(mdp, policy, 1 - initiation)` has.

    Args:
        mdp: the world.
        policy: the option's policy π_o.
        initiation: ι(s̃) in [0, 1], the probability that the option was initiated at s̃; (S,) or a number.
        termination: β(s) in [0, 1], (S,) or a number. A backward path does not pass states at which the option
            terminated: the second term has (1 − ι(x)) (1 − β(x)), and rows sum to less than 1. None: never.
        as_operator: return a `TimeExtended` of operators, with `states`, `earned` and `discounted`.

    Returns:
        P←_o(s̃ | s), (S, S) [s, s̃]; or the operators.
    """
    iota = _per_state("initiation", initiation, mdp.n_states)
    d = visits(mdp, policy)
    if iota[d.scaled > 0].max() < _NEVER:
        raise InputError("initiation: it is 0 in every visited state (or nearly), so that the option begins nowhere")
    beta = 0.0 if termination is None else _per_state("termination", termination, mdp.n_states)
    model = stopping_model(mdp, policy, iota, (1 - iota) * (1 - beta), as_operator=as_operator, d=d)
    return model if as_operator else model.states


def _looks_forward(looking: str) -> bool:
    if looking not in ("backward", "forward"):
        raise InputError(f"looking: {looking!r} given, expected 'backward' or 'forward'")
    return looking == "forward"


def _one_step(
    mdp: FiniteMDP, policy: Policy, looking: str, d: Visits | None = None
) -> tuple[composition.StepMatrices, Visits | None]:
    """One step in the direction of `looking`; looking backward, also the stationary distribution."""
    forward = _looks_forward(looking)
    step = composition.StepMatrices.forward(mdp, OneStep(mdp, policy))
    if forward:
        return step, None
    d = visits(mdp, policy) if d is None else d
    return step.reversed(d), d


def _model(parts: Sequence[Matrix], undefined: Indices, backward: bool) -> TimeExtended:
    states, earned, _ = parts
    reward = ratio(earned, states)
    if backward:
        reward = reward.T.tocsr() if sparse.issparse(reward) else np.ascontiguousarray(reward.T)
    states, earned, discounted = (undefine(part, undefined) for part in parts)
    return TimeExtended(states, reward, earned, discounted, undefined)


def _operators(parts: Sequence[LinearOperator], states: Indices, size: int, undefined: Indices) -> TimeExtended:
    of_states, earned, discounted = (composition.embedded(part, states, size, undefined) for part in parts)
    return TimeExtended(of_states, None, earned, discounted, undefined)


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


def _whole(part: Vector, states: Indices, size: int) -> Vector:
    if len(states) == size:
        return part
    matrix = np.zeros((size, size))
    matrix[np.ix_(states, states)] = part
    return matrix
