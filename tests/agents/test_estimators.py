"""Estimators: what the setting `model` names follows from one registry, which is open to others."""

from types import SimpleNamespace

import numpy as np
import pytest

import backcast as bc
from backcast.agents.settings import SETTINGS
from backcast.agents.setup import Setup
from backcast.core.interaction import Step
from backcast.extending import (
    ESTIMATORS,
    KINDS,
    AllPredecessors,
    BackwardPlanner,
    ForwardPlanner,
    empty_counts,
    empty_rows,
    how_to_plan,
    model_of_rows,
    register,
    register_estimator,
)
from backcast.worlds.envs import TableEnv
from commands import a_command_line  # noqa: F401  a fixture
from dirichlet import PlainDirichlet, register_dirichlet
from environments import PlainMaze

pytestmark = pytest.mark.interpreted

MAZE = bc.worlds.maze("S..\n.X.\n..G", slip=0.3)
CHAIN = bc.worlds.chain((4, 3, 2), seed=0)
RATES = np.ones(4)


def parts_of(agent, world):
    return agent.build(Setup(world.n_states, world.n_actions, world.discount, world))


@pytest.fixture
def dirichlet():
    return register_dirichlet()


# the registry


def test_these_are_backcasts_own():
    own = {name: each for name, each in ESTIMATORS.items() if each.is_builtin}
    linear = ["expectation", "naive", "likelihood", "planner-aware", "gaussian", "abstract", "meta"]
    of_networks = ["contrastive", "generative", "deterministic"]
    assert list(own) == ["softmax", "counts", "true", *linear, *of_networks]
    assert [name for name, each in own.items() if each.network] == of_networks
    assert [name for name, each in own.items() if each.linear] == linear
    assert [name for name, each in own.items() if each.true] == ["true"]
    assert [name for name, each in own.items() if each.leaves] == ["softmax"]
    assert all(each.summary.endswith(".") for each in own.values())


def test_the_choices_of_the_setting_are_those_registered(dirichlet):
    assert SETTINGS["model"].allowed.endswith('"deterministic" or "dirichlet"')
    assert KINDS["backward"].table["model"].allowed == SETTINGS["model"].allowed
    assert bc.agent("backward", model="dirichlet").name == "backward,model=dirichlet"
    with pytest.raises(bc.InputError, match=r"one of softmax, counts, .*, dirichlet; did you mean 'dirichlet'"):
        bc.agent("forward", model="dirichlt")


def test_lists_show_it(dirichlet, cli):
    assert "  dirichlet                     Counts with a Dirichlet prior: each outcome was" in cli("list")[1]
    assert '"deterministic" or "dirichlet"' in cli("list", "backward")[1]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("counts", "model: 'counts' is one of Backcast's own; choose another name"),
        ("a,b", "model: 'a,b' given, expected small letters, digits and '-'"),
        (3, "model: 3 given, expected small letters"),
    ],
)
def test_names_are_checked(name, sentence):
    with pytest.raises(bc.InputError, match=sentence):
        register_estimator(name)(lambda setup, agent, forward: None)


# an estimator of somebody else's


def test_rows_are_those_worked_out_by_hand(dirichlet):
    """Two outcomes of four, seen twice and once, prior 1: (2 + 1) / 7, (1 + 1) / 7 and 1 / 7 for each of the others."""
    rows = dirichlet["dirichlet_rows"](np.array([4]), 4, 1.0)
    assert [rows.share[0], rows.unobserved(0)] == [0.25, 4]
    places = [rows.observe(0, key, 0.5, 1.0) for key in (3, 1, 3)]
    assert [rows.rate(place, 0.5, 1.0) for place in places] == [0.5, 1.0, 0.5]
    np.testing.assert_allclose(rows.weight[:2] * rows.share[0], [3 / 7, 2 / 7])
    np.testing.assert_allclose([rows.share[0], rows.unobserved(0)], [1 / 7, 2])
    rows.forget(0, 0.5)  # counts of 1 and 1/2
    np.testing.assert_allclose(rows.weight[:2] * rows.share[0], [2 / 5.5, 1.5 / 5.5])
    half = dirichlet["dirichlet_rows"](np.array([4]), 4, 0.5)
    half.observe(0, 2, 1.0, 1.0)
    np.testing.assert_allclose([half.weight[0] * half.share[0], half.share[0]], [1.5 / 3, 0.5 / 3])


