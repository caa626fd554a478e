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


def lesson_of(batch, pairs, network, n_actions=A):
    """What a model learns from, beside values of some network."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import Lesson, Ways
    from backcast.networks.modules import Head
    from backcast.values.neural import NeuralValues, squared

    (function, params), (_, target) = (network({"q": Head(n_actions)}, seed) for seed in (4, 5))
    values, whole = NeuralValues(function, squared, False), jnp.array([1.0, 0.0, 1.0, 1.0])
    ways = Ways(batch.s, batch.a, batch.r, batch.s2, whole, jnp.array([1.0, 2.0, 0.0, 1.0]))
    return Lesson(batch, ways, pairs, values, params, target, jnp.float64(0.9), jax.random.key(0))


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
    from backcast.models.neural.abstraction import NeuralCorrections
    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward, ContrastiveWays
    from backcast.models.neural.deterministic import DeterministicForward
    from backcast.models.neural.generative import GenerativeBackward
    from backcast.models.neural.softmax import SoftmaxBackward, SoftmaxForward

    return {
        "softmax backward": SoftmaxBackward(S, A),
        "softmax backward in prediction": SoftmaxBackward(S, 1),
        "softmax forward": SoftmaxForward(S, A),
        "contrastive backward": ContrastiveBackward(A, 3),
        "contrastive forward": ContrastiveForward(A, 3),
        "contrastive over two steps": ContrastiveWays(ContrastiveBackward(A, 3), 2),
        "generative, vectors": GenerativeBackward((3,), A, 2, 2),
        "generative, images": GenerativeBackward((1, 1, 3), A, 2, 2),
        "deterministic forward": DeterministicForward((3,), A),
        "abstract backward": NeuralCorrections(3 * 4 + 4 + 4 * A + A, A, ahead=False),
    }


ONE_STEP = ["softmax backward", "softmax forward", "contrastive backward", "contrastive forward"]


def actions_of(name):
    return 1 if "prediction" in name else A


NAMES = [
    *ONE_STEP,
    *("softmax backward in prediction", "contrastive over two steps", "generative, vectors", "deterministic forward"),
]


def quick(names, ones):
    """Parameters of a test; but for these ones they are left to `make slow`."""
    return [pytest.param(name, marks=[] if name in ones else [pytest.mark.slow]) for name in names]


@pytest.mark.parametrize(
    "name",
    quick(
        [*NAMES, "generative, images", "abstract backward"],
        ["softmax backward", "contrastive backward", "generative, vectors", "deterministic forward"],
    ),
)
def test_what_a_model_loses(name):
    from backcast.models.neural.contract import ModelNet

    model = models()[name]
    eyes, batch, pairs, network = parts(actions_of(name))
    function, params = network(model.heads(), 1)
    lesson = lesson_of(batch, pairs, network)
    assert_gradient(lambda params: model.loss(ModelNet(function, params, eyes), lesson), params)


@pytest.mark.parametrize(
    "name", quick([*ONE_STEP, "deterministic forward"], ["contrastive backward", "softmax forward"])
)
def test_what_a_model_loses_that_is_aware_of_the_planner(name):
    from backcast.models.neural.contract import ModelNet
    from backcast.models.neural.objectives import OBJECTIVES

    model, loss = models()[name], OBJECTIVES["planner-aware"]["forward" in name]
    eyes, batch, pairs, network = parts(A)
    function, params = network(model.heads(), 1)
    lesson = lesson_of(batch, pairs, network)
    assert_gradient(lambda params: loss(model, ModelNet(function, params, eyes), lesson), params)


def test_what_values_lose():
    from backcast.networks.modules import Head
    from backcast.values.neural import NeuralValues, squared

    eyes, batch, _, network = parts(A)
    function, params = network({"q": Head(A)}, 1)
    values, target = NeuralValues(function, squared, False), network({"q": Head(A)}, 2)[1]
    assert_gradient(lambda params: values.learning_loss(params, target, eyes, batch, 0.9)[0], params)


@pytest.mark.parametrize("name", quick(NAMES, ["softmax backward", "softmax forward", "contrastive over two steps"]))
def test_what_values_lose_by_planning(name):
    import jax.numpy as jnp

    from backcast.networks.modules import Head
    from backcast.planners.neural import Imagined, NeuralBackwardPlanner, NeuralForwardPlanner
    from backcast.values.neural import NeuralValues, squared

    model = models()[name]
    eyes, batch, pairs, network = parts(actions_of(name))
    heads = {"q": Head(actions_of(name))}
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


def linear_parts(model):
    """The network of a model and a lesson about values, both linear in observations."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import ModelNet
    from backcast.networks.modules import make

    eyes, batch, pairs, _ = parts(A)

    def network(heads, seed):
        random = {name: head._replace(zero=False) for name, head in heads.items()}
        return make(bc.networks.linear(), jax.random.key(seed), (3,), random, jnp.float64)

    function, params = network(model.heads(), 1)
    return lambda params: ModelNet(function, params, eyes), params, lesson_of(batch, pairs, network)


