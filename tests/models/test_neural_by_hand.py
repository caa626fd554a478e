"""Models by networks on numbers worked out by hand: generative, deterministic and abstract ones.

Networks are linear and begin at 0 unless said, so that a mixture is around what is seen, and a correction is 0.
"""

import functools
import math

import numpy as np
import pytest

import backcast as bc

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX


@pytest.fixture(autouse=True)
def _with_64_bits():
    from backcast.networks.backend import require_jax, wide

    require_jax()
    with wide():
        yield


def at_zero(model, seen):
    """A linear network of a model, all of whose parameters are 0, that sees these states."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import ModelNet
    from backcast.networks.modules import make

    seen = jnp.asarray(seen, jnp.float64)
    heads = {name: head._replace(zero=True) for name, head in model.heads().items()}
    function, params = make(bc.networks.linear(), jax.random.key(0), seen.shape[1:], heads, jnp.float64)
    return ModelNet(function, params, lambda states: seen[states])


def lesson_of(s, a, r, s2, ends=False, q=None):
    """One transition, and linear values with these weights (D, A)."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import Lesson
    from backcast.networks.modules import Head, make
    from backcast.values.neural import NeuralValues, Transitions, squared

    one = [jnp.array([each]) for each in (s, a, float(r), s2, ends, True)]
    q = jnp.zeros((2, 2)) if q is None else jnp.asarray(q, jnp.float64)
    function, _ = make(bc.networks.linear(), jax.random.key(0), (2,), {"q": Head(2)}, jnp.float64)
    params = {"body": {}, "heads": {"q": {"w": q}}}
    values = NeuralValues(function, squared, False)
    return Lesson(Transitions(*one), None, None, values, params, params, jnp.float64(0.5), jax.random.key(0))


def below(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def test_a_gaussian_mixture_loses_what_it_leaves_to_what_led_here():
    from backcast.models.neural.generative import GenerativeBackward

    model = GenerativeBackward((2,), 2, 3, 4)
    network = at_zero(model, [[1, 0], [0, 1]])
    # three components alike: squares 1 + 1 from what is seen, σ = 1 in two coordinates, one of two actions, reward 2
    expected = 0.5 * (1 + 1) + math.log(2 * math.pi) + math.log(2) + 0.5 * 2**2
    assert model.loss(network, lesson_of(0, 1, 2, 1)) == pytest.approx(expected)


def test_the_mass_of_a_gaussian_mixture_on_a_state_is_that_of_what_is_rounded_to_it():
    from backcast.models.neural.generative import GenerativeBackward

    model = GenerativeBackward((2,), 1, 1, 4)
    network = at_zero(model, [[1, 0], [0, 1]])
    probability, reward = jax.jit(lambda: model.table(network, np.ones(2), np.full(2, 0.9)))()
    near, far = below(0.5) - below(-0.5), below(1.5) - below(0.5)  # a coordinate is rounded to its own value or another
    np.testing.assert_allclose(probability, [[near**2, far**2], [far**2, near**2]], rtol=1e-9)
    assert np.array_equal(reward, np.zeros((2, 2)))


def test_the_mass_of_a_bernoulli_mixture_on_a_state_is_that_of_its_pixels():
    from backcast.models.neural.generative import GenerativeBackward

    model = GenerativeBackward((1, 1, 2), 2, 1, 4)
    seen = np.array([[1, 0], [0, 1], [0, 1]]).reshape(3, 1, 1, 2)  # the last two look the same, and share theirs
    network = at_zero(model, seen)
    probability, _ = jax.jit(lambda: model.table(network, np.ones(6), np.full(3, 0.9)))()
    np.testing.assert_allclose(probability, np.tile(np.repeat([0.25, 0.125, 0.125], 2) / 2, (3, 1)), rtol=1e-12)
    assert model.loss(network, lesson_of(0, 1, 0, 1)) == pytest.approx(3 * math.log(2))  # two pixels, an action


def test_what_a_generative_model_draws_has_the_shape_of_what_is_seen():
    from backcast.models.neural.generative import GenerativeBackward

    for shape in ((2,), (1, 1, 2)):
        model = GenerativeBackward(shape, 2, 2, 5)
        network = at_zero(model, np.eye(2).reshape(2, *shape))
        draw = functools.partial(model.before, network, np.arange(2), None)
        before = jax.jit(draw)(jax.random.key(1))
        assert before.seen.shape == (2, 5, *shape)
        assert before.a.shape == before.weight.shape == before.reward.shape == (2, 5)
        assert (before.weight == 1).all()
        assert set(np.unique(before.a)) <= {0, 1}
        drawn = np.asarray(before.seen)
        assert np.isin(drawn, [0, 1]).all() == (len(shape) == 3)


def test_an_imagined_observation_is_the_one_state_that_is_near_enough():
    import jax.numpy as jnp

    from backcast.models.neural import nearness

    seen = jnp.array([[0.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.5, 1.0]])
    assert nearness.tolerance(seen) == 0.25
    imagined = jnp.array([[0.2, 0.1], [0.3, 0.0], [0.5, 0.5], [0.6, 0.8]])
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0.5, 0.5]]  # the third is none, the last one of two
    np.testing.assert_array_equal(nearness.nearest(imagined, seen), expected)
    assert nearness.tolerance(jnp.ones((3, 2))) == 0.5


