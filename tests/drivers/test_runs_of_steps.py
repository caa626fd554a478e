"""Runs of a given number of real steps: `backcast.run(..., steps=N)` and `backcast.train(..., steps=N)`."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.core.interaction import ALPHA, EPSILON

pytestmark = pytest.mark.interpreted

MAZE = bc.worlds.maze("S..\n.X.\n..G")
CHAIN = bc.worlds.chain((3, 2), seed=0)
ENDLESS = bc.worlds.from_mdp(bc.FiniteMDP(np.eye(2)[:, None, ::-1], np.ones((2, 1)), 0.9, [1, 0]))


def test_a_run_takes_exactly_so_many_steps_and_pads_its_episodes():
    runs = bc.run(MAZE, bc.agent("backward"), steps=200, seeds=3)
    real = runs.steps >= 0
    assert np.array_equal(np.where(real, runs.steps, 0).sum(axis=1), [200, 200, 200])
    assert real.sum(axis=1).max() == runs.steps.shape[1]
    assert not real.all()
    assert np.array_equal(np.isnan(runs.reward), ~real)
    assert np.array_equal(runs.updates.by_episode < 0, ~real)
    assert np.array_equal(np.isnan(runs.measured("steps")), ~real)
    assert len(runs.to_arrow()) == 2 * real.sum()
    assert "nan" not in repr(runs)


def test_with_constant_rates_steps_and_episodes_agree():
    agent = bc.agent("backward", frame="previous", schedule="constant", alpha=0.5)
    by_episode = bc.run(MAZE, agent, episodes=7, seeds=2)
    for seed in range(2):
        by_step = bc.run(MAZE, agent, steps=int(by_episode.steps[seed].sum()), seeds=[seed])
        assert np.array_equal(by_step.steps[0], by_episode.steps[seed])
        assert np.array_equal(by_step.values[0], by_episode.values[seed])
        assert np.array_equal(by_step.updates.by_episode[0], by_episode.updates.by_episode[seed])


def test_errors_are_measured_in_prediction():
    agent = bc.agent("td", schedule="constant", alpha=0.5)
    runs = bc.run(CHAIN, agent, steps=40, seeds=2)
    same = bc.run(CHAIN, agent, episodes=runs.steps.shape[1], seeds=2)
    assert np.array_equal(runs.rmsve, same.rmsve)
    assert np.array_equal(runs.rmsve_inner, same.rmsve_inner)


def test_rates_fall_from_step_to_step_also_within_one_episode():
    """Of α = 0.5 and v = 0, 1 in turns: v ← v + α (4 − t) / 4 (1 + 0.9 v' − v)."""
    agent = bc.agent("td", alpha=0.5)
    v = np.zeros(2)
    for t in range(4):
        s = t % 2
        v[s] += 0.5 * (4 - t) / 4 * (1 + 0.9 * v[1 - s] - v[s])
    np.testing.assert_allclose(bc.run(ENDLESS, agent, steps=4, seeds=1).values[0], v, rtol=1e-15)
    assert [each[[ALPHA, EPSILON]].tolist() for each in agent.rates_at_first()] == [[0.5, 0.5], [True, True]]


@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_training_takes_the_same_steps(schedule):
    agent = bc.agent("backward", learn=False, frame="previous", schedule=schedule, alpha=0.5)
    env = gymnasium.make("backcast/Maze-v0", text="S..\n.X.\n..G")
    compiled, stepwise = bc.run(MAZE, agent, steps=150, seeds=[4]), bc.train(env, agent, steps=150, seed=4)
    assert np.array_equal(compiled.steps, stepwise.steps)
    assert np.array_equal(compiled.values, stepwise.values)
    assert np.array_equal(compiled.updates.by_episode, stepwise.updates.by_episode)


def test_more_episodes_than_are_recorded_at_once(monkeypatch):
    agent = bc.agent("q", schedule="constant")
    whole = bc.run(MAZE, agent, steps=120, seeds=2)
    monkeypatch.setattr("backcast.drivers.steps._ROOM", 2)
    parts = bc.run(MAZE, agent, steps=120, seeds=2, workers=1)
    assert np.array_equal(whole.steps, parts.steps)
    assert np.array_equal(whole.values, parts.values)


def test_saved_and_loaded(tmp_path):
    runs = bc.run(MAZE, bc.agent("q"), steps=60, seeds=2)
    runs.save(tmp_path / "runs.npz")
    loaded = bc.Runs.load(tmp_path / "runs.npz")
    assert np.array_equal(loaded.steps, runs.steps)
    assert np.array_equal(loaded.reward, runs.reward, equal_nan=True)


def test_a_run_that_diverges_is_as_bad_as_can_be_from_there_on():
    features = np.array([[1.0], [30.0], [1.0], [1.0], [1.0]])
    agent = bc.agent("td", features=features, alpha=1.0, schedule="constant")
    runs = bc.run(CHAIN, agent, steps=3000, seeds=1)
    assert 0 < runs.diverged[0] < 3000
    assert runs.measured("rmsve")[0, -1] == np.inf


REFUSALS = [
    (lambda: bc.run(MAZE, bc.agent("q"), seeds=1), r"episodes: None and steps: None given, expected one of them"),
    (lambda: bc.run(MAZE, bc.agent("q"), 3, 1, steps=5), r"episodes: 3 and steps: 5 given, expected one of them"),
    (lambda: bc.run(MAZE, bc.agent("q"), seeds=1, steps=0), r"steps: 0 given, expected a whole number, 1 or more"),
    (lambda: bc.run(MAZE, bc.agent("q"), seeds=1, steps=5, updates=9), r"updates: 9 given with steps"),
    (
        lambda: bc.run(MAZE, bc.agent("q", alpha=[1, 0.5]), seeds=1, steps=5),
        r"alpha: a list with one for each episode given, but the number of episodes",
    ),
    (
        lambda: bc.run(
            bc.worlds.from_mdp(bc.FiniteMDP(np.eye(2)[:, None], np.zeros((2, 1)), 0.9, [1, 0], [True, False])),
            bc.agent("td"),
            seeds=1,
            steps=5,
        ),
        r"steps: in .* every episode ends where it begins, and no step is ever taken",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refusals(call, message):
    with pytest.raises(bc.InputError, match=message):
        call()
