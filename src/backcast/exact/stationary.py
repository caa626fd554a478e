"""The stationary distribution d_π of the recurrent chain.

The paper takes chains to be irreducible and aperiodic, so that d_{π,t} has a limit. A leveled chain that
restarts is periodic, and worlds may have walls and states that are passed only once; d_π = d_π P_π needs neither
property. It does need a *single* recurrent class among the states reachable from the start. With several classes
the solution is not unique and the chain is refused. Outside the class, d_π is exactly 0.

With one state as reference, d is proportional to the expected visits between two visits to it,
x (I − Q) = P(ref, ·), where Q holds the moves among the other states; what leaks from Q returns to the reference.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Mask, Matrix, Vector, as_whole, dense
from backcast.core.errors import InputError
from backcast.core.graph import reachable, recurrent_classes
from backcast.exact.chains import Policy, as_policy, mix, restarting, scale
from backcast.exact.solve import Leaky, better_dense, bounded_sum, certified_krylov, inverse_norm
from backcast.mdp import FiniteMDP

_TOLERANCE = 1e-13
_BLOCK = 50  # steps of the lazy walk between two checks of its rate
_BLOCKS = 40
_BITS = 600  # a scaled probability is at least 2^−_BITS
_OFTEN = 1e250  # most visits between two visits to a usable reference state
_RARE = 1e-250
_NOTHING = -(2**30)  # an exponent of 0
_ATTEMPTS = 20
_SETTLED = 0.1
_DISCONNECTED = "chain: parts of it are connected so weakly that it is lost in double precision"


@dataclass(frozen=True)
class Visits:
    """A distribution over states as numbers of any size: d(s) = scaled(s) · 2^(−bits(s)).

    Attributes:
        scaled: (S,), 0 for states that are never visited.
        bits: (S,), 0 unless some d(s) is below 2^−600.
    """

    scaled: Vector
    bits: Indices

    @classmethod
    def of(cls, d: Vector) -> "Visits":
        """Make from a distribution given as floats."""
        return cls(d, np.zeros(d.shape, dtype=np.int64))

    @property
    def d(self) -> Vector:
        """The distribution (S,); entries that underflow are 0."""
        return np.ldexp(self.scaled, -self.bits)

    @property
    def never(self) -> Indices:
        """The states that are never visited."""
        return np.flatnonzero(self.scaled == 0)


def stationary(mdp: FiniteMDP, policy: Policy = None) -> Vector:
    """d_π with d_π = d_π P_π and Σ_s d_π(s) = 1, (S,).

    If all episodes are short, the visits of each step are summed. Otherwise states are eliminated without subtraction
    (Grassmann, Taksar and Heyman 1985), which is exact to rounding in every entry however weakly parts of the chain are
    connected. For a sparse chain of more than a thousand states, a lazy walk is tried first; its result is accepted if
    a certificate bounds the relative error of every entry by 1e-8.

    Raises:
        InputError: if the chain, from the start, can end in different recurrent classes; the message names two states
            of different classes. Also if a large chain mixes too slowly for a certificate and is too large to be
            eliminated.
    """
    return visits(mdp, policy).d


def visits(mdp: FiniteMDP, policy: Policy = None) -> Visits:
    """The stationary distribution of a world under a policy."""
    P = mix(as_policy(mdp, policy), restarting(mdp))
    members = recurrent_class(P, mdp.start > 0)
    within = P[members][:, members]
    known = bounded_sum(scale(np.where(mdp.terminal, 0.0, 1.0), P).T, mdp.start)
    # where every episode is short, `known` are the expected visits of each state in one of them
    part = stationary_of(within) if known is None else _scaled(within, known[members] / known.sum())
    return _spread(mdp.n_states, members, part)


def visits_at(mdp: FiniteMDP, policy: Policy = None, *, t: int) -> Visits:
    """The distribution after t steps of the recurrent chain from `start`, however small its entries.

    It is stored as d(s) = mantissa(s) · 2^exponent(s). The terms of a sum are scaled relative to the largest power of
    two among them.
    """
    steps = as_whole("t", t, 0)
    into = mix(as_policy(mdp, policy), restarting(mdp)).T.tocsr()
    share, power = np.frexp(into.data)
    entered = np.diff(into.indptr)
    reached, first = np.flatnonzero(entered), into.indptr[:-1][entered > 0]
    mantissa, exponent = np.frexp(mdp.start)
    for _ in range(steps):
        terms = mantissa[into.indices] * share
        powers = np.where(terms > 0, exponent[into.indices] + power.astype(np.int64), _NOTHING)
        largest, sums = np.maximum.reduceat(powers, first), np.zeros(mdp.n_states)
        relative = np.maximum(powers - np.repeat(largest, entered[reached]), _NOTHING)
        sums[reached] = np.add.reduceat(np.ldexp(terms, relative), first)
        mantissa, more = np.frexp(sums)
        exponent = more.astype(np.int64)
        exponent[reached] += largest
    if ((mantissa > 0) & (exponent < -_BITS)).any():
        return Visits(mantissa, np.where(mantissa > 0, -exponent, 0))
    return Visits.of(np.ldexp(mantissa, np.where(mantissa > 0, exponent, 0)))


def visits_of_chain(P: Matrix) -> Visits:
    """The stationary distribution of a chain P (S, S) with one recurrent class."""
    chain = sparse.csr_array(P)
    members = recurrent_class(chain, np.ones(chain.shape[0], dtype=np.bool_), "P")
    return _spread(chain.shape[0], members, stationary_of(chain[members][:, members]))


def recurrent_class(P: sparse.csr_array, start: Mask, field: str = "policy") -> Indices:
    """Return the recurrent class reached from the states `start` (S,); raise InputError if there are several."""
    reached = "" if start.all() else "are both reached from the start and "
    visited = np.flatnonzero(reachable(P, start))
    classes = [visited[c] for c in recurrent_classes(P[visited][:, visited])]
    if len(classes) > 1:
        first, second = int(classes[0][0]), int(classes[1][0])
        raise InputError(
            f"{field}: the chain has {len(classes)} recurrent classes and no unique stationary distribution: "
            f"states {first} and {second} {reached}never reach each other"
        )
    return classes[0]


def stationary_of(P: Matrix) -> Visits:
    """The stationary distribution of an irreducible chain P (n, n), csr or dense; its diagonal is not read."""
    d = None if better_dense(P) else _by_mixing(P)
    if d is None:
        d = _by_elimination(dense(P) if better_dense(P) else P)
    return _scaled(sparse.csr_array(P), d)


def _by_elimination(P: Matrix) -> Vector:
    """Expected visits to every state between two visits to a reference state."""
    n = P.shape[0]
    # The moves of the reference are left out of Q: those of a hub would fill it.
    reference = int(np.argmax((P > 0).sum(axis=0) + (P > 0).sum(axis=1)))
    for _ in range(_ATTEMPTS):
        others = np.flatnonzero(np.arange(n) != reference)
        away, back = (dense(part).ravel() for part in (P[[reference]][:, others], P[others][:, [reference]]))
        x = np.ones(n)
        x[others] = Leaky(P[others][:, others], back).elimination.solve_left(away)
        if (x <= _OFTEN).all():
            return x / x.sum()
        # the reference is so rare that visits between two of its own overflow
        reference = int(np.argmax(np.nan_to_num(x, nan=0.0, posinf=np.inf)))
    raise InputError(_DISCONNECTED)


def _by_mixing(P: sparse.csr_array) -> Vector | None:
    """The stationary distribution of a chain that mixes fast, certified in every entry; else None.

    Let w be the distribution at which a lazy walk settles. This proves nothing yet: parts of the chain may not have
    mixed. The quotients e = d / w satisfy e(j) exit(j) = Σ_i K(j, i) e(i) with K(j, i) = w(i) P(i, j) / w(j) and
    exit(j) = Σ_k P(j, k), over i, k ≠ j. With e = 1 at a reference state this is a linear system for the others. A
    bound on its inverse shows that it is an M-matrix, and the certified error of e is the relative error of d.
    """
    w = _lazy_walk(P)
    if w is None or w.min() < _RARE:
        return None
    reference = int(np.argmax(w))
    others = np.flatnonzero(np.arange(len(w)) != reference)
    moves = (P - sparse.diags_array(P.diagonal())).tocsr()
    K = scale(1 / w, moves.T.tocsr(), w)
    system = (sparse.diags_array(np.asarray(moves.sum(axis=1))) - K).tocsr()[others]
    norm = inverse_norm(system[:, others])
    if norm is None:
        return None
    e = np.ones(len(w))
    found = certified_krylov(system[:, others], -dense(system[:, [reference]]).ravel(), norm)
    if found is None or np.abs(found - 1).max() > _SETTLED:  # the error is relative to the largest entry of e
        return None
    e[others] = found
    return w * e / (w @ e)


def _lazy_walk(P: sparse.csr_array) -> Vector | None:
    """The limit of the aperiodic walk d ← d (I + P) / 2; None if it converges too slowly."""
    d = np.full(P.shape[0], 1 / P.shape[0])
    transposed = P.T.tocsr()
    change = 2.0
    for block in range(1, _BLOCKS + 1):
        for _ in range(_BLOCK):
            before, d = d, 0.5 * (d + transposed @ d)
        previous, change = change, float(np.abs(d - before).sum())
        rate = (change / previous) ** (1 / _BLOCK) if previous else 0.0
        if change < 1e-15 or (rate < 1 and change / (1 - rate) < _TOLERANCE):
            return d
        if rate ** (_BLOCK * (_BLOCKS - block)) * change > _TOLERANCE:
            return None
    return None


def _scaled(P: sparse.csr_array, d: Vector) -> Visits:
    """The distribution d (n,) of an irreducible chain P (n, n), including entries that underflow.

    The entries of the rarest states R follow from the flow into them: d_R (I − P_RR) = d_K P_KR, where K are the other
    states. The flow is scaled up until some entries of R are large enough; then the rest of R is treated likewise.
    """
    scaled, bits = d.copy(), np.zeros(len(d), dtype=np.int64)
    rare = d < 2.0**-_BITS
    scale_bits = 0
    while rare.any():
        scale_bits += _BITS
        R, K = np.flatnonzero(rare), np.flatnonzero(~rare)
        into, within = P[K][:, R].tocoo(), P[R][:, R]
        # in two steps, because neither factor may overflow or underflow
        flow = np.ldexp(
            np.ldexp(scaled[K], _BITS // 2)[into.row] * into.data, scale_bits - _BITS // 2 - bits[K][into.row]
        )
        b: Vector = np.bincount(into.col, flow, minlength=len(R)).astype(np.float64)
        leak = np.asarray(P[R][:, K].sum(axis=1)).ravel()
        x = Leaky(within, leak).elimination.solve_left(b)
        if not (x <= 2).all():  # more than such a small flow can explain
            raise InputError(_DISCONNECTED)
        scaled[R], bits[R] = x, scale_bits
        rare[R] = x < 2.0**-_BITS
    return Visits(scaled, bits)


def _spread(size: int, members: Indices, part: Visits) -> Visits:
    """Extend visits of the members to all states, 0 elsewhere."""
    scaled, bits = np.zeros(size), np.zeros(size, dtype=np.int64)
    scaled[members], bits[members] = part.scaled, part.bits
    return Visits(scaled, bits)