def test_the_loss_of_rewards_and_endings_beside_that_of_states():
    """Reward 3, where 0 is predicted; log-odds of −log 3 that state 1 goes on, so that it ends with probability ¾."""
    import jax.numpy as jnp

    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward
    from backcast.models.neural.softmax import SoftmaxBackward, SoftmaxForward

    goes_on, ends = lesson_of(0, 1, 3, 1), lesson_of(0, 1, 3, 1, ends=True)
    for backward in (ContrastiveBackward(2), SoftmaxBackward(2, 2)):
        assert backward.reward_loss(at_zero(backward, np.eye(2)), goes_on) == pytest.approx(0.5 * 3**2)
    for forward in (ContrastiveForward(2), SoftmaxForward(2, 2)):
        network = at_zero(forward, np.eye(2))
        network.params["heads"]["goes_on"]["w"] = jnp.array([[0.0, 0.0], [0.0, math.log(3)]])
        assert forward.reward_loss(network, goes_on) == pytest.approx(0.5 * 3**2 + math.log(4))
        assert forward.reward_loss(network, ends) == pytest.approx(0.5 * 3**2 + math.log(4 / 3))


def test_a_contrastive_model_loses_what_the_other_pairs_of_the_batch_take():
    """Of two pairs that look alike, each has probability ½: log 2 is lost, and nothing with rewards, which are 0."""
    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward

    lesson = lesson_of(0, 1, 0, 1)
    two = lesson._replace(batch=jax.tree.map(lambda each: each.repeat(2, axis=0), lesson.batch))
    for model, endings in ((ContrastiveBackward(2), 0.0), (ContrastiveForward(2), math.log(2))):
        assert model.loss(at_zero(model, np.eye(2)), two) == pytest.approx(math.log(2) + endings)


def test_a_contrastive_model_loses_half_of_the_squared_error_of_the_reward():
    """The pair of a single transition is certain; over two steps, it is tossed up whether the path is whole."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import Ways
    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveWays

    one_step = ContrastiveBackward(2)
    lesson = lesson_of(0, 1, 3, 1)
    assert one_step.loss(at_zero(one_step, np.eye(2)), lesson) == pytest.approx(0.5 * 3**2)
    ways, batch = ContrastiveWays(one_step, 2), lesson.batch
    path = Ways(batch.s, batch.a, batch.r, batch.s2, jnp.ones(1), jnp.ones(1))
    lost = ways.reward_loss(at_zero(ways, np.eye(2)), lesson._replace(ways=path))
    assert lost == pytest.approx(0.5 * 3**2 + math.log(2))
    two = Ways(*(jnp.concatenate([column, column]) for column in path))  # either may have led here
    lesson = lesson._replace(ways=two)
    network = at_zero(ways, np.eye(2))
    assert jax.jit(lambda: ways.loss(network, lesson))() == pytest.approx(0.5 * 3**2 + math.log(2) + math.log(2))


def test_a_forward_softmax_has_a_row_for_each_action():
    import jax.numpy as jnp

    from backcast.models.neural.softmax import SoftmaxForward

    model = SoftmaxForward(2, 2)
    network = at_zero(model, np.eye(2))
    network.params["heads"]["after"]["w"] = jnp.array([[0.0, 0.0, math.log(3), 0.0], [0.0] * 4])
    for action, odds in ((0, 2.0), (1, 4.0)):  # 1 / P(s' = 1 | s = 0, a)
        lesson = lesson_of(0, action, 0, 1)
        expected = model.reward_loss(network, lesson) + math.log(odds)
        assert model.loss(network, lesson) == pytest.approx(float(expected))


def test_a_contrastive_forward_model_bootstraps_from_the_states_remembered():
    """Two of them with equal logits; of these, only state 1 goes on."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import Remembered
    from backcast.models.neural.contrastive import ContrastiveForward

    model = ContrastiveForward(2)
    network = at_zero(model, np.eye(2))
    network.params["heads"]["reward"]["w"] = jnp.array([[5.0, 6.0], [0.0, 0.0]])
    network.params["heads"]["goes_on"]["w"] = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    pairs = Remembered(s=np.array([0, 0]), a=np.array([0, 1]), s2=np.array([1, 0]))
    targets = model.targets(network, np.array([0]), pairs, lambda seen: seen @ jnp.array([10.0, 100.0]), 0.5)
    np.testing.assert_allclose(targets, [[5 + 0.5 * 0.5 * 100, 6 + 0.5 * 0.5 * 100]])


