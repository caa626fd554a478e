"""Trees of arrays are packed into a vector for each type of number, and come back as they were."""

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
}


def test_there_is_one_vector_for_each_type_of_number():
    vectors = Packing(TREE).pack(TREE)
    assert [vector.tolist() for vector in vectors] == [[3], [9, *range(6), 7, 8]]
    assert [vector.dtype.name for vector in vectors] == ["int32", "float32"]


def test_a_packed_tree_comes_back_within_a_program_and_in_numpy():
    packing = Packing(jax.eval_shape(lambda: jax.tree.map(jnp.asarray, TREE)))
    vectors = packing.pack(TREE)
    for back in (jax.jit(packing.unpack)(vectors), packing.unpack([np.asarray(vector) for vector in vectors])):
        assert jax.tree.structure(back) == jax.tree.structure(TREE)
        for found, expected in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
