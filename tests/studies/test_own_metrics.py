"""Metrics of one's own: stored by studies that name their module, and read where nobody imports it."""

import json
import os
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import backcast as bc
from backcast.drivers.metrics import METRICS
from backcast.studies import export, read_study, results
from backcast.studies.engines.local import LocalEngine
from backcast.studies.runner import run_study
from backcast.studies.sealing import seal
from backcast.studies.store import Store
from backcast.studies.units import Finished, Unit, perform
from commands import a_command_line  # noqa: F401  a fixture

PLUGIN = """
from backcast.extending import register_metric

open({trace!r}, "w").close()


@register_metric("pace", label="episodes per step", higher_is_better=True)
def pace(runs):
    return 1 / runs.steps


@register_metric("halves", label="half of the error", per_episode=False, purpose="prediction")
def halves(runs):
    return runs.rmsve / 2
"""
TOML = """
episodes = 3
seeds = 4
plugins = ["my_metrics"]
plots = ["pace-per-episode"]
[grid]
alpha = [0.5, 1.0]
[[worlds]]
kind = "maze"
text = "S..G"
max_steps = 20
[[worlds]]
kind = "chain"
levels = [3, 2]
[[agents]]
kind = "backward"
"""
READING = ("export", "report", "claims", "best", "verify")


def forget():
    """As if the plugin had never been imported."""
    sys.modules.pop("my_metrics", None)
    for name in ("pace", "halves"):
        METRICS.pop(name, None)


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """A module that registers metrics and leaves a trace when it is imported; the path of the trace."""
    trace = tmp_path / "imported"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_metrics.py").write_text(PLUGIN.format(trace=str(trace)))
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


def test_metrics_of_a_plugin_are_stored(tmp_path, cli, study):
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    (result,) = results(tmp_path / "r")
    agent = "backward,alpha=0.5"
    assert result.metrics("custom-maze", agent) == ["steps", "reward", "pace"]
    assert result.metrics("chain-3-2", agent) == ["rmsve", "rmsve_inner", "pace", "halves"]
    steps, errors = result.curves("custom-maze", agent, "steps"), result.curves("chain-3-2", agent, "rmsve")
    np.testing.assert_array_equal(result.curves("custom-maze", agent, "pace"), 1 / steps)
    np.testing.assert_array_equal(result.curves("chain-3-2", agent, "halves"), errors / 2)
    np.testing.assert_array_equal(result.means("custom-maze", agent, "pace"), (1 / steps).mean(axis=1))


