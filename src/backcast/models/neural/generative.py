"""Generative backward models: draw the previous observation, as is usual in the literature; a baseline.

Given the observation of s, each of K mixture components has a weight w_k, an independent distribution of each
coordinate of the earlier observation x̃, and a distribution of the action ã:

    P(x̃, ã | s) = Σ_k w_k Π_i p_ki(x̃_i) π_k(ã)

The coordinates of vectors (one-hot, coordinates, a Box) are Gaussian around x(s) + m_k(s); the pixels of images, which
are between 0 and 1, are Bernoulli variables. The model is trained by maximum likelihood. Planning samples from it, and
the sampled states may not exist.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from backcast.models.neural import nearness
from backcast.models.neural.contract import Before, Lesson, ModelNet, Remembered
from backcast.models.neural.tables import Tabled, TabledBackward
from backcast.networks.modules import Head

_NARROWEST, _WIDEST = -4.0, 2.0  # log σ


class Mixture(NamedTuple):
    """Components for each of n states: log-weights (n, K), log-probabilities of actions (n, K, A), coordinates."""

    weight: jax.Array
    action: jax.Array
    coordinates: tuple[jax.Array, ...]  # (n, K, D) mean and log σ, or logits alone


class GenerativeBackward(NamedTuple):
    """P(x̃, ã | s) over all observations, and rewards r(s, ã).

    Attributes:
        shape: shape of an observation; (m,) is a vector, any other an image.
        n_actions: A.
        components: K.
        samples: number of pairs drawn for each state that is planned from.
    """

    shape: tuple[int, ...]
    n_actions: int
    components: int
    samples: int

    @property
    def steps(self) -> int:
        """One."""
        return 1

    @property
    def tabled(self) -> type[Tabled]:
        """Rows of pairs."""
        return TabledBackward

    @property
    def width(self) -> int:
        """D, the number of coordinates of an observation."""
        return math.prod(self.shape)

    @property
    def draws_vectors(self) -> bool:
        """Whether coordinates are Gaussian."""
        return len(self.shape) == 1

    def heads(self) -> dict[str, Head]:
        """Weights, actions and coordinates of the components, which are initialised differently, and rewards."""
        actions, coordinates = self.components * self.n_actions, self.components * self.width
        heads = {"weight": Head(self.components), "action": Head(actions), "place": Head(coordinates, zero=False)}
        return {
            **heads,
            **({"spread": Head(coordinates)} if self.draws_vectors else {}),
            "reward": Head(self.n_actions),
        }

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """−log P(x̃, ã | s') of transitions, plus half the squared error of the reward."""
        batch = lesson.batch
        mixture, earlier = self.mixture(network, batch.s2), network.eyes(batch.s)
        by_component = self._log_density(mixture, earlier.reshape(len(earlier), 1, -1)) + mixture.weight
        of_action = jnp.take_along_axis(mixture.action, batch.a[:, None, None], axis=2)[:, :, 0]
        own = jax.nn.logsumexp(by_component + of_action, axis=1)
        return self.reward_loss(network, lesson) - own.mean()

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Half the squared error of the reward."""
        batch = lesson.batch
        earned = jnp.take_along_axis(network(batch.s2, "reward"), batch.a[:, None], axis=1)[:, 0]
        return 0.5 * ((batch.r - earned) ** 2).mean()

    def mixture(self, network: ModelNet, refs: jax.Array) -> Mixture:
        """The components for stored states."""
        weight, action, place = network(refs, "weight", "action", "place")
        n, K, D = len(weight), self.components, self.width
        place = place.reshape(n, K, D)
        coordinates: tuple[jax.Array, ...] = (place,)
        if self.draws_vectors:
            spread = jnp.clip(network(refs, "spread").reshape(n, K, D), _NARROWEST, _WIDEST)
            coordinates = (network.eyes(refs).reshape(n, 1, D) + place, spread)
        actions = jax.nn.log_softmax(action.reshape(n, K, self.n_actions))
        return Mixture(jax.nn.log_softmax(weight), actions, coordinates)

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered, key: jax.Array) -> Before:
        """Sampled pairs, (n, samples)."""
        mixture, n = self.mixture(network, refs), len(refs)
        of_component, of_action, of_place = jax.random.split(key, 3)
        k = jax.random.categorical(of_component, mixture.weight[:, None], axis=2, shape=(n, self.samples))
        logits = jnp.take_along_axis(mixture.action, k[:, :, None], axis=1)
        a = jax.random.categorical(of_action, logits).astype(jnp.int32)
        chosen = [jnp.take_along_axis(each, k[:, :, None], axis=1) for each in mixture.coordinates]
        seen = self._draw(of_place, *chosen).reshape(n, self.samples, *self.shape)
        reward = jnp.take_along_axis(network(refs, "reward"), a, axis=1)
        return Before(seen, a, jnp.ones_like(reward), reward)

    def table(self, network: ModelNet, pairs: jax.Array, discount: jax.Array) -> tuple[jax.Array, jax.Array]:
        """P←(s̃, ã | s) and rewards, each (S, S·A); rows sum to less than 1 if the model invents states.

        `backcast.models.neural.nearness` defines which observations match which state.
        """
        everywhere = jnp.arange(pairs.size // self.n_actions)
        mixture, seen = self.mixture(network, everywhere), network.eyes(everywhere)
        flat = seen.reshape(len(seen), -1)
        there = jax.lax.map(lambda one: self._log_mass(mixture, one, nearness.tolerance(seen)), flat)  # (S̃, S, K)
        weight = jnp.exp(there + mixture.weight) / nearness.alike(seen)[:, None, None]
        probability = jnp.einsum("tsk,ska->sta", weight, jnp.exp(mixture.action)).reshape(len(seen), -1)
        return probability, jnp.tile(network(everywhere, "reward"), len(seen))

    def _log_density(self, mixture: Mixture, x: jax.Array) -> jax.Array:
        """Σ_i log p_ki(x_i), (n, K), of observations (n, 1, D)."""
        if self.draws_vectors:
            mean, spread = mixture.coordinates
            return norm.logpdf(x, mean, jnp.exp(spread)).sum(axis=2)
        (logits,) = mixture.coordinates
        return (x * jax.nn.log_sigmoid(logits) + (1 - x) * jax.nn.log_sigmoid(-logits)).sum(axis=2)

    def _log_mass(self, mixture: Mixture, x: jax.Array, within: jax.Array) -> jax.Array:
        """The log-probability (n, K) of drawing an observation that matches the existing one x (D,)."""
        if self.draws_vectors:
            mean, spread = mixture.coordinates
            low, high = ((x + side - mean) / jnp.exp(spread) for side in (-within, within))
            return jnp.log(jnp.maximum(norm.cdf(high) - norm.cdf(low), 1e-30)).sum(axis=2)
        return self._log_density(mixture, (x > 0.5).astype(x.dtype))

    def _draw(self, key: jax.Array, place: jax.Array, spread: jax.Array | None = None) -> jax.Array:
        if spread is not None:
            return place + jnp.exp(spread) * jax.random.normal(key, place.shape, place.dtype)
        return (jax.random.uniform(key, place.shape) < jax.nn.sigmoid(place)).astype(place.dtype)
