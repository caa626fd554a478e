"""What linear models are made of: rows in blocks, residuals, least squares."""

import numpy as np
import pytest
from scipy import sparse

import backcast as bc
from backcast.agents.setup import Setup
from backcast.models.linear.least_squares import forward_least_squares
from backcast.models.linear.regression import regression, with_room_for
from backcast.models.linear.root import empty_root, find_gain, rotate
from backcast.models.linear.scaling import running_mean
from backcast.models.linear.sparse_rows import BLOCK, as_dense, empty_blocks, with_blocks
from backcast.values.linear import features_of
from by_hand import follow, walk

pytestmark = pytest.mark.interpreted


def test_rows_grow_block_by_block_from_one_pool():
    rows = empty_blocks(np.array([2 * BLOCK + 1, 0, BLOCK]))
    assert len(rows.link) == 4
    expected = np.zeros((3, 40))
    for k in range(2 * BLOCK + 1):
        rows.append(0, 39 - k, 1.0 + k)
        expected[0, 39 - k] = 1.0 + k
        if k < BLOCK:
            rows.append(2, 2 * k, -1.0 - k)
            expected[2, 2 * k] = -1.0 - k
    np.testing.assert_array_equal(as_dense(rows, 40), expected)
    assert rows.taken[0] == 4
    with pytest.raises(IndexError, match="more room than was foreseen"):
        rows.append(1, 0, 1.0)
    more = with_blocks(rows, 1)
    assert (len(more.link), len(more.key), len(more.weight)) == (8, 8 * BLOCK, 8 * BLOCK)
    more.append(1, 0, 5.0)
    expected[1, 0] = 5.0
    np.testing.assert_array_equal(as_dense(more, 40), expected)
    assert with_blocks(more, 3) is more


def test_models_that_may_need_too_much_room_are_refused():
    with pytest.raises(bc.InputError, match="the model may need 268,435,464 numbers, more than 268,435,456"):
        empty_blocks(np.array([2**28 + 1]))
    with pytest.raises(bc.InputError, match="the model may need 268,435,464 numbers, more than 268,435,456"):
        with_blocks(empty_blocks(np.array([8])), 2**25)


