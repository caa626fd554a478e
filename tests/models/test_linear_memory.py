"""Models of features: rows that grow from block to block, within the room that they were given."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import backcast as bc
from backcast.agents.setup import Setup
from backcast.models.linear.regression import estimates, regression
from backcast.models.linear.sparse_rows import BLOCK, SparseRows, as_dense, empty_blocks, with_blocks
from backcast.values.linear import features_of
from driving import drive
from linear_cases import MAZE, PLANNERS, kinds_of_features
from random_worlds import random_world

FEATURES = st.sampled_from(sorted(kinds_of_features(6)))


@pytest.mark.interpreted
def test_rows_grow_from_block_to_block():
    rows, expected = empty_blocks(np.array([20, 0, 9, 8])), np.zeros((4, 30))
    assert len(rows.link) == 3 + 0 + 2 + 1
    for k in range(20):  # the blocks of the rows are interleaved
        for row, most in enumerate((20, 0, 9, 8)):
            if k < most:
                rows.append(row, 29 - k, k + 0.5)
                expected[row, 29 - k] = k + 0.5
    np.testing.assert_array_equal(as_dense(rows, 30), expected)
    assert rows.used.tolist() == [20, 0, 9, 8]
    assert rows.taken[0] == len(rows.link)


@pytest.mark.interpreted
def test_more_blocks_keep_what_was_written():
    rows = empty_blocks(np.array([3, 3]))
    for k in range(3):
        rows.append(0, k, 1.0 + k)
    assert with_blocks(rows, 1) is rows
    larger = with_blocks(rows, 2)
    assert len(larger.link) - larger.taken[0] >= 2
    np.testing.assert_array_equal(as_dense(larger, 4), [[1, 2, 3, 0], [0, 0, 0, 0]])
    for k in range(3, 3 + BLOCK):
        larger.append(0, k, 1.0 + k)
    larger.append(1, 0, 7.0)
    np.testing.assert_array_equal(as_dense(larger, 12), [[*range(1, 12), 0], [7, *[0] * 11]])


@pytest.mark.interpreted
@pytest.mark.parametrize("ridge", [None, 0.5], ids=["lms", "rls"])
def test_a_regression_forgets_no_output_when_there_are_many(ridge):
    """Outputs that come one after the other, far more than a block holds."""
    Z = np.array([[1.0, 2.0], [1.0, -1.0]])
    fit = regression(features_of(sparse.csr_array(Z)), 2, 50, np.array([50, 50]), 1, ridge)
    dense, squares = np.zeros((2, 50)), (ridge or 0) * np.eye(2)
    for key in range(50):
        s = key % 2
        fit.prepare(s, 0)
        fit.subtract(key, 1.0 + key)
        fit.adjust(s, 0, 0.5)
        target = np.eye(50)[key] * (1.0 + key)
        if ridge is None:
            dense += 0.5 * np.outer(Z[s], target - Z[s] @ dense) / 5  # the largest ‖z‖²
        else:
            squares += np.outer(Z[s], Z[s])
            dense += np.outer(Z[s], target)
    expected = Z @ dense if ridge is None else Z @ np.linalg.solve(squares, dense)
    np.testing.assert_allclose(estimates(fit, 2), expected, rtol=1e-12, atol=1e-12)
    assert fit.rows.taken[0] <= len(fit.rows.link)


def test_least_squares_stay_exact_where_features_are_redundant():
    """Tiles sum to a constant, so that what led to a state sums to 1, except for the ridge.

    Kept as an inverse by the formula of Sherman and Morrison, the sums were off by 0.0006 after so many steps.
    """
    features = bc.features.tiles(tilings=4, bins=5)
    agent = bc.agent("backward", features=features, learn_by="rls", alpha=0.01)
    runs = bc.run(bc.worlds.random_walk(40, 3), agent, 1000, 1)
    assert runs.steps.sum() > 50_000
    np.testing.assert_allclose(runs.models[0].states.sum(axis=1), 1, atol=1e-6)


def pools(part):
    """All pools of blocks within a part."""
    if isinstance(part, SparseRows):
        return [part]
    return [pool for field in getattr(part, "_fields", ()) for pool in pools(getattr(part, field))]


def assert_within_room(agent, world, episodes, seed):
    """No row ever holds more than there is room for; there is more, so that what is too much does no harm here."""
    rooms = []

    def spacious(room):
        pool = with_blocks(empty_blocks(room), 1000 + 10 * len(room))
        rooms.append((pool.head, room))
        return pool

    with mock.patch("backcast.models.linear.regression.empty_blocks", spacious):
        parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world, seed))
    assert len(rooms) == len(pools(parts.model))
    drive(world, parts, agent.rates(episodes), 30, seed)
    for pool in pools(parts.model):
        room = next(room for head, room in rooms if head is pool.head)
        assert (pool.used <= room).all(), f"{agent.name} in {world.name}: {(pool.used - room).max()} beyond the room"
        assert pool.taken[0] == ((pool.used + BLOCK - 1) // BLOCK).sum()
        assert pool.taken[0] <= ((room + BLOCK - 1) // BLOCK).sum()


ALL_MODELS = [*PLANNERS] + [
    (kind, {"model": m}) for kind in ("forward", "backward") for m in ("likelihood", "abstract")
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        pytest.param(kind, model, marks=[pytest.mark.slow] if (kind, model) != ALL_MODELS[0] else [])
        for kind, model in ALL_MODELS
    ],
)
@settings(max_examples=30)
@given(
    place=st.sampled_from(["prediction", "control", "sparse", "maze", "chain"]),
    features=FEATURES,
    condition=st.none() | FEATURES,
    terminals=st.integers(0, 5),
    rls=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_no_row_outgrows_its_room(kind, model, place, features, condition, terminals, rls, seed):
    """Memory safety: kernels do not check indices."""
    world = {
        "prediction": lambda: random_world(seed, False, 20, terminals=terminals, density=0.2),
        "control": lambda: random_world(seed, True, 20, terminals=terminals, density=0.3),
        "sparse": lambda: random_world(seed, True, 20, terminals=terminals, density=0.02),
        "maze": lambda: MAZE,
        "chain": lambda: bc.worlds.chain((9, 7, 8, 3), seed=seed),
    }[place]()
    among = {**kinds_of_features(world.n_states, seed), None: None}
    by_squares = rls and model.get("model") not in ("likelihood", "abstract")
    agent = bc.agent(
        kind,
        features=among[features],
        model_features=among[condition],
        alpha=0.02,
        alpha_model=0.3,
        epsilon=1.0,
        schedule="constant",
        learn_by="rls" if by_squares else None,
        **model,
    )
    assert_within_room(agent, world, 60, seed)
