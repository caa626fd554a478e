"""A million states: the sparse paths end, and what they give satisfies its equation."""

import numpy as np
import pytest
from scipy import sparse

import backcast as bc


def gridworld(side, discount):
    """An open grid; up, right, down, left; entering the last corner earns 1 and ends."""
    n = side * side
    row, column = np.divmod(np.arange(n), side)
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    following = np.stack(
        [np.clip(row + i, 0, side - 1) * side + np.clip(column + j, 0, side - 1) for i, j in moves], axis=1
    )
    transition = sparse.csr_array((np.ones(4 * n), following.ravel(), np.arange(4 * n + 1)), shape=(4 * n, n))
    reward = (following == n - 1).astype(float)
    return bc.FiniteMDP(transition, reward, discount, np.eye(1, n)[0], np.arange(n) == n - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("side", "discount"), [(300, 0.99), (1000, 1.0)])
def test_up_to_a_million_states(side, discount):
    mdp = gridworld(side, discount)
    uniform = np.full((mdp.n_states, 4), 0.25)
    P = bc.exact.chain(mdp, uniform)

    d = bc.exact.stationary(mdp, uniform)
    np.testing.assert_allclose(d @ P, d, atol=1e-16)
    assert d.sum() == pytest.approx(1)
    assert d.min() > 0

    v = bc.exact.value(mdp, uniform)
    ahead = 0.25 * mdp.expected_reward.sum(axis=1) + discount * (P @ v)
    np.testing.assert_allclose(v[:-1], ahead[:-1], atol=1e-12)

    best = bc.exact.optimal(mdp)
    distance = 2 * side - 2 - np.add(*np.divmod(np.arange(mdp.n_states), side))  # Manhattan distance to the corner
    np.testing.assert_allclose(best.v[:-1], discount ** (distance[:-1] - 1.0), rtol=1e-9)
    on_the_way = bc.exact.stationary(mdp, best.policy)
    assert (on_the_way > 0).sum() == 2 * side - 1
