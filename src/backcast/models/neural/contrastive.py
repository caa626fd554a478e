"""Contrastive models: which of the remembered pairs led here, which of the remembered states followed?

A state and a candidate are each mapped to a vector, and their inner product is the logit of the candidate. Candidates
are drawn from memory, and so are the negatives of a batch (InfoNCE: van den Oord, Li and Vinyals, 2018). So logits
learn log P←(s̃, ã | s) / μ(s̃, ã), where μ is the frequency of pairs in memory, and a softmax over candidates estimates
P←. The model never invents a state.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import Before, Best, Lesson, ModelNet, Remembered, Ways
from backcast.models.neural.tables import Tabled, TabledBackward, TabledForward
from backcast.networks.modules import Head

_NEVER = 1e-30  # weight of candidates that do not count, in place of 0, which has no logarithm


class ContrastiveBackward(NamedTuple):
    """P←(s̃, ã | s) over remembered pairs, with logits f(s)·g(s̃, ã) / √d; rewards have the same form, plus r(s)."""

    n_actions: int
    width: int = 32

    @property
    def steps(self) -> int:
        """One."""
        return 1

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of pairs."""
        return TabledBackward

    def heads(self) -> dict[str, Head]:
        """Vectors of the later state and of the earlier pair, for logits and for rewards."""
        later, earlier = Head(self.width, zero=False), Head(self.width * self.n_actions, zero=False)
        rewards = {"reward": Head(1), "paid": Head(self.width), "paying": earlier}
        return {"later": later, "earlier": earlier, **rewards}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of the pair that led to s' among those of the batch, plus half the squared reward error."""
        batch = lesson.batch
        logits, reward = self.between(network, batch.s2, batch.s, batch.a)
        own = jnp.diagonal(jax.nn.log_softmax(logits))
        return (-own + 0.5 * (batch.r - jnp.diagonal(reward)) ** 2).mean()

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Half the squared error of the reward."""
        batch = lesson.batch
        _, reward = self.between(network, batch.s2, batch.s, batch.a)
        return 0.5 * ((batch.r - jnp.diagonal(reward)) ** 2).mean()

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered, key: jax.Array) -> Before:
        """The remembered pairs."""
        logits, reward = self.between(network, refs, pairs.s, pairs.a)
        return Before(network.eyes(pairs.s), pairs.a, jax.nn.softmax(logits), reward)

    def table(self, network: ModelNet, pairs: jax.Array, discount: jax.Array) -> tuple[jax.Array, jax.Array]:
        """P←(s̃, ã | s) and rewards of all states, each (S, S·A); `pairs` (S·A,) counts the pairs in memory."""
        states, actions = jnp.divmod(jnp.arange(pairs.size), self.n_actions)
        logits, reward = self.between(network, jnp.arange(pairs.size // self.n_actions), states, actions)
        return _where_remembered(logits, pairs), reward

    def between(self, network: ModelNet, refs: jax.Array, s: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits and rewards, (n, m), of n later states and m earlier pairs."""
        earlier, paying = (self.of_action(rows, a) for rows in network(s, "earlier", "paying"))
        later, paid, reward = network(refs, "later", "paid", "reward")
        unit = 1.0 / math.sqrt(self.width)
        return later @ earlier.T * unit, reward + paid @ paying.T * unit

    def of_action(self, rows: jax.Array, a: jax.Array) -> jax.Array:
        """The vectors (m, width) of the given actions, from those of all actions."""
        by_action = rows.reshape(len(a), self.n_actions, self.width)
        return jnp.take_along_axis(by_action, a[:, None, None], axis=1)[:, 0]


