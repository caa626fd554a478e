"""`backcast.compare`: paired differences, a table, a figure, an exported table, and a study to go on with."""

import json
import shutil
from dataclasses import replace

import gymnasium
import numpy as np
import pyarrow.parquet as pq
import pytest

import backcast as bc
from backcast.studies import export, results
from backcast.studies.statistics import bootstrap, paired_difference
from backcast.studies.store import Store
from backcast.worlds.layouts import full_grid
from commands import a_command_line  # noqa: F401  a fixture
from random_worlds import random_mdp

MAZE = bc.worlds.maze("S..\n..G")
CHAIN = bc.worlds.chain((4, 3, 2), seed=0)
Q, BACKWARD = bc.agent("q"), bc.agent("backward", alpha=0.5)


@pytest.fixture(scope="module")
def compared():
    return bc.compare({"small": MAZE, "chain": CHAIN}, [bc.agent("backward"), bc.agent("forward", alpha=0.5)], 4, 6)


def test_agents_run_as_alone_and_differences_are_paired(compared):
    alone = {agent: bc.run(MAZE, compared.made_agents[agent], 4, 6) for agent in ("backward", "forward")}
    np.testing.assert_array_equal(compared.runs["small", "forward"].steps, alone["forward"].steps)
    row = compared.rows()[1]
    assert (row.world, row.agent, row.metric, row.seeds) == ("small", "forward", "steps", 6)
    means = {agent: runs.steps.mean(axis=1) for agent, runs in alone.items()}
    assert row.mean == bootstrap(means["forward"], seed=0)
    assert row.difference == paired_difference(means["forward"], means["backward"], seed=0)
    assert row.updates == alone["forward"].updates.total.mean()
    assert compared.rows()[0].difference is None
    assert [row.metric for row in compared.rows()] == ["steps", "steps", "rmsve", "rmsve"]


def test_the_table_says_what_is_compared(compared):
    lines = str(compared).splitlines()
    assert repr(compared) == str(compared)
    assert lines[0] == "small: steps per episode, lower is better; 6 seeds × 4 episodes"
    assert lines[1].split() == ["agent", "mean", "difference", "to", "backward", "value", "updates"]
    row = compared.rows()[1]
    assert lines[3].split("  ")[0] == "forward"
    assert str(row.mean) in lines[3]
    assert str(row.difference) in lines[3]
    assert lines[2].split("  ")[-1].strip() == f"{compared.rows()[0].updates:,.0f}"
    assert lines[5] == "chain: RMSVE, all states, lower is better; 6 seeds × 4 episodes"


def test_results_do_not_depend_on_the_workers():
    one, two = (bc.compare([MAZE], [Q, BACKWARD], 3, 4, workers=workers) for workers in (1, 3))
    assert str(one) == str(two)


def test_progress_is_shown_if_it_is_wanted(capsys):
    bc.compare(MAZE, Q, 2, 2)
    assert capsys.readouterr().err == ""
    bc.compare(MAZE, [Q, BACKWARD], 2, 2, progress=True)
    told = capsys.readouterr()
    assert ("100%" in told.err, told.out) == (True, "")


def test_rewards_are_better_if_they_are_higher():
    world = bc.worlds.from_mdp(random_mdp(np.random.default_rng(1), 6, 2, terminals=1), max_steps=30)
    found = bc.compare(world, [Q, BACKWARD], 3, 5, baseline="backward")
    assert (found.baseline, found.rows()[0].metric) == ("backward", "reward")
    mean = found.rows()[0].mean
    assert mean.low <= mean.estimate <= mean.high
    assert mean.estimate == pytest.approx(found.runs["mdp", "q"].reward.mean())
    assert "reward per episode, higher is better" in str(found)