def chances(logits):
    most = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return most / most.sum(axis=-1, keepdims=True)


def test_cross_entropy_has_the_closed_form_of_the_exponential_family():
    """Of linear logits the gradient is x(s') (P←(· | s') − onehot(s, a))ᵀ, the mean over transitions."""
    from backcast.models.neural.softmax import SoftmaxBackward

    model = SoftmaxBackward(S, A)
    net, params, lesson = linear_parts(model)
    found = jax.jit(jax.grad(lambda params: model.loss(net(params), lesson)))(params)["heads"]["before"]["w"]
    batch = lesson.batch
    x, pair = np.asarray(net(params).eyes(batch.s2)), batch.s * A + batch.a
    probability = chances(x @ np.asarray(params["heads"]["before"]["w"]))
    np.testing.assert_allclose(found, x.T @ (probability - np.eye(S * A)[pair]) / N, rtol=1e-12, atol=1e-14)


def values_by_hand(net, params, lesson):
    """X (S, 3), q of the values that learn (S, A), and max q of the target network (S,)."""
    X = np.asarray(net(params).eyes(np.arange(S)))
    q, target = (X @ np.asarray(each["heads"]["q"]["w"]) for each in (lesson.params, lesson.target))
    return X, q, target.max(axis=1)


def test_planner_aware_backward_has_the_closed_form_of_the_exponential_family():
    """Σ_o P(o) (e·Δ(o) − E[e·Δ]) z(o) z(s')ᵀ with e = E[Δ] − Δ(o_i), as in `backcast.models.linear.exponential`."""
    from backcast.models.neural.objectives import planner_aware_backward
    from backcast.models.neural.softmax import SoftmaxBackward

    model = SoftmaxBackward(S, A)
    net, params, lesson = linear_parts(model)
    gradient = jax.jit(jax.grad(lambda params: planner_aware_backward(model, net(params), lesson)))
    found = gradient(params)["heads"]["before"]["w"]
    X, q, best = values_by_hand(net, params, lesson)
    heads, batch, expected = params["heads"], lesson.batch, np.zeros((3, S * A))
    for s, a, r, s2, ends in zip(batch.s, batch.a, batch.r, batch.s2, np.asarray(batch.ends), strict=True):
        probability = chances(X[s2] @ np.asarray(heads["before"]["w"]))
        ahead = 0.0 if ends else 0.9 * best[s2]
        delta = (X[s2] @ np.asarray(heads["reward"]["w"])).item() + ahead - q.reshape(-1)
        corrections = delta[:, None] * np.einsum("sd,ab->sadb", X, np.eye(A)).reshape(S * A, -1)  # of weights (3, A)
        real = (r + ahead - q[s, a]) * np.outer(X[s], np.eye(A)[a]).reshape(-1)
        aware = corrections @ (probability @ corrections - real)
        expected += np.outer(X[s2], probability * (aware - probability @ aware)) / N
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_planner_aware_forward_has_the_closed_form_of_the_exponential_family():
    """The same with Δ(s') = δ(s, s') φ(s, a): it is value-aware, ½ (E[target] − target_i)² ‖x(s)‖²."""
    from backcast.models.neural.objectives import planner_aware_forward
    from backcast.models.neural.softmax import SoftmaxForward

    model = SoftmaxForward(S, A)
    net, params, lesson = linear_parts(model)
    gradient = jax.jit(jax.grad(lambda params: planner_aware_forward(model, net(params), lesson)))
    found = gradient(params)["heads"]["after"]["w"]
    X, _, best = values_by_hand(net, params, lesson)
    heads, batch, expected = params["heads"], lesson.batch, np.zeros((3, A, S))
    going = X @ np.asarray(heads["goes_on"]["w"])
    worth = (X @ np.asarray(heads["reward"]["w"]))[:, 0] + np.where(going[:, 0] > going[:, 1], 0.9 * best, 0.0)
    for s, a, r, s2, ends in zip(batch.s, batch.a, batch.r, batch.s2, np.asarray(batch.ends), strict=True):
        probability = chances((X[s] @ np.asarray(heads["after"]["w"])).reshape(A, S)[a])
        off = probability @ worth - (r + (0.0 if ends else 0.9 * best[s2]))
        slope = off * (X[s] @ X[s]) * probability * (worth - probability @ worth)
        expected[:, a] += np.outer(X[s], slope) / N
    np.testing.assert_allclose(found, expected.reshape(3, -1), rtol=1e-10, atol=1e-12)
