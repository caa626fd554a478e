"""What agents with a network ask of a model.

A model says which heads its network needs, what it loses on what was experienced, and what planning asks: a backward
model, which pairs may have led to a state; a forward model, what is expected to follow each action; an abstract model,
how values should change. After a run it says in tables what it has learned of numbered states.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from backcast.models.neural.tables import Tabled
from backcast.networks.modules import Function, Head, Params
from backcast.values.neural import Eyes, NeuralValues, Transitions

Best = Callable[[jax.Array], jax.Array]  # from observations (n, …) to max_a q, (n,)


class ModelNet(NamedTuple):
    """The network of a model, with its parameters and the eyes that see states."""

    function: Function
    params: Params
    eyes: Eyes

    def __call__(self, refs: jax.Array, *heads: str) -> Any:
        """The outputs of some heads for states as memories hold them, (n, …); of one head, its outputs alone."""
        return self.function(self.params, self.eyes(refs), *heads)


class Remembered(NamedTuple):
    """Pairs of a state and an action that were experienced, and what followed; each (m, …)."""

    s: jax.Array
    a: jax.Array
    s2: jax.Array


class Ways(NamedTuple):
    """Ways of some steps along the trajectory, from a pair s̃, ã to the state s that was arrived at; each (n, …).

    Attributes:
        s: the states s̃ where they begin.
        a: the actions ã.
        r: what was earned on the way, discounted.
        s2: the states s where they end.
        carried: 1 if no episode ended on the way, else 0: then s is nothing to s̃.
        weight: how often each counts; 0 if the trajectory does not reach so far back, or to no pair.
    """

    s: jax.Array
    a: jax.Array
    r: jax.Array
    s2: jax.Array
    carried: jax.Array
    weight: jax.Array


class Lesson(NamedTuple):
    """What a model learns from.

    Attributes:
        batch: transitions.
        ways: of as many steps as the model looks back, if these are several; else None.
        pairs: what is remembered, for models that ask for it.
        values: whose corrections are learned, and the function of their network.
        params: its parameters.
        target: parameters that values are bootstrapped from.
        discount: γ.
        key: of JAX.
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
        seen: observations of their states: (m, …) the same for all n, or (n, m, …).
        a: their actions, likewise; None: all actions of each of these states, one after the other.
        weight: (n, pairs) the probability of each; of pairs that were drawn, 1.
        reward: (n, pairs) earned on the way, or (n, 1).
        carried: (n, pairs) the probability that no episode ended on the way, of models of several steps; else None.
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
    """Says what led to a state."""

    @property
    def steps(self) -> int:
        """How many steps it looks back."""

    @property
    def tabled(self) -> type[Tabled]:
        """What its tables are read as."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """What it loses, the mean: minus the log-likelihood of what led here, and `reward_loss`."""

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """What it loses of rewards, the mean; it is learned by itself where the objective is not likelihood."""

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered, key: jax.Array) -> Before:
        """The pairs that may have led to states, n of them, as memories hold them."""

    def table(self, network: ModelNet, pairs: jax.Array, discount: jax.Array) -> tuple[jax.Array, ...]:
        """P←(s̃, ã | s), rewards and, over several steps, discounts, each (S, S·A), of S numbered states.

        Args:
            network: the network.
            pairs: (S·A,) how many times each is remembered.
            discount: (S,) γ, or 0 where a state ends the episode.
        """


class NeuralForwardModel(Protocol):
    """Says what follows a state and an action."""

    @property
    def n_actions(self) -> int:
        """A."""

    @property
    def tabled(self) -> type[Tabled]:
        """What its tables are read as."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """What it loses, the mean: minus the log-likelihood of what followed, and `reward_loss`."""

    def reward_loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """What it loses of rewards and ends, the mean; learned by itself where the objective is not likelihood."""

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """E[r + γ̄(s') max_a' q(s', a')] of each action in n states, (n, A)."""

    def table(self, network: ModelNet, states: jax.Array, discount: jax.Array) -> tuple[jax.Array, ...]:
        """P(s' | s, a) and rewards, each (S, A, S), and ends, (S,); states (S,) followed so many times in memory."""


class NeuralCorrectionModel(Protocol):
    """Says how values should change when the agent thinks of a state, and nothing of what led there or follows."""

    @property
    def tabled(self) -> type[Tabled]:
        """What its tables are read as."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """Half the squared error of the correction, the mean."""

    def corrections(self, network: ModelNet, refs: jax.Array) -> jax.Array:
        """Of all parameters of the values, (n, P)."""

    def table(self, network: ModelNet, times: jax.Array, discount: jax.Array) -> tuple[jax.Array, ...]:
        """The corrections of S numbered states, (S, P)."""


NeuralModel = NeuralBackwardModel | NeuralForwardModel | NeuralCorrectionModel
Objective = Callable[[Any, ModelNet, Lesson], jax.Array]  # what a model loses, the mean
