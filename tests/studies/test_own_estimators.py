"""Estimators of one's own in studies: plugins register them, and results are read without importing these."""

import sys

import numpy as np
import pytest

import backcast as bc
from backcast.agents.estimators import ESTIMATORS
from backcast.studies import check_study, results
from backcast.studies.store import Store
from backcast.studies.units import perform
from commands import a_command_line  # noqa: F401  a fixture

pytestmark = pytest.mark.interpreted

PLUGIN = """
from backcast.extending import empty_counts, model_of_rows, register_estimator

@register_estimator("mine")
def mine(setup, agent, forward):
    '''Counts by another name.'''
    return model_of_rows(setup, agent, forward, lambda room, width: empty_counts(room))
"""
TOML = """
episodes = 3
seeds = 2
plugins = ["estimating"]
[[worlds]]
kind = "maze"
text = "S.G"
max_steps = 20
[[agents]]
kind = "backward"
model = "mine"
[[agents]]
kind = "forward"
grid = { model = ["counts", "mine"] }
"""


@pytest.fixture(autouse=True)
def study(tmp_path, monkeypatch):
    """A study, and the module that registers its estimator, which was not imported yet."""
    (tmp_path / "estimating.py").write_text(PLUGIN)
    (tmp_path / "s.toml").write_text(TOML)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "s.toml"
    forget()


def forget():
    sys.modules.pop("estimating", None)
    ESTIMATORS.pop("mine", None)


def test_a_study_runs_with_it_and_is_read_without_it(tmp_path, cli, study):
    code, told, _ = cli("sweep", study, "--dry-run", "--out", tmp_path / "r")
    assert (code, "estimating" in sys.modules, ESTIMATORS["mine"].is_absent) == (0, False, True)
    assert (
        "not checked: agents: the model 'mine' was not looked at, as that would import the plugins estimating" in told
    )
    assert cli("sweep", study, "--out", tmp_path / "r", "--quiet") == (0, "", "")
    forget()
    (found,) = results(tmp_path / "r")
    assert found.agents("custom-maze") == ["backward,model=mine", "forward,model=counts", "forward,model=mine"]
    curves = [found.curves("custom-maze", f"forward,model={name}", "steps") for name in ("counts", "mine")]
    np.testing.assert_array_equal(*curves)
    for name in ("verify", "best", "report"):
        code, _, complaint = cli(name, tmp_path / "r")
        assert (code, "missing" in complaint, "estimating" in sys.modules) == (0, False, False)


def test_what_is_known_by_name_alone_is_not_run(study):
    given = {"name": "s", "episodes": 1, "worlds": [{"kind": "maze", "text": "S.G"}], "plugins": ["estimating"]}
    cell = check_study({**given, "agents": [{"kind": "backward", "model": "mine"}]}, "test").runs()[0]
    (study.parent / "estimating.py").write_text("")
    forget()
    outcome = perform(type("Unit", (), {"cell": cell, "seeds": (0,)})())
    assert outcome.error == (
        "InputError: model: 'mine' is not known here; the plugins of the study (estimating) do not register it"
    )


def test_a_comparison_names_the_modules_of_its_estimators(tmp_path):
    __import__("estimating")
    agents = [bc.agent("backward", model=name) for name in ("counts", "mine")]
    bc.compare(bc.worlds.maze("S.G"), agents, 2, 2).save(tmp_path / "r")
    assert Store(tmp_path / "r").studies()[0].study.plugins == ["estimating"]


def test_without_a_plugin_it_is_refused():
    given = {
        "name": "s",
        "episodes": 1,
        "worlds": [{"kind": "maze"}],
        "agents": [{"kind": "backward", "model": "mine"}],
    }
    with pytest.raises(bc.InputError, match="test: model: 'mine' given, expected one of softmax, counts, true"):
        check_study(given, "test")


def test_saved_runs_are_read_without_it(tmp_path):
    __import__("estimating")
    agent = bc.agent("backward", model="mine", horizon=2)
    bc.run(bc.worlds.maze("S.G"), agent, 2, 1).save(tmp_path / "runs.npz")
    forget()
    assert bc.Runs.load(tmp_path / "runs.npz").agent == agent
