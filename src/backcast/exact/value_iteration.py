"""The compiled sweep of value iteration, imported only when a large world needs it."""

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import kernel


@kernel
def sweep(
    indptr: Indices, indices: Indices, p: Vector, reward: Vector, discount: float, order: Indices, v: Vector
) -> float:
    """v(s) ← max_a [r(s, a) + γ Σ_s' P(s' | s, a) v(s')] in place, state after state; return the largest change.

    Args:
        indptr: row starts of the transition table, (S*A + 1,).
        indices: next states.
        p: probabilities.
        reward: r(s, a), (S, A).
        discount: γ.
        order: the states to update, in this order.
        v: values (S,), overwritten.
    """
    n_actions = reward.shape[1]
    change = 0.0
    for s in order:
        best = -np.inf
        for a in range(n_actions):
            row = s * n_actions + a
            ahead = 0.0
            for k in range(indptr[row], indptr[row + 1]):
                ahead += p[k] * v[indices[k]]
            best = max(best, reward[s, a] + discount * ahead)
        change = max(change, abs(best - v[s]))
        v[s] = best
    return change
