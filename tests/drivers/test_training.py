"""`backcast.train` with several seeds, and its progress."""

import gymnasium
import numpy as np
import pytest

import backcast as bc


@pytest.fixture
def env():
    return gymnasium.make("backcast/Maze-v0")


def test_several_seeds_are_those_of_run(env):
    trained = bc.train(env, bc.agent("backward"), 4, seeds=(seed for seed in (7, 1)))
    runs = bc.run(bc.worlds.maze(), bc.agent("backward"), 4, [7, 1])
    assert trained.seeds == runs.seeds == (7, 1)
    assert len(trained.models) == 2
    for name in ("steps", "reward", "values"):
        np.testing.assert_array_equal(getattr(trained, name), getattr(runs, name))


def test_a_number_of_seeds_counts_from_0_and_one_seed_is_as_ever(env):
    both = bc.train(env, bc.agent("q"), 3, seeds=2)
    assert both.seeds == (0, 1)
    for place, seed in enumerate(both.seeds):
        np.testing.assert_array_equal(bc.train(env, bc.agent("q"), 3, seed).steps[0], both.steps[place])


def test_observations_of_a_box_are_remembered_by_each_seed_alone():
    agent = bc.agent("q", features=bc.features.tiles(tilings=2, bins=2))
    env = gymnasium.make("CartPole-v1")
    both = bc.train(env, agent, 3, seeds=2)
    for seed in both.seeds:
        np.testing.assert_array_equal(bc.train(env, agent, 3, seed).weights[0], both.weights[seed])


def test_progress_is_shown_if_it_is_wanted(env, capsys):
    bc.train(env, bc.agent("q"), 2, 0)
    assert capsys.readouterr().err == ""
    bc.train(env, bc.agent("q"), 2, seeds=2, progress=True)
    told = capsys.readouterr()
    assert ("training" in told.err, "100%" in told.err, told.out) == (True, True, "")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "seed: None and seeds: None given, expected one of them"),
        ({"seed": 1, "seeds": 2}, "seed: 1 and seeds: 2 given, expected one of them"),
        ({"seeds": []}, "seeds: an empty list given"),
        ({"seeds": [1, 1]}, "seeds: a seed is given twice"),
        ({"seeds": [(1, 2)]}, r"seeds: \(1, 2\) given, expected a whole number"),
        ({"seeds": 0}, "seeds: 0 given, expected a whole number, 1 or more"),
    ],
)
def test_seeds_that_make_no_sense_are_refused(env, given, sentence):
    with pytest.raises(bc.InputError, match=sentence):
        bc.train(env, bc.agent("q"), 1, **given)
