"""Iterative solutions are returned only with a certificate, and what a walk has not quite found is corrected."""

import importlib

import numpy as np
import pytest
from scipy import sparse

from backcast.exact.solve import Leaky, certified_krylov, inverse_norm
from backcast.exact.stationary import _by_mixing, _lazy_walk, stationary_of

MODULE = importlib.import_module("backcast.exact.stationary")  # the package's attribute of this name is a function


def test_a_bound_on_the_inverse():
    """The inverse of [[2, −1], [−1, 2]] is [[2, 1], [1, 2]] / 3: its rows sum to 1."""
    bound = inverse_norm(sparse.csr_array([[2.0, -1.0], [-1.0, 2.0]]))
    assert 1.0 <= bound == pytest.approx(1.0, rel=1e-12)
    bound = inverse_norm(sparse.csr_array([[4.0, -2.0], [-2.0, 4.0]]))
    assert 0.5 <= bound == pytest.approx(0.5, rel=1e-12)


def test_a_small_system_is_eliminated_however_quickly_it_mixes():
    """x = 1 + x / 2 in both of two states: (I − Q) x = b with x = (2, 2)."""
    Q = sparse.csr_array([[0.0, 0.5], [0.5, 0.0]])
    for as_dense in (None, True, False):
        system = Leaky(Q, np.full(2, 0.5), as_dense)
        assert system.solve_iteratively(np.ones(2)) is None
        np.testing.assert_allclose(system.solve(np.ones(2)), 2.0, rtol=1e-15)


def test_no_bound_is_found_in_what_rounding_leaves():
    """The first row sums to 2, but so do numbers that are 10¹⁶ apart up to rounding."""
    assert inverse_norm(sparse.csr_array([[1e16, 2.0 - 1e16], [0.0, 1.0]])) is None


@pytest.mark.parametrize(("norm", "is_certified"), [(1.0, True), (1e6, True), (1e12, False)])
def test_the_error_that_rounding_may_cause_is_part_of_the_certificate(norm, is_certified):
    """The residual is 0; but with so large an inverse, rounding of 10⁻¹⁵ may have become an error of 10⁻³."""
    b = np.array([1.0, -2.0, 4.0])
    x = certified_krylov(sparse.eye_array(3, format="csr"), b, norm)
    assert (x is not None) == is_certified
    if is_certified:
        np.testing.assert_allclose(x, b)


@pytest.fixture
def chain():
    rng = np.random.default_rng(3)
    P = sparse.random_array((40, 40), density=0.3, rng=rng).toarray() + np.roll(np.eye(40), 1, axis=1)
    return sparse.csr_array(P / P.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(("off", "is_corrected"), [(0.01, True), (0.3, False)])
def test_where_a_walk_came_to_rest_is_corrected_if_it_is_near(monkeypatch, chain, off, is_corrected):
    d = stationary_of(chain).d
    rest = d * (1 + off * np.linspace(-1, 1, 40))
    monkeypatch.setattr(MODULE, "_lazy_walk", lambda P: rest / rest.sum())
    found = _by_mixing(chain)
    assert (found is not None) == is_corrected
    if is_corrected:
        np.testing.assert_allclose(found, d, rtol=1e-9)


def test_a_walk_comes_to_rest_at_the_stationary_distribution(chain):
    np.testing.assert_allclose(_lazy_walk(chain), stationary_of(chain).d, rtol=1e-10)
    up, down = np.append(np.full(9, 0.4), 0.0), np.append(0.0, np.full(9, 0.3))  # d(k + 1) = 4/3 d(k)
    line = sparse.diags_array([down[1:], 1 - up - down, up[:-1]], offsets=[-1, 0, 1]).tocsr()
    np.testing.assert_allclose(
        _lazy_walk(line), (4 / 3) ** np.arange(10) / ((4 / 3) ** np.arange(10)).sum(), rtol=1e-10
    )
    round_trip = sparse.csr_array(np.roll(np.eye(4), 1, axis=1))  # a period does not keep it from resting
    np.testing.assert_allclose(_lazy_walk(round_trip), 0.25)
    slow = sparse.csr_array([[1 - 1e-6, 1e-6], [3e-6, 1 - 3e-6]])
    assert _lazy_walk(slow) is None


def test_states_too_rare_for_a_walk_are_left_to_elimination(monkeypatch):
    """0 and 1 alternate; 2 is entered from 0 with probability 10⁻²⁶⁰ and left at once."""
    P = sparse.csr_array([[0.0, 1.0, 1e-260], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    rest = np.array([0.5, 0.5, 0.5e-260])
    monkeypatch.setattr(MODULE, "_lazy_walk", lambda P: rest)
    assert _by_mixing(P) is None
    np.testing.assert_allclose(stationary_of(P).d, rest)


def test_visits_between_two_of_a_rare_hub_may_overflow():
    """A hub leads to a ring of four, which leads back with probability 10⁻³⁰⁸: in between are 4 · 10³⁰⁸ visits."""
    P = np.zeros((5, 5))
    P[0, 1:] = 0.25
    P[[1, 2, 3, 4], [2, 3, 4, 1]] = 1.0
    P[4, 0] = 1e-308
    visits = stationary_of(P)
    np.testing.assert_allclose(visits.d[1:], 0.25, rtol=1e-12)
    assert np.ldexp(visits.scaled[0], 1000 - int(visits.bits[0])) == pytest.approx(np.ldexp(0.25e-308, 1000), rel=1e-9)


def test_a_walk_that_cannot_be_corrected_with_a_certificate_is_left_to_elimination(monkeypatch, chain):
    d = stationary_of(chain).d
    assert _by_mixing(chain) is not None
    monkeypatch.setattr(MODULE, "certified_krylov", lambda system, b, norm: None)
    assert _by_mixing(chain) is None
    np.testing.assert_allclose(stationary_of(chain).d, d, rtol=1e-12)
