"""The replay memory of an agent with a network: a ring buffer of transitions in two arrays.

The time of a call, and of a draw, grows with the number of arrays.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from backcast.values.neural import Transitions

_A, _ENDS, _FIRST, _R = range(4)  # columns of `rest`; the reward takes the last one or two


class Packed(NamedTuple):
    """Transitions s, a → r, s', each entry (n, …); arrays of JAX or NumPy.

    Attributes:
        states: (n, 2, …), s and s' as they are stored: numbers or, if states are not numbered, observations.
        rest: (n, 3 + words of r) int32: a, whether s' is terminal, whether s began the episode, and the bits of r.
    """

    states: jax.Array
    rest: jax.Array

    @property
    def room(self) -> int:
        """The number of transitions, n."""
        return len(self.rest)

    @property
    def reward_type(self) -> type[np.floating]:
        """The dtype of rewards."""
        return np.float32 if self.rest.shape[1] == _R + 1 else np.float64

    def ends(self, at: jax.Array) -> jax.Array:
        """Whether the next states of these transitions are terminal."""
        return self.rest[at, _ENDS] != 0

    def first(self, at: jax.Array) -> jax.Array:
        """Whether these transitions begin an episode."""
        return self.rest[at, _FIRST] != 0

    def reward(self, at: jax.Array) -> jax.Array:
        """The rewards of these transitions."""
        return self.rest[at, _R:].view(self.reward_type)[:, 0]

    def at(self, places: jax.Array) -> Transitions:
        """The transitions at these places."""
        s, s2, a = self.states[places, 0], self.states[places, 1], self.rest[places, _A]
        return Transitions(s, a, self.reward(places), s2, self.ends(places), self.first(places))

    def put(self, at: jax.Array, came: "Packed") -> "Packed":
        """Replace the transitions at these places."""
        return Packed(*(ring.at[at].set(new) for ring, new in zip(self, came, strict=True)))

    def put_in_a_row(self, begin: jax.Array, came: "Packed") -> "Packed":
        """Replace the transitions from one place on, which must not run beyond the last."""
        put = jax.lax.dynamic_update_slice_in_dim
        return Packed(*(put(ring, new, begin, 0) for ring, new in zip(self, came, strict=True)))


class Block:
    """Transitions in NumPy, noted one by one.

    Args:
        like: a memory of transitions of the same shapes.
        room: the most transitions.
    """

    def __init__(self, like: Packed, room: int) -> None:
        self.transitions = Packed(*(np.zeros((room, *ring.shape[1:]), ring.dtype) for ring in like))
        self._rewards = self.transitions.rest[:, _R:].view(like.reward_type)[:, 0]

    def note(self, at: int, s: object, a: int, r: float, s2: object, ends: bool, first: bool) -> None:
        """Note a transition."""
        states, rest = self.transitions
        states[at, 0], states[at, 1] = s, s2
        rest[at, :_R] = a, ends, first
        self._rewards[at] = r


def packed(came: Transitions) -> Packed:
    """Transitions as they are stored."""
    s, a, r, s2, ends, first = came
    rest = jnp.stack([each.astype(jnp.int32) for each in (a, ends, first)], axis=1)
    return Packed(jnp.stack([s, s2], axis=1), jnp.concatenate([rest, r[:, None].view(jnp.int32)], axis=1))


def empty(room: int, shape: tuple[int, ...], states: DTypeLike, rewards: DTypeLike) -> Packed:
    """Room for transitions between states of a shape, with the dtypes of states and rewards."""
    words = np.dtype(rewards).itemsize // np.dtype(np.int32).itemsize
    return Packed(jnp.zeros((room, 2, *shape), states), jnp.zeros((room, _R + words), jnp.int32))
