"""What can be done with the results of runs: save and load them, a policy, values by state, a table."""

import importlib.util
import json
import zipfile

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS, register
from backcast.drivers.runs import Runs

MAZE = bc.worlds.maze("S.G\n...")
CHAIN = bc.worlds.chain((4, 3, 2), seed=0)
ARRAYS = ("steps", "reward", "rmsve", "rmsve_inner", "values", "weights", "seconds", "diverged")
AGENTS = [
    bc.agent("backward", frame="previous", alpha=0.5, model="counts", horizon=2),
    bc.agent("q", alpha=[0.5, 0.25, 0.0], learn=True, epsilon=0.1, schedule="constant"),
    bc.agent("q", epsilon_schedule="linear", schedule="average"),
    bc.agent("q", features=bc.features.tiles(tilings=2, bins=(2, 3), coordinates=[[i, 1.0] for i in range(6)])),
    bc.agent("q", features=np.arange(12.0).reshape(6, 2)),
    bc.agent("backward", option=bc.Option(initiation=[1, 0, 0, 1, 0, 1]), model="counts"),
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_what_is_saved_is_loaded(agent, tmp_path):
    runs = bc.run(MAZE, agent, 3, [7, 2**70, (1, 2)], max_steps=20)
    runs.save(tmp_path / "runs.npz")
    loaded = Runs.load(tmp_path / "runs.npz")
    assert (loaded.world, loaded.agent, loaded.seeds) == (runs.world, agent, (7, 2**70, (1, 2)))
    assert hash(loaded.agent) == hash(agent)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(runs, name))
    for name, array in vars(runs.updates).items():
        np.testing.assert_array_equal(getattr(loaded.updates, name), array)
    assert repr(loaded) == repr(runs)
    again = bc.run(MAZE, loaded.agent, 3, loaded.seeds, max_steps=20)
    np.testing.assert_array_equal(again.values, runs.values)


def test_errors_of_prediction_are_saved_and_files_are_written_whole(tmp_path):
    runs = bc.run(CHAIN, bc.agent("td"), 3, 2)
    runs.save(tmp_path / "runs")
    np.testing.assert_array_equal(Runs.load(tmp_path / "runs").rmsve_inner, runs.rmsve_inner)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_models_are_not_saved_which_is_said(tmp_path):
    bc.run(MAZE, bc.agent("backward"), 3, 2).save(tmp_path / "r.npz")
    loaded = Runs.load(tmp_path / "r.npz")
    for look in (lambda: loaded.models[0], lambda: list(loaded.models)):
        with pytest.raises(bc.InputError, match="models: they are not saved with runs; run the agent again"):
            look()


def test_runs_of_an_agent_that_this_process_does_not_know_can_be_read(tmp_path):
    register("visitor")(lambda setup, agent: KINDS["q"].build(setup, agent))
    try:
        bc.run(MAZE, bc.agent("visitor", alpha=0.5), 3, 2).save(tmp_path / "r.npz")
    finally:
        del KINDS["visitor"]
    loaded = Runs.load(tmp_path / "r.npz")
    assert (loaded.agent.name, loaded.agent.alpha) == ("visitor", 0.5)


def test_an_agent_that_is_no_plain_data_is_not_saved(tmp_path):
    runs = bc.run(MAZE, bc.agent("q"), 3, 2)
    agent = type(runs.agent)("q", settings=(("beta", object()),))
    with pytest.raises(bc.InputError, match="agent: its setting 'beta' cannot be saved as plain data"):
        type(runs)(**{**vars(runs), "agent": agent}).save(tmp_path / "r.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def saved(tmp_path):
    bc.run(MAZE, bc.agent("q"), 3, 2).save(tmp_path / "r.npz")
    return tmp_path / "r.npz"


def changed(path, **arrays):
    """The same file with other arrays."""
    with np.load(path) as found:
        parts = {**dict(found), **arrays}
    np.savez_compressed(path, **{name: array for name, array in parts.items() if array is not None})


def text(content):
    return np.frombuffer(content.encode(), dtype=np.uint8)


def test_files_that_are_older_than_a_setting_are_read(saved):
    with np.load(saved) as found:
        content = json.loads(found["text"].tobytes())
    assert content["agent"].pop("epsilon_schedule", "missing") is None
    changed(saved, text=text(json.dumps(content)))
    assert Runs.load(saved).agent == bc.agent("q")


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"steps": None}, "it has 0 arrays 'steps', expected one"),
        ({"runs_format": np.array(2)}, "format 2, this version reads format 1"),
        ({"steps": np.zeros(6, dtype=int)}, "steps has the shape"),
        ({"reward": np.zeros((2, 4))}, r"reward has the shape \(2, 4\), expected \(2, 3\)"),
        ({"diverged": np.zeros(3, dtype=int)}, r"diverged has the shape \(3,\), expected \(2,\)"),
        ({"values": np.zeros((3, 6, 4))}, r"values has the shape .*, expected one entry for each of 2 seeds"),
        ({"values": np.array([[{}]])}, "values holds object"),
        ({"text": text("[")}, "Expecting value"),
        ({"text": text("[]")}, "its text does not say which world, agent and seeds"),
        ({"text": text('{"world": "m", "agent": {}, "seeds": [0]}')}, "its seeds are not 2 whole numbers"),
        ({"text": text('{"world": "m", "agent": {}, "seeds": [0, "1"]}')}, "its seeds are not 2 whole numbers"),
        ({"text": text('{"world": "m", "agent": {}, "seeds": [0, 1]}')}, "'kind'"),
    ],
)
def test_files_that_are_not_as_they_should_be_are_refused(saved, arrays, reason):
    changed(saved, **arrays)
    with pytest.raises(bc.InputError, match=rf"r.npz: not Runs saved by Backcast \(.*{reason}"):
        Runs.load(saved)


