"""Deterministic forward models: the mean of the next observation, which may not exist if transitions are random."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from backcast.models.neural import nearness
from backcast.models.neural.contract import Best, Lesson, ModelNet, Remembered
from backcast.models.neural.tables import Tabled, TabledForward
from backcast.networks.modules import Head


class DeterministicForward(NamedTuple):
    """x̂(s, a) = x(s) + m(s, a), by least squares; r(s, a), and the probability c(s, a) that the episode continues.

    Attributes:
        shape: shape of an observation.
        n_actions: A.
    """

    shape: tuple[int, ...]
    n_actions: int

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of states."""
        return TabledForward

    def heads(self) -> dict[str, Head]:
        """For each action, the change of the observation, the reward, and the log-odds that the episode continues."""
        moves = Head(self.n_actions * math.prod(self.shape))
        return {"move": moves, "reward": Head(self.n_actions), "goes_on": Head(self.n_actions)}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """½ |x(s') − x̂(s, a)|², plus `reward_loss`."""
        batch = lesson.batch
        after = self.predicted(network, batch.s)[jnp.arange(len(batch.a)), batch.a]
        off = (network.eyes(batch.s2) - after).reshape(len(batch.a), -1)
        return 0.5 * (off**2).sum(axis=1).mean() + self.reward_loss(network, lesson)

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of whether s' ends the episode, plus half the squared error of the reward."""
        batch = lesson.batch
        earned, odds = (
            jnp.take_along_axis(rows, batch.a[:, None], axis=1)[:, 0] for rows in network(batch.s, "reward", "goes_on")
        )
        going = jax.nn.log_sigmoid(jnp.where(batch.ends, -odds, odds))
        return (0.5 * (batch.r - earned) ** 2 - going).mean()

    def predicted(self, network: ModelNet, refs: jax.Array) -> jax.Array:
        """x̂(s, a) for all actions in n states, (n, A, …)."""
        seen, moves = network.eyes(refs), network(refs, "move")
        return seen[:, None] + moves.reshape(len(seen), self.n_actions, *self.shape)

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """r(s, a) + γ c(s, a) max_a' q(x̂(s, a), a'), (n, A)."""
        after, (reward, odds) = self.predicted(network, refs), network(refs, "reward", "goes_on")
        ahead = best(after.reshape(-1, *self.shape)).reshape(reward.shape)
        return reward + discount * jax.nn.sigmoid(odds) * ahead

    def table(
        self, network: ModelNet, states: jax.Array, discount: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """P(s' | s, a) and rewards, each (S, A, S), and whether (s, a) is more likely than not to end, (S, A).

        P is 1 for the state that matches x̂(s, a) (`backcast.models.neural.nearness`); if none does, P is 0.
        """
        everywhere = jnp.arange(states.size)
        after, (reward, odds) = self.predicted(network, everywhere), network(everywhere, "reward", "goes_on")
        there = nearness.nearest(after.reshape(-1, *self.shape), network.eyes(everywhere))
        probability = there.reshape(states.size, self.n_actions, states.size)
        return probability, jnp.broadcast_to(reward[:, :, None], probability.shape), odds < 0
