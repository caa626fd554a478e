"""Validation of single numbers, of any type that Python and NumPy have."""

import warnings

import numpy as np
import pytest

import backcast as bc
from backcast.core.arrays import as_number, as_whole

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("type", [np.float16, np.float32, np.float64, np.longdouble])
def test_numbers_of_every_precision_are_taken_without_a_warning(type):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_number("discount", type(0.5), 0, 1, "a number") == 0.5
        assert bc.worlds.chain((3, 2), seed=0, discount=type(0.5)).mdp.discount == 0.5


@pytest.mark.parametrize("given", [np.float32("nan"), np.float16("inf"), 10**400, np.longdouble("1e4000")])
def test_what_is_no_finite_double_is_refused(given):
    with pytest.raises(bc.InputError, match=r"x: .* given, expected a number"):
        as_number("x", given, 0, np.inf, "a number")


def test_a_whole_number_that_is_too_large_is_refused_by_its_upper_limit():
    with pytest.raises(bc.InputError, match=r"n: 7 given, expected a whole number from 0 to 5"):
        as_whole("n", 7, 0, 5)
    with pytest.raises(bc.InputError, match=r"n: 10{30} given, expected a whole number from 1 to 9223372036854775807"):
        as_whole("n", 10**30, 1)
    with pytest.raises(bc.InputError, match=r"n: 0 given, expected a whole number, 1 or more"):
        as_whole("n", 0, 1)
