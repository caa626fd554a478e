"""The numbers behind figures and tables by hand, and the page that shows them."""

import re

import numpy as np
import pytest

from backcast.drivers.metrics import METRICS
from backcast.report import agent_tables, page, scores
from backcast.studies import STUDIES, check_study, results
from backcast.studies.runner import run_study
from backcast.studies.statistics import bootstrap
from backcast.studies.store import Store
from made_up import Scores, picture_by_name

STUDY = check_study(
    {
        "name": "small",
        "episodes": 8,
        "updates": 40,
        "worlds": [{"kind": "chain", "levels": [6, 3, 3]}, {"kind": "maze", "updates": 600}],
        "agents": [
            {"kind": "td", "only": "prediction"},
            {"kind": "q", "only": "control", "label": "Q"},
            {"kind": "backward", "label": "planner"},
        ],
        "plots": ["error-by-agent", "error-against-updates"],
    },
    "small",
)


class ByHand:
    """Two seeds: in the maze, the first is over when it has made 600 updates, the second after all its episodes."""

    study, worlds, seeds = STUDY, ["chain-6-3-3", "maze"], 2
    made = np.array([[100, 300, 400, 450, 500, 550, 600, 600], [50, 60, 70, 80, 90, 100, 110, 120]])
    taken = np.array([[100, 80, 60, 40, 20, 10, 10, 10], [50, 10, 10, 10, 10, 10, 10, 10]])

    def agents(self, world):
        return ["Q", "planner"]

    def picture(self, world):
        return picture_by_name(world)

    def metrics(self, world, agent):
        return ["steps", "reward"] if world == "maze" else ["rmsve", "rmsve_inner"]

    def curves(self, world, agent, metric):
        return self.taken.astype(float)

    def updates(self, world, agent):
        return self.made.astype(float)

    def seconds(self, world, agent):
        return 36e-6

    def computed_nanoseconds(self, world, agent):
        return None

    def diverged(self, world, agent):
        return np.zeros(2, dtype=np.int64)


def test_the_episodes_of_a_run_do_not_include_those_that_repeat_its_last():
    assert scores.episodes_run(ByHand.made).tolist() == [7, 8]


def test_budgets_may_differ_by_world():
    assert scores.budget(ByHand(), "chain-6-3-3") == 40
    assert scores.budget(ByHand(), "maze") == 600


def test_steps_are_means_of_the_last_5_episodes_and_errors_are_not():
    grid = np.array([40.0, 50, 100, 120, 450, 600])
    np.testing.assert_allclose(
        scores.score_at(ByHand(), "maze", "Q", grid),
        [
            [np.nan, np.nan, 100, 100, (100 + 80 + 60 + 40) / 4, (60 + 40 + 20 + 10 + 10) / 5],
            [np.nan, 50, 10, 10, np.nan, np.nan],
        ],
    )
    np.testing.assert_allclose(
        scores.score_at(ByHand(), "chain-6-3-3", "Q", grid),
        [[np.nan, np.nan, 100, 100, 40, 10], [np.nan, 50, 10, 10, np.nan, np.nan]],
    )


def test_what_an_update_costs():
    """600 and 120 updates, in 320 and 120 steps in the maze; in the chain, 7 and 8 episodes of 2 steps."""
    assert scores.seconds_per_update(ByHand(), "maze", "Q") == pytest.approx(36e-6 / 360)
    assert scores.updates_per_step(ByHand(), "maze", "Q") == pytest.approx(720 / 440)
    assert scores.updates_per_step(ByHand(), "chain-6-3-3", "Q") == pytest.approx(720 / 30)
    assert np.isnan(scores.updates_per_step(ByHand(), "elsewhere", "Q"))


def test_the_table_at_equal_updates_says_why_a_number_is_missing():
    table = agent_tables.at_equal_updates(ByHand(), "maze", 600)
    assert table["places"] == ["30", "150", "600"]
    assert table["rows"][0] == {
        "agent": "Q",
        "cells": ["–", "over (1 of 2 seeds)", "over (1 of 2 seeds)"],
        "per_step": "1.6",
        "nanoseconds": "100",
    }
    assert agent_tables.scores_at(ByHand(), "maze", "Q", np.array([60.0, 110])) == [
        "– (1 of 2 seeds)",
        str(bootstrap([100.0, 10], seed=0)),
    ]


@pytest.mark.parametrize("name", [*STUDIES, "mine"])
def test_the_command_that_makes_results_again(name):
    class Named:
        seeds = 7

    Named.name = name
    expected = "sweep mine.toml" if name == "mine" else f"reproduce {name}"
    assert page.command(Named()) == f"backcast {expected} --seeds 7"


def test_the_page_has_a_table_at_equal_updates_for_each_world(tmp_path):
    run_study(Store(tmp_path, create=True), STUDY, seeds=2)
    text = page.write_report(tmp_path).read_text()
    assert text.count("At equal numbers of value updates") == 2
    assert re.findall(r">after ([\d,]+) updates<", text) == ["2", "10", "40", "30", "150", "600"]
    assert text.count("<svg role") == 2
    (result,) = results(tmp_path)
    errors = result.curves("chain-6-3-3", "td", "rmsve")[:, 4]  # TD makes 2 updates per episode
    assert f">{bootstrap(errors, seed=0)}</td>" in text
    assert "Compared by steps per episode: the mean of the last 5 episodes finished" in text
    assert "Compared by RMSVE, all states: after the last episode finished" in text


def test_a_mean_reads_the_same_in_the_report_and_wherever_else_its_interval_is_printed(tmp_path):
    class Sixty(Scores):
        def metrics(self, world, agent):
            return ["steps"]

    found = Sixty({"q": [60.066, 55.5, 70.2, 54.4], "backward": [12.0, 12.5, 11.5, 12.2]})
    mean = bootstrap(found.means("maze", "q", "steps"), seed=0)
    assert agent_tables.score(found, "maze", "q", METRICS["steps"]) == str(mean)
    assert len({len(number.partition(".")[2]) for number in re.findall(r"[\d.]+", str(mean))}) == 1


def test_without_a_budget_there_is_no_such_table(tmp_path):
    free = STUDY.model_copy(update={"updates": None, "worlds": STUDY.worlds[:1], "plots": []})
    run_study(Store(tmp_path, create=True), free, seeds=1)
    assert "At equal numbers" not in page.write_report(tmp_path).read_text()