def test_the_logits_of_a_contrastive_forward_model_are_divided_by_the_root_of_its_width():
    """Vectors (2, 0, 0, 0) of (0, 0) and (log 3, 0, 0, 0) of state 1: a logit of log 3, and all others are 0.

    Of the two transitions, 0 → 1 was then the likelier one from (0, 0), with ¾; from (1, 1) they are alike.
    """
    import jax.numpy as jnp

    from backcast.models.neural.contrastive import ContrastiveForward
    from backcast.values.neural import Transitions

    model = ContrastiveForward(2, 4)
    network = at_zero(model, np.eye(2))
    network.params["heads"]["earlier"]["w"] = jnp.zeros((2, 8)).at[0, 0].set(2.0)
    network.params["heads"]["later"]["w"] = jnp.zeros((2, 4)).at[1, 0].set(math.log(3))
    columns = [[0, 1], [0, 1], [0.0, 0.0], [1, 0], [False, False], [True, True]]
    batch = Transitions(*map(jnp.array, columns))
    lesson = lesson_of(0, 0, 0, 1)._replace(batch=batch)
    expected = model.reward_loss(network, lesson) + 0.5 * (math.log(4 / 3) + math.log(2))
    assert model.loss(network, lesson) == pytest.approx(float(expected))


def test_a_forward_softmax_bootstraps_from_states_of_which_nothing_is_known_in_prediction_only():
    """From 0 all states are alike; values 10 and 100, γ = ½. In control state 1 is known to go on.

    Rewards belong to pairs of states in prediction, to the later state in control.
    """
    import jax.numpy as jnp

    from backcast.models.neural.softmax import SoftmaxForward

    def best(seen):
        return seen @ jnp.array([10.0, 100.0])

    model = SoftmaxForward(2, 1)
    assert [model.heads()[name].outputs for name in ("after", "reward")] == [2, 2]
    network = at_zero(model, np.eye(2))
    network.params["heads"]["reward"]["w"] = jnp.array([[2.0, 4.0], [0.0, 0.0]])
    targets = model.targets(network, np.array([0]), None, best, 0.5)
    np.testing.assert_allclose(targets, [[0.5 * (2 + 0.5 * 10) + 0.5 * (4 + 0.5 * 100)]])
    model = SoftmaxForward(2, 2)
    assert [model.heads()[name].outputs for name in ("after", "reward")] == [4, 1]
    network = at_zero(model, np.eye(2))
    network.params["heads"]["reward"]["w"] = jnp.array([[2.0], [4.0]])
    network.params["heads"]["goes_on"]["w"] = jnp.array([[0.0, 0.0], [1.0, 0.0]])
    targets = model.targets(network, np.array([0]), None, best, 0.5)
    np.testing.assert_allclose(targets, [[0.5 * 2 + 0.5 * (4 + 0.5 * 100)] * 2])


def test_the_table_of_a_forward_model_says_which_states_end_an_episode():
    """State 0 is tossed up, 1 goes on and 2 ends. Of those remembered, 0 followed once and 2 three times."""
    import jax.numpy as jnp

    from backcast.models.neural.contrastive import ContrastiveForward
    from backcast.models.neural.softmax import SoftmaxForward

    times, going = np.array([1, 0, 3]), jnp.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    cases = (
        (ContrastiveForward(2), [0.25, 0, 0.75], [True, False, True]),  # what is not known to go on ends
        (SoftmaxForward(3, 2), [1 / 3, 1 / 3, 1 / 3], [False, False, True]),
    )
    for model, expected, ending in cases:
        network = at_zero(model, np.eye(3))
        network.params["heads"]["goes_on"]["w"] = going
        probability, _, ends = jax.jit(functools.partial(model.table, network))(times, np.full(3, 0.5))
        np.testing.assert_allclose(probability, np.broadcast_to(expected, (3, 2, 3)), rtol=1e-12)
        assert ends.tolist() == ending


