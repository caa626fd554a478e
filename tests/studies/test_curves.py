"""Curves of runs whose episodes end at different steps and updates."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backcast.studies.statistics import (
    align_by_episode,
    align_by_steps,
    cumulative_on_grid,
    normalised,
    on_update_grid,
)

NAN = np.nan


def test_align_by_episode():
    np.testing.assert_array_equal(
        align_by_episode([[1, 2, 3], [4], np.array([5, 6])]), [[1, 2, 3], [4, NAN, NAN], [5, 6, NAN]]
    )


def test_align_by_steps():
    grid = [0, 1, 2, 3, 4, 5]
    positions, values = [[1, 3, 4], [0, 5]], [[10, 20, 0], [0, 1]]
    np.testing.assert_allclose(align_by_steps(positions, values, grid), [[NAN, 10, 10, 20, 0, NAN], [0, 0, 0, 0, 0, 1]])
    np.testing.assert_allclose(
        align_by_steps(positions, values, grid, between="linear"),
        [[NAN, 10, 15, 20, 0, NAN], [0, 0.2, 0.4, 0.6, 0.8, 1]],
    )


def test_cumulative_on_grid():
    """Runs end after 3 and 6, and after 2 and 4 steps: read at 0 … 4."""
    grid, rewards = cumulative_on_grid([[3, 3], [2, 2]], [[1, 5], [-1, 10]], points=5)
    assert grid.tolist() == [0, 1, 2, 3, 4]
    assert rewards.tolist() == [[0, 0, 0, 1, 1], [0, 0, -1, -1, 9]]
    assert cumulative_on_grid([[4]], [[1]], points=4)[0].tolist() == [0, 1, 3, 4]


@given(st.integers(0, 1000), st.integers(2, 400))
def test_cumulative_on_grid_counts_finished_episodes(seed, points):
    """With a reward of 1 for each episode; also where an even spacing would round to just before an episode's end."""
    steps = np.random.default_rng(seed).integers(1, 9, size=(3, 6))
    grid, finished = cumulative_on_grid(steps, np.ones((3, 6)), points)
    assert (grid[0], grid[-1], grid.size) == (0, steps.sum(axis=1).min(), points)
    np.testing.assert_array_equal(finished, (steps.cumsum(axis=1)[:, :, None] <= grid).sum(axis=1))


def test_on_update_grid_by_hand():
    """Episodes end after 2, 5 and 9 updates, and after 4 and 6, where the budget of the second run is used up."""
    updates, values = [[2, 5, 9], [4, 6, 6]], [[30, 20, 10], [7, 3, 3]]
    np.testing.assert_allclose(
        on_update_grid(updates, values, [1, 2, 4, 4.9, 5, 6, 7, 9, 10]),
        [[NAN, 30, 30, 30, 20, 20, 20, 10, NAN], [NAN, NAN, 7, 7, 7, 3, NAN, NAN, NAN]],
    )


def test_on_update_grid_takes_the_last_of_the_episodes_without_an_update():
    np.testing.assert_allclose(on_update_grid([[0, 0, 3, 3, 8]], [[5, 4, 3, 2, 1]], [0, 2, 3, 7, 8]), [[4, 4, 2, 2, 1]])


def test_normalised():
    assert normalised({"q": 10, "forward": 30, "backward": 15}) == {"q": 0, "forward": 1, "backward": 0.25}
    assert normalised({"q": 3, "forward": 3}) == {"q": 0, "forward": 0}
