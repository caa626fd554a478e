"""Runs with the models that a network can compute besides the usual ones: counted, read, scored, the same by seed."""

import numpy as np
import pytest

import backcast as bc
from backcast.core.errors import InputError

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX

MAZE = bc.worlds.maze("S..\n.X.\n..G", discount=0.9)
SMALL = {"network": bc.networks.mlp(8), "batch": 8, "memory": 1500, "alpha": 0.01, "alpha_model": 0.01}
RANDOM = {**SMALL, "candidates": 8, "epsilon": 1.0, "epsilon_schedule": "constant"}
TIMES = 60 - 7  # updates in 60 steps, once the memory fills a batch
UNIFORM = np.full((9, 4), 0.25)


@pytest.mark.slow
def test_a_generative_model_imagines_states_that_do_not_exist():
    agent = bc.agent("backward", model="generative", components=2, sample=3, **SMALL)
    runs = bc.run(MAZE, agent, steps=60, seeds=2)
    assert np.array_equal(runs.updates.planning, [8 * 3 * TIMES] * 2)
    score = runs.models[0].score(bc.exact.backward(MAZE.mdp, UNIFORM))
    assert 0 < score.valid < 1
    assert score.tv > 0.5 * (1 - score.valid)
    alone = bc.run(MAZE, agent, steps=60, seeds=[1])
    assert np.array_equal(alone.values[0], runs.values[1])
    assert np.array_equal(alone.models[0].joint, runs.models[1].joint)


@pytest.mark.slow
def test_a_generative_model_of_images_is_a_mixture_of_pixels():
    agent = bc.agent("backward", model="generative", **SMALL)
    runs = bc.run(MAZE.view("pixels"), agent, steps=60, seeds=1)
    assert runs.updates.planning[0] == 8 * 4 * TIMES
    assert 0 < runs.models[0].score(bc.exact.backward(MAZE.mdp, UNIFORM)).valid < 1


@pytest.mark.slow
def test_a_deterministic_model_finds_what_follows_where_nothing_is_left_to_chance():
    agent = bc.agent("forward", model="deterministic", **{**RANDOM, "network": bc.networks.mlp(32)})
    runs = bc.run(MAZE, agent, steps=1500, seeds=1)
    assert runs.updates.planning[0] == 8 * 4 * (1500 - 7)
    inner = ~MAZE.mdp.terminal & MAZE.mdp.reachable
    truth = MAZE.mdp.transition.reshape(9, 4, 9)
    assert np.abs(runs.models[0].transition - truth)[inner].max(axis=2).mean() < 0.1
    with pytest.raises(InputError, match="ends: this model keeps discounts instead"):
        _ = runs.models[0].ends


@pytest.mark.slow
def test_an_abstract_model_has_corrections_alone():
    runs = bc.run(MAZE, bc.agent("backward", model="abstract", **SMALL), steps=60, seeds=1)
    assert runs.updates.planning[0] == 8 * TIMES
    assert runs.models[0].correction.shape == (9, runs.weights.shape[1])
    assert np.abs(runs.models[0].correction).max() > 0


@pytest.mark.slow
def test_a_model_of_two_steps_is_that_of_the_exact_theory():
    agent = bc.agent("backward", horizon=2, **{**RANDOM, "network": bc.networks.mlp(32)})
    runs = bc.run(MAZE, agent, steps=1500, seeds=1)
    assert runs.updates.planning[0] == 8 * 16 * (1500 - 7)
    exact = [bc.exact.n_step(MAZE.mdp, UNIFORM, n) for n in (1, 2)]
    one, two = (runs.models[0].score(each) for each in exact)
    assert two.tv < min(0.2, one.tv)
    assert two.kl < one.kl
    assert two.valid == pytest.approx(1)
    goal = int(np.flatnonzero(MAZE.mdp.terminal)[0])
    assert np.array_equal(runs.models[0].discounted[goal], np.zeros(9))
    with pytest.raises(InputError, match=r"exact: TimeExtended given, expected backcast.exact.backward\(mdp, policy\)"):
        runs.models[0].score(bc.exact.n_step(MAZE.mdp, UNIFORM, 2, "forward"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["backward", "forward"])
def test_a_planner_aware_model_is_another_one(kind):
    agents = [bc.agent(kind, objective=each, **RANDOM) for each in ("planner-aware", "likelihood")]
    aware, likely = (bc.run(MAZE, agent, steps=60, seeds=1) for agent in agents)
    assert aware.updates.planning[0] == likely.updates.planning[0] > 0
    arrays = [runs.models[0].joint if kind == "backward" else runs.models[0].transition for runs in (aware, likely)]
    assert np.isfinite(arrays[0]).all()
    assert not np.allclose(*arrays, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["backward", "forward"])
def test_an_abstract_model_by_a_linear_network_is_that_of_linear_values(kind):
    chain, rates = bc.worlds.chain((6, 4, 3), seed=0), {"alpha": 0.5, "alpha_model": 0.7, "alpha_plan": 0.3}
    table = {"network": bc.networks.linear(), "optimiser": "sgd", "memory": 0, "precision": "float64"}
    ours = bc.run(chain, bc.agent(kind, model="abstract", **rates, **table), 200, [3])
    theirs = bc.run(chain, bc.agent(kind, model="abstract", features=np.eye(13), **rates), 200, [3])
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-12)
    assert np.array_equal(ours.updates.by_episode, theirs.updates.by_episode)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"model": "generative"},
        {"model": "abstract"},
        {"objective": "planner-aware"},
        {"horizon": 3},
        {"model": "generative", "memory": 0},
        {"model": "softmax", "objective": "planner-aware", "memory": 0},
    ],
    ids=str,
)
def test_an_encoder_may_be_shared(settings):
    online = {} if settings.get("memory") == 0 else SMALL
    agent = bc.agent("backward", encoder="shared", **{**online, "network": SMALL["network"], **settings})
    runs = bc.run(MAZE, agent, steps=60, seeds=1)
    assert np.isfinite(runs.values).all()
    assert runs.diverged[0] == 0


@pytest.mark.slow
def test_a_model_that_explodes_is_reported_as_everywhere_else():
    agent = bc.agent(
        "backward", model="abstract", network=bc.networks.linear(), optimiser="sgd", memory=0, schedule="constant",
        alpha=0.5, alpha_model=1.0,
    )  # fmt: skip
    runs = bc.run(bc.worlds.chain((4, 3, 2), seed=0).view(30.0 * np.eye(9)), agent, episodes=50, seeds=1)
    assert runs.diverged[0] > 0
    assert runs.measured("rmsve")[0, -1] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize(("view", "most"), [("onehot", 0.07), ("pixels", 0.10)])
def test_a_contrastive_model_is_near_the_exact_one(view, most):
    """As in docs/measurements/neural_models.py: the maze, 20,000 transitions that are all remembered."""
    world = bc.worlds.maze(slip=0.2)
    exact = bc.exact.backward(world.mdp, np.full((48, 4), 0.25))
    agent = bc.agent(
        "backward", network=bc.networks.mlp(64, 64), memory=20_000, candidates=1, alpha_model=0.003, epsilon=1.0,
        epsilon_schedule="constant",
    )  # fmt: skip
    runs = bc.run(world.view(view), agent, steps=20_000, seeds=10)
    values = np.random.default_rng(5).normal(size=(48, 4))
    tv, _, correction, valid = np.mean([model.score(exact, values) for model in runs.models], axis=0)
    assert tv <= most
    assert correction <= 0.12
    assert valid == pytest.approx(1, abs=1e-6)