def test_vectors_of_contrastive_models_have_32_numbers_unless_said():
    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward

    for model, width in ((ContrastiveBackward(2), 32), (ContrastiveForward(2), 32), (ContrastiveForward(2, 5), 5)):
        assert [model.heads()[name].outputs for name in ("later", "earlier")] == [width, 2 * width]


def test_a_forward_model_that_is_aware_of_the_planner_learns_rewards_as_well():
    """Reward 3, where 0 is predicted: an error of 3 along ∇q(0, 1), which has length 1; an ending is tossed up."""
    from backcast.models.neural.objectives import planner_aware_forward
    from backcast.models.neural.softmax import SoftmaxForward

    model = SoftmaxForward(2, 2)
    lost = planner_aware_forward(model, at_zero(model, np.eye(2)), lesson_of(0, 1, 3, 1))
    assert lost == pytest.approx(0.5 * 3**2 + 0.5 * 3**2 + math.log(2))


def test_components_of_a_mixture_weigh_as_much_as_they_should():
    """Before state 0 the first of two components has ¾ of the weight and takes action 0 four times out of five.

    The other one takes either; before state 1 both are alike. All are around what is seen.
    """
    import jax.numpy as jnp

    from backcast.models.neural.generative import GenerativeBackward

    model = GenerativeBackward((2,), 2, 2, 4)
    network = at_zero(model, np.eye(2))
    network.params["heads"]["weight"]["w"] = jnp.array([[math.log(3), 0.0], [0.0, 0.0]])
    network.params["heads"]["action"]["w"] = jnp.array([[math.log(4), 0.0, 0.0, 0.0], [0.0] * 4])
    probability, _ = jax.jit(functools.partial(model.table, network))(np.ones(4), np.full(2, 0.9))
    near, far = below(0.5) - below(-0.5), below(1.5) - below(0.5)
    first = 0.75 * 0.8 + 0.25 * 0.5
    expected = [[near**2 * first, near**2 * (1 - first), far**2 * first, far**2 * (1 - first)]]
    expected.append([far**2 / 2, far**2 / 2, near**2 / 2, near**2 / 2])
    np.testing.assert_allclose(probability, expected, rtol=1e-9)


def test_planning_with_pairs_that_are_drawn_corrects_each_as_often_as_it_is_drawn():
    """(0, 1) is the only pair in memory. Before 1, worth 4, it earns 2: 2 + ½ · 4 − 1 is off by 3, three times."""
    import jax.numpy as jnp

    from backcast.models.neural.contract import Remembered
    from backcast.models.neural.contrastive import ContrastiveBackward
    from backcast.planners.neural import Imagined, NeuralBackwardPlanner

    model, lesson = ContrastiveBackward(2), lesson_of(0, 1, 2, 1, q=[[0.0, 1.0], [4.0, 0.0]])
    network = at_zero(model, np.eye(2))
    network.params["heads"]["reward"]["w"] = jnp.array([[0.0], [2.0]])
    planner = NeuralBackwardPlanner(lesson.values, network.function, model, True, False, 3)
    (turn,) = planner.turns(lesson.batch)
    pairs = Remembered(s=np.array([0]), a=np.array([1]), s2=np.array([1]))
    known = Imagined(
        lesson.target, network.params, network.eyes, pairs, lesson.batch, lesson.discount, jax.random.key(0)
    )
    lost, (made, largest) = planner.loss(lesson.params, turn, 0, known)
    assert (float(lost), int(made), float(largest)) == (pytest.approx(3 * 0.5 * 3**2), 3, 1.0)


def test_of_a_table_what_is_impossible_does_not_follow():
    from backcast.models.neural.tables import TabledForward

    probability, reward = np.array([[[0.0, 0.25, 0.75]]]), np.array([[[1.0, 2.0, 3.0]]])
    known = TabledForward(probability, reward, np.array([True, False, True])).successors(0, 0)
    assert (known.keys.tolist(), known.probability.tolist(), known.reward.tolist()) == ([1, 2], [0.25, 0.75], [2, 3])
    assert known.ends.tolist() == [False, True]


