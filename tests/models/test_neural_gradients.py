"""Gradients of what networks learn from and plan by, against finite differences, and a closed form."""

import numpy as np
import pytest

import backcast as bc

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX

S, A, N = 5, 2, 4
HALF, TOLERANCE = 1e-6, 1e-6


@pytest.fixture(autouse=True)
def _with_64_bits():
    from backcast.networks.backend import require_jax, wide

    require_jax()
    with wide():
        yield


def parts(n_actions):
    """Observations, transitions, remembered pairs and a maker of networks for them."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import Remembered
    from backcast.networks.modules import make
    from backcast.values.neural import Transitions

    rng = np.random.default_rng(3)
    seen = jnp.asarray(rng.normal(size=(S, 3)))
    states, actions = rng.integers(S, size=(3, N)), rng.integers(n_actions, size=(2, N))
    ends = jnp.array([False, True, False, False])
    batch = Transitions(states[0], actions[0], jnp.asarray(rng.normal(size=N)), states[1], ends, ~ends)
    pairs = Remembered(states[2], actions[1], states[0])

    def network(heads, seed):
        random = {name: head._replace(zero=False) for name, head in heads.items()}  # at 0 much of a gradient is 0
        return make(bc.networks.mlp(4), jax.random.key(seed), (3,), random, jnp.float64)

    return lambda states: seen[states], batch, pairs, network


def assert_gradient(loss, params):
    from jax.flatten_util import ravel_pytree

    flat, unravel = ravel_pytree(params)
    steps = HALF * np.eye(flat.size)
    beside = jax.jit(jax.vmap(lambda step: loss(unravel(flat + step)) - loss(unravel(flat - step))))
    found = ravel_pytree(jax.jit(jax.grad(loss))(params))[0]
    expected = np.asarray(beside(steps)) / (2 * HALF)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert np.abs(expected).max() > 0.01


def models():
    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward
    from backcast.models.neural.softmax import SoftmaxBackward, SoftmaxForward

    return {
        "softmax backward": SoftmaxBackward(S, A),
        "softmax backward in prediction": SoftmaxBackward(S, 1),
        "softmax forward": SoftmaxForward(S, A),
        "contrastive backward": ContrastiveBackward(A, 3),
        "contrastive forward": ContrastiveForward(A, 3),
    }


NAMES = [
    *("softmax backward", "softmax backward in prediction", "softmax forward"),
    *("contrastive backward", "contrastive forward"),
]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_model_loses(name):
    from backcast.models.neural.contract import ModelNet

    model = models()[name]
    eyes, batch, _, network = parts(model.n_actions)
    function, params = network(model.heads(), 1)
    assert_gradient(lambda params: model.loss(ModelNet(function, params, eyes), batch), params)


def test_what_values_lose():
    from backcast.networks.modules import Head
    from backcast.values.neural import NeuralValues, squared

    eyes, batch, _, network = parts(A)
    function, params = network({"q": Head(A)}, 1)
    values, target = NeuralValues(function, squared, False), network({"q": Head(A)}, 2)[1]
    assert_gradient(lambda params: values.learning_loss(params, target, eyes, batch, 0.9)[0], params)


@pytest.mark.parametrize("name", NAMES)
def test_what_values_lose_by_planning(name):
    import jax.numpy as jnp

    from backcast.networks.modules import Head
    from backcast.planners.neural import Imagined, NeuralBackwardPlanner, NeuralForwardPlanner
    from backcast.values.neural import NeuralValues, squared

    model = models()[name]
    eyes, batch, pairs, network = parts(model.n_actions)
    heads = {"q": Head(model.n_actions)}
    (function, params), (_, target), (of_model, learned) = (
        network(heads, 1),
        network(heads, 2),
        network(model.heads(), 3),
    )
    values, key = NeuralValues(function, squared, False), jax.random.key(0)
    if "forward" in name:
        planner = NeuralForwardPlanner(values, of_model, model, False, False, False)
    else:
        planner = NeuralBackwardPlanner(values, of_model, model, True, False, 0)
    (turn,) = planner.turns(batch)
    known = Imagined(target, learned, eyes, pairs, batch, jnp.float64(0.9), key)
    assert_gradient(lambda params: planner.loss(params, turn, 0, known)[0], params)


def test_cross_entropy_has_the_closed_form_of_the_exponential_family():
    """Of linear logits the gradient is x(s') (P←(· | s') − onehot(s, a))ᵀ, the mean over transitions."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import ModelNet
    from backcast.models.neural.softmax import SoftmaxBackward
    from backcast.networks.modules import make

    model = SoftmaxBackward(S, A)
    eyes, batch, _, _ = parts(A)
    heads = {name: head._replace(zero=False) for name, head in model.heads().items()}
    function, params = make(bc.networks.linear(), jax.random.key(1), (3,), heads, jnp.float64)
    found = jax.grad(lambda params: model.loss(ModelNet(function, params, eyes), batch))(params)["heads"]["before"]["w"]
    x, pair = np.asarray(eyes(batch.s2)), batch.s * A + batch.a
    logits = x @ np.asarray(params["heads"]["before"]["w"])
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, x.T @ (probability - np.eye(S * A)[pair]) / N, rtol=1e-12, atol=1e-14)