@pytest.mark.parametrize(
    ("worlds", "agents", "more", "sentence"),
    [
        ([MAZE, MAZE], Q, {}, r"worlds: 'custom-maze' is there twice; give them names, worlds=\{\"first\""),
        (MAZE, [Q, bc.agent("q", alpha=0.5)], {}, "agents: 'q' is there twice"),
        ([], Q, {}, "worlds: none given"),
        (MAZE, {}, {}, "agents: none given"),
        (MAZE.mdp, Q, {}, r"world: FiniteMDP given, expected a World: backcast.worlds.from_mdp\(mdp\) makes one"),
        (MAZE, "q", {}, "agent: 'q' given, expected one made by backcast.agent"),
        (MAZE, [Q, BACKWARD], {"baseline": "backwards"}, "baseline: 'backwards' given, .*did you mean 'backward'"),
        ([MAZE, CHAIN], Q, {}, "q in chain-4-3-2: agent: 'q' works in control worlds"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(worlds, agents, more, sentence):
    with pytest.raises(bc.InputError, match=sentence):
        bc.compare(worlds, agents, 10**6, 100, **more)


def test_agents_that_diverge_have_no_difference():
    features = np.array([[1.0], [2.0], [0.0]])
    steps = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.99, 0.01]], [[0.0, 0.0, 1.0]]])
    mdp = bc.FiniteMDP(steps, [[0.0], [1.0], [0.0]], 0.99, [1, 0, 0], [False, False, True])
    wild = bc.agent("td", features=features * 10, schedule="constant")
    found = bc.compare(bc.worlds.from_mdp(mdp), {"calm": bc.agent("td"), "wild": wild}, 200, 3)
    assert (found.diverged("mdp", "wild") > 0).all()
    row = found.rows()[1]
    assert (row.mean.estimate, row.difference) == (np.inf, None)
    assert str(found).splitlines()[-1].split()[:3] == ["wild", "inf", "diverged"]


def test_the_figure_has_a_panel_for_each_world(compared):
    figure = compared.plot()
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["steps per episode", "RMSVE, all states"]
    for axes, world in zip(figure.axes, ("small", "chain"), strict=True):
        mean = compared.curves(world, "forward", compared.judged_by[world]).mean(axis=0)
        assert any(np.array_equal(line.get_ydata(), mean) for line in axes.get_lines())


def test_saved_it_is_a_study_that_goes_on(tmp_path, cli, compared):
    compared.save(tmp_path / "r", name="mine")
    (result,) = results(tmp_path / "r")
    assert (result.name, result.seeds, result.complete, result.worlds) == ("mine", 6, True, ["small", "chain"])
    np.testing.assert_array_equal(result.curves("small", "forward", "steps"), compared.runs["small", "forward"].steps)
    compared.export(tmp_path / "mine.parquet", study="mine")
    export(tmp_path / "r", tmp_path / "theirs.parquet")
    assert pq.read_table(tmp_path / "mine.parquet").equals(pq.read_table(tmp_path / "theirs.parquet"))
    assert pq.read_table(tmp_path / "mine.parquet").column_names[7:] == ["alpha"]
    assert cli("verify", tmp_path / "r")[0] == 0
    assert cli("sweep", tmp_path / "r", "--seeds", 8, "--quiet") == (0, "", "")
    (result,) = results(tmp_path / "r")
    further = bc.run(CHAIN, bc.agent("forward", alpha=0.5), 4, 8)
    np.testing.assert_array_equal(result.curves("chain", "forward", "rmsve"), further.rmsve)


def test_saving_again_adds_nothing(tmp_path, compared):
    for _ in range(2):
        compared.save(tmp_path / "r")
    assert len(Store(tmp_path / "r").index().seed) == 4 * 6
    assert len(list((tmp_path / "r" / "units").glob("*.json"))) == 4


WORLDS = {
    "drawn": bc.worlds.chain((4, 3, 2), seed=None, discount=0.5),
    "fixed": bc.worlds.chain([5, 3, 2]),
    "walk": bc.worlds.random_walk(9, jump=2),
    "boyan": bc.worlds.boyan(),
    "tv": bc.worlds.noisy_tv(4, 2, seed=np.int64(3)),
    "garnet": bc.worlds.garnet(8, 1, 2, seed=None),
    "mdp": bc.worlds.from_mdp(random_mdp(np.random.default_rng(1), 6, 2, terminals=1), np.full((6, 2), 0.5)),
}
CONTROL = {
    "slippery": bc.worlds.maze("S.G", slip=0.25, max_steps=30),
    "changes": bc.worlds.blocking_maze(20, max_steps=50),
    "random": bc.worlds.random_maze((2, 3), 0.2, seed=None, max_steps=30),
    "garnet": bc.worlds.garnet(8, 2, 2, seed=3, max_steps=30),
    "lake": bc.worlds.from_gymnasium("FrozenLake-v1", discount=0.9, max_episode_steps=20),
    "mdp": bc.worlds.from_mdp(random_mdp(np.random.default_rng(1), 6, 2, terminals=1), max_steps=30),
    "drawn": replace(bc.worlds.from_mdp(bc.worlds.maze("S.\n.G").mdp, max_steps=30), layout=full_grid(2, 2)),
}


