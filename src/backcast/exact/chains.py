"""The Markov chain of a world under a policy, and its distribution after t steps.

The paper assumes a chain that runs for ever (section 3, "Assumptions"). An episodic world becomes one by
restarting: a terminal state leads to the start distribution, earns nothing and carries no discounted value
across. Everything backward (stationary distribution, reversal, time-extended models) lives on this
*recurrent* chain; values (`backcast.exact.value`) live on the episode, which ends.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.core.arrays import SUM_TOLERANCE, Matrix, Vector, as_floats, as_whole, ratio, refuse_non_finite
from backcast.core.errors import InputError
from backcast.mdp import FiniteMDP

Policy = ArrayLike | None


def chain(mdp: FiniteMDP, policy: Policy = None) -> Matrix:
    """P_π(s' | s) = Σ_a π(a | s) P(s' | s, a), where terminal states lead to the start distribution.

    Args:
        mdp: the world.
        policy: π(a | s) as (S, A), or one action per state as integers (S,); None for a world of one action.

    Returns:
        (S, S) [s, s'], csr for a sparse world.
    """
    return in_given_form(mdp, mix(as_policy(mdp, policy), restarting(mdp)))


def transition_reward(mdp: FiniteMDP, policy: Policy = None) -> Matrix:
    """r_π(s̃, s) = E[R_{t+1} | S_t = s̃, S_{t+1} = s], the paper's two-sided reward model r↔.

    Returns:
        (S, S) [s̃, s] (earlier, later); 0 where s̃ never leads to s.
    """
    return OneStep(mdp, policy).reward


def distribution(mdp: FiniteMDP, policy: Policy = None, *, t: int) -> Vector:
    """d_{π,t}(s), the probability of state s after t steps of the recurrent chain; d_{π,0} is `start`, (S,)."""
    steps = as_whole("t", t, 0)
    P = mix(as_policy(mdp, policy), restarting(mdp))
    d = mdp.start
    for _ in range(steps):
        d = d @ P
    return np.array(d)


class OneStep:
    """One step of the recurrent chain as matrices (S, S) [s̃, s]: transitions, rewards and discounts.

    Attributes:
        P: P_π(s | s̃).
        R: Σ_a π(a | s̃) P(s | s̃, a) r(s̃, a, s), the expected reward of the step if it leads to s.
        G: P_π(s | s̃) γ(s̃, s), with γ(s̃, s) = 0 where either end is terminal: nothing is earned after it.
        reward: R / P, the reward given both ends.
    """

    def __init__(self, mdp: FiniteMDP, policy: Policy = None) -> None:
        pi = as_policy(mdp, policy)
        table = mdp.table
        earned = sparse.csr_array((table.data * mdp.table_reward.data, table.indices, table.indptr), table.shape)
        self.P = in_given_form(mdp, mix(pi, restarting(mdp)))
        self.R = in_given_form(mdp, mix(pi, earned))
        lives = np.where(mdp.terminal, 0.0, 1.0)
        self.G = scale(mdp.discount * lives, self.P, lives)

    @property
    def reward(self) -> Matrix:
        """E[R | s̃, s], 0 where s̃ never leads to s."""
        return ratio(self.R, self.P)


def as_chain(field: str, given: Any) -> Matrix:
    """Convert to a transition matrix (S, S), float64 array or csr_array, and check that its rows are distributions."""
    P: Matrix = sparse.csr_array(given, dtype=np.float64) if sparse.issparse(given) else as_floats(field, given)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.shape[0] == 0:
        raise InputError(f"{field}: shape {P.shape} given, expected (S, S), the transition matrix of a chain")
    entries = P.tocoo() if sparse.issparse(P) else sparse.coo_array(P)
    bad = ~np.isfinite(entries.data) | (entries.data < 0)
    if bad.any():
        entry = int(np.argmax(bad))
        s, following = (int(coordinate[entry]) for coordinate in entries.coords)
        raise InputError(
            f"{field}: P(s'={following} | s={s}) is {entries.data[entry]:g}; probabilities must be finite and not"
            " negative"
        )
    sums = np.asarray(P.sum(axis=1)).ravel()
    if (np.abs(sums - 1) > SUM_TOLERANCE).any():
        state = int(np.argmax(np.abs(sums - 1) > SUM_TOLERANCE))
        raise InputError(f"{field}: the row of state {state} sums to {sums[state]:.10g}; it must sum to 1")
    return P


def restarting(mdp: FiniteMDP) -> sparse.csr_array:
    """The table (S*A, S) of the recurrent world: rows of terminal states are the start distribution."""
    if not mdp.terminal.any():
        return mdp.table
    lives = np.repeat(~mdp.terminal, mdp.n_actions).astype(np.float64)
    ends = sparse.csr_array((1 - lives)[:, None])
    return (sparse.diags_array(lives) @ mdp.table + ends @ sparse.csr_array(mdp.start[None, :])).tocsr()


def mix(pi: Vector, table: sparse.csr_array) -> sparse.csr_array:
    """Σ_a π(a | s) table[s*A + a, :], (S, S), without explicit zeros."""
    n_states, n_actions = pi.shape
    rows = np.arange(0, pi.size + 1, n_actions)
    mixer = sparse.csr_array((pi.ravel(), np.arange(pi.size), rows), shape=(n_states, pi.size))
    mixed = (mixer @ table).tocsr()
    mixed.sum_duplicates()
    mixed.eliminate_zeros()
    return mixed


def scale(left: Vector | None, matrix: Matrix, right: Vector | None = None) -> Matrix:
    """diag(left) · matrix · diag(right), dense or sparse like `matrix`; None is the identity."""
    if sparse.issparse(matrix):
        scaled = matrix if left is None else sparse.diags_array(left) @ matrix
        return (scaled if right is None else scaled @ sparse.diags_array(right)).tocsr()
    scaled = matrix if left is None else left[:, None] * matrix
    return scaled if right is None else scaled * right


def in_given_form(mdp: FiniteMDP, matrix: sparse.csr_array) -> Matrix:
    """Convert to dense for a dense world, to csr for a sparse one."""
    return matrix if mdp.is_sparse else matrix.toarray()


def as_policy(mdp: FiniteMDP, policy: Policy) -> Vector:
    """Return π(a | s) as (S, A), validated."""
    shape = (mdp.n_states, mdp.n_actions)
    if policy is None:
        if mdp.n_actions != 1:
            raise InputError(f"policy: none given, but there are {mdp.n_actions} actions; expected shape {shape}")
        return np.ones(shape)
    pi = as_floats("policy", policy)
    if pi.shape == shape[:1] and np.issubdtype(np.asarray(policy).dtype, np.integer):
        return _deterministic(np.asarray(policy), shape)
    if pi.shape != shape:
        raise InputError(f"policy: shape {pi.shape} given, expected (S, A) = {shape} or one action per state")
    refuse_non_finite("policy", pi)
    if (pi < 0).any():
        s, a = (int(i) for i in np.argwhere(pi < 0)[0])
        raise InputError(f"policy: π(a={a} | s={s}) is {pi[s, a]:g}; probabilities cannot be negative")
    pi[mdp.terminal & ~pi.any(axis=1)] = 1 / mdp.n_actions  # no action is taken there
    sums = pi.sum(axis=1)
    if (np.abs(sums - 1) > SUM_TOLERANCE).any():
        state = int(np.argmax(np.abs(sums - 1) > SUM_TOLERANCE))
        raise InputError(f"policy: the row of state {state} sums to {sums[state]:.10g}; it must sum to 1")
    return pi


def _deterministic(actions: Any, shape: tuple[int, int]) -> Vector:
    if ((actions < 0) | (actions >= shape[1])).any():
        state = int(np.argmax((actions < 0) | (actions >= shape[1])))
        raise InputError(f"policy: action {actions[state]} in state {state}; actions are 0 to {shape[1] - 1}")
    pi = np.zeros(shape)
    pi[np.arange(shape[0]), actions] = 1.0
    return pi
