"""Runs of agents with a network: the same `Runs`, whatever the number of seeds and workers."""

import numpy as np
import pytest

import backcast as bc
from backcast.core.errors import InputError

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX

MAZE = bc.worlds.maze("S..\n.X.\n..G", discount=0.9)
CHAIN = bc.worlds.chain((4, 3, 2), seed=0)
SMALL = {"network": bc.networks.mlp(8), "batch": 8, "memory": 100, "alpha": 0.01}
PLANS = {**SMALL, "candidates": 8, "alpha_model": 0.01}
DQN = bc.agent("q", **SMALL)


def test_seeds_are_the_same_to_the_byte_whatever_their_number_and_the_workers():
    all_at_once = bc.run(MAZE, DQN, steps=120, seeds=4, workers=3)
    for seed in range(4):
        alone = bc.run(MAZE, DQN, steps=120, seeds=[seed], workers=1)
        episodes = alone.steps.shape[1]
        assert np.array_equal(alone.values[0], all_at_once.values[seed])
        assert np.array_equal(alone.steps[0], all_at_once.steps[seed, :episodes])
    assert not np.array_equal(all_at_once.values[0], all_at_once.values[1])


def test_runs_are_those_of_all_agents(tmp_path):
    runs = bc.run(MAZE, DQN, steps=120, seeds=2)
    assert np.array_equal(np.where(runs.steps >= 0, runs.steps, 0).sum(axis=1), [120, 120])
    assert runs.values.shape == (2, 9, 4)
    assert runs.policy().shape == (9, 4)
    assert np.array_equal(runs.updates.learning, [8 * (120 - 7)] * 2)  # once the memory fills a batch
    assert np.array_equal(runs.updates.planning, [0, 0])
    assert (runs.seconds > 0).all()
    assert (runs.diverged == 0).all()
    runs.save(tmp_path / "runs.npz")
    loaded = bc.Runs.load(tmp_path / "runs.npz")
    assert loaded.agent == DQN
    assert np.array_equal(loaded.values, runs.values)
    for s in range(9):
        assert np.array_equal(loaded.policy(1, MAZE.observations[s]), runs.policy(1)[s])
    with pytest.raises(InputError, match=r"observation: shape \(4,\) given, for which the network has 76 parameters"):
        loaded.policy(observation=np.zeros(4))
    with pytest.raises(InputError, match="observation: given, but 'q' has no network; leave it out"):
        bc.run(MAZE, bc.agent("q"), 1, 1).policy(observation=np.zeros(9))


@pytest.mark.slow
def test_an_agent_learns_the_way_to_the_goal():
    runs = bc.run(MAZE, bc.agent("q", **{**SMALL, "network": bc.networks.mlp(32), "epsilon": 1.0}), steps=3000, seeds=2)
    best = bc.exact.optimal(MAZE.mdp)
    for seed in range(2):
        taken = runs.values[seed].argmax(axis=1)
        inner = np.flatnonzero(~MAZE.mdp.terminal & MAZE.mdp.reachable)
        right = best.q[inner, taken[inner]] >= best.q[inner].max(axis=1) - 1e-9
        assert right.mean() >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, [0.1, 0.05, 0.025]])
def test_an_optimiser_of_ones_own_takes_its_steps_times_how_far_alpha_has_fallen(alpha):
    import optax

    named = {**SMALL, "batch": 2, "alpha": alpha, "schedule": "constant"}
    runs = [
        bc.run(CHAIN, bc.agent("td", **named, optimiser=optimiser), 3, seeds=2)
        for optimiser in ("sgd", optax.sgd(0.1), optax.sgd(0.05))
    ]
    np.testing.assert_allclose(runs[1].values, runs[0].values, rtol=1e-5, atol=1e-7)
    assert not np.allclose(runs[2].values, runs[0].values, rtol=1e-2)


@pytest.mark.parametrize(
    "kind", ["backward", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("forward", "both", "replay"))]
)
def test_planners_count_their_updates(kind):
    settings = {**SMALL, "sample": 5} if kind == "replay" else PLANS
    runs = bc.run(MAZE, bc.agent(kind, **settings), steps=60, seeds=1)
    times = 60 - 7
    each = {"backward": 8 * 16, "forward": 8 * 4, "replay": 5}
    assert runs.updates.learning[0] == 8 * times
    if kind in ("backward", "replay"):
        assert runs.updates.planning[0] == each[kind] * times
    elif kind == "forward":
        assert 0 < runs.updates.planning[0] <= each[kind] * times
    else:
        assert runs.updates.planning[0] > each["backward"] * times


