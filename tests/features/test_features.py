"""Features: numbers worked by hand, what holds for all of them, places, refusals."""

import json
import pickle
import subprocess
import sys
from collections import namedtuple
from dataclasses import asdict, replace
from fractions import Fraction
from math import floor

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import backcast as bc
from backcast import features

SQUARE = Box(0.0, 1.0, (2,), np.float64)


def every_kind(place):
    return [
        features.onehot(place),
        features.aggregate(place, groups=3),
        features.random_binary(place, d=9, active=4),
        features.tiles(place, tilings=4, bins=3),
        features.fourier(place, order=2),
        features.interpolate(place, knots=3),
    ]


def row(features_of_one, d):
    indices, weights = features_of_one
    assert (indices.dtype, weights.dtype) == (np.int64, np.float64)
    return np.bincount(indices, weights, minlength=d)


# numbers worked by hand


def test_onehot_is_the_identity():
    np.testing.assert_array_equal(features.onehot(3).matrix, np.eye(3))


def test_aggregation_of_seven_states_into_three_groups():
    expected = [[1, 0, 0]] * 3 + [[0, 1, 0]] * 2 + [[0, 0, 1]] * 2
    np.testing.assert_array_equal(features.aggregate(7, groups=3).matrix, expected)
    thousand = features.aggregate(1000)
    np.testing.assert_array_equal(thousand.matrix.sum(axis=0), np.full(10, 100))
    np.testing.assert_array_equal(thousand.of(250)[0], [2])


def test_tiles_of_five_states_in_a_row():
    # bins of 2 states' width: {0, 1}, {2, 3, 4}; displaced by half a bin: {0}, {1, 2}, {3, 4}
    expected = [[1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1]]
    np.testing.assert_array_equal(features.tiles(5, tilings=2, bins=2).matrix, expected)


def test_tiles_of_a_point_in_the_unit_square():
    # (0.3, 0.8) in halves is (0.6, 1.6); displaced by quarters of (0, 0), (1, 3), (2, 2), (3, 1) it lies in the tiles
    # (0, 1), (0, 2), (1, 2), (1, 1) of four grids of 3 × 3
    indices, weights = features.tiles(SQUARE, tilings=4, bins=2).of(np.array([0.3, 0.8]))
    np.testing.assert_array_equal(indices, [1, 9 + 2, 18 + 5, 27 + 4])
    np.testing.assert_array_equal(weights, np.ones(4))


def test_one_tiling_of_a_grid_with_a_tile_for_each_cell_is_onehot():
    np.testing.assert_array_equal(features.tiles(bc.worlds.maze(), tilings=1, bins=(6, 8)).matrix, np.eye(48))


def test_no_state_falls_over_the_edge_of_its_tile_by_rounding():
    matrix = features.tiles(49, tilings=1, bins=49, high=49).matrix  # 1/49 · 49 is not 1 in floating point
    np.testing.assert_array_equal(matrix, np.eye(49))


def test_fourier_features_of_three_states_and_of_the_corners_of_a_maze():
    np.testing.assert_allclose(features.fourier(3, order=2).matrix, [[1, 1, 1], [1, 0, -1], [1, -1, 1]], atol=1e-15)
    corners = features.fourier(bc.worlds.maze(), order=1).matrix[[0, 7, 40, 47]]  # c = 00, 01, 10, 11
    np.testing.assert_allclose(corners, [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], atol=1e-15)


def test_interpolation_gives_boyans_features():
    matrix = features.interpolate(13).matrix
    expected = [[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.75, 0, 0], [0, 1, 0, 0]]
    np.testing.assert_array_equal(matrix[:5], expected)
    np.testing.assert_array_equal(matrix[11:], [[0, 0, 0.25, 0.75], [0, 0, 0, 1]])
    with_an_end = features.interpolate(14, coordinates=[*range(13), 12])
    np.testing.assert_array_equal(with_an_end.matrix, matrix[[*range(13), 12]])