@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize("world", [MAZE, CHAIN], ids=["control", "prediction"])
def test_it_learns_what_a_plain_twin_does(dirichlet, kind, world):
    n, pairs = world.n_states, world.n_states * world.n_actions
    forward = kind == "forward"
    parts = parts_of(bc.agent(kind, model="dirichlet"), world)
    twin = PlainDirichlet(*((pairs, n) if forward else (n, pairs)))
    rng = np.random.default_rng(0)
    s, first = int(rng.choice(n, p=world.mdp.start)), True
    for _ in range(200):
        a = int(rng.integers(world.n_actions))
        s2 = int(rng.choice(n, p=np.asarray(world.rows[[s * world.n_actions + a]].todense()).ravel()))
        r, ends = float(rng.normal()), bool(world.mdp.terminal[s2])
        if first:
            parts.model.restart(s, RATES)
        parts.model.learn(parts.values, Step(s, a, r, s2, ends, first), world.discount, RATES)
        pair = s * world.n_actions + a
        twin.observe(*((pair, s2) if forward else (s2, pair)), r)
        s, first = (int(rng.choice(n, p=world.mdp.start)), True) if ends else (s2, False)
    shown = parts.model.readable(parts.values)
    found = shown.transition.reshape(pairs, n) if forward else shown.joint.reshape(n, pairs)
    np.testing.assert_allclose(np.nan_to_num(found), twin.probability, atol=1e-12)
    reward = shown.reward.reshape(pairs, n) if forward else shown.reward
    seen = twin.counts > 0
    if forward:
        np.testing.assert_allclose(reward[seen], twin.rewards[seen], atol=1e-12)


@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"horizon": 2},
        {"lam": 0.5},
        {"sample": 3},
        {"top": 2},
        {"forget": 0.1},
        {"frame": "current", "learn": False},
    ],
    ids=str,
)
def test_it_is_planned_with_in_all_ways(dirichlet, kind, given):
    for world in (MAZE, CHAIN):
        agent = bc.agent(kind, model="dirichlet", alpha=0.5, **given)
        compiled = bc.run(world, agent, 6, [3], max_steps=30)
        stepwise = bc.train(TableEnv(world), agent, 6, 3, max_steps=30)
        np.testing.assert_array_equal(compiled.values, stepwise.values)
        assert compiled.updates.planning.sum() > 0


@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_rows_grow_where_the_graph_is_not_known(dirichlet, kind):
    agent = bc.agent(kind, model="dirichlet", alpha=0.5)
    blind, knowing = (
        bc.train(PlainMaze(), agent, 2, 3, max_steps=60),
        bc.run(bc.worlds.maze(), agent, 2, [3], max_steps=60),
    )
    np.testing.assert_array_equal(blind.values, knowing.values)


def test_a_large_prior_is_a_model_that_knows_nothing_and_a_small_one_counts(dirichlet):
    """With β → 0 rows are those of counts, with β → ∞ all outcomes are equally likely."""
    for prior, limit in ((1e-9, "counts"), (1e9, None)):

        @register_estimator(f"prior-{limit or 'large'}", leaves=True)
        def build(setup, agent, forward, prior=prior):
            """Counts with another prior."""
            return model_of_rows(
                setup, agent, forward, lambda room, width: dirichlet["dirichlet_rows"](room, width, prior)
            )

    few = bc.run(CHAIN, bc.agent("backward", model="prior-counts"), 8, 1).models[0].joint
    counted = bc.run(CHAIN, bc.agent("backward", model="counts"), 8, 1).models[0].joint
    told = ~np.isnan(counted).any(axis=(1, 2)) & (counted.sum(axis=(1, 2)) > 0.5)
    inner = told & (np.asarray(CHAIN.mdp.start) == 0)  # counts know of restarts
    np.testing.assert_allclose(few[inner], counted[inner], atol=1e-6)
    many = bc.run(CHAIN, bc.agent("backward", model="prior-large"), 8, 1).models[0].joint
    np.testing.assert_allclose(many[inner], 1 / CHAIN.n_states, atol=1e-6)