def test_they_are_read_without_the_plugin(tmp_path, cli, stored, trace):
    (result,) = results(stored)
    assert result.metrics("custom-maze", "backward,alpha=1") == ["steps", "reward", "pace"]
    assert (METRICS["pace"].label, METRICS["pace"].better) == ("episodes per step", "higher is better")
    export(stored, tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert set(table["metric"].to_pylist()) == {"steps", "reward", "rmsve", "rmsve_inner", "pace", "halves"}
    code, _, _ = cli("report", stored)
    page = (stored / "report.html").read_text()
    assert (code, "episodes per step" in page, "half of the error" in page) == (0, True, True)
    assert (stored / "figures" / "s-pace-per-episode.svg").exists()
    assert not trace.exists()


@pytest.mark.parametrize("name", READING)
def test_reading_results_imports_no_plugin_and_misses_nothing(tmp_path, cli, stored, trace, name):
    more = ["--to", tmp_path / "t.csv"] if name == "export" else []
    code, _, complaint = cli(name, stored, *more)
    assert (code, "missing" in complaint, trace.exists()) == (0, False, False)


def test_the_best_is_chosen_by_them(cli, stored, trace):
    code, told, _ = cli("best", stored, "--metric", "pace", "--json")
    means = {
        (world, label): results(stored)[0].means(world, label, "pace").mean()
        for world in ("custom-maze", "chain-3-2")
        for label in ("backward,alpha=0.5", "backward,alpha=1")
    }
    for found in json.loads(told):
        world = found["group"]["world"]
        assert found["mean"] == pytest.approx(max(mean for (where, _), mean in means.items() if where == world))
    code, told, _ = cli("best", stored, "--metric", "halves", "--json")
    assert [found["worlds"] for found in json.loads(told)] == [["chain-3-2"]]
    assert (code, trace.exists()) == (0, False)
    code, _, complaint = cli("best", stored, "--metric", "pac")
    assert (code, "metric: 'pac' given, expected one of rmsve, " in complaint) == (2, True)
    assert "did you mean 'pace'?" in complaint
    assert "pace: higher is better" in cli("best", stored, "--metric", "pace")[1]


def test_a_dry_run_imports_nothing_and_knows_their_plots(tmp_path, cli, study, trace):
    code, told, complaint = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")
    assert (code, complaint, trace.exists()) == (0, "", False)
    assert "16 runs, of which 16 are to be made" in told
    forget()
    study.write_text(TOML.replace('plugins = ["my_metrics"]', ""))
    for dry in ([], ["--dry-run"]):
        code, _, complaint = cli("sweep", study, "--out", tmp_path / "r", *dry)
        assert (code, "plots: " in complaint, "'pace-per-episode' is not a plot" in complaint) == (2, True, True)


def test_a_study_measures_what_its_plugins_register_and_nothing_else(study):
    """Other modules that a process happens to have imported leave the tables alone."""
    __import__("my_metrics")
    study.write_text(TOML.replace('plugins = ["my_metrics"]\nplots = ["pace-per-episode"]', ""))
    cell = read_study(study).runs()[0]
    done = perform(Unit(cell, (0,)))
    assert isinstance(done, Finished)
    assert done.table.column_names == ["seed", "episode", "updates", "steps", "reward"]


def test_runs_of_before_have_no_metric_and_stay_readable(tmp_path, cli, study, trace):
    study.write_text(TOML.replace('plugins = ["my_metrics"]\nplots = ["pace-per-episode"]', ""))
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    study.write_text(TOML)
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet", "--seeds", 6) == (0, "", "")
    (result,) = results(tmp_path / "r")
    assert (result.seeds, result.complete) == (6, True)
    assert result.metrics("custom-maze", "backward,alpha=1") == ["steps", "reward"]  # two of its six runs have it
    with pytest.raises(bc.InputError, match="s: pace was not measured when backward,alpha=1 was run in custom-maze"):
        result.curves("custom-maze", "backward,alpha=1", "pace")
    code, _, complaint = cli("best", tmp_path / "r", "--metric", "pace")
    assert (code, "metric: 'pace' given, but it is measured in none of the worlds" in complaint) == (2, True)
    assert cli("report", tmp_path / "r")[0] == 0
    assert not list((tmp_path / "r" / "figures").glob("*pace*"))


def test_processes_measure_it_or_say_what_is_missing(tmp_path, study, monkeypatch):
    given = read_study(study)
    store = Store(tmp_path / "there", create=True)
    assert run_study(store, given, engine=LocalEngine(workers=1, time_limit=300)).failures == []
    assert "pace" in results(tmp_path / "there")[0].metrics("custom-maze", "backward,alpha=1")
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"].partition(":")[2])
    elsewhere = Store(tmp_path / "not", create=True)
    failures = run_study(elsewhere, given, engine=LocalEngine(workers=1, time_limit=300)).failures
    assert {failed.error.partition(" on ")[0] for failed in failures} == {
        "InputError: plugins: the module 'my_metrics' cannot be imported"
    }


def test_a_metric_that_breaks_is_a_unit_that_failed(tmp_path, study):
    plugin = tmp_path / "modules" / "my_metrics.py"
    plugin.write_text(plugin.read_text().replace("1 / runs.steps", "runs.steps[0]"))
    failed = perform(Unit(read_study(study).runs()[0], (0, 1)))
    assert failed.error.startswith("InputError: metric: 'pace' is an array of shape (3,)")


def test_a_comparison_is_saved_with_them(tmp_path, cli, trace, monkeypatch):
    __import__("my_metrics")
    found = bc.compare(bc.worlds.maze("S..G", max_steps=20), [bc.agent("q"), bc.agent("backward")], 3, 4, metric="pace")
    found.save(tmp_path / "r")
    ((study, _),) = Store(tmp_path / "r").studies()
    assert (study.plugins, study.plots) == (["my_metrics"], ["pace-per-episode"])
    forget()
    (result,) = results(tmp_path / "r")
    np.testing.assert_array_equal(result.curves("custom-maze", "q", "pace"), 1 / found.runs["custom-maze", "q"].steps)
    assert cli("report", tmp_path / "r")[0] == 0
    __import__("my_metrics")
    monkeypatch.setattr(METRICS["pace"].compute, "__module__", "__main__")
    with pytest.raises(bc.InputError, match="metrics: 'pace' was registered in __main__, which cannot be imported"):
        found.save(tmp_path / "r2")


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"pace": {"label": "x" * 201, "plot": "p"}}, "metrics: what was known of them cannot be understood"),
        ({"pace": {"label": 3}}, "metrics: what was known of them cannot be understood"),
        ([1], "metrics: what was known of them cannot be understood"),
        ({"updates": {"label": "u", "plot": "p"}}, "metric: 'updates' given, expected a name"),
    ],
)
def test_what_is_remembered_of_a_metric_is_checked(stored, cli, about, words):
    path = stored / "studies" / "s.json"
    known = json.loads(path.read_text())
    assert known["metrics"]["pace"]["label"] == "episodes per step"
    del known["sha256"]
    path.write_text(seal(json.dumps({**known, "metrics": about})))
    code, _, complaint = cli("best", stored)
    assert (code, words in complaint, complaint.count("\n")) == (2, True, 1)


def test_list_shows_it(cli, trace):
    __import__("my_metrics")
    assert (
        "  pace                          episodes per step; higher is better (prediction and control)" in cli("list")[1]
    )
