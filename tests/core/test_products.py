"""The product of vectors: the same bits compiled and interpreted."""

import numpy as np
import pytest

from backcast.core.compiling import kernel
from backcast.core.numerics import dot
from backcast.core.numerics import dot_in_order as in_order


@kernel
def product(x, y):
    """From Python, `dot` is called by way of a kernel."""
    return dot(x, y)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 31])
@pytest.mark.parametrize("of", [product, in_order], ids=["compiled", "interpreted"])
def test_a_product_is_the_sum_of_all_terms(of, n):
    """The k-th term is 10 k²: each left out or taken twice would show."""
    x, y = np.arange(1.0, n + 1), 10 * np.arange(1.0, n + 1)
    assert of(x, y) == 10 * n * (n + 1) * (2 * n + 1) / 6


def test_a_product_has_the_same_bits_compiled_and_interpreted():
    rng = np.random.default_rng(0)
    for n in range(100):
        x, y = rng.standard_normal((2, n))
        assert product(x, y) == in_order(x, y)
