"""Models over numbered states: the paper's softmax rows, computed by a network.

With a linear network on one-hot observations, plain gradient steps and batches of one transition, they equal the tables
of `backcast.models.backward` and `backcast.models.forward`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import Before, Best, Lesson, ModelNet, Remembered
from backcast.models.neural.tables import Tabled, TabledBackward, TabledForward
from backcast.networks.modules import Head


class SoftmaxBackward(NamedTuple):
    """P←(s̃, ã | s): a softmax over all pairs; rewards r(s̃, s) in prediction and r(s) in control."""

    n_states: int
    n_actions: int

    @property
    def steps(self) -> int:
        """One."""
        return 1

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of pairs."""
        return TabledBackward

    def heads(self) -> dict[str, Head]:
        """Logits of pairs, and rewards of pairs or of the state."""
        pairs = self.n_states * self.n_actions
        return {"before": Head(pairs), "reward": Head(pairs if self.n_actions == 1 else 1)}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of the pair that led to s', plus half the squared error of its reward."""
        batch = lesson.batch
        own = _at(jax.nn.log_softmax(network(batch.s2, "before")), batch.s * self.n_actions + batch.a)
        return self.reward_loss(network, lesson) - own.mean()

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Half the squared error of the reward."""
        batch = lesson.batch
        reward = network(batch.s2, "reward")
        earned = _at(reward, batch.s * self.n_actions + batch.a) if self.n_actions == 1 else reward[:, 0]
        return 0.5 * ((batch.r - earned) ** 2).mean()

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered, key: jax.Array) -> Before:
        """All pairs."""
        logits, reward = network(refs, "before", "reward")
        return Before(network.eyes(jnp.arange(self.n_states)), None, jax.nn.softmax(logits), reward)

    def table(self, network: ModelNet, pairs: jax.Array, discount: jax.Array) -> tuple[jax.Array, jax.Array]:
        """P←(s̃, ã | s) and rewards of all states, each (S, S·A)."""
        logits, reward = network(jnp.arange(self.n_states), "before", "reward")
        return jax.nn.softmax(logits), jnp.broadcast_to(reward, logits.shape)


class SoftmaxForward(NamedTuple):
    """P(s' | s, a): a softmax over all states; rewards r(s, s') in prediction and r(s') in control; terminations."""

    n_states: int
    n_actions: int

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of states."""
        return TabledForward

    def heads(self) -> dict[str, Head]:
        """Logits of next states for each action, rewards, and log-odds that a state is not terminal."""
        rewards = self.n_states if self.n_actions == 1 else 1
        return {"after": Head(self.n_actions * self.n_states), "reward": Head(rewards), "goes_on": Head(2)}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of s', plus `reward_loss`."""
        batch = lesson.batch
        rows = self._by_action(network(batch.s, "after"))
        logits = jnp.take_along_axis(rows, batch.a[:, None, None], axis=1)[:, 0]
        return self.reward_loss(network, lesson) - _at(jax.nn.log_softmax(logits), batch.s2).mean()

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Cross-entropy of whether s' ends the episode, plus half the squared error of the reward."""
        batch = lesson.batch
        by_pair, (by_state, going) = network(batch.s, "reward"), network(batch.s2, "reward", "goes_on")
        earned = _at(by_pair, batch.s2) if self.n_actions == 1 else by_state[:, 0]
        ends = _at(jax.nn.log_softmax(going), batch.ends.astype(jnp.int32))
        return (-ends + 0.5 * (batch.r - earned) ** 2).mean()

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """Σ_s' P(s' | s, a) (r + γ̄(s') max_a' q(s', a')); in prediction, unknown states are not terminal."""
        everywhere = jnp.arange(self.n_states)
        rows, by_pair = network(refs, "after", "reward")
        by_state, going = network(everywhere, "reward", "goes_on")
        reward = by_pair[:, None, :] if self.n_actions == 1 else by_state[:, 0]
        more = going[:, 0] - going[:, 1]
        goes_on = more >= 0.0 if self.n_actions == 1 else more > 0.0
        ahead = reward + jnp.where(goes_on, discount * best(network.eyes(everywhere)), 0.0)
        return (jax.nn.softmax(self._by_action(rows)) * ahead).sum(axis=2)

    def table(
        self, network: ModelNet, states: jax.Array, discount: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """P(s' | s, a) and rewards, each (S, A, S), and whether states end the episode, (S,)."""
        rows, reward, going = network(jnp.arange(self.n_states), "after", "reward", "goes_on")
        probability = jax.nn.softmax(self._by_action(rows))
        earned = reward[:, None, :] if self.n_actions == 1 else reward[:, 0]
        return probability, jnp.broadcast_to(earned, probability.shape), going[:, 0] < going[:, 1]

    def _by_action(self, rows: jax.Array) -> jax.Array:
        return rows.reshape(-1, self.n_actions, self.n_states)


def _at(rows: jax.Array, places: jax.Array) -> jax.Array:
    return jnp.take_along_axis(rows, places[:, None], axis=1)[:, 0]