# what it cannot be combined with follows from what it says of itself


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        ("backward", {"conditioned": True}, "conditioned: 'dirichlet' for each action gives unobserved pairs"),
        (
            "backward",
            {"option": bc.Option(0.5, 0.5)},
            "option: with a .* 'dirichlet' cannot represent 'none'",
        ),
        ("both", {}, "model: backward planning with 'dirichlet' changes all values"),
        ("backward", {"features": "onehot"}, "model: 'dirichlet' gives some probability .* table of values"),
        ("forward", {"features": "onehot"}, "model: 'dirichlet' gives some probability to all states"),
        ("backward", {"schedule": "average"}, "schedule: 'average' counts .* backward step of 'dirichlet' moves all"),
        ("backward", {"lam": 0.5, "lam_by": "td"}, "lam_by: 'td' does not use 'dirichlet', because it moves"),
        ("backward", {"ridge": 1.0}, "ridge: only for models of features"),
    ],
)
def test_what_leaves_something_to_all_states_is_refused_where_that_cannot_be(dirichlet, kind, given, sentence):
    with pytest.raises(bc.InputError, match=sentence):
        bc.agent(kind, model="dirichlet", **given)


def register_plain(name, **more):
    """Counts by another name."""

    @register_estimator(name, **more)
    def build(setup, agent, forward):
        """Counts by another name."""
        return model_of_rows(setup, agent, forward, lambda room, width: empty_counts(room))


@pytest.mark.parametrize("kind", ["forward", "backward"])
@pytest.mark.parametrize(
    "given", [{}, {"horizon": 3}, {"features": "onehot"}, {"schedule": "average"}, {"forget": 0.2}]
)
def test_counts_by_another_name_are_counts(kind, given):
    register_plain("mine")
    for world in (MAZE, CHAIN):
        runs = [bc.run(world, bc.agent(kind, model=name, alpha=0.5, **given), 5, 2) for name in ("mine", "counts")]
        np.testing.assert_array_equal(runs[0].values, runs[1].values)


def test_it_works_in_both_directions_at_once_where_nothing_is_left():
    register_plain("mine")
    runs = [bc.run(MAZE, bc.agent("both", model=name, alpha=0.5), 5, 2) for name in ("mine", "counts")]
    np.testing.assert_array_equal(runs[0].values, runs[1].values)


def test_a_direction_that_it_does_not_look_is_refused_with_its_reason():
    register_plain("backwards", not_forward="it knows what led here, not what follows")
    with pytest.raises(bc.InputError, match="model: 'backwards' does not look forward: it knows what led here, not"):
        bc.agent("forward", model="backwards")
    with pytest.raises(bc.InputError, match="model: 'backwards' does not look forward: it knows"):
        bc.agent("both", model="backwards")
    assert bc.agent("backward", model="backwards").get("model") == "backwards"
    register_plain("forwards", not_backward="it only looks ahead")
    with pytest.raises(bc.InputError, match="model: 'forwards' does not look backward: it only looks ahead"):
        bc.agent("backward", model="forwards")


def test_averages_that_it_cannot_have_are_refused_with_its_reason():
    register_plain("mine", not_averaged="its steps are no means")
    with pytest.raises(bc.InputError, match="schedule: 'average' is not for model='mine': its steps are no means"):
        bc.agent("backward", model="mine", schedule="average")


