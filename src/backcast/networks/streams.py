"""The random streams of `backcast.core.randomness` in JAX: the same numbers, bit by bit.

A stream is PCG64's state, (4,) uint64: state high and low, increment high and low. Each function returns the advanced
stream as well. `act` draws the same ε-greedy actions as `backcast.values.policies.act`.
"""

import jax
import jax.numpy as jnp

_LOWER = 2**32 - 1
_MULTIPLIER = (2549297995355413924, 4865540595714422341)  # high and low


def uniform(stream: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draw a float64 in [0, 1); return it and the advanced stream."""
    high, low, step_high, step_low = stream
    times_high, times_low = (jnp.uint64(each) for each in _MULTIPLIER)
    next_low = low * times_low
    next_high = high * times_low + low * times_high + _high_product(low, times_low)
    low = next_low + step_low
    high = next_high + step_high + (low < next_low).astype(jnp.uint64)
    mixed, rotation = high ^ low, high >> jnp.uint64(58)
    back = (jnp.uint64(64) - rotation) & jnp.uint64(63)
    mixed = (mixed >> rotation) | (mixed << back)
    number = (mixed >> jnp.uint64(11)).astype(jnp.float64) * (1.0 / 9007199254740992.0)
    return number, jnp.stack([high, low, step_high, step_low])


def _high_product(a: jax.Array, b: jax.Array) -> jax.Array:
    """The upper 64 bits of a · b, from the products of their halves."""
    lower, half = jnp.uint64(_LOWER), jnp.uint64(32)
    a_low, a_high, b_low, b_high = a & lower, a >> half, b & lower, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    return a_high * b_high + (middle >> half) + (a_low * b_high + (middle & lower) >> half)


def act(q: jax.Array, epsilon: jax.Array, stream: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draw an ε-greedy action for values q (A,), ties broken uniformly; return it and the advanced stream."""
    n_actions = q.shape[0]
    if n_actions == 1:
        return jnp.int32(0), stream
    explores, once = uniform(stream)
    second, twice = uniform(once)
    explores = explores < epsilon
    best = q == q.max()
    ties = best.sum()
    left = jnp.floor(second * jnp.where(explores, n_actions, ties)).astype(jnp.int32)
    greedy = jnp.argmax(best & (jnp.cumsum(best) == left + 1))  # the one after `left` others
    alone = ~explores & (ties == 1)
    a = jnp.where(explores, left, jnp.where(alone, jnp.argmax(best), greedy))
    return a.astype(jnp.int32), jnp.where(alone, once, twice)
