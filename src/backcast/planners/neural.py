"""Planning with models computed by networks: losses of the values on imagined transitions.

A planner defines from which states of transitions it plans (`turns`), and the loss of the values there (`loss`), whose
gradient the agent follows. Expected planning weights outcomes by their probability; sampled planning draws them.
"""

from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import (
    ModelNet,
    NeuralBackwardModel,
    NeuralCorrectionModel,
    NeuralForwardModel,
    Remembered,
)
from backcast.networks.modules import Function, Params
from backcast.values.neural import Eyes, NeuralValues, Transitions

Lost = tuple[jax.Array, tuple[jax.Array, jax.Array]]  # the mean loss; the number of value updates, and the largest |q|


class NeuralTurn(NamedTuple):
    """States to plan from: the states, which of them count, and which end the episode; each (n, …)."""

    refs: jax.Array
    valid: jax.Array
    ends: jax.Array


class Imagined(NamedTuple):
    """The arguments of planning besides the parameters of the values.

    Attributes:
        target: the parameters from which values bootstrap.
        model: the parameters of the model.
        eyes: maps stored states to observations.
        pairs: remembered pairs, for models that use candidates.
        batch: transitions for replay.
        discount: γ.
        key: random key of JAX.
    """

    target: Params
    model: Params
    eyes: Eyes
    pairs: Remembered
    batch: Transitions
    discount: jax.Array
    key: jax.Array


class NeuralPlanner(Protocol):
    """Plans after transitions."""

    def turns(self, batch: Transitions) -> list[NeuralTurn]:
        """The states to plan from, one turn after the other."""

    def plans_first(self) -> bool:
        """Whether the first state of an episode is planned from when the episode begins."""

    def stages(self) -> int:
        """The number of optimiser steps of a turn."""

    def loss(self, params: Params, turn: NeuralTurn, stage: jax.Array, known: Imagined) -> Lost:
        """The mean loss at a stage of a turn, the number of value updates, and the largest |q|."""


class NeuralBackwardPlanner(NamedTuple):
    """Corrects the pairs that lead to s' (`current`) or to s, as `backcast.planners.BackwardPlanner` does.

    Attributes:
        values: the values to correct.
        function: the model's network.
        model: the backward model.
        current: whether it plans from s'.
        pure: whether the agent does not learn from real steps.
        samples: number of pairs drawn for each state; 0: the expectation over all.
    """

    values: NeuralValues
    function: Function
    model: NeuralBackwardModel
    current: bool
    pure: bool
    samples: int

    def turns(self, batch: Transitions) -> list[NeuralTurn]:
        """Plan from s', or from s unless it began the episode; in pure planning from s, also from terminal states."""
        if self.current:
            return [NeuralTurn(batch.s2, jnp.ones_like(batch.ends), batch.ends)]
        previous = NeuralTurn(batch.s, ~batch.first, jnp.zeros_like(batch.ends))
        return [previous, NeuralTurn(batch.s2, batch.ends, batch.ends)] if self.pure else [previous]

    def plans_first(self) -> bool:
        """Never: learned rows describe steps, not restarts."""
        return False

    def stages(self) -> int:
        """One: all pairs at once."""
        return 1

    def loss(self, params: Params, turn: NeuralTurn, stage: jax.Array, known: Imagined) -> Lost:
        """The loss of R + γⁿ max_a q(s, a) − q(s̃, ã), weighted by P←(s̃, ã | s); γ = 0 where s ends the episode."""
        network = ModelNet(self.function, known.model, known.eyes)
        before = self.model.before(network, turn.refs, known.pairs, known.key)
        best = self.values.best(params, known.target, known.eyes(turn.refs))
        target = jax.lax.stop_gradient(before.targets(best, turn.ends, known.discount, self.model.steps))
        before = before._replace(seen=jax.lax.stop_gradient(before.seen))
        q, weight = before.values(self.values, params), jax.lax.stop_gradient(before.weight)
        if self.samples:
            drawn = jax.random.categorical(known.key, jnp.log(weight), shape=(self.samples, len(weight)))
            weight = jax.nn.one_hot(drawn, weight.shape[1], dtype=weight.dtype).sum(axis=0)
        lost = (weight * self.values.loss(target - q)).sum(axis=1)
        made = turn.valid.sum() * (self.samples or weight.shape[1])
        return jnp.where(turn.valid, lost, 0.0).mean(), (made, jnp.abs(q).max())


