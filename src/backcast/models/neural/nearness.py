"""Match sampled observations to existing states, to score generative models.

An observation matches the existing state from which no coordinate differs by more than half the smallest distance
between two existing observations. (A distance is the largest difference of a coordinate.) At most one observation is so
near. For one-hot observations and binary pixels this means rounding each coordinate. An observation without a match
belongs to no existing state. States with equal observations share the probability of a match equally.
"""

import jax
import jax.numpy as jnp


def tolerance(seen: jax.Array) -> jax.Array:
    """Half the smallest distance between two different observations among (S, …); ½ if all are equal."""
    apart = distances(seen, seen)
    least = jnp.where(apart > 0, apart, jnp.inf).min()
    return jnp.where(jnp.isfinite(least), 0.5 * least, 0.5)


def distances(imagined: jax.Array, seen: jax.Array) -> jax.Array:
    """Distances, (n, S), between observations (n, …) and those of S states."""
    rows, columns = imagined.reshape(len(imagined), -1), seen.reshape(len(seen), -1)
    return jax.lax.map(lambda row: jnp.abs(columns - row).max(axis=1), rows)


def alike(seen: jax.Array) -> jax.Array:
    """The number of states with the same observation as each, (S,)."""
    return (distances(seen, seen) == 0).sum(axis=1)


def nearest(imagined: jax.Array, seen: jax.Array) -> jax.Array:
    """The share (n, S) of each existing state in sampled observations (n, …)."""
    return jnp.where(distances(imagined, seen) <= tolerance(seen), 1.0 / alike(seen), 0.0)
