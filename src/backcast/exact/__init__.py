"""Exact results: closed forms for finite worlds, each with its formula and the paper's equation.

A *row* is what is conditioned on: a backward matrix is indexed [s, s̃], a reward between states [s̃, s]
(earlier, later). Dense worlds give numpy arrays, sparse worlds scipy.sparse.csr_array. A policy is (S, A),
or one action per state (S,), or None in a world of one action.
"""

from backcast.exact.chains import chain, distribution, transition_reward
from backcast.exact.corrections import backward_correction, tabular_correction
from backcast.exact.equivalences import (
    Equivalence,
    detailed_balance,
    equivalences,
    n_step_corrections,
    offline_td,
    reversal_matrix,
    same_stationary_distribution,
)
from backcast.exact.linear import (
    LinearBackward,
    LinearForward,
    fitted_backward,
    linear_backward,
    linear_forward,
    lstd,
    plan_backward,
)
from backcast.exact.reversal import Backward, backward, backward_at, reverse
from backcast.exact.stationary import stationary
from backcast.exact.time_extended import TimeExtended, lambda_model, multi_time, n_step, option_model
from backcast.exact.values import Optimal, action_value, optimal, value

__all__ = [
    "Backward",
    "Equivalence",
    "LinearBackward",
    "LinearForward",
    "Optimal",
    "TimeExtended",
    "action_value",
    "backward",
    "backward_at",
    "backward_correction",
    "chain",
    "detailed_balance",
    "distribution",
    "equivalences",
    "fitted_backward",
    "lambda_model",
    "linear_backward",
    "linear_forward",
    "lstd",
    "multi_time",
    "n_step",
    "n_step_corrections",
    "offline_td",
    "optimal",
    "option_model",
    "plan_backward",
    "reversal_matrix",
    "reverse",
    "same_stationary_distribution",
    "stationary",
    "tabular_correction",
    "transition_reward",
    "value",
]
