"""Pack a pytree of arrays into a few vectors, because the cost of a call grows with the number of its arrays."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Tree = TypeVar("Tree")
Vectors = tuple[jax.Array, ...]
_WORD = np.dtype(np.int32)


class Packing(Generic[Tree]):
    """The packing of pytrees of one structure: arrays one after another, as 32-bit words where they consist of them.

    Arrays of other dtypes form a vector for each dtype.

    Args:
        example: a pytree of this structure, of arrays or of their shapes and dtypes.

    Attributes:
        numbers: a pytree of this structure, of the number of each array, for `one`.
    """

    def __init__(self, example: Tree) -> None:
        leaves, self._structure = jax.tree.flatten(example)
        self.numbers: Tree = jax.tree.unflatten(self._structure, range(len(leaves)))
        self._types, self._shapes = [leaf.dtype for leaf in leaves], [leaf.shape for leaf in leaves]
        packed = [_packed_as(dtype) for dtype in self._types]
        vectors = list(dict.fromkeys(packed))
        self._vector, self._n_vectors = [vectors.index(dtype) for dtype in packed], len(vectors)
        ends = [0] * len(vectors)
        self._places = []
        for vector, dtype, shape in zip(self._vector, self._types, self._shapes, strict=True):
            words = dtype.itemsize // _WORD.itemsize if vectors[vector] == _WORD else 1
            begin, ends[vector] = ends[vector], ends[vector] + int(np.prod(shape)) * words
            self._places.append(slice(begin, ends[vector]))

    def pack(self, tree: Tree) -> Vectors:
        """Pack a pytree."""
        parts: list[list[jax.Array]] = [[] for _ in range(self._n_vectors)]
        for leaf, vector, dtype in zip(jax.tree.leaves(tree), self._vector, self._types, strict=True):
            parts[vector].append(_seen_as(_packed_as(dtype), leaf.ravel()))
        return tuple(jnp.concatenate(part) for part in parts)

    def unpack(self, vectors: Sequence[Any]) -> Tree:
        """Unpack vectors, which may be NumPy arrays."""
        return jax.tree.unflatten(self._structure, [self.one(vectors, number) for number in range(len(self._places))])

    def one(self, vectors: Sequence[Any], number: int) -> jax.Array:
        """Unpack one array."""
        part = vectors[self._vector[number]][self._places[number]]
        return _seen_as(self._types[number], part).reshape(self._shapes[number])


def _seen_as(dtype: jnp.dtype, vector: jax.Array) -> jax.Array:
    """The bits of a vector as another dtype."""
    return vector if vector.dtype == dtype else vector.view(dtype)


def _packed_as(dtype: jnp.dtype) -> jnp.dtype:
    """The dtype of the vector that an array becomes a part of."""
    is_words = not jnp.issubdtype(dtype, jax.dtypes.extended) and dtype.kind in "iuf" and dtype.itemsize in (4, 8)
    return _WORD if is_words else dtype
