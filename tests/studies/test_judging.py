"""What agents are judged by: each world says what is good, and whatever compares agents follows and names it."""

import json
import re
import subprocess
import sys
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure

import backcast as bc
from backcast.drivers.metrics import METRICS
from backcast.report import agent_tables, page, scores
from backcast.report.drawing import joined
from backcast.report.figures import PLOTS
from backcast.report.sensitivity import sensitivity
from backcast.studies import check_study, results
from backcast.studies.best import best
from backcast.studies.runner import run_study
from backcast.studies.statistics import iqm
from backcast.studies.store import Store
from backcast.worlds.kinds import Picture


def fork(earned, step=0.0):
    """From state 0, action 0 waits, actions 1 and 2 end in states 1 and 2."""
    transition = np.zeros((3, 3, 3))
    transition[0, [0, 1, 2], [0, 1, 2]] = 1.0
    transition[1:, :, 0] = 1.0
    reward = np.zeros((3, 3, 3))
    reward[0, :, 0], reward[0, :, 1], reward[0, :, 2] = step, *earned
    return bc.FiniteMDP(transition, reward, 0.9, [1, 0, 0], [False, True, True])


@pytest.mark.parametrize(
    ("earned", "step", "expected"),
    [
        ([1.0, 1.0], 0.0, "steps"),  # every ending is a goal
        ([0.0, 1.0], 0.0, "reward"),  # state 1 is a hole
        ([0.5, 1.0], 0.0, "reward"),  # one goal is worth more than the other
        ([0.0, 0.0], 0.0, "reward"),
        ([-1.0, -1.0], -1.0, "reward"),  # steps say the same; reward is what is asked for
        ([1.0, 1.0], 0.1, "reward"),  # waiting is worth something
    ],
)
def test_reward_is_what_counts_unless_every_ending_is_a_goal(earned, step, expected):
    assert bc.worlds.from_mdp(fork(earned, step)).judged_by == expected


def test_endings_that_cannot_be_reached_do_not_matter():
    mdp = fork([1.0, 1.0])
    transition, reward = mdp.transition.copy(), mdp.reward.copy()
    transition[0, 1], reward[0, 1] = transition[0, 2], reward[0, 2]
    reward[0, :, 1] = -5.0
    assert bc.worlds.from_mdp(bc.FiniteMDP(transition, reward, 0.9, mdp.start, mdp.terminal)).judged_by == "steps"


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        (bc.worlds.maze(), "steps"),
        (bc.worlds.maze(slip=0.5), "steps"),
        (bc.worlds.maze(reward_probability=0.1), "steps"),
        (bc.worlds.maze("S.G\n..G", slip=0.3, reward_probability=0.3), "steps"),
        (bc.worlds.chain((5, 2)), "rmsve"),
        (bc.worlds.chain((5, 2), seed=None), "rmsve"),
        (bc.worlds.noisy_tv(seed=None), "rmsve"),
        (bc.worlds.garnet(seed=None), "rmsve"),
        (bc.worlds.random_maze(5, seed=None), "steps"),
        (bc.worlds.boyan(), "rmsve"),
        (bc.worlds.from_mdp(fork([1.0, 1.0]), np.full((3, 3), 1 / 3)), "rmsve"),
        (bc.worlds.from_mdp(bc.FiniteMDP(np.ones((1, 2, 1)), np.eye(2)[:1], 0.9, [1])), "reward"),  # it never ends
    ],
    ids=lambda given: given if isinstance(given, str) else given.name,
)
def test_what_worlds_are_judged_by(world, expected):
    assert world.judged_by == expected


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("FrozenLake-v1", {}, "reward"),
        ("FrozenLake-v1", {"desc": ["SFF", "FFG"]}, "steps"),  # no hole in the ice
        ("CliffWalking-v1", {}, "reward"),
    ],
)
def test_what_gymnasium_tables_are_judged_by(name, given, expected):
    assert bc.worlds.from_gymnasium(gymnasium.make(name, **given)).judged_by == expected


