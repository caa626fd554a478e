"""Views: what agents with a network observe of the states of a world."""

import numpy as np
import pytest

import backcast as bc

pytestmark = pytest.mark.interpreted

MAZE = bc.worlds.maze("S.#\n..G")


def test_a_state_is_observed_as_its_number_by_default():
    assert np.array_equal(MAZE.observations, np.eye(6))
    assert np.array_equal(MAZE.view("onehot").observations, np.eye(6))


def test_coordinates_lie_between_0_and_1():
    expected = [[0, 0], [0, 0.5], [0, 1], [1, 0], [1, 0.5], [1, 1]]
    assert np.array_equal(MAZE.view("coordinates").observations, expected)
    chain = bc.worlds.chain((3, 2, 1), seed=0).view("coordinates")
    assert np.array_equal(chain.observations, [[0, 0], [0, 0.5], [0, 1], [0.5, 0], [0.5, 1], [1, 0]])


def test_pixels_show_the_agent_the_walls_and_the_ends():
    seen = MAZE.view("pixels").observations
    assert seen.shape == (6, 3, 2, 3)
    assert seen[4].tolist() == [[[0, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]]


def test_pixels_of_a_grid_of_gymnasiums_have_no_walls():
    seen = bc.worlds.from_gymnasium("FrozenLake-v1", map_name="4x4").view("pixels").observations
    assert seen.shape == (16, 2, 4, 4)
    assert np.array_equal(seen[6, 0], np.eye(16)[6].reshape(4, 4))
    assert seen[6, 1].sum() == 5  # four holes and the goal


def test_an_array_is_observed_as_it_is_given_and_does_not_change():
    given = np.arange(12.0).reshape(6, 2)
    seen = MAZE.view(given).observations
    given[0] = 7
    assert np.array_equal(seen, np.arange(12.0).reshape(6, 2))
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 7


def test_the_world_is_the_same_and_its_name_says_the_view():
    viewed = MAZE.view("pixels")
    assert viewed.name == "custom-maze:pixels" == f"{MAZE.name}:pixels"
    runs = [bc.run(world, bc.agent("backward"), 5, 2) for world in (MAZE, viewed)]
    assert np.array_equal(runs[0].values, runs[1].values)


def test_a_world_that_every_seed_draws_is_viewed_when_it_is_drawn():
    world = bc.worlds.chain((3, 2), seed=None).view("coordinates")
    assert np.array_equal(world.draw(5).observations, [[0, 0], [0, 0.5], [0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            "pixel",
            r"view: 'pixel' given, expected an array \(S, …\) or one of onehot, coordinates, pixels, random-64",
        ),
        (np.zeros(6), r"view: shape \(6,\) given, expected \(S, …\), an observation for each state"),
        (np.zeros((5, 2)), r"view: 5 observations given, but custom-maze:given has 6 states"),
        (np.full((6, 1), np.nan), r"view: .*nan"),
    ],
)
def test_refusals(how, message):
    with pytest.raises(bc.InputError, match=message):
        MAZE.view(how)


def test_what_has_no_picture_is_refused():
    with pytest.raises(bc.InputError, match=r"view: chain.* has no picture of cells; use 'onehot', 'coordinates'"):
        bc.worlds.chain((3, 2), seed=0).view("pixels")
    with pytest.raises(bc.InputError, match=r"view: 10,001 states with 10,001 numbers each, expected at most"):
        bc.worlds.garnet(10_001, 1, 2, seed=0).view("onehot")
