"""Expected backward corrections: how planning backward from a state changes the values of its predecessors."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.core.arrays import Matrix, Vector, as_floats, dense, refuse_non_finite
from backcast.core.errors import InputError
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
    if model.is_operator:
        raise InputError("model: it consists of operators, a correction needs matrices; leave out as_operator=True")
    v = as_vector("values", values, mdp.n_states)
    lives = np.where(mdp.terminal, 0.0, 1.0)
    target = model.earned + scale(v, model.discounted)
    return undefine(scale(None, target - scale(None, model.states, v), lives), model.undefined)


def backward_correction(mdp: FiniteMDP, policy: Policy, features: object, weights: ArrayLike, n: int = 1) -> Vector:
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
    X = feature_matrix("features", features, mdp.n_states)
    w = as_vector("weights", weights, X.shape[1])
    model = n_step(mdp, policy, n)
    correction = dense(tabular_correction(mdp, model, X @ w) @ X)
    correction[model.undefined] = np.nan
    return correction


def feature_matrix(field: str, given: Any, n_states: int) -> Matrix:
    """Convert to a feature matrix (S, d), a float64 array or csr_array; raise InputError unless it has S rows."""
    if hasattr(given, "feature_matrix"):  # a map of `backcast.features`
        given = given.feature_matrix(field)
    X: Matrix = sparse.csr_array(given, dtype=np.float64) if sparse.issparse(given) else as_floats(field, given)
    if X.ndim != 2 or X.shape[0] != n_states:
        raise InputError(f"{field}: shape {X.shape} given, expected ({n_states}, d), a row per state")
    refuse_non_finite(field, X.data if sparse.issparse(X) else X)
    return X


def as_vector(field: str, given: ArrayLike, size: int) -> Vector:
    """Convert to a vector (size,) of finite numbers."""
    values = as_floats(field, given)
    if values.shape != (size,):
        raise InputError(f"{field}: shape {values.shape} given, expected ({size},)")
    refuse_non_finite(field, values)
    return values
