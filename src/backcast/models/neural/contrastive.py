"""Contrastive models: which of the pairs remembered led here, which of the states remembered followed?

A state and a candidate are each mapped to a vector, and their product is the logit of the candidate. Candidates are
drawn from memory, and so is what a batch contrasts a transition with (InfoNCE: van den Oord, Li and Vinyals, 2018). So
logits learn log P←(s̃, ã | s) / μ(s̃, ã), where μ is how often pairs are remembered, and a softmax over candidates is
P←. No state is ever invented.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import Before, Best, ModelNet, Remembered
from backcast.networks.modules import Head
from backcast.values.neural import Transitions


class ContrastiveBackward(NamedTuple):
    """P←(s̃, ã | s) over remembered pairs, with the logit f(s)·g(s̃, ã) / √d; rewards are of the same form, plus r(s)."""

    n_actions: int
    width: int = 32

    def heads(self) -> dict[str, Head]:
        """Vectors of the later state and of the earlier pair, for logits and for rewards."""
        later, earlier = Head(self.width, zero=False), Head(self.width * self.n_actions, zero=False)
        rewards = {"reward": Head(1), "paid": Head(self.width), "paying": earlier}
        return {"later": later, "earlier": earlier, **rewards}

    def loss(self, network: ModelNet, batch: Transitions) -> jax.Array:
        """Cross-entropy of the pair that led to s' among those of the batch; half the squared error of the reward."""
        logits, reward = self._between(network, batch.s2, batch.s, batch.a)
        own = jnp.diagonal(jax.nn.log_softmax(logits))
        return (-own + 0.5 * (batch.r - jnp.diagonal(reward)) ** 2).mean()

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered) -> Before:
        """The pairs remembered."""
        logits, reward = self._between(network, refs, pairs.s, pairs.a)
        return Before(network.eyes(pairs.s), pairs.a, jax.nn.softmax(logits), reward)

    def table(self, network: ModelNet, pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """P←(s̃, ã | s) and rewards of all states, each (S, S·A), where pairs (S·A,) are remembered so many times."""
        states, actions = jnp.divmod(jnp.arange(pairs.size), self.n_actions)
        logits, reward = self._between(network, jnp.arange(pairs.size // self.n_actions), states, actions)
        return _where_remembered(logits, pairs), reward

    def _between(self, network: ModelNet, refs: jax.Array, s: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits and rewards (n, m) of n later states and m pairs."""
        earlier, paying = (
            jnp.take_along_axis(rows.reshape(len(a), self.n_actions, self.width), a[:, None, None], axis=1)[:, 0]
            for rows in network(s, "earlier", "paying")
        )
        later, paid, reward = network(refs, "later", "paid", "reward")
        unit = 1.0 / math.sqrt(self.width)
        return later @ earlier.T * unit, reward + paid @ paying.T * unit


class ContrastiveForward(NamedTuple):
    """P(s' | s, a) over remembered next states, with the logit g(s, a)·f(s') / √d; r(s, a), and whether s' goes on."""

    n_actions: int
    width: int = 32

    def heads(self) -> dict[str, Head]:
        """Vectors of the earlier pair and of the later state, rewards of pairs, and whether a state goes on."""
        vectors = {"later": Head(self.width, zero=False), "earlier": Head(self.width * self.n_actions, zero=False)}
        return {**vectors, "reward": Head(self.n_actions), "goes_on": Head(2)}

    def loss(self, network: ModelNet, batch: Transitions) -> jax.Array:
        """Cross-entropies of s' among those of the batch, and of its end; half the squared error of the reward."""
        rows, reward = network(batch.s, "earlier", "reward")
        later, going = network(batch.s2, "later", "goes_on")
        earlier = jnp.take_along_axis(self._by_action(rows), batch.a[:, None, None], axis=1)[:, 0]
        earned = jnp.take_along_axis(reward, batch.a[:, None], axis=1)[:, 0]
        own = jnp.diagonal(jax.nn.log_softmax(earlier @ later.T / math.sqrt(self.width)))
        ends = jnp.take_along_axis(jax.nn.log_softmax(going), batch.ends.astype(jnp.int32)[:, None], axis=1)[:, 0]
        return (-own - ends + 0.5 * (batch.r - earned) ** 2).mean()

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """r(s, a) + Σ_s' P(s' | s, a) γ̄(s') max_a' q(s', a')."""
        rows, reward = network(refs, "earlier", "reward")
        later, going = network(pairs.s2, "later", "goes_on")
        logits = self._by_action(rows) @ later.T / math.sqrt(self.width)
        ahead = jnp.where(going[:, 0] > going[:, 1], discount * best(network.eyes(pairs.s2)), 0.0)
        return reward + jax.nn.softmax(logits) @ ahead

    def table(self, network: ModelNet, states: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """P(s' | s, a) and rewards, each (S, A, S), and ends, (S,); states (S,) followed so many times in memory."""
        rows, later, reward, going = network(jnp.arange(states.size), "earlier", "later", "reward", "goes_on")
        probability = _where_remembered(self._by_action(rows) @ later.T / math.sqrt(self.width), states)
        return probability, jnp.broadcast_to(reward[:, :, None], probability.shape), going[:, 0] <= going[:, 1]

    def _by_action(self, rows: jax.Array) -> jax.Array:
        return rows.reshape(-1, self.n_actions, self.width)


def _where_remembered(logits: jax.Array, times: jax.Array) -> jax.Array:
    """The softmax over candidates, each as many times as it is remembered; NaN if nothing is."""
    return jax.nn.softmax(jnp.where(times > 0, logits + jnp.log(times.astype(logits.dtype)), -jnp.inf))