def test_random_features_are_drawn_by_the_seed():
    matrix = features.random_binary(200, d=12, active=4).matrix
    np.testing.assert_array_equal(matrix.sum(axis=1), np.full(200, 4))
    assert set(np.unique(matrix)) == {0, 1}
    assert len(np.unique(matrix, axis=0)) == 200  # 495 rows to choose from
    assert matrix.any(axis=0).all()
    assert (features.random_binary(200, d=12, active=4, seed=1).matrix != matrix).any()
    np.testing.assert_array_equal(features.random_binary(d=12, active=4).bind(200, seed=5).matrix, matrix)
    assert features.random_binary(5, d=3, active=2).matrix.shape == (5, 3)  # only 3 rows to choose from
    assert features.random_binary(20, d=50).width == 7


def test_every_seed_of_a_run_draws_its_own_random_features():
    family = features.random_binary(d=12, active=4, seed=None)
    np.testing.assert_array_equal(family.bind(9, seed=3).matrix, features.random_binary(9, 12, 4, seed=3).matrix)
    assert (family.bind(9, seed=3).matrix != family.bind(9, seed=4).matrix).any()


def test_given_features_dense_and_sparse():
    dense = np.array([[0.5, 0, 1], [0, 0, -2]])
    as_sparse = sparse.coo_matrix(([0.25, 0.25, 1, -2, 0], ([0, 0, 0, 1, 1], [0, 0, 2, 2, 1])), shape=(2, 3))
    unsorted = sparse.csr_array((np.array([1, 0.5, -2]), np.array([2, 0, 2]), np.array([0, 2, 3])), shape=(2, 3))
    for matrix in (dense, dense.tolist(), as_sparse, unsorted, sparse.csc_array(dense)):
        own = features.given(matrix)
        np.testing.assert_array_equal(own.matrix, dense)
        assert own == features.given(dense)
        assert own.sparse.nnz == 3
    dense[0, 0] = 7
    np.testing.assert_array_equal(own.matrix[0], [0.5, 0, 1])


# what holds for all


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), st.integers(1, 300))
def test_groups_are_contiguous_and_of_nearly_equal_size(n_states, groups):
    groups = min(n_states, groups)
    matrix = features.aggregate(n_states, groups=groups).matrix
    sizes = matrix.sum(axis=0)
    assert sizes.sum() == n_states
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(matrix.argmax(axis=1)) >= 0).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 9), st.integers(1, 7), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_tiles_are_those_of_displaced_grids(tilings, rows, columns, seed):
    points = np.random.default_rng(seed).integers(0, 60, size=(5, 2))
    coded = features.tiles(5, tilings, (rows, columns), low=0, high=60, coordinates=points)
    assert coded.width == tilings
    np.testing.assert_array_equal(coded.matrix.sum(axis=1), np.full(5, tilings))
    across = rows + (tilings > 1), columns + (tilings > 1)
    assert coded.n_features == tilings * across[0] * across[1]
    for s, point in enumerate(points):
        for t, tile in enumerate(coded.of(s)[0] - np.arange(tilings) * across[0] * across[1]):
            for bins, place, odd, j in zip((rows, columns), point, (1, 3), divmod(tile, across[1]), strict=True):
                inside = Fraction(min(int(place), 60) * bins, 60)
                inside = inside if inside < bins else inside - Fraction(1, 10**6)  # the upper bound is in the last bin
                assert j == floor(inside + Fraction(t * odd % tilings, tilings))


@settings(deadline=None, max_examples=30)
@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 5))
def test_neighbours_share_all_tiles_but_one(tilings, bins):
    side = bins * tilings
    cells = np.indices((side, side)).reshape(2, -1).T
    rows = features.tiles(len(cells), tilings, bins, low=0, high=side, coordinates=cells).matrix
    shared = rows @ rows.T
    number = np.arange(side * side).reshape(side, side)
    for first, second in ((number[1:], number[:-1]), (number[:, 1:], number[:, :-1])):
        np.testing.assert_array_equal(shared[first.ravel(), second.ravel()], tilings - 1)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 100), st.integers(2, 20))
