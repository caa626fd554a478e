"""When the iterative methods stop, and what they promise then."""

import numpy as np
import pytest

import backcast as bc
from random_worlds import random_mdp

exact = bc.exact


@pytest.mark.parametrize("tolerance", [1.0, 1e-3])
def test_value_iteration_stops_when_the_error_is_within_the_tolerance(tolerance):
    """One state that earns 1 in each step for ever: v = 1 / (1 − 0.99) = 100, which k sweeps miss by 100 · 0.99ᵏ."""
    mdp = bc.FiniteMDP([[[1.0]]], [[1.0]], 0.99, [1.0])
    found = exact.optimal(mdp, "value-iteration", tolerance=tolerance)
    assert 100 - tolerance <= found.v[0] < 100
    assert found.v[0] == pytest.approx(100 * (1 - 0.99**found.iterations))
    assert 100 * 0.99 ** (found.iterations - 2) > tolerance  # it does not go on for nothing


@pytest.mark.parametrize(("method", "word"), [("policy-iteration", "improvements"), ("value-iteration", "sweeps")])
def test_as_many_iterations_as_are_needed_are_allowed_and_one_less_is_refused(method, word):
    mdp = random_mdp(np.random.default_rng(1), 7, 3)
    found = exact.optimal(mdp, method)
    assert found.iterations > 1
    again = exact.optimal(mdp, method, max_iterations=found.iterations)
    np.testing.assert_array_equal(again.v, found.v)
    short = found.iterations - 1
    with pytest.raises(bc.InputError, match=f"max_iterations: {short} {word} were not enough"):
        exact.optimal(mdp, method, max_iterations=short)