class ContrastiveWays(NamedTuple):
    """P←⁽ⁿ⁾(s̃, ã | s) over remembered pairs, n steps back along the trajectory, with rewards and discounts of paths.

    It is learned from paths (`Ways`). As in the exact theory, they continue across the end of an episode, and earn and
    carry nothing after it. The model therefore also learns the probability that no episode ended between s̃, ã and s.

    Attributes:
        one_step: the logits and rewards, in the same form as for one step.
        horizon: n.
    """

    one_step: ContrastiveBackward
    horizon: int

    @property
    def steps(self) -> int:
        """The horizon n."""
        return self.horizon

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of pairs."""
        return TabledBackward

    def heads(self) -> dict[str, Head]:
        """Vectors for logits and rewards, and for whether the path stays within one episode."""
        heads, width = self.one_step.heads(), self.one_step.width
        return {**heads, "whole": Head(1), "left": Head(width), "leaving": heads["earlier"]}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of the pair n steps before s among those of all paths, plus `reward_loss`, weighted by path."""
        ways = _ways(lesson)
        logits, _ = self.one_step.between(network, ways.s2, ways.s, ways.a)
        own = jnp.diagonal(jax.nn.log_softmax(logits + jnp.log(jnp.maximum(ways.weight, _NEVER))))
        return self.reward_loss(network, lesson) - _mean(own, ways)

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Half the squared error of the reward on the path, plus cross-entropy of whether it is within one episode."""
        ways = _ways(lesson)
        _, reward = self.one_step.between(network, ways.s2, ways.s, ways.a)
        odds = jnp.diagonal(self._odds(network, ways.s2, ways.s, ways.a))
        whole = jax.nn.log_sigmoid(jnp.where(ways.carried > 0, odds, -odds))
        return _mean(0.5 * (ways.r - jnp.diagonal(reward)) ** 2 - whole, ways)

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered, key: jax.Array) -> Before:
        """The remembered pairs."""
        before = self.one_step.before(network, refs, pairs, key)
        return before._replace(carried=jax.nn.sigmoid(self._odds(network, refs, pairs.s, pairs.a)))

    def table(self, network: ModelNet, pairs: jax.Array, discount: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """P←⁽ⁿ⁾(s̃, ã | s), rewards and discounts of paths, each (S, S·A)."""
        states, actions = jnp.divmod(jnp.arange(pairs.size), self.one_step.n_actions)
        everywhere = jnp.arange(pairs.size // self.one_step.n_actions)
        whole = jax.nn.sigmoid(self._odds(network, everywhere, states, actions))
        return *self.one_step.table(network, pairs, discount), discount[:, None] ** self.horizon * whole

    def _odds(self, network: ModelNet, refs: jax.Array, s: jax.Array, a: jax.Array) -> jax.Array:
        """The log-odds (n, m) that no episode ended between m pairs and n later states."""
        leaving = self.one_step.of_action(network(s, "leaving"), a)
        whole, left = network(refs, "whole", "left")
        return whole + left @ leaving.T / math.sqrt(self.one_step.width)


def _ways(lesson: Lesson) -> Ways:
    assert lesson.ways is not None
    return lesson.ways


def _mean(each: jax.Array, ways: Ways) -> jax.Array:
    """The weighted mean over paths; 0 if all weights are 0."""
    return (ways.weight * each).sum() / jnp.maximum(ways.weight.sum(), 1.0)


class ContrastiveForward(NamedTuple):
    """P(s' | s, a) over remembered next states, with logits g(s, a)·f(s') / √d; r(s, a); whether s' is terminal."""

    n_actions: int
    width: int = 32

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of states."""
        return TabledForward

    def heads(self) -> dict[str, Head]:
        """Vectors of the earlier pair and of the later state, rewards of pairs, and log-odds of not being terminal."""
        vectors = {"later": Head(self.width, zero=False), "earlier": Head(self.width * self.n_actions, zero=False)}
        return {**vectors, "reward": Head(self.n_actions), "goes_on": Head(2)}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of s' among those of the batch, plus `reward_loss`."""
        batch = lesson.batch
        rows, later = network(batch.s, "earlier"), network(batch.s2, "later")
        earlier = jnp.take_along_axis(self._by_action(rows), batch.a[:, None, None], axis=1)[:, 0]
        own = jnp.diagonal(jax.nn.log_softmax(earlier @ later.T / math.sqrt(self.width)))
        return self.reward_loss(network, lesson) - own.mean()

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of whether s' ends the episode, plus half the squared error of the reward."""
        batch = lesson.batch
        reward, going = network(batch.s, "reward"), network(batch.s2, "goes_on")
        earned = jnp.take_along_axis(reward, batch.a[:, None], axis=1)[:, 0]
        ends = jnp.take_along_axis(jax.nn.log_softmax(going), batch.ends.astype(jnp.int32)[:, None], axis=1)[:, 0]
        return (-ends + 0.5 * (batch.r - earned) ** 2).mean()

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """r(s, a) + Σ_s' P(s' | s, a) γ̄(s') max_a' q(s', a')."""
        rows, reward = network(refs, "earlier", "reward")
        later, going = network(pairs.s2, "later", "goes_on")
        logits = self._by_action(rows) @ later.T / math.sqrt(self.width)
        ahead = jnp.where(going[:, 0] > going[:, 1], discount * best(network.eyes(pairs.s2)), 0.0)
        return reward + jax.nn.softmax(logits) @ ahead

    def table(
        self, network: ModelNet, states: jax.Array, discount: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """P(s' | s, a) and rewards, each (S, A, S), and ends, (S,); `states` (S,) counts the next states in memory."""
        rows, later, reward, going = network(jnp.arange(states.size), "earlier", "later", "reward", "goes_on")
        probability = _where_remembered(self._by_action(rows) @ later.T / math.sqrt(self.width), states)
        return probability, jnp.broadcast_to(reward[:, :, None], probability.shape), going[:, 0] <= going[:, 1]

    def _by_action(self, rows: jax.Array) -> jax.Array:
        return rows.reshape(-1, self.n_actions, self.width)


def _where_remembered(logits: jax.Array, times: jax.Array) -> jax.Array:
    """The softmax over candidates, weighted by their number in memory; NaN if the memory is empty."""
    return jax.nn.softmax(jnp.where(times > 0, logits + jnp.log(times.astype(logits.dtype)), -jnp.inf))