def test_models_can_be_asked_and_scored():
    runs = bc.run(MAZE, bc.agent("backward", **{**PLANS, "epsilon": 1.0, "schedule": "constant"}), steps=1500, seeds=1)
    model = runs.models[0]
    assert np.allclose(model.joint.sum(axis=(1, 2)), 1)
    assert np.array_equal(model.joint[:, MAZE.mdp.terminal], np.zeros_like(model.joint[:, MAZE.mdp.terminal]))
    exact = bc.exact.backward(MAZE.mdp, np.full((9, 4), 0.25))
    untrained = bc.run(MAZE, bc.agent("backward", **{**PLANS, "alpha_model": 0, "epsilon": 1.0}), steps=300, seeds=1)
    ours, theirs = model.score(exact), untrained.models[0].score(exact, runs.values[0])
    assert ours.valid == pytest.approx(1)
    assert ours.tv < 0.35 < theirs.tv
    assert ours.kl < theirs.kl
    assert ours.correction < theirs.correction


@pytest.mark.slow
def test_errors_are_measured_in_prediction_and_seeds_may_draw_their_worlds():
    world = bc.worlds.chain((4, 3, 2), seed=None)
    agent = bc.agent("td", **SMALL)
    runs = bc.run(world, agent, episodes=300, seeds=2)
    assert runs.rmsve.shape == (2, 300)
    assert (runs.rmsve_inner[:, -1] < runs.rmsve_inner[:, 0]).all()
    again = bc.run(world.draw(1), agent, episodes=300, seeds=[1])
    assert np.array_equal(again.rmsve[0], runs.rmsve[1])


@pytest.mark.slow
def test_a_shared_encoder_learns_with_the_model():
    agents = [bc.agent("backward", **PLANS, encoder=encoder) for encoder in ("separate", "shared")]
    values = [bc.run(MAZE, each, steps=60, seeds=1).values for each in agents]
    assert not np.array_equal(*values)


def test_a_budget_of_value_updates_ends_a_run():
    runs = bc.run(MAZE, DQN, episodes=40, seeds=1, updates=400)
    made = runs.updates.by_episode[0]
    last = int(np.argmax(made >= 400))
    assert (made[last:] == made[last]).all()
    assert (runs.steps[0, last:] == runs.steps[0, last]).all()
    assert runs.updates.total[0] == made[-1]


def test_values_that_explode_are_reported_as_everywhere_else():
    agent = bc.agent("td", network=bc.networks.linear(), optimiser="sgd", memory=0, alpha=1.0, schedule="constant")
    runs = bc.run(CHAIN.view(30.0 * np.eye(9)), agent, episodes=50, seeds=1)
    assert runs.diverged[0] > 0
    assert runs.measured("rmsve")[0, -1] == np.inf


class Squares:
    """An own module: it need not be of Equinox."""

    def __call__(self, seen):
        return seen.reshape(-1) ** 2


def own_network(key):
    return Squares()


def two_dimensional(key):
    return lambda seen: seen[None]


def test_a_network_of_ones_own():
    agent = bc.agent("q", **{**SMALL, "network": own_network})
    assert bc.run(MAZE.view("pixels"), agent, steps=40, seeds=1).values.shape == (1, 9, 4)
    with pytest.raises(InputError, match=r"network: two_dimensional makes shape \(1, 9\) of an observation \(9,\)"):
        bc.run(MAZE, bc.agent("q", network=two_dimensional), steps=40, seeds=1)


@pytest.mark.slow
def test_pixels_are_seen_by_convolutions():
    agent = bc.agent("q", **{**SMALL, "network": bc.networks.conv(4, kernel=2, widths=[8])})
    assert bc.run(MAZE.view("pixels"), agent, steps=40, seeds=1).values.shape == (1, 9, 4)
    with pytest.raises(InputError, match=r"takes observations \(channels, rows, columns\), shape \(9,\) given"):
        bc.run(MAZE, agent, steps=40, seeds=1)
    large = bc.agent("q", network=bc.networks.conv(4, kernel=5))
    with pytest.raises(InputError, match=r"network: a kernel of 5 given for 3 × 3 pixels"):
        bc.run(MAZE.view("pixels"), large, steps=40, seeds=1)


def test_worlds_that_programs_do_not_walk_are_refused():
    changing = bc.worlds.maze("S.G", later=(50, "S.G"))
    with pytest.raises(InputError, match="changes; agents with a network need a world that does not"):
        bc.run(changing, DQN, steps=40, seeds=1)
    with pytest.raises(InputError, match=r"agent: .* works in control worlds, this one is for prediction; .* use 'td'"):
        bc.run(CHAIN, DQN, steps=40, seeds=1)