def test_interpolation_sums_to_one_and_gives_the_coordinate_back(n_states, knots):
    coded = features.interpolate(n_states, knots=knots)
    assert coded.width <= 2
    assert (coded.matrix >= 0).all()
    np.testing.assert_allclose(coded.matrix.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(coded.matrix @ np.linspace(0, n_states - 1, knots), np.arange(n_states), atol=1e-12)


@pytest.mark.parametrize("place", [13, bc.worlds.maze(), bc.worlds.chain((5, 4, 3), seed=None)], ids=str)
def test_dense_sparse_and_single_rows_agree(place):
    for coded in every_kind(place):
        assert isinstance(coded.sparse, sparse.csr_array)
        np.testing.assert_array_equal(coded.sparse.toarray(), coded.matrix)
        assert coded.matrix.dtype == np.float64
        assert coded.matrix.shape[1] == coded.n_features
        assert coded.width == (coded.matrix != 0).sum(axis=1).max()
        for s in range(len(coded.matrix)):
            np.testing.assert_array_equal(row(coded.of(s), coded.n_features), coded.matrix[s])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_a_box_and_states_with_the_same_coordinates_have_the_same_features(dimensions, seed):
    rng = np.random.default_rng(seed)
    points, low, high = rng.normal(size=(6, dimensions)), rng.normal(size=dimensions) - 3, rng.normal(size=dimensions)
    high = np.maximum(high, low + 0.1)
    for make in (features.tiles, features.fourier):
        states = make(6, low=low, high=high, coordinates=points)
        box = make(Box(low, high, dtype=np.float64))
        replaced = make(Box(-100, 100, (dimensions,), np.float64), low=low.tolist(), high=high.tolist())
        for s, point in enumerate(points):
            for coded in (box, replaced):
                np.testing.assert_allclose(row(coded.of(point), coded.n_features), states.matrix[s], atol=1e-12)


def test_large_places_stay_sparse():
    coded = features.tiles(10**6, tilings=2, bins=1000)
    assert coded.sparse.shape == (10**6, 2002)
    assert coded.sparse.nnz == 2 * 10**6
    with pytest.raises(bc.InputError, match=r"tiles-2x1000: 2,002,000,000 entries of a matrix, expected at most 50,0"):
        _ = coded.matrix
    assert features.onehot(10**6).sparse.nnz == 10**6


# places


def test_a_place_may_be_given_in_many_ways():
    world = bc.worlds.maze("S.\n.G")
    mdp_world = replace(bc.worlds.from_mdp(world.mdp), layout=namedtuple("Layout", "a b")(1, 3))  # of no maze or chain
    lake = gymnasium.make("FrozenLake-v1")
    for place, n_states in ((4, 4), (np.int64(4), 4), (world, 4), (world.mdp, 4), (mdp_world, 4), (lake, 16)):
        assert features.onehot().bind(place).n_features == n_states
    assert features.onehot(Discrete(5, start=2)).n_features == 5
    numbered = features.interpolate(4, knots=2).matrix
    np.testing.assert_array_equal(features.interpolate(mdp_world, knots=2).matrix, numbered)
    np.testing.assert_array_equal(features.interpolate(Discrete(4), knots=2).matrix, numbered)
    in_rows = features.interpolate(world, knots=2).matrix
    np.testing.assert_array_equal(in_rows, [[1, 0], [1, 0], [0, 1], [0, 1]])
    env = gymnasium.make("backcast/Maze-v0", text="S.\n.G")
    np.testing.assert_array_equal(features.interpolate(env, knots=2).matrix, in_rows)


@pytest.mark.parametrize("seed", [0, None])
def test_coordinates_of_a_chain_are_level_and_place_within(seed):
    world = bc.worlds.chain((3, 2, 1), seed=seed)
    levels = features.interpolate(world, knots=3).matrix
    np.testing.assert_array_equal(levels, np.eye(3)[[0, 0, 0, 1, 1, 2]])
    coded = features.tiles(world, tilings=1, bins=(3, 2))
    np.testing.assert_array_equal(coded.matrix.argmax(axis=1), [0, 1, 1, 2, 3, 4])
    waves = features.fourier(world, order=1).matrix[:, 1]  # of the place within the level: 0, ½, 1; 0, 1; 0
    np.testing.assert_allclose(waves, [1, 0, -1, 1, -1, 1], atol=1e-15)


def test_tiles_of_mountain_car():
    coded = features.tiles(gymnasium.make("MountainCar-v0"))
    assert (coded.name, coded.n_features, coded.width) == ("tiles-8x8", 648, 8)
    # position −0.6 is 21 of 64 steps, velocity 0.01 is 36 of 64
    indices, _ = coded.of(np.array([-0.6, 0.01], dtype=np.float32))
    np.testing.assert_array_equal(indices, [22, 81 + 22, 162 + 23, 243 + 31, 324 + 32, 405 + 32, 486 + 31, 567 + 32])
    corner = coded.of(np.array([0.6, 0.07], dtype=np.float32))[0]
    np.testing.assert_array_equal(coded.of([99.0, 1e300])[0], corner)
    assert corner[0] == 7 * 9 + 7


def test_unbounded_velocities_of_cart_pole_are_squashed():
    coded = features.fourier(gymnasium.make("CartPole-v1"), order=1)
    assert coded.n_features == coded.width == 16
    middle = row(coded.of(np.zeros(4, dtype=np.float32)), 16)
    n_ones = np.array([c.bit_count() for c in range(16)])
    np.testing.assert_allclose(middle, np.cos(np.pi / 2 * n_ones), atol=1e-15)
    weights = coded.of([4.8, 1.0, -1.0, -3.0])[1]  # places in [0, 1]: 1, 0.75 for 1/2, 0 for below, 0.125 for −3/4
    np.testing.assert_allclose(weights[[8, 4, 2, 1]], np.cos(np.pi * np.array([1, 0.75, 0, 0.125])), atol=1e-7)
    assert features.tiles(gymnasium.make("CartPole-v1"), bins=4).n_features == 8 * 5**4


def test_a_bound_on_one_side_is_squashed_too():
    for high in (np.inf, np.finfo(np.float32).max):
        coded = features.interpolate(Box(0, high, (1,), np.float32), knots=3)
        np.testing.assert_array_equal(row(coded.of([1.0]), 3), [0, 1, 0])
        np.testing.assert_array_equal(row(coded.of([3.0]), 3), [0, 0.5, 0.5])
        np.testing.assert_array_equal(row(coded.of([-5.0]), 3), [1, 0, 0])


def test_the_upper_bound_of_a_box_is_the_last_knot():
    np.testing.assert_array_equal(row(features.interpolate(SQUARE, knots=3).of([1.0, 0.0]), 3), [0, 0, 1])


def test_coordinates_that_are_all_the_same_count_as_the_lower_bound():
    np.testing.assert_array_equal(features.fourier(1, order=2).matrix, [[1, 1, 1]])
    assert features.tiles(Box(2, 2, (1,)), tilings=1, bins=3).of([2.0])[0].tolist() == [0]


# what a map is


def test_names_and_texts():
    names = [coded.name for coded in every_kind(None)]
    assert names == ["onehot", "aggregate-3", "random_binary-9", "tiles-4x3", "fourier-2", "interpolate-3"]
    assert features.given(np.ones((5, 12))).name == "given-12"
    assert features.tiles(bins=(4, 6)).name == "tiles-8x4x6"
    assert repr(features.tiles()) == "FeatureMap(tiles, tilings=8, bins=8)"
    assert repr(features.onehot(3)) == "FeatureMap(onehot, 3 features of 3 states)"
    assert repr(features.fourier(SQUARE, 1)) == "FeatureMap(fourier, order=1, 4 features of 2 coordinates)"
    assert "features" in bc.__all__


def test_maps_are_equal_by_kind_and_settings_not_by_place():
    assert features.tiles(10) == features.tiles(20) == features.tiles(bins=8.0).recipe
    assert hash(features.tiles(10)) == hash(features.tiles())
    assert features.tiles(low=[0, 1]) == features.tiles(low=np.array([0.0, 1.0])) != features.tiles(low=0)
    assert features.fourier(2, coordinates=[[1, 2], [3, 4]]) == features.fourier(coordinates=[[1.0, 2], [3, 4]])
    assert features.given(np.eye(3)) != features.given(np.eye(4))
    assert features.given(np.eye(3)) != features.given(np.eye(3)[::-1])
    assert len({features.given(np.eye(3)), features.given(sparse.eye_array(3)), features.onehot(3)}) == 2


def test_a_recipe_is_plain_data():
    assert asdict(features.aggregate(20, groups=4).recipe) == {
        "kind": "aggregate",
        "settings": (("groups", 4),),
        "bound": None,
    }
    for coded in [*every_kind(20), features.given(np.eye(3)), features.tiles(2, coordinates=[3, 4], low=1, high=9)]:
        assert coded.recipe.bound is None
        assert coded.recipe == coded
        plain = json.dumps(asdict(coded.recipe), allow_nan=False)
        assert len(plain) < 400
        assert coded.kind in plain
    written = [json.dumps(asdict(features.given(matrix).recipe)) for matrix in (np.eye(3), 2 * np.eye(3))]
    assert written[0] != written[1]


def test_maps_travel_between_processes():
    for coded in [*every_kind(20), features.given(np.eye(20))]:
        assert coded.width > 0  # what is computed need not travel
        back = pickle.loads(pickle.dumps(coded))
        assert back == coded
        np.testing.assert_array_equal(back.matrix, coded.matrix)


def test_what_is_bound_can_be_bound_again():
    assert features.aggregate(20, groups=2).bind(30).matrix.shape == (30, 2)
    np.testing.assert_array_equal(features.given(np.eye(3)).recipe.bind(3).matrix, np.eye(3))


def test_features_from_plain_data():
    coded = features.tiles(9)
    assert features.as_features("features", coded) is coded
    assert features.as_features("features", {"kind": "aggregate", "groups": 4}) == features.aggregate(groups=4)
    assert features.as_features("features", {"kind": "tiles", "bins": [2, 3]}) == features.tiles(bins=(2, 3))
    assert features.as_features("features", {"kind": "given", "matrix": [[1, 2]]}) == features.given([[1, 2]])
    assert features.as_features("features", "onehot") == features.onehot()
    for matrix in ([[1, 0], [0, 1]], np.eye(2), sparse.eye_array(2)):
        assert features.as_features("features", matrix) == features.given(np.eye(2))


def test_importing_features_compiles_nothing():
    code = (
        "import sys; sys.argv = ['backcast']; import backcast.features; print({'numba', 'gymnasium'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


# refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: features.aggregate(groups=0), "groups: 0 given, expected a whole number, 1 or more"),
        (lambda: features.aggregate(5, groups=6), "groups: 6 given for 5 states; expected at most one for each"),
        (lambda: features.random_binary(d=5, active=6), "active: 6 given, expected at most 5"),
        (lambda: features.random_binary(seed=-1), "seed: -1 given, expected a whole number, 0 or more"),
        (lambda: features.interpolate(knots=1), "knots: 1 given, expected a whole number, 2 or more"),
        (lambda: features.fourier(order=0), "order: 0 given, expected a whole number, 1 or more"),
        (lambda: features.tiles(bins=[2, 0]), "bins: 0 given, expected a whole number, 1 or more"),
        (lambda: features.tiles(SQUARE, bins=(1, 2, 3)), "bins: 3 numbers given for 2 coordinates"),
        (lambda: features.tiles(SQUARE, low=(1, 2, 3)), "low: 3 numbers given for 2 coordinates; expected one for"),
        (lambda: features.tiles(SQUARE, high=(1, 0)), "low: 0 and high: 0 of coordinate 1; low must be below high"),
        (lambda: features.tiles(low=np.eye(2)), r"low: shape \(2, 2\) given, expected a number, or one for each"),
        (lambda: features.tiles(high=np.inf), "high: entry 0 is inf; every entry must be finite"),
        (lambda: features.tiles(Box(0, 1, (6,))), r"tiles: 4,251,528 features, expected at most 1,000,000; use fewer"),
        (lambda: features.fourier(Box(0, 1, (10,))), "fourier: 1,048,576 features, expected at most 1,000,000"),
        (lambda: features.fourier(10**6, order=99).matrix, "fourier-99: 100,000,000 features of all states, expected"),
        (lambda: features.fourier(4, coordinates=[1, 2]), "coordinates: 2 rows given for 4 states; expected one per"),
        (lambda: features.fourier(SQUARE, coordinates=[1, 2]), "coordinates: given for a Box space"),
        (lambda: features.fourier(coordinates=[np.nan, 2]), r"coordinates: entry \(0, 0\) is nan"),
        (lambda: features.onehot(0), "place: 0 given, expected a whole number, 1 or more"),
        (lambda: features.onehot("maze"), "place: str given, expected a number of states, a World, a FiniteMDP"),
        (lambda: features.onehot(Dict(a=Discrete(2))), "place: Dict given, expected a number of states"),
        (lambda: features.onehot().bind(None), "place: NoneType given, expected"),
        (lambda: features.onehot().bind(3, seed=-1), "seed: -1 given"),
        (lambda: features.aggregate(SQUARE), "aggregate: it needs numbered states, but a Box given; use tiles or"),
        (lambda: features.tiles().matrix, r"tiles-8x8: these features are of no world yet; give place=, or use bind"),
        (lambda: features.tiles(SQUARE).sparse, r"tiles-8x8: observations of a Box have no matrix; of\(observation\)"),
        (lambda: features.tiles(SQUARE).of([0.5]), "observation: 1 numbers given, expected the 2 coordinates"),
        (lambda: features.tiles(SQUARE).of([0.5, np.nan]), "observation: entry 1 is nan; every entry must be finite"),
        (lambda: features.onehot(3).of(3), "observation: 3 given, expected a state from 0 to 2"),
        (lambda: features.onehot(3).of(-1), "observation: -1 given, expected a whole number, 0 or more"),
        (lambda: features.given([1, 2]), r"matrix: shape \(2,\) given, expected \(S, d\), a row for each state"),
        (lambda: features.given(np.ones((2, 0))), r"matrix: shape \(2, 0\) given"),
        (lambda: features.given([["a"]]), "matrix: expected an array of numbers"),
        (lambda: features.given(sparse.eye_array(2) * 1j), "matrix: expected an array of numbers"),
        (lambda: features.given([[0, 1], [np.inf, 0]]), r"matrix: entry \(1, 0\) is inf; every entry must be finite"),
        (lambda: features.given(sparse.coo_array([[0, 0], [0, np.nan]])), r"matrix: entry \(1, 1\) is nan"),
        (lambda: features.given(np.eye(2)).bind(3), "matrix: 2 rows given for 3 states; expected one per state"),
        (lambda: features.as_features("features", [1, 2]), r"features: shape \(2,\) given"),
        (
            lambda: features.as_features("features", {"kind": "tile"}),
            "features: kind 'tile' given, expected one of onehot, aggregate, .*; did you mean 'tiles'",
        ),
        (lambda: features.as_features("features", {"groups": 3}), "features: kind None given, expected one of"),
        (
            lambda: features.as_features("features", {"kind": "aggregate", "group": 3}),
            "features: no setting 'group'; 'aggregate' takes groups; did you mean 'groups'",
        ),
        (
            lambda: features.as_features("features", {"kind": "onehot", "place": 3}),
            "features: no setting 'place'; 'onehot' takes no settings",
        ),
        (lambda: features.as_features("features", {"kind": "given"}), "features: kind 'given' without its matrix"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(bc.InputError, match=message):
        make()
