"""Kinds of worlds of one's own: in studies, comparisons and other processes, and read where nobody imports them."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

import backcast as bc
from backcast.studies import check_study, read_study, results
from backcast.studies.engines.local import LocalEngine
from backcast.studies.runner import run_study
from backcast.studies.sealing import seal
from backcast.studies.store import Store
from backcast.studies.units import Unit, perform
from backcast.worlds.kinds import WORLDS, Picture
from commands import a_command_line  # noqa: F401  a fixture

PLUGIN = """
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

import backcast as bc
from backcast.extending import Bounds, PerSeed, Picture, Sketch, World, register_world

open({trace!r}, "w").close()


class Shown(Sketch):
    def picture(self, given):
        return Picture("A corridor of " + str(given["n"]) + " cells", cells="S" + "." * (given["n"] - 2) + "G")


@register_world("corridor", sketch=Shown())
def corridor(n: Annotated[int, Bounds(2)] = 4, slip: float = 0.0, ends: Literal["left", "right"] = "right") -> World:
    '''A corridor with a goal at one of its ends.

    Args:
        n: cells.
        slip: of the floor. More about it.
        ends: where the goal is.
    '''
    text = "S" + "." * (n - 2) + "G"
    return bc.worlds.maze(text if ends == "right" else text[::-1], slip=slip, max_steps=50)


@register_world("drawn", purpose="prediction")
def drawn(levels: list[int] = (3, 2), seed: int | None = 0) -> World:
    '''A chain that every seed draws.'''
    return World("drawn", None, redraw=PerSeed(drawn_by)) if seed is None else drawn_by(seed)


def drawn_by(seed):
    return bc.worlds.chain((3, 2), seed=seed)


@register_world("drawing")
def drawing(file: Path, slip: float = 0.0) -> World:
    '''A maze in a file.'''
    return bc.worlds.maze(file.read_text(), slip=slip)
"""
TOML = """
episodes = 3
seeds = 4
plugins = ["my_worlds"]
[[worlds]]
kind = "corridor"
n = 5
slip = 0
[[agents]]
kind = "q"
[[agents]]
kind = "backward"
"""
READING = ("export", "report", "claims", "best", "verify")


def forget():
    """As if the plugin had never been imported."""
    sys.modules.pop("my_worlds", None)
    for name in ("corridor", "drawn", "drawing"):
        WORLDS.pop(name, None)


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """A module that registers worlds and leaves a trace when it is imported; the path of the trace."""
    trace = tmp_path / "imported"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_worlds.py").write_text(PLUGIN.format(trace=str(trace)))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"), prepend=":")
    forget()
    yield trace
    forget()


@pytest.fixture
def study(tmp_path, trace):
    (tmp_path / "s.toml").write_text(TOML)
    return tmp_path / "s.toml"


@pytest.fixture
def stored(tmp_path, study, trace):
    """Results of a study with a plugin, by somebody else."""
    store = Store(tmp_path / "r", create=True)
    run_study(store, read_study(study))
    forget()
    trace.unlink()
    return store.directory


def test_a_world_of_a_plugin_runs_in_a_study(tmp_path, cli, study):
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    (result,) = results(tmp_path / "r")
    direct = bc.run(bc.worlds.maze("S...G", max_steps=50), bc.agent("q"), 3, 4)
    np.testing.assert_array_equal(result.curves("custom-maze", "q", "steps"), direct.steps)
    assert result.study.worlds[0].identity == {"kind": "corridor", "n": 5, "slip": 0.0}


def test_figures_show_what_a_kind_says_of_its_worlds_also_where_it_is_not_imported(stored, trace):
    (result,) = results(stored)
    assert result.picture("custom-maze") == Picture("A corridor of 5 cells", cells="S...G")
    assert not trace.exists()


def test_a_label_does_not_change_what_a_world_is(study):
    """Neither is a corridor the paper's maze because of its label, nor has a chain no levels because it has one."""
    worlds = [
        {"kind": "corridor", "n": 3, "label": "maze-small"},
        {"kind": "boyan", "label": "chain-9-3"},
        {"kind": "chain", "levels": [6, 2], "label": "mine"},
    ]
    given = {"name": "s", "episodes": 3, "plugins": ["my_worlds"], "worlds": worlds, "agents": [{"kind": "backward"}]}
    assert [each.picture for each in check_study(given, "s").worlds] == [
        Picture("maze-small", cells="S.G"),
        Picture("chain-9-3"),
        Picture("mine", levels=(6, 2)),
    ]


