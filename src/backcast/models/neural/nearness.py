"""Which of the states that exist an imagined observation is: the rule by which models that imagine are judged.

An imagined observation is the existing state from which no coordinate of it differs by more than half the smallest
distance between two existing states (the largest difference of a coordinate). At most one state is so near. For one-hot
observations this means to round each coordinate, for whole pixels likewise. What is near no state does not exist.
States that look the same share what is imagined of them equally.
"""

import jax
import jax.numpy as jnp


def tolerance(seen: jax.Array) -> jax.Array:
    """Half the smallest distance between two different observations of seen (S, …); ½ if all look the same."""
    apart = distances(seen, seen)
    least = jnp.where(apart > 0, apart, jnp.inf).min()
    return jnp.where(jnp.isfinite(least), 0.5 * least, 0.5)


def distances(imagined: jax.Array, seen: jax.Array) -> jax.Array:
    """The largest difference of a coordinate, (n, S), between observations (n, …) and those of S states."""
    rows, columns = imagined.reshape(len(imagined), -1), seen.reshape(len(seen), -1)
    return jax.lax.map(lambda row: jnp.abs(columns - row).max(axis=1), rows)


def alike(seen: jax.Array) -> jax.Array:
    """How many states look like each, (S,)."""
    return (distances(seen, seen) == 0).sum(axis=1)


def nearest(imagined: jax.Array, seen: jax.Array) -> jax.Array:
    """The share (n, S) of each existing state in observations that are imagined, (n, …)."""
    return jnp.where(distances(imagined, seen) <= tolerance(seen), 1.0 / alike(seen), 0.0)