def test_room_is_made_for_what_the_features_of_a_state_may_still_learn():
    """State 1 has feature 2 alone. Ten outputs need two blocks, and none are needed once all have been observed."""
    inputs = features_of(sparse.csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    fit = regression(inputs, 3, 10, np.zeros(3, dtype=np.int64), 1)
    fit = with_room_for(fit, [1])
    assert len(fit.rows.link) == 2
    fit.prepare(1, 0)
    for key in range(10):
        fit.subtract(key, 1.0 + key)
    fit.adjust(1, 0, 1.0)
    assert fit.rows.used.tolist() == [0, 0, 10]
    assert len(with_room_for(fit, [1]).rows.link) == 2
    assert len(with_room_for(fit, [0, 1]).rows.link) == 2 + 4


def test_a_running_mean_is_a_mean_of_all_and_later_of_the_last():
    scale = np.zeros(2)
    assert running_mean(scale, 0.0) == np.inf  # the unit of rewards is not known yet
    assert [running_mean(scale, size) for size in (4.0, 5.0)] == [2.0, 3.0]
    scale[:] = 3.0, 999.0
    assert running_mean(scale, 13.0) == pytest.approx(3.0 + 0.01 * 10.0)


@pytest.mark.parametrize("n_actions", [1, 2])
def test_residuals_are_what_features_differ_from_their_mean(n_actions):
    """The first step (1, last action) → 0 finds φ(1, a) less a mean of 0; the second, less what was learned: half."""
    agent = bc.agent("backward", features=np.eye(3), model="gaussian", buffer=2)
    steps = [(1, n_actions - 1, 0.0, 0, False, True)] * 2
    parts, _ = walk(agent, 3, n_actions, 0.5, steps, rates=(0.5, 0.5, 0.5, 0.0))
    width, key = parts.values.n_features, (n_actions - 1) * parts.values.n_features + 1
    expected = np.zeros((2, n_actions * width))
    expected[:, key] = 1.0, 0.5
    np.testing.assert_allclose(parts.model.residuals, expected)
    assert parts.model.seen[0] == 2


@pytest.mark.parametrize("n_actions", [1, 2])
def test_without_residuals_drawn_features_are_their_mean(n_actions):
    """Then planning with a drawn predecessor is the naive update. (No state ends, so that no feature stands apart.)"""
    features = np.array([[1.0, 0.0, 2.0], [0.5, 1.0, 0.0], [0.0, 1.0, 1.0]])
    steps = [(0, 0, 1.0, 1, False, True), (1, n_actions - 1, 2.0, 0, False, False), (0, 0, -1.0, 0, False, False)]
    everywhere = np.full((3, n_actions, 3), 1 / 3)
    world = bc.worlds.from_mdp(bc.FiniteMDP(everywhere, np.zeros((3, n_actions)), 0.5, [1, 0, 0]))
    found = []
    for model in ("gaussian", "naive"):
        agent = bc.agent("backward", features=features, model=model, learn=False)
        parts = agent.build(Setup(3, n_actions, 0.5, world))
        follow(parts, steps * 2, (0.5, 0.5, 0.0, 0.0))
        if model == "gaussian":
            parts.model.seen[0] = 0
        parts.values.w[:] = np.arange(1.0, parts.values.w.size + 1)
        assert parts.planner.how.correct(parts.model, parts.values, 0, 0.5, 0.5, 0.25) == 1
        found.append(parts.values.w.copy())
    np.testing.assert_allclose(*found, rtol=1e-14)
    assert (found[0] != np.arange(1.0, found[0].size + 1)).any()


def triangular_root(n=12, d=9):
    """The root of Σ z zᵀ after n random inputs, of which the last one is the newest; the inputs; and Σ z zᵀ."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    root = empty_root(features_of(sparse.csr_array(Z)), d, 1, 0.1)
    for s in range(n):
        rotate(root, s, 0)
    return root, Z, 0.1 * np.eye(d) + Z.T @ Z


def test_rotations_leave_half_of_the_solution():
    """Of the input that was observed last, Rᵀh = z need not be solved; of all others it is."""
    root, Z, squares = triangular_root()
    R = root.triangle[0]
    np.testing.assert_allclose(R.T @ R, squares, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(R.T @ root.half[0], Z[-1], rtol=1e-12, atol=1e-12)
    for s, z in enumerate(Z):
        find_gain(root, s, 0)
        np.testing.assert_allclose(root.gain, np.linalg.solve(squares, z), rtol=1e-11, atol=1e-12)


def test_half_of_the_solution_is_forgotten_with_its_state():
    root, Z, squares = triangular_root()
    last = len(Z) - 1
    root.inputs.size[root.inputs.offset[last] :] *= 2  # its number is given to a state with other features
    root.forget_states(np.array([3]), 1)
    find_gain(root, last, 0)
    np.testing.assert_allclose(root.gain, np.linalg.solve(squares, Z[-1]), rtol=1e-11, atol=1e-12)
    root.forget_states(np.array([last, 3]), 1)
    find_gain(root, last, 0)
    np.testing.assert_allclose(root.gain, 2 * np.linalg.solve(squares, Z[-1]), rtol=1e-11, atol=1e-12)


def test_forward_least_squares_see_weights_as_they_are():
    """Whoever changes them: E[R] + γ max_a' E[x']ᵀw_a', as the model's own estimates say."""
    features = np.array([[1.0, 0.0, 2.0], [0.5, 1.0, 0.0], [0.0, 1.0, 1.0]])
    steps = [(0, 0, 1.0, 1, False, True), (1, 1, 2.0, 0, False, False), (0, 1, -1.0, 2, False, False)]
    agent = bc.agent("forward", features=features, learn_by="rls", ridge=0.5)
    parts, _ = walk(agent, 3, 2, 0.5, steps * 2)
    model, values, rng = parts.model, parts.values, np.random.default_rng(0)
    for _ in range(3):
        values.w[:] = rng.standard_normal(values.w.size)
        for s in range(3):
            for a in range(2):
                ahead = values.w.reshape(2, -1) @ model.expected_features(s, a)
                reward = model.earned[a] @ model.root.gain
                assert model.expected_target(values, s, a, 0.5) == pytest.approx(reward + 0.5 * ahead.max(), rel=1e-12)


def test_moments_that_may_need_too_much_room_are_refused():
    few = features_of(sparse.csr_array(np.eye(2)))
    for actions, each in ((1, ""), (2, " for each of 2 actions")):
        with pytest.raises(
            bc.InputError, match=f"each of 50,000,001 features with each of 2{each}, at most 100,000,000"
        ):
            forward_least_squares(few, 2, 50_000_001, actions, 1.0)


def test_least_squares_have_a_row_for_each_input_of_each_action():
    """With a ridge of 1, an input of 1 that was observed once with 6 is worth 3, under its own action alone."""
    fit = regression(features_of(sparse.csr_array(np.eye(2))), 2, 3, np.full(4, 3), n_actions=2, ridge=1.0)
    for s, a, key, observed in ((0, 1, 2, 6.0), (1, 0, 1, 8.0)):
        fit.prepare(s, a)
        fit.subtract(key, observed)
        fit.adjust(s, a, 1.0)
    found = {}
    for s in range(2):
        for a in range(2):
            fit.estimate(s, a)
            found[s, a] = fit.y.tolist()
    assert found == {(0, 0): [0, 0, 0], (0, 1): [0, 0, 3], (1, 0): [0, 4, 0], (1, 1): [0, 0, 0]}


def test_of_predecessors_those_are_forgotten_whose_states_are():
    """(0, 1) and (1, 0) led to 2, each a half of the way that is left: of these, (1, 0) is forgotten with state 1."""
    steps = [(0, 1, 0.0, 2, False, True), (1, 0, 0.0, 2, False, True)]
    agent = bc.agent("backward", features=np.eye(4))
    parts, _ = walk(agent, 4, 2, 0.5, steps, rates=(0.5, 0.5, 0.5, 0.0))
    before = parts.model.weights_of(parts.values)[2]
    parts.model.forget_states(np.array([1]), 2)
    after = parts.model.weights_of(parts.values)[2]
    assert before[:4].tolist() == [0, 0.25, 0.5, 0]
    assert after[:4].tolist() == [0, 0.25, 0, 0]
