"""Values that a network computes: q(s, a) of an observation of s, what they move towards, and how they are moved.

Parameters are trees of arrays that are handed in and given back; nothing here changes them in place. In prediction
there is one action, and q is v.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from backcast.networks.modules import Function, Params

Eyes = Callable[[jax.Array], jax.Array]  # from what a memory holds of n states to n observations

Elementwise = Callable[[jax.Array], jax.Array]


class Transitions(NamedTuple):
    """Some transitions s, a → r, s', each entry (n, …).

    Attributes:
        s: what memories hold of the states: their numbers, or observations where they have none.
        a: actions.
        r: rewards.
        s2: the states that followed.
        ends: whether these ended the episode; a truncated episode does not end.
        first: whether s began the episode.
    """

    s: jax.Array
    a: jax.Array
    r: jax.Array
    s2: jax.Array
    ends: jax.Array
    first: jax.Array


class NeuralValues(NamedTuple):
    """q(s, a) by a network with the head "q".

    Attributes:
        function: the network.
        loss: of an error, elementwise.
        double: whether the action of the best value is chosen by the values that learn, not by the target network.
    """

    function: Function
    loss: Elementwise
    double: bool

    def all(self, params: Params, seen: jax.Array) -> jax.Array:
        """The values of all actions, (n, A)."""
        return self.function(params, seen, "q")

    def of(self, params: Params, seen: jax.Array, a: jax.Array) -> jax.Array:
        """The values of these actions, (n,)."""
        return jnp.take_along_axis(self.all(params, seen), a[:, None], axis=1)[:, 0]

    def best(self, params: Params, target: Params, seen: jax.Array) -> jax.Array:
        """max_a q(s, a) of the target network, (n,); with `double`, q of the action that is best otherwise."""
        q = self.all(target, seen)
        if not self.double:
            return q.max(axis=1)
        chosen = self.all(params, seen).argmax(axis=1)
        return jnp.take_along_axis(q, chosen[:, None], axis=1)[:, 0]

    def errors(self, params: Params, target: Params, eyes: Eyes, batch: Transitions, discount: jax.Array) -> jax.Array:
        """Errors r + γ max_a' q(s', a') − q(s, a), (n,), with γ = 0 where s' ends."""
        ahead = jnp.where(batch.ends, 0.0, discount * self.best(params, target, eyes(batch.s2)))
        return batch.r + ahead - self.of(params, eyes(batch.s), batch.a)

    def gradients(self, params: Params, seen: jax.Array, a: jax.Array) -> jax.Array:
        """∇ q(s, a) by all P parameters, (n, P), one row for each pair."""

        def one(params: Params, seen: jax.Array, a: jax.Array) -> jax.Array:
            return self.of(params, seen[None], a[None])[0]

        rows = jax.vmap(jax.grad(one), (None, 0, 0))(params, seen, a)
        return jnp.concatenate([leaf.reshape(len(a), -1) for leaf in jax.tree.leaves(rows)], axis=1)

    def learning_loss(
        self, params: Params, target: Params, eyes: Eyes, batch: Transitions, discount: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The mean loss of r + γ max_a' q(s', a') − q(s, a), with γ = 0 where s' ends; and the largest |q|."""
        ahead = jnp.where(batch.ends, 0.0, discount * self.best(params, target, eyes(batch.s2)))
        q = self.of(params, eyes(batch.s), batch.a)
        error = jax.lax.stop_gradient(batch.r + ahead) - q
        return self.loss(error).mean(), jnp.abs(q).max()


def squared(error: jax.Array) -> jax.Array:
    """½ δ²: its gradient step of size α is q ← q + α δ."""
    return 0.5 * error * error


LOSSES: dict[str, Elementwise] = {"squared": squared, "huber": optax.losses.huber_loss}
OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {"adam": optax.scale_by_adam, "sgd": optax.identity}


class Optimiser(NamedTuple):
    """How parameters follow a gradient.

    Attributes:
        transform: of optax; one of Backcast's own names makes directions of unit step size.
        unit: None, or of a transformation of one's own, the α beside which it was given, the largest if there are
            several: its steps are taken as they are, times the rate over α, which falls as the schedule says.
    """

    transform: optax.GradientTransformation
    unit: float | None

    def begin(self, params: Params) -> Params:
        """Its state before the first step."""
        return self.transform.init(params)

    def step(self, params: Params, gradient: Params, state: Params, rate: jax.Array) -> tuple[Params, Params]:
        """The parameters after a step of this size against a gradient, and the optimiser's state."""
        moves, state = self.transform.update(gradient, state, params)
        size = -rate if self.unit is None else rate / self.unit
        return jax.tree.map(lambda old, move: old + size.astype(old.dtype) * move, params, moves), state
