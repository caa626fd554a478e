"""Values computed by a network: q(s, a) for an observation of s, their loss, and optimisers.

Parameters are pytrees of arrays, passed as arguments and returned, never changed in place. In prediction there is one
action, and q is v.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from backcast.networks.modules import Function, Params

Eyes = Callable[[jax.Array], jax.Array]  # maps n stored states to n observations

Elementwise = Callable[[jax.Array], jax.Array]


class Transitions(NamedTuple):
    """Transitions s, a → r, s', each entry (n, …).

    Attributes:
        s: states, as stored in a memory: numbers or, if states are not numbered, observations.
        a: actions.
        r: rewards.
        s2: next states.
        ends: whether the next state is terminal; a truncated episode does not end.
        first: whether s began the episode.
    """

    s: jax.Array
    a: jax.Array
    r: jax.Array
    s2: jax.Array
    ends: jax.Array
    first: jax.Array


class NeuralValues(NamedTuple):
    """Action values q(s, a), computed by a network with the head "q".

    Attributes:
        function: the network.
        loss: the loss of an error, elementwise.
        double: whether the online network selects the action that the target network evaluates.
    """

    function: Function
    loss: Elementwise
    double: bool

    def all(self, params: Params, seen: jax.Array) -> jax.Array:
        """The values of all actions, (n, A)."""
        return self.function(params, seen, "q")

    def of(self, params: Params, seen: jax.Array, a: jax.Array) -> jax.Array:
        """The values of the given actions, (n,)."""
        return jnp.take_along_axis(self.all(params, seen), a[:, None], axis=1)[:, 0]

    def best(self, params: Params, target: Params, seen: jax.Array) -> jax.Array:
        """max_a q(s, a) of the target network, (n,); with `double`, its q of the online network's best action."""
        q = self.all(target, seen)
        if not self.double:
            return q.max(axis=1)
        chosen = self.all(params, seen).argmax(axis=1)
        return jnp.take_along_axis(q, chosen[:, None], axis=1)[:, 0]

    def errors(self, params: Params, target: Params, eyes: Eyes, batch: Transitions, discount: jax.Array) -> jax.Array:
        """Errors r + γ max_a' q(s', a') − q(s, a), (n,), with γ = 0 where s' is terminal."""
        ahead = jnp.where(batch.ends, 0.0, discount * self.best(params, target, eyes(batch.s2)))
        return batch.r + ahead - self.of(params, eyes(batch.s), batch.a)

    def gradients(self, params: Params, seen: jax.Array, a: jax.Array) -> jax.Array:
        """∇q(s, a) with respect to all P parameters, (n, P), one row for each pair."""

        def one(params: Params, seen: jax.Array, a: jax.Array) -> jax.Array:
            return self.of(params, seen[None], a[None])[0]

        rows = jax.vmap(jax.grad(one), (None, 0, 0))(params, seen, a)
        return jnp.concatenate([leaf.reshape(len(a), -1) for leaf in jax.tree.leaves(rows)], axis=1)

    def learning_loss(
        self, params: Params, target: Params, eyes: Eyes, batch: Transitions, discount: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the mean loss of r + γ max_a' q(s', a') − q(s, a), γ = 0 where s' is terminal, and the largest |q|."""
        ahead = jnp.where(batch.ends, 0.0, discount * self.best(params, target, eyes(batch.s2)))
        q = self.of(params, eyes(batch.s), batch.a)
        error = jax.lax.stop_gradient(batch.r + ahead) - q
        return self.loss(error).mean(), jnp.abs(q).max()


def squared(error: jax.Array) -> jax.Array:
    """½ δ²: a gradient step of size α is q ← q + α δ."""
    return 0.5 * error * error


LOSSES: dict[str, Elementwise] = {"squared": squared, "huber": optax.losses.huber_loss}
OPTIMISERS: dict[str, Callable[[], optax.GradientTransformation]] = {"adam": optax.scale_by_adam, "sgd": optax.identity}


class Optimiser(NamedTuple):
    """An optimiser of parameters.

    Attributes:
        transform: a gradient transformation of optax; Backcast's own ("adam", "sgd") have step size 1.
        unit: None for Backcast's own. For a user's transformation, the largest α of the agent: its updates are
            multiplied by rate / α, which falls with the schedule.
    """

    transform: optax.GradientTransformation
    unit: float | None

    def begin(self, params: Params) -> Params:
        """The initial state."""
        return self.transform.init(params)

    def step(self, params: Params, gradient: Params, state: Params, rate: jax.Array) -> tuple[Params, Params]:
        """Make a gradient step of this size; return the parameters and the optimiser's state."""
        moves, state = self.transform.update(gradient, state, params)
        size = -rate if self.unit is None else rate / self.unit
        return jax.tree.map(lambda old, move: old + size.astype(old.dtype) * move, params, moves), state
