"""Mazes with random walls: how many, where, that the goal can be reached, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.studies import check_study

pytestmark = pytest.mark.interpreted

random_maze = bc.worlds.random_maze


def text(world):
    return "\n".join("".join(row) for row in world.layout)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(2, 12), st.sampled_from([0.0, 0.1, 0.2, 0.3]), st.integers(0, 99))
def test_any_maze_has_its_share_of_walls_and_a_way(rows, columns, walls, seed):
    world = random_maze((rows, columns), walls, seed)
    cells = world.layout
    assert cells.shape == (rows, columns)
    assert (cells[-1, 0], cells[0, -1]) == ("S", "G")
    assert (cells == "X").sum() == round(walls * (rows * columns - 2))
    assert ((cells == "S") | (cells == "G")).sum() == 2
    assert world.mdp.reachable[columns - 1]  # the goal
    assert bc.exact.optimal(world.mdp).v[(rows - 1) * columns] > 0
    assert world.mdp == bc.worlds.maze(text(world)).mdp


def test_a_seed_is_a_maze():
    """Results of studies depend on it."""
    assert text(random_maze((3, 5), 0.3, seed=1)) == "..XXG\n.X.X.\nS...."
    assert text(random_maze(2, 0)) == ".G\nS."


def test_walls_are_anywhere_alike():
    """Of the four other cells of a 2 × 3 maze one is a wall; the maze is never cut."""
    found = [np.flatnonzero(random_maze((2, 3), 0.25, seed).layout.ravel() == "X") for seed in range(400)]
    cells, counts = np.unique(np.concatenate(found), return_counts=True)
    np.testing.assert_array_equal(cells, [0, 1, 4, 5])
    assert np.abs(counts - 100).max() < 4 * np.sqrt(75)


def test_it_is_a_maze_in_all_else():
    world = random_maze(4, 0.2, 3, slip=0.1, reward_probability=0.5, discount=0.9)
    assert world.mdp == bc.worlds.maze(text(world), 0.1, 0.5, 0.9).mdp
    assert world.name == "random-maze-4x4-walls-0.2-slip-0.1-reward-0.5"
    assert (world.max_steps, world.judged_by, world.purpose) == (1600, "steps", "control")
    assert random_maze(4, max_steps=9).max_steps == 9
    assert random_maze().name == "random-maze-10x10-walls-0.25"


def test_every_seed_of_a_run_draws_its_own():
    world = random_maze(5, seed=None)
    assert (world.purpose, world.judged_by, world.max_steps) == ("control", "steps", 2500)
    assert text(world.draw(7)) == text(random_maze(5, seed=7))
    together = bc.run(world, bc.agent("q"), 3, 3)
    alone = bc.run(random_maze(5, seed=2), bc.agent("q"), 3, [2])
    np.testing.assert_array_equal(together.steps[2], alone.steps[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: random_maze(0), "size: 0 given, expected a whole number, 1 or more"),
        (lambda: random_maze(2.5), r"size: 2\.5 given, expected a whole number, 1 or more"),
        (lambda: random_maze((2, 3, 4)), r"size: \(2, 3, 4\) given, expected a whole number, or \(rows, columns\)"),
        (lambda: random_maze("12"), r"size: '12' given, expected a whole number, or \(rows, columns\)"),
        (lambda: random_maze((1, 1)), "size: 1 cell given, expected 2 or more: a start and a goal"),
        (lambda: random_maze(10**4), "size: 100,000,000 states, expected at most 10,000,000"),
        (lambda: random_maze(5, 1.2), r"walls: 1\.2 given, expected a probability in \[0, 1\]"),
        (lambda: random_maze(5, slip=2), r"slip: 2 given, expected a probability in \[0, 1\]"),
        (
            lambda: random_maze(20, 0.7),
            r"walls: 0\.7 given, but in none of 1,000 mazes of 20 × 20 cells that were drawn could the goal be reached;"
            " give a smaller share of walls, or another seed",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(bc.InputError, match=message):
        make()


def test_a_large_maze_is_not_drawn_for_ever():
    with pytest.raises(bc.InputError, match="in none of 40 mazes of 500 × 500 cells"):
        random_maze(500, 0.6)


def test_studies_have_them():
    worlds = [{"kind": "random-maze", "size": 6}, {"kind": "random-maze", "size": [3, 5], "walls": 0.3, "seed": 1}]
    given = {"name": "x", "episodes": 1, "agents": [{"kind": "q"}]}
    study = check_study({**given, "worlds": worlds}, "x.toml")
    assert [world.name for world in study.worlds] == ["random-maze-6x6-walls-0.25", "random-maze-3x5-walls-0.3"]
    assert text(study.worlds[1].build()) == "..XXG\n.X.X.\nS...."
    assert text(study.worlds[0].build().draw(4)) == text(random_maze(6, seed=4))
    large = check_study({**given, "worlds": [{"kind": "random-maze", "size": [200, 300], "slip": 0.5}]}, "x.toml")
    assert large.worlds[0].why_unmade == "the maze is large, and was not made"
    assert large.worlds[0].sketch().name == large.worlds[0].name == "random-maze-200x300-walls-0.25-slip-0.5"
    for size in (0, [2], "many"):
        with pytest.raises(bc.InputError, match="size"):
            check_study({**given, "worlds": [{"kind": "random-maze", "size": size}]}, "x.toml")
