"""Expected backward corrections: what planning backward from a state does to the values of its past."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.arrays import Matrix, Vector, as_floats, refuse_non_finite
from backcast.errors import InputError
from backcast.exact.chains import Policy, scale
from backcast.exact.reversal import undefine
from backcast.exact.time_extended import TimeExtended, n_step
from backcast.mdp import FiniteMDP


def tabular_correction(mdp: FiniteMDP, model: TimeExtended, values: ArrayLike) -> Matrix:
    """Δ←(s)[s̃] = P←(s̃ | s) (r(s̃, s) + γ(s̃, s) v(s) − v(s̃)), (S, S) [s, s̃], equation (4) for a table.

    A terminal state's value is 0 by definition, not estimated: it receives no correction.

    Args:
        mdp: the world.
        model: any time-extended backward model of it.
        values: v (S,).
    """
    v = _vector("values", values, mdp.n_states)
    lives = np.where(mdp.terminal, 0.0, 1.0)
    target = model.earned + scale(v, model.discounted)
    return undefine(scale(None, target - scale(None, model.states, v), lives), model.undefined)


def backward_correction(mdp: FiniteMDP, policy: Policy, features: Any, weights: ArrayLike, n: int = 1) -> Vector:
    """The expected correction of linear values v(s) = x(s)ᵀw when planning backward from s (equation 4).

    Δ←(s) = E[(r⁽ⁿ⁾(S̃, s) + γⁿ v(s) − v(S̃)) x(S̃) | S̃ ~ P←⁽ⁿ⁾(· | s)].

    Args:
        mdp: the world.
        policy: the policy that the backward model is tied to.
        features: X (S, d), dense or sparse; the identity gives the tabular correction.
        weights: w (d,).
        n: steps of the backward model.

    Returns:
        (S, d), NaN in the rows of states that are never visited.
    """
    X = features if sparse.issparse(features) else as_floats("features", features)
    if X.ndim != 2 or X.shape[0] != mdp.n_states:
        raise InputError(f"features: shape {X.shape} given, expected ({mdp.n_states}, d), a row per state")
    w = _vector("weights", weights, X.shape[1])
    model = n_step(mdp, policy, n)
    correction = tabular_correction(mdp, model, X @ w) @ X
    correction = correction.toarray() if sparse.issparse(correction) else correction
    correction[model.undefined] = np.nan
    return correction


def _vector(field: str, given: ArrayLike, size: int) -> Vector:
    values = as_floats(field, given)
    if values.shape != (size,):
        raise InputError(f"{field}: shape {values.shape} given, expected ({size},)")
    refuse_non_finite(field, values)
    return values
