"""The stationary distribution d_π of the recurrent chain.

The paper takes chains to be irreducible and aperiodic, so that d_{π,t} has a limit. A leveled chain that
restarts is periodic, and worlds have walls and states passed only once; d_π = d_π P_π needs neither
property. What it needs is *one* recurrent class among the states reachable from the start. With several, the
solution is not unique and the chain is refused; outside of the class, d_π is exactly 0.
"""

import numpy as np
from scipy import sparse

from backcast.arrays import Matrix, Vector
from backcast.errors import InputError
from backcast.exact.chains import Policy, as_policy, mix, restarting, scale
from backcast.exact.solve import bounded_sum, solve_directly
from backcast.graph import reachable, recurrent_classes
from backcast.mdp import FiniteMDP

_GTH_LIMIT = 1_000
_TOLERANCE = 1e-13
_BLOCK = 50  # steps of the lazy walk between two looks at its rate
_BLOCKS = 40


def stationary(mdp: FiniteMDP, policy: Policy = None) -> Vector:
    """d_π with d_π = d_π P_π and Σ_s d_π(s) = 1, (S,).

    If no episode is long, by summing the visits of each step. Up to a thousand recurrent states by the elimination of
    Grassmann, Taksar and Heyman (1985), which subtracts nothing and is exact to rounding in every entry. Larger chains
    by a lazy walk if it mixes fast, else by a sparse factorisation.

    Raises:
        InputError: when the chain, from the start, can end in different recurrent classes; two states of
            different classes are named.
    """
    P = mix(as_policy(mdp, policy), restarting(mdp))
    visited = np.flatnonzero(reachable(P, mdp.start > 0))
    classes = [visited[c] for c in recurrent_classes(P[visited][:, visited])]
    if len(classes) > 1:
        first, second = int(classes[0][0]), int(classes[1][0])
        raise InputError(
            f"policy: the chain has {len(classes)} recurrent classes and no unique stationary distribution: "
            f"states {first} and {second} are both reached from the start and never reach each other"
        )
    visits = bounded_sum(scale(np.where(mdp.terminal, 0.0, 1.0), P).T, mdp.start)
    if visits is not None:  # every episode is short: the expected visits of each state in one of them
        return visits / visits.sum()
    (members,) = classes
    d = np.zeros(mdp.n_states)
    d[members] = stationary_of(P[members][:, members])
    return d


def stationary_of(P: Matrix) -> Vector:
    """The stationary distribution of an irreducible chain P (n, n), csr or dense."""
    n = P.shape[0]
    if n <= _GTH_LIMIT:
        return _gth(P.toarray() if sparse.issparse(P) else np.array(P))
    d, settled = _by_mixing(sparse.csr_array(P))
    # A state that is visited often is a good reference: the ways back to it are short.
    return d if settled else _by_elimination(sparse.csr_array(P), int(np.argmax(d)))


def _gth(A: Vector) -> Vector:
    """Grassmann–Taksar–Heyman: eliminate state after state, then substitute back; A (n, n) is overwritten."""
    n = len(A)
    for k in range(n - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += A[:k, k, None] * A[k, :k]
    x = np.ones(n)
    for k in range(1, n):
        x[k] = x[:k] @ A[:k, k]
    return x / x.sum()


def _by_mixing(P: sparse.csr_array) -> tuple[Vector, bool]:
    """The lazy walk d ← d (I + P) / 2, which converges for periodic chains too, and whether it got there.

    It stops early when the rate at which d still changes says that it would take too long.
    """
    d = np.full(P.shape[0], 1 / P.shape[0])
    transposed = P.T.tocsr()
    change, settled = 2.0, False
    for block in range(1, _BLOCKS + 1):
        for _ in range(_BLOCK):
            before, d = d, 0.5 * (d + transposed @ d)
        previous, change = change, float(np.abs(d - before).sum())
        rate = (change / previous) ** (1 / _BLOCK) if previous else 0.0
        before_settled, settled = settled, change < 1e-15 or (rate < 1 and change / (1 - rate) < _TOLERANCE)
        # twice in a row: at first the rate is that of the fast part of the chain alone
        if settled and before_settled:
            d = d / d.sum()
            return d, bool((np.abs(transposed @ d - d) <= 1e-10 * d).all())
        if not settled and rate ** (_BLOCK * (_BLOCKS - block)) * change > _TOLERANCE:
            break
    return d, False


def _by_elimination(P: sparse.csr_array, reference: int) -> Vector:
    """Expected visits to every state between two visits to one reference state: (I − Q)ᵀ x = P(ref, ·)ᵀ."""
    n = P.shape[0]
    others = np.flatnonzero(np.arange(n) != reference)
    leaving = P[[reference]].toarray().ravel()[others]
    x = np.ones(n)
    x[others] = solve_directly((sparse.eye_array(n - 1) - P[others][:, others]).T, leaving)
    return x / x.sum()