def test_a_dry_run_imports_no_plugin_and_says_what_it_did_not_check(tmp_path, cli, study, trace):
    code, told, complaint = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")
    assert (code, trace.exists(), complaint) == (0, False, "")
    assert told.splitlines() == [
        "s: 2 combinations of world, agent and settings, 4 seeds: 8 runs, of which 8 are to be made",
        "not checked: worlds.0: 'corridor' was not looked at, as that would import the plugins my_worlds",
    ]


@pytest.mark.parametrize("name", READING)
def test_reading_results_imports_no_plugin_and_misses_nothing(tmp_path, cli, stored, trace, name):
    more = ["--to", tmp_path / "t.csv"] if name == "export" else []
    code, _, complaint = cli(name, stored, *more)
    assert (code, "missing" in complaint, trace.exists()) == (0, False, False)


def test_runs_are_known_whoever_reads_them(stored, study, trace):
    """What determines a run has the same hash with the plugin and without it."""
    ((without, _),) = Store(stored).studies()
    assert not trace.exists()
    forget()
    assert [cell.group for cell in read_study(study).runs()] == [cell.group for cell in without.runs()]


def test_results_are_continued_only_with_plugins_that_are_allowed(cli, stored, trace):
    code, _, complaint = cli("sweep", stored, "--quiet", "--seeds", 6)
    assert (code, trace.exists()) == (2, False)
    assert complaint.rstrip().endswith("add --allow-import my_worlds")
    code, told, _ = cli("sweep", stored, "--dry-run", "--seeds", 6)
    assert (code, trace.exists(), "12 runs, of which 4 are to be made" in told) == (0, False, True)
    assert cli("sweep", stored, "--quiet", "--seeds", 6, "--allow-import", "my_worlds") == (0, "", "")
    assert (trace.exists(), results(stored)[0].seeds) == (True, 6)


def test_what_is_known_by_name_alone_is_not_made(stored):
    ((study, _),) = Store(stored).studies()
    with pytest.raises(bc.InputError, match="world: 'corridor' is known by name alone; import my_worlds first"):
        study.worlds[0].build()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('plugins = ["my_worlds"]', ""), r"worlds\.0\.kind: .*expected one of .*name the module that registers it in"),
        (("my_worlds", "no_such"), "plugins: the module 'no_such' cannot be imported on"),
        (('kind = "corridor"', 'kind = "coridor"'), r"worlds\.0\.kind: .*did you mean 'corridor'\?"),
        (("n = 5", "n = 1"), r"worlds\.0\.n: 1 given, expected a whole number, 2 or more"),
        (("n = 5", 'n = "many"'), r"worlds\.0\.n: \"many\" given, input should be a valid integer"),
        (("n = 5", 'ends = "up"'), r"worlds\.0\.ends: \"up\" given, input should be 'left' or 'right'"),
        (("n = 5", "m = 5"), r"worlds\.0\.m: no such key; allowed are kind, label, .*, n, slip, ends"),
        (("n = 5", "levels = [2, 3]"), r"worlds\.0: .*levels does not belong to a corridor; its keys are n"),
        (('kind = "corridor"\nn = 5\nslip = 0', 'kind = "drawing"'), r"worlds\.0\.file: missing, expected text"),
    ],
)
def test_what_does_not_fit_is_refused(study, change, sentence):
    study.write_text(TOML.replace(*change))
    with pytest.raises(bc.InputError, match=rf"s.toml: {sentence}"):
        read_study(study)


def test_processes_import_the_plugin_or_say_what_is_missing(tmp_path, study, monkeypatch):
    given = read_study(study)
    for failures in (0, 8):
        if failures:
            monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"].partition(":")[2])
        store = Store(tmp_path / f"r{failures}", create=True)
        summary = run_study(store, given, engine=LocalEngine(workers=1, time_limit=300))
        assert sum(len(failed.unit.seeds) for failed in summary.failures) == failures
        for failed in summary.failures:
            assert failed.error.startswith("InputError: plugins: the module 'my_worlds' cannot be imported on ")


