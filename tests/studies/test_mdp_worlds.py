"""Worlds of studies that are files: found beside the study, known by their content, read safely."""

import json
import shutil

import numpy as np
import pytest

import backcast as bc
from backcast.core import limits
from backcast.studies import check_study, read_study, results
from backcast.studies.store import Store
from backcast.studies.units import Unit, perform, world_of
from commands import a_command_line  # noqa: F401  a fixture
from random_worlds import random_mdp

TOML = """
episodes = 4
seeds = 3
[[worlds]]
kind = "mdp"
file = "data/my.npz"
max_steps = 50
[[agents]]
kind = "q"
"""


@pytest.fixture
def mdp():
    return random_mdp(np.random.default_rng(1), 6, 2, terminals=1)


@pytest.fixture
def study(tmp_path, mdp):
    """The path of a study of a world in a file."""
    (tmp_path / "data").mkdir()
    mdp.save(tmp_path / "data" / "my.npz")
    (tmp_path / "s.toml").write_text(TOML)
    return tmp_path / "s.toml"


def test_a_saved_world_enters_a_study(tmp_path, cli, study, mdp):
    code, _, complaint = cli("sweep", study, "--out", tmp_path / "r", "--quiet")
    assert (code, complaint) == (0, "")
    (result,) = results(tmp_path / "r")
    direct = bc.run(bc.worlds.from_mdp(mdp), bc.agent("q"), 4, 3, max_steps=50)
    np.testing.assert_array_equal(result.curves("my", "q", "reward"), direct.reward)
    assert result.study.worlds[0].judged_by == bc.worlds.from_mdp(mdp).judged_by


@pytest.mark.parametrize("saved", [False, True])
def test_the_policy_is_that_of_the_file_or_the_uniform_one(tmp_path, study, mdp, saved):
    policy = np.random.default_rng(2).dirichlet([1, 1], 6)
    mdp.save(tmp_path / "data" / "my.npz", policy if saved else None)
    uniform = "" if saved else '\npolicy = "uniform"'
    study.write_text(TOML.replace("max_steps = 50", f"max_steps = 50{uniform}").replace('"q"', '"td"'))
    (world,) = read_study(study).worlds
    assert (world.name, world.purpose, world.judged_by) == ("my", "prediction", "rmsve")
    expected = policy if saved else np.full((6, 2), 0.5)
    np.testing.assert_allclose(world.build().policy, expected)
    assert bc.FiniteMDP.load(tmp_path / "data" / "my.npz") == mdp


def test_results_are_read_without_the_file_and_continued_with_the_same(tmp_path, cli, study, mdp):
    cli("sweep", study, "--out", tmp_path / "r", "--quiet")
    file, away = tmp_path / "data" / "my.npz", tmp_path / "away.npz"
    shutil.move(file, away)
    for command in ("report", "best", "verify"):
        assert cli(command, tmp_path / "r")[0] == 0
    told = cli("sweep", tmp_path / "r", "--dry-run", "--seeds", 5)[1].splitlines()
    assert told[0].endswith("5 runs, of which 2 are to be made")
    assert told[1] == f"not checked: worlds.0: the file {file} was not read"
    code, _, complaint = cli("sweep", tmp_path / "r", "--seeds", 5, "--quiet")
    assert (code, f"s: worlds.0: file: {file} cannot be read on" in complaint) == (2, True)
    assert "every machine that runs the study needs it at this path" in complaint
    random_mdp(np.random.default_rng(5), 6, 2, terminals=1).save(file)
    code, _, complaint = cli("sweep", tmp_path / "r", "--seeds", 5, "--quiet")
    assert (code, f"s: worlds.0: file: {file} has another content than the study" in complaint) == (
        2,
        True,
    )
    shutil.move(away, file)
    assert cli("sweep", tmp_path / "r", "--seeds", 5, "--quiet")[0] == 0
    assert results(tmp_path / "r")[0].seeds == 5


def test_a_worker_without_the_file_says_what_is_missing(tmp_path, study):
    (cell,) = read_study(study).runs()
    (tmp_path / "data" / "my.npz").unlink()
    world_of.cache_clear()
    outcome = perform(Unit(cell, (0,)))
    assert outcome.error.startswith(f"InputError: file: {tmp_path / 'data' / 'my.npz'} cannot be read on ")


