"""A tree of many arrays as a few vectors: what is called at every step costs by the arrays that it is handed."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar("Tree")
Vectors = tuple[jax.Array, ...]


class Packing(Generic[Tree]):
    """How trees of one structure are packed: a vector for each type of number, with the arrays one after another.

    Args:
        example: a tree of this structure, of arrays or of their shapes and types.
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
        """The vectors of a tree."""
        leaves = jax.tree.leaves(tree)
        return tuple(
            jnp.concatenate([leaf.ravel() for leaf, at in zip(leaves, self._vector, strict=True) if at == vector])
            for vector in range(len(self._dtypes))
        )

    def unpack(self, vectors: Sequence[Any]) -> Tree:
        """The tree of some vectors, which may be of NumPy."""
        parts = zip(self._vector, self._places, self._shapes, strict=True)
        leaves = [vectors[vector][place].reshape(shape) for vector, place, shape in parts]
        return jax.tree.unflatten(self._structure, leaves)
