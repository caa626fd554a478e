"""schedule="average": means, special cases, features, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.extending import KINDS, NoModel, NoPlanner, register
from backcast.studies.statistics import paired_difference
from backcast.values.linear import features_of, zero_values
from backcast.values.step_sizes import step_sizes_of_features
from environments import PlainMaze
from random_worlds import cyclic_world

CHAIN, MAZE = bc.worlds.chain((6, 4, 3, 5), seed=2), bc.worlds.maze("..G.\n.X..\nS..X", 0.3, 0.5)


def lottery():
    """State 0 ends in one of two states, with reward 0 or 3: the value is the mean of what was won."""
    transition, reward = np.zeros((3, 1, 3)), np.zeros((3, 3))
    transition[0, 0, 1:], transition[1, 0, 1], transition[2, 0, 2] = (0.7, 0.3), 1, 1
    reward[0, 2] = 3.0
    return bc.worlds.from_mdp(bc.FiniteMDP(transition, reward, 0.9, [1, 0, 0], [False, True, True]))


def average(kind, **settings):
    return bc.agent(kind, schedule="average", **settings)


def same(one, other):
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one.steps, other.steps)
    np.testing.assert_array_equal(one.updates.total, other.updates.total)


# Means


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["td", "monte-carlo", "td-lambda", "expected-trace"])
def test_the_value_of_a_lottery_is_the_mean_of_what_was_won(kind):
    runs = bc.run(lottery(), average(kind), 50, 3)
    assert 0 < runs.reward.mean() < 3
    np.testing.assert_allclose(runs.values[:, 0].ravel(), runs.reward.mean(axis=1), rtol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("x", [[1.0], [0.5, 2.0, -1.0]], ids=["one feature", "three"])
def test_features_that_are_always_the_same_make_a_mean(x):
    features = np.array([x, [0.0] * len(x), [0.0] * len(x)])
    runs = bc.run(lottery(), average("td", features=features), 50, 3)
    np.testing.assert_allclose(runs.values[:, 0].ravel(), runs.reward.mean(axis=1), rtol=1e-12)


@pytest.mark.interpreted
def test_traces_of_lam_1_are_the_mean_of_returns_and_of_lam_0_td():
    traces, returns = (
        bc.run(CHAIN, average("td-lambda", lam=1.0), 100, 3),
        bc.run(CHAIN, average("monte-carlo"), 100, 3),
    )
    np.testing.assert_allclose(traces.values, returns.values, rtol=1e-12, atol=1e-12)
    for kind, model_free, world in (
        ("td-lambda", "td", cyclic_world(3)),
        ("q-lambda", "q", MAZE),
        ("expected-trace", "q", MAZE),
    ):
        same(bc.run(world, average(kind, lam=0), 20, 2), bc.run(world, average(model_free), 20, 2))


# Features


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [1.0, 3.0])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("q", {}),
        ("monte-carlo", {}),
        ("q-lambda", {}),
        ("expected-trace", {"lam": 0.5}),
        ("dyna", {}),
        ("dyna-plus", {}),
        ("replay", {}),
        ("prioritized-replay", {}),
        ("forward", {"model": "counts"}),
        ("forward", {"model": "counts", "sample": 2}),
        ("backward", {"model": "counts"}),
        ("backward", {"model": "counts", "conditioned": True}),
        ("backward", {"model": "counts", "sample": 2}),
        ("both", {}),
    ],
    ids=str,
)
def test_one_hot_features_of_any_size_are_a_table(kind, settings, size):
    table = bc.run(MAZE, average(kind, alpha=0.9, **settings), 8, 2)
    linear = bc.run(MAZE, average(kind, alpha=0.9, features=size * np.eye(MAZE.n_states), **settings), 8, 2)
    np.testing.assert_allclose(linear.values, table.values, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(linear.steps, table.steps)


@pytest.mark.interpreted
@settings(max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_no_update_of_features_overshoots_its_target(seed):
    """With α = 1 what is left of an error has the same sign and is no larger; the first update leaves nothing."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.6)
    values = zero_values(features_of(bc.features.given(matrix).bind(5, 0).sparse), 4, 4, 2)
    sizes, first = step_sizes_of_features(values), True
    for pair, weight in zip(rng.integers(10, size=20), rng.choice([0.1, 1.0, 2.0], size=20), strict=True):
        target, before = rng.normal(), values.get(pair // 2, pair % 2)
        values.move(int(pair), target, sizes.of(int(pair), weight, weight))
        left, error = target - values.get(pair // 2, pair % 2), target - before
        if not matrix[pair // 2].any():
            assert left == error
            continue
        assert -1e-12 <= left / error <= 1 + 1e-12
        assert not first or abs(left) < 1e-12
        first = False


@pytest.mark.interpreted
def test_features_that_are_padded_with_zeros_do_not_count():
    """As those of observations of a Box are: all have room for as many features."""
    features = features_of(bc.features.given(np.eye(2)).bind(2, 0).sparse)._replace(
        offset=np.array([0, 2, 4]), which=np.array([0, 1, 1, 0]), size=np.array([2.0, 0.0, 1.0, 0.0])
    )
    sizes = step_sizes_of_features(zero_values(features, 2, 2, 1))
    assert sizes.of(0, 1.0, 1.0) == 0.25
    assert sizes.n.tolist() == [1, 0]


# Where rows grow, and in what order


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("kind", "settings"),
    [("forward", {}), ("backward", {"model": "counts"}), ("backward", {"sample": 2}), ("q", {})],
    ids=str,
)
def test_where_the_graph_is_not_known_counters_follow(kind, settings):
    blind = bc.train(PlainMaze(), average(kind, **settings), 3, seed=4)
    knowing = bc.run(bc.worlds.maze(), average(kind, **settings), 3, [4])
    np.testing.assert_array_equal(blind.steps, knowing.steps)
    np.testing.assert_array_equal(blind.values, knowing.values)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["q", "q-lambda", "replay", "forward", "backward"])
def test_in_a_box_weights_keep_their_counters_when_observations_are_forgotten(kind):
    import gymnasium

    chosen = average(kind, features=bc.features.tiles(bins=4), memory=20, epsilon=1.0)
    runs = bc.train(gymnasium.make("CartPole-v1"), chosen, 3, 0)
    assert np.isfinite(runs.weights).all()
    assert 0 < np.abs(runs.weights).max() < 100


# What it is for


def test_at_equal_updates_in_a_channelling_chain_td_that_averages_is_better():
    """docs/agents.md has the numbers of the paper's chain."""
    world = bc.worlds.chain((50, 20, 5), seed=None)
    averaged = bc.run(world, average("td"), 1000, 20).rmsve.mean(axis=1)
    constant = bc.run(world, bc.agent("td", alpha=0.1, schedule="constant"), 1000, 20).rmsve.mean(axis=1)
    assert paired_difference(constant, averaged, seed=0).low > 0


# At the door


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("backward", {}, "schedule: 'average' .* all values by one map .*; use model='counts', or add sample or top"),
        ("backward", {"model": "softmax", "horizon": 2}, "a backward step of a softmax"),
        ("backward", {"depth": 2}, "a backward step of a softmax"),
        ("backward", {"lam": 0.5, "lam_by": "mc"}, "a backward step of a softmax"),
        (
            "backward",
            {"features": np.eye(2), "model": "naive"},
            "model='naive': its updates are along the features of no state",
        ),
        ("backward", {"features": np.eye(2), "model": "gaussian"}, "model='gaussian': its updates are along"),
        ("forward", {"features": np.eye(2), "model": "abstract"}, "model='abstract': its updates are along"),
        (
            "backward",
            {"features": np.eye(2), "model": "meta"},
            "model='meta': it is learned for one step size of planning",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_averaged_says_why(kind, settings, words):
    with pytest.raises(bc.InputError, match=words):
        average(kind, **settings)
    bc.agent(kind, schedule="constant", **settings)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "settings",
    [
        {"sample": 2},
        {"top": 2},
        {"model": "counts"},
        {"model": "true"},
        {"conditioned": True},
        {"lam": 0.5, "lam_by": "td"},
        {"option": bc.Option(1.0, 0.5)},
        {"features": np.eye(2)},
    ],
    ids=str,
)
def test_backward_planning_of_one_value_after_the_other_is_averaged(settings):
    assert average("backward", **settings).averages


@pytest.mark.interpreted
def test_kinds_of_others_say_whether_they_count():
    build = lambda setup, agent: (NoModel(), NoPlanner())  # noqa: E731
    build.__doc__ = "Learns."
    register("silent")(build)
    register("counting", averages=True)(build)
    try:
        with pytest.raises(
            bc.InputError, match=r"schedule: 'average' .* and 'silent' does not count them; use 'linear'"
        ):
            average("silent")
        np.testing.assert_array_equal(
            bc.run(CHAIN, average("counting"), 5, 1).values, bc.run(CHAIN, average("td"), 5, 1).values
        )
    finally:
        del KINDS["silent"], KINDS["counting"]


@pytest.mark.interpreted
def test_epsilon_has_a_schedule_of_its_own():
    def rates(**settings):
        return bc.agent("q", alpha=0.8, epsilon=0.4, **settings).rates(4)[:, [0, 3]]

    falls, stays = [1, 0.75, 0.5, 0.25], [1, 1, 1, 1]
    for schedule, of_alpha in (("linear", falls), ("constant", stays), ("average", stays)):
        usual = falls if schedule == "linear" else stays
        for own, of_epsilon in ((None, usual), ("linear", falls), ("constant", stays)):
            found = rates(schedule=schedule, epsilon_schedule=own)
            np.testing.assert_allclose(found, np.transpose([of_alpha, of_epsilon]) * [0.8, 0.4])
    listed = bc.agent("q", epsilon=[0.9, 0.1, 0.0], epsilon_schedule="linear", schedule="average").rates(3)
    np.testing.assert_allclose(listed[:, 3], [0.9, 0.1, 0.0])


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("schedule", "mean", "'linear', 'constant' or 'average'"),
        ("epsilon_schedule", "average", "'linear' or 'constant'"),
        ("epsilon_schedule", 3, "'linear' or 'constant'"),
    ],
)
def test_other_schedules_are_refused(name, given, allowed):
    with pytest.raises(bc.InputError, match=f"^{name}: {given!r} given, expected {allowed}"):
        bc.agent("q", **{name: given})