STUDY = check_study(
    {
        "name": "ice",
        "episodes": 400,
        "seeds": 10,
        "worlds": [{"kind": "gymnasium", "id": "FrozenLake-v1"}],
        "agents": [{"kind": "q", "alpha": 0.3, "schedule": "constant"}],
        "grid": {"epsilon": [1.0, 0.5, 0.1]},
        "plots": ["reward-per-episode", "steps-per-episode", "reward-over-steps", "error-by-agent"],
    },
    "ice",
)
RANDOM, CAREFUL = "q,epsilon=1", "q,epsilon=0.1"


@pytest.fixture(scope="module", name="ice")
def a_directory(tmp_path_factory):
    """A study on FrozenLake: the random walk falls into a hole soonest."""
    directory = tmp_path_factory.mktemp("ice")
    run_study(Store(directory, create=True), STUDY, seeds=10)
    (found,) = results(directory)
    steps, reward = (
        {each: found.means("FrozenLake-v1", each, metric).mean() for each in (RANDOM, CAREFUL)}
        for metric in ("steps", "reward")
    )
    assert steps[RANDOM] < 0.7 * steps[CAREFUL]
    assert reward[RANDOM] < 0.2 * reward[CAREFUL]
    return directory


def test_who_falls_into_holes_soonest_is_not_the_best(ice):
    (found,) = best(results(ice))
    assert (found.metric, found.settings) == ("reward", (("epsilon", 0.1),))
    assert found.score.estimate == pytest.approx(results(ice)[0].means("FrozenLake-v1", CAREFUL, "reward").mean())
    assert found.score.low < found.score.estimate < found.score.high
    (asked,) = best(results(ice), metric="steps")
    assert (asked.metric, asked.settings) == ("steps", (("epsilon", 1.0),))


def test_the_command_names_what_it_judges_by(ice):
    command = [sys.executable, "-m", "backcast", "best", str(ice)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"FrozenLake-v1 +q +epsilon = 0.1 +reward ", printed)
    assert "metric: what is compared; reward: higher is better" in printed
    (as_json,) = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert (as_json["metric"], as_json["settings"]) == ("reward", {"epsilon": 0.1})


def test_the_report_judges_by_reward_and_says_so(ice):
    (found,) = results(ice)
    table = agent_tables.table(found, "FrozenLake-v1")
    assert (table["metrics"], table["judged_by"]) == (["steps per episode", "reward per episode"], "reward per episode")
    rows = {row["agent"]: row for row in table["rows"]}
    assert (rows[RANDOM]["wins"], rows[CAREFUL]["wins"]) == ("", "100%")
    middle = iqm(found.means("FrozenLake-v1", CAREFUL, "reward"))
    low, high = (float(end) for end in re.search(r"\[(.+), (.+)\]", rows[CAREFUL]["iqm"]).groups())
    assert float(rows[CAREFUL]["iqm"].split()[0]) == pytest.approx(middle, abs=0.005)
    assert 0 < low < middle < high < 1
    text = page.write_report(ice).read_text()
    assert "IQM [95 %] of reward per episode</th>" in text
    assert f"better than {RANDOM} by reward per episode</th>" in text
    assert "This world is judged by reward per episode: higher is better." in text
    assert '>epsilon = 0.1</td><td data-label="metric">reward</td>' in text


def test_figures_show_the_reward_and_circle_the_most_of_it(ice):
    (found,) = results(ice)
    (axes,) = sensitivity(found).axes
    assert (axes.get_ylabel(), axes.get_yscale()) == ("reward per episode", "linear")
    (ring,) = [line for line in axes.get_lines() if line.get_markerfacecolor() == "none"]
    mean = found.means("FrozenLake-v1", CAREFUL, "reward").mean()
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (0.1, pytest.approx(mean))
    (axes,) = PLOTS["error-by-agent"](found).axes
    assert axes.get_xlabel() == "reward per episode"
    (axes,) = PLOTS["reward-per-episode"](found).axes
    line = {each.get_label(): each for each in axes.get_lines()}
    curve = found.curves("FrozenLake-v1", CAREFUL, "reward").mean(axis=0)
    assert axes.get_yscale() == "linear"
    assert any(np.allclose(each.get_ydata()[[0, -1]], curve[[0, -1]]) for each in line.values())


