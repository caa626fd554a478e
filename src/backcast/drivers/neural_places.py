"""Worlds in JAX, for the programs of agents with a network: a table, or a function from state vector to state vector.

A memory stores the number of a state or, if states are not numbered, its observation.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from backcast.networks.streams import uniform
from backcast.worlds.motion import Motion, Moved
from backcast.worlds.stepping import Table
from backcast.worlds.world import World


class Walkable(Protocol):
    """A world in JAX; a pytree of arrays."""

    @property
    def seen(self) -> jax.Array:
        """Observations of all numbered states, (S, …)."""

    @property
    def truth(self) -> jax.Array:
        """v_π of all states in prediction, (S,)."""

    @property
    def inner(self) -> jax.Array:
        """In prediction 1 where a state does not end an episode, else 0; (S,)."""

    @property
    def discount(self) -> jax.Array:
        """γ."""

    def begin(self, stream: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw the first state of an episode; return it and the advanced stream."""

    def step(self, s: jax.Array, a: jax.Array, stream: jax.Array) -> tuple[Moved, jax.Array]:
        """Take an action; return the outcome and the advanced stream."""

    def remembered(self, s: jax.Array) -> jax.Array:
        """The stored form of a state."""

    def eyes(self, refs: jax.Array) -> jax.Array:
        """The observations, (n, …), of n stored states."""


class WalkableTable(NamedTuple):
    """A finite world; all rows are as long as the longest.

    Attributes:
        start_state: (k,), the states in which episodes begin.
        start_cumulative: (k,), their cumulative probabilities.
        cumulative: (S·A, m), cumulative probabilities of the outcomes, ∞ beyond the last.
        next_state: (S·A, m).
        reward: (S·A, m).
        outcomes: (S·A,), the number of outcomes.
        terminal: (S,).
        seen: (S, …), observations.
        truth: (S,) v_π, in prediction.
        inner: (S,) 1 where a state does not end an episode, else 0; in prediction.
        discount: γ.
    """

    start_state: jax.Array
    start_cumulative: jax.Array
    cumulative: jax.Array
    next_state: jax.Array
    reward: jax.Array
    outcomes: jax.Array
    terminal: jax.Array
    seen: jax.Array
    truth: jax.Array
    inner: jax.Array
    discount: jax.Array

    def begin(self, stream: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw the first state of an episode."""
        u, stream = uniform(stream)
        chosen = jnp.minimum((self.start_cumulative <= u).sum(), self.start_state.size - 1)
        return self.start_state[chosen], stream

    def step(self, s: jax.Array, a: jax.Array, stream: jax.Array) -> tuple[Moved, jax.Array]:
        """Draw an outcome of the pair."""
        u, stream = uniform(stream)
        row = s * (self.outcomes.size // self.terminal.size) + a
        outcome = jnp.minimum((self.cumulative[row] <= u).sum(), self.outcomes[row] - 1)
        s2 = self.next_state[row, outcome]
        return Moved(s2, self.reward[row, outcome], self.terminal[s2]), stream

    def remembered(self, s: jax.Array) -> jax.Array:
        """Its number."""
        return s

    def eyes(self, refs: jax.Array) -> jax.Array:
        """The observations of numbered states."""
        return self.seen[refs]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WalkableVectors:
    """A world whose states are vectors and not numbered.

    Attributes:
        seen: (0, …).
        truth: (0,).
        inner: (0,).
        discount: γ.
        motion: its dynamics; static, because programs are compiled for it.
    """

    seen: jax.Array
    truth: jax.Array
    inner: jax.Array
    discount: jax.Array
    motion: Motion = field(metadata={"static": True})

    def begin(self, stream: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw the first state of an episode."""
        drawn = []
        for _ in range(self.motion.draws):
            u, stream = uniform(stream)
            drawn.append(u)
        return self.motion.start(jnp, jnp.stack(drawn)), stream

    def step(self, s: jax.Array, a: jax.Array, stream: jax.Array) -> tuple[Moved, jax.Array]:
        """Take an action; nothing is drawn."""
        return self.motion.step(jnp, s, a), stream

    def remembered(self, s: jax.Array) -> jax.Array:
        """Its observation."""
        return self.motion.observe(jnp, s).astype(self.seen.dtype)

    def eyes(self, refs: jax.Array) -> jax.Array:
        """The stored observations, unchanged."""
        return refs


def place_of(world: World, dtype: DTypeLike) -> Walkable:
    """Convert a world to JAX, with observations of this dtype."""
    if world.motion is not None:
        none = jnp.zeros(0)
        seen, discount = jnp.asarray(world.observations, dtype), jnp.asarray(world.discount)
        return WalkableVectors(seen, none, none, discount, world.motion)
    table: Table = world.steps_table
    sizes = np.diff(table.offset)
    shape = len(sizes), int(sizes.max())
    columns = np.arange(shape[1]) < sizes[:, None]
    cumulative, reward = np.full(shape, np.inf), np.zeros(shape)
    next_state = np.zeros(shape, dtype=np.int32)
    cumulative[columns], reward[columns], next_state[columns] = table.cumulative, table.reward, table.next_state
    predicts = world.is_prediction
    truth = world.truth if predicts else np.zeros(0)
    inner = np.where(world.mdp.terminal, 0.0, 1.0) if predicts else np.zeros(0)
    return WalkableTable(
        jnp.asarray(table.start_state, jnp.int32), jnp.asarray(table.start_cumulative), jnp.asarray(cumulative),
        jnp.asarray(next_state), jnp.asarray(reward), jnp.asarray(sizes, jnp.int32), jnp.asarray(table.terminal),
        jnp.asarray(world.observations, dtype), jnp.asarray(truth), jnp.asarray(inner), jnp.asarray(world.discount),
    )  # fmt: skip
