"""Objectives of models by networks: the likelihood of observations, or the error of the expected correction.

Planner-aware learning (PlanML, appendix C.3 of the paper) changes a model's parameters θ so that its expected
correction of the values agrees with that of experience. For transition i, with o_i = (s̃_i, ã_i) the pair that led to
s_i, the loss is

    backward   ½ |Σ_o P_θ(o | s_i) Δ(o, s_i) − Δ_i|²,    Δ(o, s) = (r_θ(o, s) + γ max_a q(s, a) − q(o)) ∇q(o)
    forward    ½ |E_θ[Δ(s_i, a_i, s')] − Δ_i|²,          Δ(s, a, s') = (r_θ + γ̄_θ max_a' q(s', a') − q(s, a)) ∇q(s, a)

where Δ_i is the correction by the observed reward and outcome. ∇q is the gradient with respect to all parameters of the
values, which are held fixed. The gradient with respect to θ passes through probabilities and rewards. Rewards and
terminations are also fitted to those observed, as with the likelihood.
"""

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import Lesson, ModelNet, NeuralBackwardModel, NeuralForwardModel, Objective


def likelihood(model: NeuralBackwardModel | NeuralForwardModel, network: ModelNet, lesson: Lesson) -> jax.Array:
    """The loss of the model itself."""
    return model.loss(network, lesson)


def planner_aware_backward(model: NeuralBackwardModel, network: ModelNet, lesson: Lesson) -> jax.Array:
    """Half the squared error of the expected correction of what led to s', plus the loss of rewards."""
    batch, values, params = lesson.batch, lesson.values, lesson.params
    before = model.before(network, batch.s2, lesson.pairs, lesson.key)
    best = values.best(params, lesson.target, network.eyes(batch.s2))
    errors = before.targets(best, batch.ends, lesson.discount, 1) - before.values(values, params)
    a, seen = before.a, before.seen
    if a is None:  # all actions of each state
        n_actions = before.weight.shape[1] // len(seen)
        a, seen = jnp.tile(jnp.arange(n_actions), len(seen)), jnp.repeat(seen, n_actions, axis=0)
    expected = (before.weight * errors) @ values.gradients(params, seen, a)
    return squares(expected - experienced(network, lesson)) + model.reward_loss(network, lesson)


def planner_aware_forward(model: NeuralForwardModel, network: ModelNet, lesson: Lesson) -> jax.Array:
    """Half the squared error of the expected correction of (s, a), plus the loss of rewards and terminations."""
    batch, values, params = lesson.batch, lesson.values, lesson.params

    def best(seen: jax.Array) -> jax.Array:
        return values.best(params, lesson.target, seen)

    targets = model.targets(network, batch.s, lesson.pairs, best, lesson.discount)
    of_action = jnp.take_along_axis(targets, batch.a[:, None], axis=1)[:, 0]
    real = values.errors(params, lesson.target, network.eyes, batch, lesson.discount)
    seen = network.eyes(batch.s)
    off = of_action - values.of(params, seen, batch.a) - real
    return squares(off[:, None] * values.gradients(params, seen, batch.a)) + model.reward_loss(network, lesson)


def experienced(network: ModelNet, lesson: Lesson) -> jax.Array:
    """The corrections δ ∇q(s, a) of transitions, (n, P)."""
    values, batch = lesson.values, lesson.batch
    errors = values.errors(lesson.params, lesson.target, network.eyes, batch, lesson.discount)
    return errors[:, None] * values.gradients(lesson.params, network.eyes(batch.s), batch.a)


def squares(rows: jax.Array) -> jax.Array:
    """The mean of ½ |row|²."""
    return 0.5 * (rows**2).sum(axis=1).mean()


OBJECTIVES: dict[str, tuple[Objective, Objective]] = {  # backward and forward
    "likelihood": (likelihood, likelihood),
    "planner-aware": (planner_aware_backward, planner_aware_forward),
}
