"""Kinds of one's own in studies: who may import the modules that register them, and what is said where nobody does."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS, register
from backcast.report import colours, style
from backcast.studies import check_study, read_study, results
from backcast.studies.engines.local import LocalEngine
from backcast.studies.engines.on_slurm import SlurmEngine
from backcast.studies.runner import run_study
from backcast.studies.store import Store
from backcast.studies.units import perform
from commands import a_command_line  # noqa: F401  a fixture

PLUGIN = """
from backcast.agents.kinds import KINDS, register

open({trace!r}, "w").close()


@register("patient", only="control")
def patient(setup, agent):
    '''Q-learning by another name.'''
    return KINDS["q"].build(setup, agent)
"""
TOML = """
episodes = 3
seeds = 4
plugins = ["my_plugin"]
[grid]
alpha_plan = [0.5, 1.0]
[[worlds]]
kind = "maze"
text = "S.G"
max_steps = 20
[[agents]]
kind = "patient"
[[agents]]
kind = "backward"
"""
READING = ("export", "report", "claims", "best", "verify")


def forget():
    """As if the plugin had never been imported."""
    for name in ("my_plugin", "announced"):
        sys.modules.pop(name, None)
    KINDS.pop("patient", None)


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """A module that registers a kind and leaves a trace when it is imported; the path of the trace."""
    trace = tmp_path / "imported"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_plugin.py").write_text(PLUGIN.format(trace=str(trace)))
    monkeypatch.syspath_prepend(tmp_path / "modules")
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


def test_a_plugin_of_a_study_is_imported_and_its_kinds_run(tmp_path, cli, study):
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    (result,) = results(tmp_path / "r")
    assert result.agents("custom-maze") == ["patient", "backward,alpha_plan=0.5", "backward,alpha_plan=1"]
    direct = bc.run(bc.worlds.maze("S.G", max_steps=20), bc.agent("q"), 3, 4)
    np.testing.assert_array_equal(result.curves("custom-maze", "patient", "steps"), direct.steps)


def test_a_dry_run_imports_no_plugin_and_says_what_it_did_not_check(tmp_path, cli, study, trace):
    code, told, _ = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")
    assert (code, trace.exists()) == (0, False)
    assert told.splitlines()[1:] == [
        "not checked: agents.0: 'patient' was not looked at, as that would import the plugins my_plugin"
    ]
    study.write_text(TOML.replace('"maze"\ntext = "S.G"', '"gymnasium"\nid = "Elsewhere-v0"'))
    code, told, _ = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")
    assert (code, trace.exists(), "'Elsewhere-v0' was not made" in told) == (0, False, True)


@pytest.mark.parametrize("name", READING)
def test_reading_results_imports_no_plugin_and_misses_nothing(tmp_path, cli, stored, trace, name):
    more = ["--to", tmp_path / "t.csv"] if name == "export" else []
    code, _, complaint = cli(name, stored, *more)
    assert (code, "missing" in complaint, trace.exists()) == (0, False, False)


def test_results_of_a_plugins_kind_that_averages_are_read_without_it(tmp_path, cli, study, trace):
    plugin = tmp_path / "modules" / "my_plugin.py"
    study.write_text(TOML.replace('kind = "patient"', 'kind = "patient"\nschedule = "average"'))
    code, _, complaint = cli("sweep", study, "--out", tmp_path / "r", "--quiet")
    assert (code, "'patient' does not count them" in complaint) == (2, True)
    plugin.write_text(plugin.read_text().replace('only="control"', 'only="control", averages=True'))
    forget()
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    forget()
    trace.unlink()
    code, told, _ = cli("best", tmp_path / "r")
    assert (code, "patient" in told, trace.exists()) == (0, True, False)


def test_settings_that_make_no_difference_to_a_plugins_kind_are_not_taken_for_runs(tmp_path, cli, study, trace):
    plugin = tmp_path / "modules" / "my_plugin.py"
    plugin.write_text(plugin.read_text().replace('only="control"', 'only="control", learns_model=False'))
    study.write_text(TOML.replace("alpha_plan =", "alpha_model ="))
    run_study(Store(tmp_path / "r", create=True), read_study(study))
    forget()
    assert cli("verify", tmp_path / "r")[1].endswith("with 12 runs are whole, 0 are not\n")
    assert results(tmp_path / "r")[0].agents("custom-maze")[0] == "patient"


def test_a_plugins_kind_looks_the_same_where_it_is_not_imported(tmp_path, study, trace):
    plugin = tmp_path / "modules" / "my_plugin.py"
    looks = 'only="control", label="Patience", family="TD and SARSA"'
    plugin.write_text(plugin.read_text().replace('only="control"', looks))
    run_study(Store(tmp_path / "r", create=True), read_study(study))
    before = colours.colour("patient"), style.agent_label("patient", []), style.plans("patient")
    forget()
    trace.unlink()
    results(tmp_path / "r")
    after = colours.colour("patient"), style.agent_label("patient", []), style.plans("patient")
    assert (after, trace.exists()) == (before, False)
    assert after == (colours.GREY, "Patience", False)


def test_results_are_continued_only_with_plugins_that_are_allowed(cli, stored, trace):
    code, _, complaint = cli("sweep", stored, "--quiet", "--seeds", 6)
    assert (code, trace.exists()) == (2, False)
    assert "s: plugins would import the module 'my_plugin', which may run anything" in complaint
    assert complaint.rstrip().endswith("add --allow-import my_plugin")
    code, told, _ = cli("sweep", stored, "--dry-run", "--seeds", 6)
    assert (code, trace.exists()) == (0, False)
    assert "18 runs, of which 6 are to be made" in told
    assert cli("sweep", stored, "--quiet", "--seeds", 6, "--allow-import", "my_plugin") == (0, "", "")
    assert trace.exists()
    assert results(stored)[0].seeds == 6


def test_what_is_known_by_name_alone_is_not_run(stored):
    ((study, _),) = Store(stored).studies()
    patient = study.runs()[0].agent
    with pytest.raises(bc.InputError, match="agent: 'patient' is known by name alone; import my_plugin first"):
        bc.run(bc.worlds.maze(), patient, 1, 1)
    register("patient")(lambda setup, agent: KINDS["q"].build(setup, agent))  # whoever has it may register it
    assert bc.run(bc.worlds.maze("S.G"), patient, 1, 1).steps.shape == (1, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('plugins = ["my_plugin"]', ""), "agents.0.kind: .*or name the module that registers it in plugins"),
        (("my_plugin", "no_such"), "plugins: the module 'no_such' cannot be imported on .*No module named 'no_such'"),
        (("my_plugin", "my plugin"), 'plugins.0: "my plugin" given, string should match pattern'),
        (('["my_plugin"]', '"my_plugin"'), 'plugins: "my_plugin" given, input should be a valid list'),
        (('kind = "patient"', 'kind = "hasty"'), "agents.0.kind: .*expected one of"),
    ],
)
def test_plugins_and_kinds_that_are_not_there_are_named(study, change, sentence):
    study.write_text(TOML.replace(*change))
    with pytest.raises(bc.InputError, match=rf"s.toml: {sentence}"):
        read_study(study)


def test_a_plugin_that_breaks_is_named(tmp_path, study):
    (tmp_path / "modules" / "my_plugin.py").write_text("1 / 0")
    with pytest.raises(bc.InputError, match=r"'my_plugin' cannot be imported on .* \(ZeroDivisionError: division by"):
        read_study(study)


def test_processes_import_the_plugin_or_say_what_is_missing(tmp_path, study, monkeypatch):
    given = read_study(study)
    for path, failures in ((str(tmp_path / "modules"), 0), ("", 1)):
        monkeypatch.setenv("PYTHONPATH", path)
        store = Store(tmp_path / f"r{failures}", create=True)
        agents = [agent for agent in given.agents if agent.kind == "patient"]
        alone = given.model_copy(update={"agents": agents, "grid": {}})
        summary = run_study(store, alone, engine=LocalEngine(workers=1, time_limit=60))
        assert len(summary.failures) == (4 if failures else 0)
        for failed in summary.failures:
            assert failed.error.startswith("InputError: plugins: the module 'my_plugin' cannot be imported on ")


@pytest.mark.slow
def test_jobs_import_the_plugin(tmp_path, study, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]))
    store = Store(tmp_path / "r", create=True)
    failures = run_study(store, read_study(study), engine=SlurmEngine(store, jobs=1, local=True)).failures
    assert [failed.details for failed in failures] == []


@pytest.mark.slow
def test_workers_of_dask_import_the_plugin(tmp_path, study, monkeypatch):
    pytest.importorskip("distributed")
    from backcast.studies.engines.on_dask import DaskEngine

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]))
    store = Store(tmp_path / "r", create=True)
    assert run_study(store, read_study(study), engine=DaskEngine(workers=1)).failures == []


def test_a_worker_whose_plugin_is_another_says_so(tmp_path, study):
    cell = read_study(study).runs()[0]
    del KINDS["patient"]
    outcome = perform(type("Unit", (), {"cell": cell, "seeds": (0,)})())
    assert outcome.error == (
        "InputError: kind: 'patient' is not known here; the plugins of the study (my_plugin) do not register it"
    )


@pytest.fixture
def announced(tmp_path, trace):
    """An installed package that announces a plugin."""
    modules = tmp_path / "modules"
    (modules / "my_plugin.py").rename(modules / "announced.py")
    (modules / "announced-1.0.dist-info").mkdir()
    (modules / "announced-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n"
    )
    (modules / "announced-1.0.dist-info" / "entry_points.txt").write_text("[backcast.plugins]\npatient = announced\n")
    return modules / "announced.py"


def test_installed_plugins_are_imported_by_the_command_line(tmp_path, cli, study, announced, trace):
    study.write_text(TOML.replace('plugins = ["my_plugin"]', ""))
    code, told, _ = cli("list")
    assert (code, "Q-learning by another name." in told) == (0, True)
    forget()
    trace.unlink()
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    forget()
    trace.unlink()
    for name in ("report", "verify"):
        assert cli(name, tmp_path / "r")[0] == 0
    assert not trace.exists()
    assert Store(tmp_path / "r").studies()[0].study.plugins == ["announced"]
    assert cli("sweep", tmp_path / "r", "--seeds", 5, "--quiet") == (0, "", "")


def test_kinds_of_a_module_are_listed_if_it_is_named(cli, trace):
    code, told, _ = cli("list", "patient", "--allow-import", "my_plugin")
    assert (code, "Q-learning by another name." in told) == (0, True)
    code, _, complaint = cli("list", "--allow-import", "no_such_module")
    assert (code, "--allow-import: the module 'no_such_module' cannot be imported" in complaint) == (2, True)


def test_an_installed_plugin_that_breaks_stops_nobody(cli, announced):
    announced.write_text("1 / 0")
    code, told, complaint = cli("list")
    assert (code, "backward" in told) == (0, True)
    assert "backcast: plugins: the module 'announced' cannot be imported on" in complaint


def test_a_comparison_names_the_modules_of_its_kinds(tmp_path, trace, monkeypatch):
    __import__("my_plugin")
    found = bc.compare(bc.worlds.maze("S.G"), [bc.agent("q"), bc.agent("patient")], 2, 2)
    found.save(tmp_path / "r")
    assert Store(tmp_path / "r").studies()[0].study.plugins == ["my_plugin"]
    monkeypatch.setattr(KINDS["patient"].build, "__module__", "__main__")
    with pytest.raises(bc.InputError, match="agents: the kind of 'patient', 'patient', was registered in __main__"):
        found.save(tmp_path / "r2")


def test_a_study_in_python_may_name_plugins(trace):
    given = {"name": "s", "episodes": 1, "worlds": [{"kind": "maze"}], "agents": [{"kind": "patient"}]}
    assert check_study({**given, "plugins": ["my_plugin"]}, "test").runs()[0].plugins == ("my_plugin",)
    assert Path(trace).exists()