def test_another_content_is_another_world_wherever_it_is(tmp_path, study, mdp):
    before = read_study(study)
    shutil.copy(tmp_path / "data" / "my.npz", tmp_path / "data" / "other.npz")
    study.write_text(TOML.replace("my.npz", "other.npz"))
    assert read_study(study).runs()[0].group == before.runs()[0].group
    random_mdp(np.random.default_rng(5), 6, 2, terminals=1).save(tmp_path / "data" / "other.npz")
    assert read_study(study).runs()[0].group != before.runs()[0].group
    study.write_text(TOML.replace("max_steps", f'sha256 = "{before.worlds[0].sha256}"\nmax_steps'))
    assert read_study(study).worlds[0].sha256 == before.worlds[0].sha256
    study.write_text(TOML.replace("max_steps", 'sha256 = "abc"\nmax_steps'))
    with pytest.raises(bc.InputError, match=r"s.toml: worlds.0: file: .*my.npz has another content .* instead of abc"):
        read_study(study)


def test_files_within_the_directory_of_results_move_with_it(tmp_path, mdp):
    store = Store(tmp_path / "r", create=True)
    (tmp_path / "r" / "worlds").mkdir()
    mdp.save(tmp_path / "r" / "worlds" / "my.npz")
    world = {"kind": "mdp", "file": "worlds/my.npz", "max_steps": 50}
    given = {"name": "s", "episodes": 2, "seeds": 1, "worlds": [world], "agents": [{"kind": "q"}]}
    store.add_study(check_study(given, "test", folder=tmp_path / "r"))
    assert json.loads((tmp_path / "r" / "studies" / "s.json").read_text())["study"]["worlds"][0]["file"] == (
        "worlds/my.npz"
    )
    shutil.move(tmp_path / "r", tmp_path / "moved")
    ((study, _),) = Store(tmp_path / "moved").studies()
    assert study.worlds[0].build().mdp == mdp


def test_a_dry_run_reads_only_small_files(tmp_path, cli, study, monkeypatch):
    told = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")[1]
    assert told == "s: 1 combination of world, agent and settings, 3 seeds: 3 runs, of which 3 are to be made\n"
    monkeypatch.setattr("backcast.studies.worldspec.QUICK_FILE", 10)
    told = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")[1]
    assert told.splitlines()[1:] == [f"not checked: worlds.0: the file {tmp_path / 'data' / 'my.npz'} was not read"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("data/my.npz", "no.npz"), "worlds.0: file: .*no.npz cannot be read on .*No such file or directory"),
        (("data/my.npz", "s.toml"), "worlds.0: .*s.toml: not a FiniteMDP saved by Backcast"),
        (('file = "data/my.npz"', ""), "worlds.0.file: missing, expected a file written by `FiniteMDP.save`"),
        (
            ("max_steps = 50", "discount = 0.5"),
            "worlds.0: .*discount does not belong to a mdp; its keys are file",
        ),
        (("max_steps = 50", 'policy = "greedy"'), "worlds.0.policy: .*'uniform'"),
        (('kind = "mdp"', 'kind = "maze"'), "worlds.0: .*file does not belong to a maze"),
    ],
)
def test_files_and_keys_that_do_not_fit_are_refused(tmp_path, study, change, sentence):
    study.write_text(TOML.replace(*change))
    with pytest.raises(bc.InputError, match=f"s.toml: {sentence}"):
        read_study(study)


def test_a_directory_is_no_world(tmp_path, study):
    study.write_text(TOML.replace("data/my.npz", "data"))
    with pytest.raises(bc.InputError, match=r"worlds.0: .*data: a directory, expected a regular file"):
        read_study(study)


def test_worlds_that_are_too_large_are_refused_before_they_are_read(study, monkeypatch):
    monkeypatch.setitem(limits.LIMITS, "states", 5)
    with pytest.raises(bc.InputError, match=r"worlds.0: .*my.npz: 6 states, expected at most 5"):
        read_study(study)


def test_a_policy_that_does_not_fit_is_refused(tmp_path, study, mdp):
    mdp.save(tmp_path / "data" / "my.npz", np.ones((3, 2)))
    with pytest.raises(bc.InputError, match=r"worlds.0: policy: shape \(3, 2\) given, expected"):
        read_study(study)


def test_labels_tell_worlds_apart():
    worlds = [{"kind": "maze", "text": "S.G"}, {"kind": "maze", "text": "S..G", "label": "longer"}]
    given = {"name": "s", "episodes": 2, "worlds": worlds, "agents": [{"kind": "q"}]}
    assert [world.name for world in check_study(given, "test").worlds] == ["custom-maze", "longer"]
    same = check_study({**given, "worlds": [{"kind": "maze", "text": "S..G"}]}, "test")
    assert same.runs()[0].group == check_study(given, "test").runs()[1].group  # a label changes no number
