"""Trees of arrays are packed into a vector of words, and come back as they were."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backcast.networks.packing import Packing

pytestmark = pytest.mark.interpreted

TREE = {
    "net": (np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([7, 8])),
    "count": np.int32(3),
    "none": np.zeros((0, 4), np.float32),
    "loss": np.float32(9),
    "on": np.array([True, False]),
    "small": np.float16([1.5]),
}


def test_there_is_one_vector_of_words_and_one_for_each_other_type():
    vectors = Packing(TREE).pack(TREE)
    numbers, truths, short = vectors
    assert numbers.dtype == np.int32
    assert numbers[0] == 3
    assert np.asarray(numbers)[1:].view(np.float32).tolist() == [9, *range(6), 7, 8]
    assert (truths.tolist(), short.tolist(), short.dtype) == ([True, False], [1.5], jnp.float16)


def test_numbers_of_64_bits_take_two_words():
    with jax.enable_x64(True):
        tree = (np.arange(3) / 7, np.int64(2**40 + 1), np.float32(-0.0))
        packing = Packing(tree)
        (words,) = jax.jit(packing.pack)(tree)
        assert words.shape == (2 * 3 + 2 + 1,)
        for found, expected in zip(jax.jit(packing.unpack)([words]), tree, strict=True):
            assert (found.dtype, np.asarray(found).tobytes()) == (expected.dtype, expected.tobytes())


def test_a_packed_tree_comes_back_within_a_program_and_in_numpy():
    packing = Packing(jax.eval_shape(lambda: jax.tree.map(jnp.asarray, TREE)))
    vectors = packing.pack(TREE)
    for back in (jax.jit(packing.unpack)(vectors), packing.unpack([np.asarray(vector) for vector in vectors])):
        assert jax.tree.structure(back) == jax.tree.structure(TREE)
        for found, expected in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
