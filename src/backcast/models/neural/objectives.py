"""What models by networks are learned by: the likelihood of what happened, or the corrections that planning makes.

Planner-aware (PlanML, appendix C.3 of the paper), a model's parameters θ move so that the correction of values that it
expects is that of experience. Of transition i, with o_i = (s̃_i, ã_i) the pair that led to s_i,

    backward   ½ |Σ_o P_θ(o | s_i) Δ(o, s_i) − Δ_i|²,    Δ(o, s) = (r_θ(o, s) + γ max_a q(s, a) − q(o)) ∇q(o)
    forward    ½ |E_θ[Δ(s_i, a_i, s')] − Δ_i|²,          Δ(s, a, s') = (r_θ + γ̄_θ max_a' q(s', a') − q(s, a)) ∇q(s, a)

and Δ_i the same of the real reward and what really happened. ∇q is by all parameters of the values, which are held
fixed, as they are when the model learns. The gradient by θ is taken through probabilities and rewards alike; rewards
(and ends) are besides regressed on those of experience, as always.
"""

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import Lesson, ModelNet, NeuralBackwardModel, NeuralForwardModel, Objective


def likelihood(model: NeuralBackwardModel | NeuralForwardModel, network: ModelNet, lesson: Lesson) -> jax.Array:
    """What the model says itself that it loses."""
    return model.loss(network, lesson)


def planner_aware_backward(model: NeuralBackwardModel, network: ModelNet, lesson: Lesson) -> jax.Array:
    """The squared error of the expected correction of what led to s', and what is lost of rewards."""
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
    """The squared error of the expected correction of (s, a), and what is lost of rewards and ends."""
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
    """½ |row|², the mean."""
    return 0.5 * (rows**2).sum(axis=1).mean()


OBJECTIVES: dict[str, tuple[Objective, Objective]] = {  # backward and forward
    "likelihood": (likelihood, likelihood),
    "planner-aware": (planner_aware_backward, planner_aware_forward),
}