def test_at_equal_updates_it_is_the_reward_of_the_last_episodes():
    """A seed whose run diverged is infinitely bad."""

    class ByHand:
        study = STUDY

        def updates(self, world, agent):
            return np.array([[10.0, 20, 30], [10, 15, 20]])

        def curves(self, world, agent, metric):
            assert metric == "reward"
            return np.array([[0.0, 1, 1], [1, 0, -np.inf]])

    found = scores.score_at(ByHand(), "FrozenLake-v1", "q", np.array([5.0, 10, 20, 30]))
    np.testing.assert_allclose(found, [[np.nan, 0, 1 / 2, 2 / 3], [np.nan, 1, -np.inf, -np.inf]])


@pytest.mark.parametrize(("plot", "least"), [("reward-over-steps", -500), ("reward-per-episode", -100)])
def test_rewards_below_zero_are_drawn_and_worlds_have_scales_of_their_own(plot, least):
    class Made:
        worlds, seeds = ("ice", "cliff"), 2

        def agents(self, world):
            return ["q"]

        def picture(self, world):
            return Picture(world)

        def curves(self, world, agent, metric):
            return np.full((2, 5), 10.0 if metric == "steps" else {"ice": 1.0, "cliff": -100.0}[world])

        def diverged(self, world, agent):
            return np.zeros(2, dtype=np.int64)

    ice, cliff = (axes.get_ylim() for axes in PLOTS[plot](Made()).axes)
    assert cliff[0] <= least < cliff[1]
    assert -1 < ice[0] <= 0.99
    assert ice[1] < 10


def test_a_run_that_diverged_loses_where_reward_counts():
    """Of four seeds one may diverge: the interquartile mean is that of the other two of the middle half."""

    class ByHand:
        earned: ClassVar = {RANDOM: [1.0, 2, 3, 4], CAREFUL: [9.0, -np.inf, 8, 6]}

        def agents(self, world):
            return [RANDOM, CAREFUL]

        def means(self, world, agent, metric):
            return np.array(self.earned[agent]) if metric == "reward" else np.ones(4)

        def diverged(self, world, agent):
            return np.isinf(self.earned[agent]).astype(np.int64)

        def value_updates(self, world, agent):
            return 1.0

        def edges(self, world, agent):
            return 2.0

    row = agent_tables.row(ByHand(), "FrozenLake-v1", CAREFUL, ["steps", "reward"], METRICS["reward"])
    assert (row["wins"], row["cells"], row["diverged"]) == ("75%", [], "diverged in 1 of 4 seeds, at step 1")
    assert row["iqm"].startswith("7")


def test_what_diverged_is_marked_at_the_side_of_the_worst():
    axes = Figure().subplots()
    joined(axes, np.arange(3.0), np.array([1.0, np.inf, -np.inf]), {"color": "k"})
    (cross,) = [line for line in axes.get_lines() if line.get_marker() == "x"]
    assert (cross.get_xdata().tolist(), cross.get_ydata().tolist()) == ([1, 2], [1, 0])


def test_no_mean_of_steps_and_rewards():
    worlds = [{"kind": "maze", "text": "S.G"}, *STUDY.model_dump(exclude_defaults=True)["worlds"]]
    both = check_study({**STUDY.model_dump(exclude_defaults=True), "name": "both", "worlds": worlds}, "both")

    class Made:
        study, complete, missing = both, True, ()
        worlds = ("custom-maze", "FrozenLake-v1")

        def cells(self, world):
            return [cell for cell in both.runs() if cell.world.name == world]

        def metrics(self, world, agent):
            return ["steps", "reward"]

        def means(self, world, agent, metric):
            return np.arange(3.0) + (1 if metric == "reward" else 5)

    assert [each.metric for each in best(Made())] == ["steps", "reward"]
    with pytest.raises(bc.InputError, match=r"steps in custom-maze, reward in FrozenLake-v1\); add world, or give one"):
        best(Made(), by=("agent",))
    assert best(Made(), by=("agent",), metric="reward")[0].as_row()["metric"] == "reward, mean of 2 worlds"
