"""The features of the states of a world, with those of terminal states kept apart."""

from functools import lru_cache

import numpy as np
from scipy import sparse

from backcast.core.arrays import Mask, Matrix
from backcast.features.maps import FeatureMap
from backcast.values.linear import Features, features_of, largest_norm
from backcast.worlds.world import World


@lru_cache(maxsize=32)  # the seeds of a run share them, and nobody writes to them
def features_of_states(recipe: FeatureMap, place: World | int, seed: int) -> tuple[Features, int, int]:
    """The features of all states of a World (or of so many states), how many there are, and how many were given.

    Args:
        recipe: a map of `backcast.features`.
        place: the world, or the number of states.
        seed: of the run, where every seed draws its own features.
    """
    matrix = recipe.bind(place, seed).sparse
    n_given = matrix.shape[1]
    if not isinstance(place, int):
        matrix = _with_ends_apart(matrix, place.mdp.terminal)
    return features_of(matrix), matrix.shape[1], n_given


def _with_ends_apart(matrix: Matrix, terminal: Mask) -> Matrix:
    """Features in which terminal states share none with states that go on.

    Those that would, or that have no features, get one more feature, the same for all of them, so that models can be
    asked what led to the end. Nothing but the probability that an exponential family leaves to all states moves its
    weight away from 0.
    """
    alive = np.flatnonzero(np.asarray(matrix[~terminal].astype(bool).sum(axis=0)).ravel())
    mixed = terminal & (np.asarray(matrix[:, alive].astype(bool).sum(axis=1)).ravel() > 0)
    mixed |= terminal & (np.diff(matrix.indptr) == 0)
    if not mixed.any():
        return matrix
    kept = sparse.dia_array((np.where(mixed, 0.0, 1.0)[None], [0]), shape=(len(mixed), len(mixed)))
    own = np.where(
        mixed, np.sqrt(largest_norm(matrix) or 1.0), 0.0
    )  # as large as the others, so as not to learn slower
    apart = sparse.csr_array(sparse.hstack([kept @ matrix, sparse.csr_array(own[:, None])]))
    apart.eliminate_zeros()
    return apart
