"""The interface of models computed by networks.

A model defines the heads of its network and its loss. For planning, a backward model returns the pairs that may have
led to a state, a forward model the expected target of each action, and an abstract model the correction of the values.
After a run, a model returns tables of what it has learned about numbered states.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from backcast.models.neural.tables import Tabled
from backcast.networks.modules import Function, Head, Params
from backcast.values.neural import Eyes, NeuralValues, Transitions

Best = Callable[[jax.Array], jax.Array]  # maps observations (n, …) to max_a q, (n,)


class ModelNet(NamedTuple):
    """The network of a model with its parameters, and the function `eyes` from stored states to observations."""

    function: Function
    params: Params
    eyes: Eyes

    def __call__(self, refs: jax.Array, *heads: str) -> Any:
        """The outputs of some heads for stored states (n, …); for one head, its outputs alone."""
        return self.function(self.params, self.eyes(refs), *heads)


class Remembered(NamedTuple):
    """Remembered pairs of state and action, and the states that followed; each (m, …)."""

    s: jax.Array
    a: jax.Array
    s2: jax.Array


class Ways(NamedTuple):
    """Paths of several steps along the trajectory, from a pair s̃, ã to a state s; each (n, …).

    Attributes:
        s: the first states s̃.
        a: the first actions ã.
        r: the discounted reward on the path.
        s2: the last states s.
        carried: 1 if no episode ended on the path, else 0: then s̃ does not bootstrap from s.
        weight: the weight of each path; 0 if the trajectory is too short, or the path begins with a restart.
    """

    s: jax.Array
    a: jax.Array
    r: jax.Array
    s2: jax.Array
    carried: jax.Array
    weight: jax.Array


class Lesson(NamedTuple):
    """The input of a model's loss.

    Attributes:
        batch: transitions.
        ways: paths of as many steps as the model spans; None for one step.
        pairs: remembered pairs, for models that use candidates.
        values: the values, for models that learn corrections.
        params: the parameters of the values.
        target: the parameters from which values bootstrap.
        discount: γ.
        key: random key of JAX.
    """

    batch: Transitions
    ways: Ways | None
    pairs: Remembered
    values: NeuralValues
    params: Params
    target: Params
    discount: jax.Array
    key: jax.Array


class Before(NamedTuple):
    """Pairs that may have led to each of n states.

    Attributes:
        seen: observations of their states, (m, …) if the same for all n, otherwise (n, m, …).
        a: their actions, likewise; None: all actions of each of these states, in order.
        weight: (n, pairs), the probability of each pair; 1 for sampled pairs.
        reward: (n, pairs) or (n, 1), the reward on the path.
        carried: (n, pairs), for models over several steps, the probability that no episode ended on the path; else
            None.
    """

    seen: jax.Array
    a: jax.Array | None
    weight: jax.Array
    reward: jax.Array
    carried: jax.Array | None = None

    def values(self, values: NeuralValues, params: Params) -> jax.Array:
        """q(s̃, ã) of the pairs, (pairs,) or (n, pairs)."""
        if self.a is None:
            return values.all(params, self.seen).reshape(-1)
        seen = self.seen.reshape(-1, *self.seen.shape[self.a.ndim :])
        return values.of(params, seen, self.a.reshape(-1)).reshape(self.a.shape)

    def targets(self, best: jax.Array, ends: jax.Array, discount: jax.Array, steps: int) -> jax.Array:
        """R + γⁿ max_a q(s, a) of each pair, (n, pairs) or (n, 1), for best (n,); γ = 0 where s ends an episode."""
        ahead = jnp.where(ends, 0.0, discount**steps * best)[:, None]
        return self.reward + (ahead if self.carried is None else self.carried * ahead)


class NeuralBackwardModel(Protocol):
    """A backward model: what led to a state?"""

    @property
    def steps(self) -> int:
        """The number of steps it looks back."""

    @property
    def tabled(self) -> type[Tabled]:
        """The class of its tables."""

    def heads(self) -> dict[str, Head]:
        """The heads of its network."""

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """The mean loss: the negative log-likelihood of the pair that led here, plus `reward_loss`."""

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """The mean loss of rewards, which is added to every objective."""

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered, key: jax.Array) -> Before:
        """The pairs that may have led to each of n stored states."""

    def table(self, network: ModelNet, pairs: jax.Array, discount: jax.Array) -> tuple[jax.Array, ...]:
        """P←(s̃, ã | s), rewards and, over several steps, discounts, each (S, S·A), for S numbered states.

        Args:
            network: the network.
            pairs: (S·A,), how often each pair is in memory.
            discount: (S,), γ, or 0 where a state ends the episode.
        """


class NeuralForwardModel(Protocol):
    """A forward model: what follows a state and an action?"""

    @property
    def n_actions(self) -> int:
        """A."""

    @property
    def tabled(self) -> type[Tabled]:
        """The class of its tables."""

    def heads(self) -> dict[str, Head]:
        """The heads of its network."""

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """The mean loss: the negative log-likelihood of the next state, plus `reward_loss`."""

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """The mean loss of rewards and terminations, which is added to every objective."""

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """E[r + γ̄(s') max_a' q(s', a')] for each action in n states, (n, A)."""

    def table(self, network: ModelNet, states: jax.Array, discount: jax.Array) -> tuple[jax.Array, ...]:
        """P(s' | s, a) and rewards, each (S, A, S), and ends; `states` (S,) counts the next states in memory."""


class NeuralCorrectionModel(Protocol):
    """An abstract model: how should the values change when planning from a state?"""

    @property
    def tabled(self) -> type[Tabled]:
        """The class of its tables."""

    def heads(self) -> dict[str, Head]:
        """The heads of its network."""

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """The mean of half the squared error of the correction."""

    def corrections(self, network: ModelNet, refs: jax.Array) -> jax.Array:
        """The corrections of all parameters of the values, (n, P)."""

    def table(self, network: ModelNet, times: jax.Array, discount: jax.Array) -> tuple[jax.Array, ...]:
        """The corrections of S numbered states, (S, P)."""


NeuralModel = NeuralBackwardModel | NeuralForwardModel | NeuralCorrectionModel
Objective = Callable[[Any, ModelNet, Lesson], jax.Array]  # the mean loss of a model
