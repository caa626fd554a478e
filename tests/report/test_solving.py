"""How many value updates it takes to solve a world, of results that are made up."""

import numpy as np
import pytest

import backcast as bc
from backcast.report import figures, solving
from backcast.studies import check_study
from drawn import assert_text_can_be_read, named_lines

STUDY = {
    "name": "solved",
    "episodes": 10,
    "worlds": [{"kind": "maze", "text": "S.G", "label": "short"}, {"kind": "maze", "text": "S..G", "label": "long"}],
    "agents": [{"kind": "q"}, {"kind": "dyna"}],
    "plots": ["updates-to-solve"],
}
QUICK = [40, 20, 10, 10, 10, 10, 10, 10, 10, 10]
SLOW = [40, 40, 40, 40, 40, 10, 10, 10, 10, 12]


class ByHand:
    """The quick agent's mean of 5 episodes is 18 after five episodes, 12 after the 6th, and then 10; so the world is
    solved at 12, which the slow agent comes to with its last episode, at 10.4.

    An update per step; in the long world all numbers are ten times as large.
    """

    seeds = 4

    def __init__(self, study=STUDY, never=1):
        self.study, self.never = check_study(study, "solved"), never
        self.worlds = [world.name for world in self.study.worlds]

    def agents(self, world):
        assert world in self.worlds
        return ["q", "dyna"]

    def picture(self, world):
        return next(each.picture for each in self.study.worlds if each.name == world)

    def curves(self, world, agent, metric):
        factor = 10.0 if world == "long" else 1.0
        found = np.tile(factor * np.array(SLOW if agent == "q" else QUICK), (4, 1))
        if agent == "q":
            found[: self.never] = 40 * factor
        return found

    def updates(self, world, agent):
        return self.curves(world, agent, "steps").cumsum(axis=1)

    def diverged(self, world, agent):
        return np.zeros(4, dtype=np.int64)


def test_updates_are_counted_up_to_the_first_episode_that_is_good_enough():
    results = ByHand()
    assert solving.solved(results, "short") == pytest.approx(1.2 * 10)
    np.testing.assert_array_equal(solving.updates_until_solved(results, "short", "dyna"), [100] * 4)
    np.testing.assert_array_equal(solving.updates_until_solved(results, "short", "q"), [np.inf, 252, 252, 252])
    np.testing.assert_array_equal(solving.updates_until_solved(results, "long", "dyna"), [1000] * 4)


def test_the_figure_has_a_line_for_each_agent_and_a_cross_where_too_many_never_solve():
    figure = figures.PLOTS["updates-to-solve"](ByHand())
    assert_text_can_be_read(figure)
    (axes,) = figure.axes
    lines = named_lines(axes)
    np.testing.assert_allclose(lines["Dyna"].get_ydata(), [100, 1000])
    np.testing.assert_allclose(lines["Q-learning"].get_ydata(), [252, 2520])  # the middle half
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["short", "long"]
    (axes,) = figures.PLOTS["updates-to-solve"](ByHand(never=2)).axes
    (cross,) = [line for line in axes.get_lines() if line.get_marker() == "x"]
    np.testing.assert_allclose(cross.get_xdata(), [0, 1], atol=0.1)


def test_a_world_without_runs_is_left_out():
    results = ByHand()
    results.worlds = ["long"]
    (axes,) = figures.PLOTS["updates-to-solve"](results).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["long"]


def test_where_rewards_may_be_negative_there_is_nothing_to_draw():
    lake = {"kind": "gymnasium", "id": "FrozenLake-v1"}
    with pytest.raises(bc.InputError, match="plots: in no world of solved agents are judged by an error or by steps"):
        figures.PLOTS["updates-to-solve"](ByHand(STUDY | {"worlds": [lake]}))
