"""Elimination block by block and along a tree, against NumPy's solver."""

import numpy as np
import pytest
from scipy import sparse

from backcast.core.errors import InputError
from backcast.exact import elimination, solve
from backcast.exact.elimination import Dense, Factors, plan
from backcast.exact.solve import Leaky


def leaky(n, degree, seed=0):
    """A random Q (n, n) that is connected, what leaks from each row, and I − Q, whose diagonal is their sum."""
    rng = np.random.default_rng(seed)
    Q = np.where(rng.random((n, n)) < degree / n, rng.random((n, n)), 0.0) + np.roll(np.eye(n), 1, axis=1)
    np.fill_diagonal(Q, 0.0)
    leak = rng.random(n) * 0.1 + 0.01
    Q *= ((1 - leak) / np.maximum(Q.sum(axis=1), 1.0))[:, None]
    return Q, leak, np.diag(leak + Q.sum(axis=1)) - Q, rng


def assert_solved(eliminated, system, rng):
    n = len(system)
    for b in (rng.normal(size=n), rng.normal(size=(n, 3))):
        np.testing.assert_allclose(eliminated.solve(b), np.linalg.solve(system, b), rtol=1e-9, atol=1e-9)
    b = rng.normal(size=n)
    np.testing.assert_allclose(eliminated.solve_left(b), np.linalg.solve(system.T, b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 150])
def test_dense(n):
    Q, leak, system, rng = leaky(n, 20)
    given = Q.copy(), leak.copy()
    assert_solved(Dense(Q, leak), system, rng)
    np.testing.assert_array_equal(Q, given[0])  # what was given is not written to
    np.testing.assert_array_equal(leak, given[1])


def test_wide_blocks_are_eliminated_in_blocks_themselves(monkeypatch):
    """With blocks of 16 states, more than 64 are taken by 64."""
    monkeypatch.setattr(elimination, "_BLOCK", 16)
    Q, leak, system, rng = leaky(150, 20)
    assert_solved(Dense(Q, leak), system, rng)


@pytest.mark.parametrize("n", [2, 3, 30, 80])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_sparse(n, degree):
    Q, leak, system, rng = leaky(n, degree)
    planned = plan(sparse.csr_array(Q))
    assert_solved(Factors(planned, leak), system, rng)
    assert sorted(planned.place.tolist()) == list(range(n))


@pytest.mark.parametrize("hub", [0, 4, 9])
def test_a_hub_is_eliminated_after_the_others(hub):
    """Nine states that only a hub connects: each is connected to the hub. After the hub all would be, to each other."""
    star = np.zeros((10, 10))
    star[hub], star[:, hub], star[hub, hub] = 0.05, 0.5, 0.0
    assert plan(sparse.csr_array(star)).fill == 9


def test_the_fill_and_the_work_of_a_plan_by_hand():
    """A ring of four: the first one eliminated connects its neighbours; 2, 2, 1 and 0 later ones are connected."""
    ring = sparse.csr_array(np.roll(np.eye(4), 1, axis=1) * 0.5)
    planned = plan(ring)
    assert sorted(planned.counts.tolist()) == [0, 1, 2, 2]
    assert (planned.fill, planned.work) == (5, 9.0)


def eliminated(Q):
    return Leaky(sparse.csr_array(Q), 1 - Q.sum(axis=1), as_dense=False).elimination


def test_sparse_states_are_eliminated_as_dense_ones_if_they_are_few_and_nearly_all_connected(monkeypatch):
    """Of ten states that are all connected, elimination in rows takes 9² + 8² + … + 1 = 285 multiplications.

    That is more than 10³ / 50 = 20. On a line of ten it takes 9. If they are too many for a dense matrix, and for
    rows, they are refused.
    """
    full, line = np.full((10, 10), 0.09), 0.5 * np.eye(10, k=1)
    assert [plan(sparse.csr_array(Q)).work for Q in (full, line)] == [285, 9]
    monkeypatch.setattr(solve, "_LARGEST_DENSE", 10)
    assert isinstance(eliminated(full), Dense)
    assert isinstance(eliminated(line), Factors)
    monkeypatch.setattr(solve, "_LARGEST_DENSE", 9)
    assert isinstance(eliminated(full), Factors)
    monkeypatch.setattr(solve, "_LARGEST_WORK", 284)
    with pytest.raises(InputError, match=r"chain: it has 10 states, which need .* and 3e\+02 multiplications"):
        eliminated(full)
