"""What linear models are made of: products, rows in blocks, residuals."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import Setup
from backcast.models.linear.blocks import BLOCK, as_dense, empty_blocks, with_blocks
from backcast.models.linear.regression import dot
from backcast.models.linear.scaling import running_mean
from by_hand import follow, walk


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 15, 16, 17, 31])
def test_a_product_is_the_sum_of_all_terms(n):
    """The k-th term is 10 k²: each left out or taken twice would show."""
    x, y = np.arange(1.0, n + 1), 10 * np.arange(1.0, n + 1)
    assert dot(x, y) == 10 * n * (n + 1) * (2 * n + 1) / 6


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
