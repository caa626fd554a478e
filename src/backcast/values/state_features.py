"""The features of a world's states, with those of terminal states kept separate."""

from functools import lru_cache

import numpy as np
from scipy import sparse

from backcast.core.arrays import Mask, Matrix
from backcast.features.maps import FeatureMap
from backcast.values.linear import Features, features_of, largest_norm
from backcast.worlds.world import World


@lru_cache(maxsize=32)  # the seeds of a run share them; read-only
def features_of_states(recipe: FeatureMap, place: World | int, seed: int) -> tuple[Features, int, int]:
    """The features of all states of a World (or of a number of states), their number, and how many were given.

    Args:
        recipe: a map of `backcast.features`.
        place: the world, or the number of states.
        seed: seed of the run, for features that every seed draws anew.
    """
    matrix = recipe.bind(place, seed).sparse
    n_given = matrix.shape[1]
    if not isinstance(place, int):
        matrix = _with_ends_apart(matrix, place.mdp.terminal)
    return features_of(matrix), matrix.shape[1], n_given


def _with_ends_apart(matrix: Matrix, terminal: Mask) -> Matrix:
    """Return features in which terminal states share none with non-terminal states.

    Terminal states that would, or that have no features, get one common extra feature, so that models can represent
    what led to the end. Its weight stays at 0, except for the probability that an exponential family leaves to all
    states.
    """
    alive = np.flatnonzero(np.asarray(matrix[~terminal].astype(bool).sum(axis=0)).ravel())
    mixed = terminal & (np.asarray(matrix[:, alive].astype(bool).sum(axis=1)).ravel() > 0)
    mixed |= terminal & (np.diff(matrix.indptr) == 0)
    if not mixed.any():
        return matrix
    kept = sparse.dia_array((np.where(mixed, 0.0, 1.0)[None], [0]), shape=(len(mixed), len(mixed)))
    own = np.where(
        mixed, np.sqrt(largest_norm(matrix) or 1.0), 0.0
    )  # as large as the others, so that it learns as fast
    apart = sparse.csr_array(sparse.hstack([kept @ matrix, sparse.csr_array(own[:, None])]))
    apart.eliminate_zeros()
    return apart