def test_foreign_and_damaged_files_are_refused_in_a_sentence(saved, tmp_path):
    MAZE.mdp.save(tmp_path / "mdp.npz")
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "empty", "w"):
        pass
    for name in ("mdp.npz", "text", "empty"):
        with pytest.raises(bc.InputError, match=f"{name}: not Runs saved by Backcast"):
            Runs.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Runs.load(tmp_path / "missing")
    whole = saved.read_bytes()
    for cut in range(0, len(whole), 151):
        saved.write_bytes(whole[:cut])
        with pytest.raises(bc.InputError, match="not Runs saved by Backcast"):
            Runs.load(saved)


def test_a_flipped_bit_never_gives_other_numbers(saved):
    whole, before = saved.read_bytes(), Runs.load(saved)
    for place in range(0, len(whole), 37):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            loaded = Runs.load(saved)
        except bc.InputError:
            continue
        for name in ARRAYS:  # a bit that nobody reads
            np.testing.assert_array_equal(getattr(loaded, name), getattr(before, name))


def test_the_greedy_policy_shares_ties_equally():
    runs = bc.run(MAZE, bc.agent("q"), 30, 2)
    policy = runs.policy(1)
    assert policy.shape == (6, 4)
    np.testing.assert_allclose(policy.sum(axis=1), 1)
    np.testing.assert_array_equal(policy[2], [0.25] * 4)  # the goal: nothing is known of any action
    expected = (runs.values[1] == runs.values[1].max(axis=1, keepdims=True)) > 0
    np.testing.assert_array_equal(policy > 0, expected)
    assert not np.array_equal(policy, runs.policy())


def test_a_policy_is_refused_where_there_is_none(tmp_path):
    with pytest.raises(bc.InputError, match=r"policy: chain.* is a prediction world, in which there is nothing to"):
        bc.run(CHAIN, bc.agent("td"), 2, 1).policy()
    with pytest.raises(bc.InputError, match="seed_index: 2 given"):
        bc.run(MAZE, bc.agent("q"), 2, 2).policy(2)
    agent = bc.agent("q", features=bc.features.tiles(tilings=2, bins=2))
    boxed = bc.train(gymnasium.make("MountainCar-v0"), agent, 1, 0, max_steps=5)
    with pytest.raises(bc.InputError, match="policy: states of MountainCar-v0 have no numbers"):
        boxed.policy()
    boxed.save(tmp_path / "boxed.npz")
    np.testing.assert_array_equal(Runs.load(tmp_path / "boxed.npz").weights, boxed.weights)


def test_values_have_the_names_of_states():
    runs = bc.run(MAZE, bc.agent("q"), 30, 3)
    best = runs.values.max(axis=2).mean(axis=0)
    assert runs.values_by_state() == dict(enumerate(best))
    assert runs.values_by_state(MAZE)[1, 2] == best[5]
    chain = bc.run(CHAIN, bc.agent("td"), 3, 2)
    assert chain.values_by_state(CHAIN)[1, 0.5] == chain.values.mean(axis=0)[5]
    with pytest.raises(bc.InputError, match="world: it has 9 states, but these runs have values of 6"):
        runs.values_by_state(CHAIN)


def test_the_long_table_has_a_row_for_each_metric_of_each_episode():
    runs = bc.run(MAZE, bc.agent("q"), 4, [3, 5])
    table = runs.to_arrow()
    assert table.column_names == ["world", "agent", "seed", "episode", "metric", "value"]
    assert table.slice(5, 1).to_pylist() == [
        dict(world=runs.world, agent="q", seed=5, episode=1, metric="steps", value=runs.steps[1, 1])
    ]
    assert table["metric"].to_pylist() == ["steps"] * 8 + ["reward"] * 8
    np.testing.assert_array_equal(table["value"], [*runs.steps.ravel(), *runs.reward.ravel()])
    assert bc.run(MAZE, bc.agent("q"), 1, [2**70]).to_arrow()["seed"].to_pylist() == [str(2**70)] * 2
    chain = bc.run(CHAIN, bc.agent("td"), 2, 1).to_arrow()
    assert chain["metric"].to_pylist() == ["rmsve", "rmsve", "rmsve_inner", "rmsve_inner"]


def test_the_same_table_for_pandas():
    pytest.importorskip("pandas")
    runs = bc.run(MAZE, bc.agent("q"), 4, [3, 5])
    assert runs.to_pandas().to_dict("records") == runs.to_arrow().to_pylist()


@pytest.mark.skipif(importlib.util.find_spec("pandas") is not None, reason="pandas is installed")
def test_without_pandas_it_is_said():
    with pytest.raises(bc.InputError, match="pandas: it is not installed; pip install pandas"):
        bc.run(MAZE, bc.agent("q"), 2, 1).to_pandas()
