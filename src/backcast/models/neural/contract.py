"""What agents with a network ask of a model.

A model says which heads its network needs, what it loses on some transitions, and what planning asks: a backward model,
which pairs may have led to a state; a forward model, what is expected to follow each action.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from backcast.networks.modules import Function, Head, Params
from backcast.values.neural import Eyes, Transitions

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


class Before(NamedTuple):
    """Pairs that may have led to each of n states.

    Attributes:
        seen: observations of their states: (m, …) the same for all n, or (n, m, …).
        a: their actions, likewise; None: all actions of each of these states, one after the other.
        weight: (n, pairs) the probability of each.
        reward: (n, pairs) earned on the way, or (n, 1).
    """

    seen: jax.Array
    a: jax.Array | None
    weight: jax.Array
    reward: jax.Array


class NeuralBackwardModel(Protocol):
    """Says what led to a state."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, network: ModelNet, batch: Transitions) -> jax.Array:
        """What it loses on transitions, the mean."""

    def before(self, network: ModelNet, refs: jax.Array, pairs: Remembered) -> Before:
        """The pairs that may have led to states, n of them, as memories hold them."""

    def table(self, network: ModelNet, pairs: jax.Array) -> tuple[jax.Array, ...]:
        """P←(s̃, ã | s) and rewards of S numbered states, each (S, S·A); pairs (S·A,) are remembered so many times."""


class NeuralForwardModel(Protocol):
    """Says what follows a state and an action."""

    @property
    def n_actions(self) -> int:
        """A."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, network: ModelNet, batch: Transitions) -> jax.Array:
        """What it loses on transitions, the mean."""

    def targets(
        self, network: ModelNet, refs: jax.Array, pairs: Remembered, best: Best, discount: jax.Array
    ) -> jax.Array:
        """E[r + γ̄(s') max_a' q(s', a')] of each action in n states, (n, A)."""

    def table(self, network: ModelNet, states: jax.Array) -> tuple[jax.Array, ...]:
        """P(s' | s, a) and rewards, each (S, A, S), and ends, (S,); states (S,) followed so many times in memory."""