def test_a_worker_whose_plugin_is_another_says_so(study):
    cell = read_study(study).runs()[0]
    del WORLDS["corridor"]
    assert perform(Unit(cell, (0,))).error == (
        "InputError: world: 'corridor' is not known here; the plugins of the study (my_worlds) do not register it"
    )


def test_a_comparison_is_saved_with_the_module_of_its_worlds(tmp_path, trace, monkeypatch):
    plugin = __import__("my_worlds")
    found = bc.compare({"short": plugin.corridor(3), "long": plugin.corridor(np.int64(5), 0.25)}, bc.agent("q"), 2, 2)
    found.save(tmp_path / "r")
    ((study, _),) = Store(tmp_path / "r").studies()
    assert study.plugins == ["my_worlds"]
    assert [world.identity for world in study.worlds] == [
        {"kind": "corridor", "n": 3},
        {"kind": "corridor", "n": 5, "slip": 0.25},
    ]
    for cell in study.runs():
        again = bc.run(cell.world.build(), cell.agent, 2, 2)
        np.testing.assert_array_equal(again.steps, found.runs[cell.world.name, "q"].steps)


def test_a_world_of_a_notebook_cannot_be_made_elsewhere(tmp_path, trace, monkeypatch):
    world = __import__("my_worlds").corridor(3)
    monkeypatch.setattr(WORLDS["corridor"].make, "__module__", "__main__")
    with pytest.raises(bc.InputError, match=r"worlds: 'custom-maze' cannot be described in a study; .*in a module"):
        bc.compare(world, bc.agent("q"), 1, 1).save(tmp_path / "r")


def test_every_seed_draws_its_own_if_the_seed_may_be_none(trace):
    given = {"name": "s", "episodes": 1, "worlds": [{"kind": "drawn"}], "agents": [{"kind": "td"}]}
    (world,) = check_study({**given, "plugins": ["my_worlds"]}, "test").worlds
    assert world.build().draw(7).mdp == bc.worlds.chain((3, 2), seed=7).mdp
    assert (world.purpose, world.judged_by) == ("prediction", "rmsve")


def test_a_file_is_known_by_its_content(tmp_path, cli, study, trace):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "my.txt").write_text("S..G")
    study.write_text(TOML.replace('"corridor"\nn = 5', '"drawing"\nfile = "data/my.txt"'))
    first = read_study(study)
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet")[0] == 0
    shutil.move(tmp_path / "data" / "my.txt", tmp_path / "data" / "other.txt")
    study.write_text(study.read_text().replace("my.txt", "other.txt"))
    assert read_study(study).runs()[0].group == first.runs()[0].group
    forget()
    trace.unlink()
    code, _, complaint = cli("sweep", tmp_path / "r", "--seeds", 5, "--quiet", "--allow-import", "my_worlds")
    assert (code, "my.txt cannot be read on" in complaint) == (2, True)
    assert cli("report", tmp_path / "r")[0] == 0
    assert not trace.exists()


def test_what_is_remembered_of_a_kind_is_checked(stored, cli):
    path = stored / "studies" / "s.json"
    known = json.loads(path.read_text())
    assert known["world_kinds"] == {"corridor": {"purpose": None, "keys": ["n", "slip", "ends"], "file": None}}
    del known["sha256"]
    path.write_text(seal(json.dumps({**known, "world_kinds": {"corridor": {"purpose": "fun"}}})))
    code, _, complaint = cli("best", stored)
    assert (code, "s.json: world_kinds: what was known of them cannot be understood" in complaint) == (2, True)


def test_list_shows_its_keys(cli, trace):
    __import__("my_worlds")
    _, told, _ = cli("list")
    assert "  corridor                      A corridor with a goal at one of its ends." in told
    _, told, _ = cli("list", "corridor")
    assert "  n               cells\n                  a whole number, 2 or more (default 4)\n" in told
    assert "  slip            of the floor\n                  a number (default 0.0)\n" in told