@pytest.mark.parametrize(("carried", "expected"), [(None, [[7, 8]]), ([[0.5, 0]], [[4.5, 3]])])
def test_the_targets_of_predecessors_are_rewards_and_what_is_carried_of_the_value(carried, expected):
    """Over two steps with γ = ½, of a state with value 20."""
    from backcast.models.neural.contract import Before

    before = Before(None, None, None, np.array([[2.0, 3.0]]), None if carried is None else np.array(carried))
    np.testing.assert_array_equal(before.targets(np.array([20.0]), np.array([False]), 0.5, 2), expected)
    np.testing.assert_array_equal(before.targets(np.array([20.0]), np.array([True]), 0.5, 2), [[2, 3]])


def test_a_deterministic_model_bootstraps_from_what_it_predicts():
    import jax.numpy as jnp

    from backcast.models.neural.deterministic import DeterministicForward

    model = DeterministicForward((2,), 2)
    network = at_zero(model, [[1, 0], [0, 1]])
    # from (1, 0) it predicts (1, 0), and (0, 1) is seen; the reward is 2; whether it ends is tossed up
    loss = model.loss(network, lesson_of(0, 1, 2, 1))
    assert loss == pytest.approx(0.5 * (1 + 1) + 0.5 * 2**2 + math.log(2))
    assert model.loss(network, lesson_of(0, 1, 2, 0)) == pytest.approx(0.5 * 2**2 + math.log(2))  # (1, 0) is seen
    network.params["heads"]["move"]["w"] = jnp.array([[-1.0, 1.0, 0.0, 0.0], [0.0] * 4])  # action 0 moves (1, 0)
    network.params["heads"]["goes_on"]["w"] = jnp.array([[math.log(3), -math.log(3)], [0.0, 0.0]])
    network.params["heads"]["reward"]["w"] = jnp.array([[5.0, 6.0], [0.0, 0.0]])
    targets = model.targets(network, np.array([0]), None, lambda seen: seen @ jnp.array([10.0, 100.0]), 0.5)
    np.testing.assert_allclose(targets, [[5 + 0.5 * 0.75 * 100, 6 + 0.5 * 0.25 * 10]])
    probability, reward, ends = model.table(network, np.ones(2), np.full(2, 0.9))
    np.testing.assert_array_equal(probability[0], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(reward[0], [[5, 5], [6, 6]])
    np.testing.assert_array_equal(ends, [[False, True], [False, False]])


def test_an_abstract_model_learns_the_correction_and_planning_makes_it():
    import jax.numpy as jnp

    from backcast.models.neural.abstraction import NeuralCorrections
    from backcast.planners.neural import Imagined, NeuralBackwardPlanner, NeuralCorrector

    model = NeuralCorrections(4, 2, ahead=False)
    network = at_zero(model, [[1, 0], [0, 1]])
    lesson = lesson_of(0, 1, 2, 1, q=[[0.0, 1.0], [4.0, 0.0]])
    error = 2 + 0.5 * 4 - 1  # of (s, a) = (0, 1): the reward and half of max q(1, ·), less q(0, 1)
    assert model.loss(network, lesson) == pytest.approx(0.5 * error**2)
    gradient = jax.grad(lambda params: model.loss(network._replace(params=params), lesson))(network.params)
    expected = np.zeros((2, 4))
    expected[1, 1] = -error  # conditioned on s' = 1; of the weight of q(0, 1)
    np.testing.assert_allclose(gradient["heads"]["correction"]["w"], expected)
    learned = {"body": {}, "heads": {"correction": {"w": -jnp.asarray(expected)}}}
    usual = NeuralBackwardPlanner(lesson.values, network.function, None, True, False, 0)
    planner = NeuralCorrector(lesson.values, network.function, model, usual)
    (turn,) = planner.turns(lesson.batch)
    known = Imagined(lesson.target, learned, network.eyes, None, lesson.batch, lesson.discount, lesson.key)
    (_, (made, largest)), move = jax.value_and_grad(planner.loss, has_aux=True)(lesson.params, turn, 0, known)
    np.testing.assert_allclose(move["heads"]["q"]["w"], [[0, -error], [0, 0]])
    assert (int(made), float(largest)) == (1, 4.0)
    assert planner.stages() == 1
