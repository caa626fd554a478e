"""What agents with a network ask of a model.

A model says which heads its network needs, what it loses on some transitions, and what planning asks: a backward model,
which pairs may have led to a state; a forward model, what is expected to follow each action.
"""

from typing import Any, NamedTuple, Protocol

import jax

from backcast.networks.modules import Function, Head, Params
from backcast.values.neural import Eyes, Transitions


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
    a: jax.Array
    weight: jax.Array
    reward: jax.Array


class NeuralBackwardModel(Protocol):
    """Says what led to a state."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, function: Function, params: Params, eyes: Eyes, batch: Transitions) -> jax.Array:
        """What it loses on transitions, the mean."""

    def before(
        self, function: Function, params: Params, eyes: Eyes, refs: jax.Array, pairs: Remembered, key: jax.Array
    ) -> Before:
        """The pairs that may have led to states, n of them, as memories hold them."""


class NeuralForwardModel(Protocol):
    """Says what follows a state and an action."""

    def heads(self) -> dict[str, Head]:
        """What its network has on top of the body."""

    def loss(self, function: Function, params: Params, eyes: Eyes, batch: Transitions) -> jax.Array:
        """What it loses on transitions, the mean."""

    def targets(
        self,
        function: Function,
        params: Params,
        eyes: Eyes,
        refs: jax.Array,
        pairs: Remembered,
        best: Any,
        discount: jax.Array,
    ) -> jax.Array:
        """E[r + γ̄(s') max_a' q(s', a')] of each action in n states, (n, A); `best` maps observations to max_a q."""