class NeuralForwardPlanner(NamedTuple):
    """Re-evaluates s' (`current`) or s from what follows, as `backcast.planners.ForwardPlanner` does.

    Attributes:
        values: the values to correct.
        function: the model's network.
        model: the forward model.
        current: whether it plans from s'.
        pure: whether the agent does not learn from real steps.
        in_turn: whether actions are updated one after the other, as the algorithm is printed, or all at once.
    """

    values: NeuralValues
    function: Function
    model: NeuralForwardModel
    current: bool
    pure: bool
    in_turn: bool

    def turns(self, batch: Transitions) -> list[NeuralTurn]:
        """Plan from s' unless it ends the episode, or from s."""
        refs, valid = (batch.s2, ~batch.ends) if self.current else (batch.s, jnp.ones_like(batch.ends))
        return [NeuralTurn(refs, valid, jnp.zeros_like(batch.ends))]

    def plans_first(self) -> bool:
        """In pure planning from s'; otherwise the first state would never be planned from."""
        return self.current and self.pure

    def stages(self) -> int:
        """One for each action, or one for all."""
        return self.model.n_actions if self.in_turn else 1

    def loss(self, params: Params, turn: NeuralTurn, stage: jax.Array, known: Imagined) -> Lost:
        """The loss of E[r + γ̄(s') max_a' q(s', a') | s, a] − q(s, a), for all actions or one."""

        def best(seen: jax.Array) -> jax.Array:
            return self.values.best(params, known.target, seen)

        network = ModelNet(self.function, known.model, known.eyes)
        target = self.model.targets(network, turn.refs, known.pairs, best, known.discount)
        q = self.values.all(params, known.eyes(turn.refs))
        lost = self.values.loss(jax.lax.stop_gradient(target) - q)
        if self.in_turn:
            lost = lost[:, stage][:, None]
        made = turn.valid.sum() * lost.shape[1]
        return jnp.where(turn.valid, lost.sum(axis=1), 0.0).mean(), (made, jnp.abs(q).max())


class NeuralCorrector(NamedTuple):
    """Applies the corrections of an abstract model, from the same states as the planner of another model.

    Attributes:
        values: the values to correct.
        function: the model's network.
        model: the abstract model.
        usual: that planner.
    """

    values: NeuralValues
    function: Function
    model: NeuralCorrectionModel
    usual: NeuralPlanner

    def turns(self, batch: Transitions) -> list[NeuralTurn]:
        """As `usual`."""
        return self.usual.turns(batch)

    def plans_first(self) -> bool:
        """As `usual`."""
        return self.usual.plans_first()

    def stages(self) -> int:
        """One."""
        return 1

    def loss(self, params: Params, turn: NeuralTurn, stage: jax.Array, known: Imagined) -> Lost:
        """The mean of −Δ(s)·w, whose gradient with respect to w is minus the correction."""
        correction = self.model.corrections(ModelNet(self.function, known.model, known.eyes), turn.refs)
        correction = jax.lax.stop_gradient(jnp.where(turn.valid[:, None], correction, 0.0)).mean(axis=0)
        flat = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(params)])
        largest = jnp.abs(self.values.all(params, known.eyes(turn.refs))).max()
        return -(correction * flat).sum(), (turn.valid.sum(), largest)


class NeuralReplay(NamedTuple):
    """Learns again from `samples` remembered transitions."""

    values: NeuralValues
    samples: int

    def turns(self, batch: Transitions) -> list[NeuralTurn]:
        """One turn, which uses no state of the step."""
        return [NeuralTurn(batch.s, jnp.ones_like(batch.ends), batch.ends)]

    def plans_first(self) -> bool:
        """Never."""
        return False

    def stages(self) -> int:
        """One: all transitions at once."""
        return 1

    def loss(self, params: Params, turn: NeuralTurn, stage: jax.Array, known: Imagined) -> Lost:
        """The loss of learning, on the transitions to replay."""
        lost, largest = self.values.learning_loss(params, known.target, known.eyes, known.batch, known.discount)
        return lost, (jnp.asarray(self.samples), largest)
