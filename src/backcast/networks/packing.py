"""Pack a pytree of arrays into a few vectors, because the cost of a call grows with the number of its arrays."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar("Tree")
Vectors = tuple[jax.Array, ...]


class Packing(Generic[Tree]):
    """The packing of pytrees of one structure: a vector for each dtype, with the arrays one after another.

    Args:
        example: a pytree of this structure, of arrays or of their shapes and dtypes.
    """

    def __init__(self, example: Tree) -> None:
        leaves, self._structure = jax.tree.flatten(example)
        self._shapes = [leaf.shape for leaf in leaves]
        self._dtypes = list(dict.fromkeys(leaf.dtype for leaf in leaves))
        self._vector = [self._dtypes.index(leaf.dtype) for leaf in leaves]
        ends = [0] * len(self._dtypes)
        self._places = []
        for vector, shape in zip(self._vector, self._shapes, strict=True):
            begin, ends[vector] = ends[vector], ends[vector] + int(np.prod(shape))
            self._places.append(slice(begin, ends[vector]))

    def pack(self, tree: Tree) -> Vectors:
        """Pack a pytree."""
        leaves = jax.tree.leaves(tree)
        return tuple(
            jnp.concatenate([leaf.ravel() for leaf, at in zip(leaves, self._vector, strict=True) if at == vector])
            for vector in range(len(self._dtypes))
        )

    def unpack(self, vectors: Sequence[Any]) -> Tree:
        """Unpack vectors, which may be NumPy arrays."""
        parts = zip(self._vector, self._places, self._shapes, strict=True)
        leaves = [vectors[vector][place].reshape(shape) for vector, place, shape in parts]
        return jax.tree.unflatten(self._structure, leaves)