@pytest.mark.parametrize(("worlds", "kind"), [(WORLDS, "td"), (CONTROL, "q")])
def test_every_world_that_can_be_written_down_is_the_same_afterwards(tmp_path, worlds, kind):
    found = bc.compare(worlds, bc.agent(kind), 3, 2)
    found.save(tmp_path / "r")
    shutil.move(tmp_path / "r", tmp_path / "moved")
    ((study, _),) = Store(tmp_path / "moved").studies()
    for cell in study.runs():
        again = bc.run(cell.world.build(), cell.agent, 3, 2)
        np.testing.assert_array_equal(again.values, found.runs[cell.world.name, kind].values)
        assert cell.world.judged_by == worlds[cell.world.name].judged_by


def test_agents_with_features_and_options_are_written_down(tmp_path):
    agents = {
        "given": bc.agent("q", features=np.eye(6)[:, :4] + 0.5),
        "tiles": bc.agent("backward", features=bc.features.tiles(tilings=2, bins=2), frame="previous", learn=False),
        "option": bc.agent("backward", model="counts", option=bc.Option([1, 0, 0, 1, 0, 0])),
        "rates": bc.agent("q", alpha=[1.0, 0.5], epsilon=0.1, schedule="constant"),
    }
    found = bc.compare(MAZE, agents, 2, 2)
    found.save(tmp_path / "r")
    ((study, _),) = Store(tmp_path / "r").studies()
    assert {cell.label: cell.agent for cell in study.runs()} == agents


@pytest.mark.parametrize(
    ("world", "agent", "seeds", "sentence"),
    [
        (bc.worlds.from_gymnasium(gymnasium.make("FrozenLake-v1")), Q, 2, "worlds: 'FrozenLake-v1' cannot be descri"),
        (bc.worlds.from_gymnasium("FrozenLake-v1", is_slippery=True), Q, 2, "worlds: 'FrozenLake-v1' cannot be descri"),
        (MAZE, Q, [3, 4], r"seeds: \(3, 4\) … were run, expected 0, 1, 2, … as a study has them"),
        (
            bc.worlds.from_mdp(bc.worlds.maze("S" * 400 + "G").mdp, max_steps=3),
            bc.agent("q", features=np.ones((401, 300))),
            1,
            "agents: 'q,features=given-300' has features of 401 × 300 entries, more than the 100,000 that are",
        ),
    ],
)
def test_what_a_study_cannot_say_is_refused_in_a_sentence(tmp_path, world, agent, seeds, sentence):
    with pytest.raises(bc.InputError, match=sentence):
        bc.compare(world, agent, 1, seeds).save(tmp_path / "r")
    assert not list((tmp_path / "r").rglob("*.json"))


def test_an_exported_table_needs_numbered_seeds_and_a_known_ending(tmp_path):
    found = bc.compare(MAZE, Q, 1, [(1, 2)])
    with pytest.raises(bc.InputError, match=r"seeds: .* expected whole numbers"):
        found.export(tmp_path / "t.csv")
    with pytest.raises(bc.InputError, match=r"path: .*t.xlsx given, expected a file that ends in .csv or .parquet"):
        found.export(tmp_path / "t.xlsx")
    assert bc.compare(MAZE, Q, 2, [5]).export(tmp_path / "t.csv") == 4
    assert (tmp_path / "t.csv").read_text().splitlines()[1].startswith('"comparison","custom-maze","q",5,0,"steps",')


def test_the_study_says_what_to_plot(tmp_path, compared):
    compared.save(tmp_path / "r")
    stored = json.loads((tmp_path / "r" / "studies" / "comparison.json").read_text())
    assert stored["study"]["plots"] == ["error-by-agent"]  # of errors and steps
    bc.compare(MAZE, Q, 1, 1).save(tmp_path / "r", name="control")
    stored = json.loads((tmp_path / "r" / "studies" / "control.json").read_text())
    assert stored["study"]["plots"] == ["steps-per-episode"]
