"""Paths of several steps along the stored trajectory, from which models over several steps learn.

As in `backcast.exact` and in `backcast.models.trajectory`, the trajectory continues across the end of an episode: a
terminal state leads to the next start. That step earns nothing and carries no discount. A truncated episode ends the
trajectory.
"""

import jax
import jax.numpy as jnp

from backcast.drivers.neural_memory import Packed
from backcast.models.neural.contract import Ways


def draw_ways(
    memory: Packed,
    newest: jax.Array,
    filled: jax.Array,
    size: int,
    steps: int,
    discount: jax.Array,
    key: jax.Array,
) -> Ways:
    """Draw paths of a number of steps to arrivals, uniformly and with replacement.

    An arrival is the end of a transition, or a restart after a terminal state. Transitions are drawn. A transition that
    begins an episode after a restart has two arrivals, its start and its end: one of them is chosen, and has weight 2.

    Args:
        memory: a ring buffer of transitions.
        newest: the place of the last transition.
        filled: the number of stored transitions.
        size: the number of paths.
        steps: the number of steps of each path.
        discount: γ.
        key: random key of JAX.
    """
    of_age, of_arrival = jax.random.split(key)
    age = jax.random.randint(of_age, (size,), 0, filled.astype(jnp.int32), dtype=jnp.int32)
    restarted = follows_restart(memory, newest, filled, age)
    to_start = restarted & jax.random.bernoulli(of_arrival, shape=(size,))
    ways = look_back(memory, newest, filled, age, to_start, steps, discount)
    return ways._replace(weight=jnp.where(restarted, 2, 1) * ways.weight)


def follows_restart(memory: Packed, newest: jax.Array, filled: jax.Array, age: jax.Array) -> jax.Array:
    """Whether transitions begin an episode after a terminal state that is still in memory."""
    room = memory.room
    return memory.first((newest - age) % room) & memory.ends((newest - age - 1) % room) & (age + 1 < filled)


def look_back(
    memory: Packed,
    newest: jax.Array,
    filled: jax.Array,
    age: jax.Array,
    to_start: jax.Array,
    steps: int,
    discount: jax.Array,
) -> Ways:
    """Return the paths to the ends of transitions of this age or, where `to_start`, to their starts."""
    room = memory.room

    def back(walk: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        """Go one step back: the restart before a transition of this age, or that transition."""
        age, restart, r, carried, known = walk
        at = (newest - age) % room
        carries = jnp.where(restart | memory.ends(at), 0, 1)
        r = jnp.where(restart, 0, memory.reward(at) + discount * carries * r)
        known = known & (age < filled)
        next_is_restart = ~restart & memory.first(at)
        unbroken = ~next_is_restart | follows_restart(memory, newest, filled, age)
        walk = jnp.where(next_is_restart, age, age + 1), next_is_restart, r, carried * carries, known & unbroken
        return walk, (at, restart, known)

    ended = jnp.zeros(len(age), memory.reward_type), jnp.ones(len(age), memory.reward_type)
    walk = age, to_start, *ended, jnp.ones(len(age), bool)
    (_, _, r, carried, _), (at, restart, known) = jax.lax.scan(back, walk, None, steps)
    origin, arrival = at[-1], (newest - age) % room
    begun, came = memory.at(origin), memory.at(arrival)
    s2 = jnp.where(_like(to_start, came.s), came.s, came.s2)
    weight = (known[-1] & ~restart[-1]).astype(memory.reward_type)
    return Ways(begun.s, begun.a, r, s2, carried, weight)


def _like(each: jax.Array, states: jax.Array) -> jax.Array:
    """The same numbers with as many axes as states have."""
    return each.reshape(-1, *(1,) * (states.ndim - 1))