def test_what_it_says_of_itself_is_compared_with_its_rows():
    @register_estimator("dishonest")
    def build(setup, agent, forward):
        """Says that nothing is left, but is a softmax."""
        return model_of_rows(setup, agent, forward, lambda room, width: empty_rows(room, width))

    with pytest.raises(bc.InputError, match="model: 'dishonest' leaves something to outcomes never observed; register"):
        parts_of(bc.agent("backward", model="dishonest"), MAZE)


def test_rows_that_lack_something_are_named():
    bare = SimpleNamespace(width=0)

    @register_estimator("bare")
    def build(setup, agent, forward):
        """Nothing."""
        return model_of_rows(setup, agent, forward, lambda room, width: bare)

    with pytest.raises(
        bc.InputError, match="rows: SimpleNamespace has no observe, forget, with_room; see docs/extending"
    ):
        parts_of(bc.agent("backward", model="bare"), MAZE)


def test_states_that_have_no_numbers_are_refused():
    import gymnasium

    register_plain("mine")
    agent = bc.agent("backward", model="mine", features=bc.features.tiles())
    with pytest.raises(bc.InputError, match="has a model of numbered states"):
        bc.train(gymnasium.make("CartPole-v1"), agent, 1, 0)


# models of other people's kinds, planned with by Backcast's planners


def add_kind(direction):
    """Counts, planned with by whatever suits the values."""

    @register("theirs", frame="current", settings=("features", "sample", "top", "depth"))
    def build(setup, agent):
        """Somebody's model."""
        forward = direction == "forward"
        model, how = model_of_rows(setup, agent, forward, lambda room, width: empty_counts(room))
        return model, (ForwardPlanner if forward else BackwardPlanner)(True, False, how)


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("given", [{}, {"sample": 3}], ids=str)
def test_it_is_planned_with_whether_values_are_a_table_or_linear(direction, given):
    add_kind(direction)
    for world in (MAZE, CHAIN):
        for features in ({}, {"features": "onehot"}):
            agents = [
                bc.agent("theirs", alpha=0.5, **features, **given),
                bc.agent(direction, frame="current", model="counts", alpha=0.5, **features, **given),
            ]
            runs = [bc.run(world, agent, 5, 2) for agent in agents]
            np.testing.assert_array_equal(runs[0].values, runs[1].values)


@pytest.mark.parametrize("given", [{"top": 2}, {"depth": 2}])
def test_what_linear_values_cannot_do_is_refused(given):
    add_kind("backward")
    with pytest.raises(
        bc.InputError, match=rf"{next(iter(given))}: with features all predecessors are corrected at once"
    ):
        parts_of(bc.agent("theirs", features="onehot", **given), MAZE)


def test_a_model_that_leaves_something_to_all_states_is_refused_with_features():
    @register("leaving", frame="current", settings=("features",))
    def build(setup, agent):
        """A softmax of somebody's."""
        model = SimpleNamespace(rows=empty_rows(setup.fan_in(), setup.n_states * setup.n_actions))
        return model, BackwardPlanner(True, False, how_to_plan(setup, agent, False, model))

    with pytest.raises(bc.InputError, match="features: the model leaves something to states never observed"):
        parts_of(bc.agent("leaving", features="onehot"), MAZE)
    assert parts_of(bc.agent("leaving"), MAZE)


def test_a_planner_of_tables_is_refused_with_features():
    @register("tabular", frame="current", settings=("features",))
    def build(setup, agent):
        """Takes features, but plans for tables."""
        model, _ = KINDS["backward"].build(setup, bc.agent("backward", model="counts"))
        return model, BackwardPlanner(True, False, AllPredecessors())

    with pytest.raises(
        bc.InputError, match="features: 'tabular' plans by AllPredecessors, which needs a table of values"
    ):
        bc.run(MAZE, bc.agent("tabular", features="onehot"), 1, 1)
