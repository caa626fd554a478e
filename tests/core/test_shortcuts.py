"""Kernels that are compiled by shortcuts compute what Python does, and Numba is left as it was."""

import gc
import math

import pytest
from numba.core.registry import cpu_target

from backcast.core.compiling import kernel


def extremes(x, y):
    return max(x, y), min(x, y), int(y)


extremes.__module__ = "backcast.made_up"  # to Numba, it is one of ours


@pytest.fixture(scope="module")
def compiled():
    return kernel(extremes)


@pytest.mark.parametrize("x", [1, 2.5, -0.0, math.nan, math.inf])
@pytest.mark.parametrize("y", [2, -3.7, 0.0, True])
def test_extremes_are_those_of_python(compiled, x, y):
    largest, smallest, whole = compiled(x, y)
    expected = extremes(x, y)
    assert repr((float(largest), float(smallest), whole)) == repr((float(expected[0]), float(expected[1]), expected[2]))


def assert_numba_is_as_it_was():
    assert gc.isenabled()
    for context in (cpu_target.target_context, cpu_target.typing_context):
        assert "load_additional_registries" not in vars(context)


def test_numba_is_left_as_it_was(compiled):
    compiled(3, 4)
    assert_numba_is_as_it_was()


def test_a_mistake_leaves_numba_as_it_was():
    wrong = kernel(lambda x: x.nothing_of_this_name)
    with pytest.raises(Exception, match="nothing_of_this_name"):
        wrong(1.0)
    assert_numba_is_as_it_was()
