"""Products of vectors and sums of squares: the same bits compiled and interpreted."""

import numpy as np
import pytest

from backcast.core.compiling import kernel
from backcast.core.numerics import dot, dot_in_order, squares, squares_in_order


@kernel
def product(x, y):
    """From Python, `dot` is called by way of a kernel."""
    return dot(x, y)


@kernel
def two_sums(x, weight):
    """From Python, `squares` is called by way of a kernel."""
    return squares(x, weight)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 31])
@pytest.mark.parametrize("of", [product, dot_in_order], ids=["compiled", "interpreted"])
def test_a_product_is_the_sum_of_all_terms(of, n):
    """The k-th term is 10 k²: each left out or taken twice would show."""
    x, y = np.arange(1.0, n + 1), 10 * np.arange(1.0, n + 1)
    assert of(x, y) == 10 * n * (n + 1) * (2 * n + 1) / 6


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 31])
@pytest.mark.parametrize("of", [two_sums, squares_in_order], ids=["compiled", "interpreted"])
def test_sums_of_squares_are_those_of_all_terms(of, n):
    """The k-th terms are k² and k³: each left out or taken twice would show."""
    x = np.arange(1.0, n + 1)
    assert of(x, x) == (n * (n + 1) * (2 * n + 1) / 6, (n * (n + 1) / 2) ** 2)


@pytest.mark.parametrize(
    ("compiled", "interpreted"), [(product, dot_in_order), (two_sums, squares_in_order)], ids=["product", "squares"]
)
def test_the_bits_are_the_same_compiled_and_interpreted(compiled, interpreted):
    rng = np.random.default_rng(0)
    for n in range(100):
        x, y = rng.standard_normal((2, n))
        assert compiled(x, y) == interpreted(x, y)
