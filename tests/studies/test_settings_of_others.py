"""Settings of other people's kinds in studies: each is checked by the table of its kind, in grids and searches too."""

import sys
from pathlib import Path

import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.extending import number, register, switch, whole
from backcast.studies import check_study, results
from backcast.studies.reading import stored_study
from commands import a_command_line  # noqa: F401  a fixture

pytestmark = pytest.mark.interpreted

MAZE = {"kind": "maze", "text": "S.G", "max_steps": 20}


def add(kind, *settings, **more):
    @register(kind, settings=settings, **more)
    def build(setup, agent):
        """Q-learning by another name."""
        return KINDS["q"].build(setup, agent)


@pytest.fixture(autouse=True)
def two_kinds():
    """Both have a `beta`, and one a `sample`, that is something else to the other and to Backcast's kinds."""
    add("patient", number("sample", "a share", 0, 1), number("beta", "how much", 0, 9), "free")
    add("hasty", whole("beta", "how often", 1), switch("fast", "whether"))


def study(agents, **given):
    return check_study({"name": "s", "episodes": 2, "seeds": 1, "worlds": [MAZE], "agents": agents, **given}, "s.toml")


def points(*agents, **given):
    return [(cell.agent.kind, cell.point) for cell in study(list(agents), **given).runs()]


PATIENT, HASTY, DYNA = {"kind": "patient"}, {"kind": "hasty"}, {"kind": "dyna"}


def test_backcasts_own_kinds_are_not_judged_by_other_peoples_settings():
    assert points(DYNA, grid={"sample": [5, 10]}) == [("dyna", (("sample", 5),)), ("dyna", (("sample", 10),))]
    assert study([{"kind": "dyna", "sample": 10}]).runs()[0].agent == bc.agent("dyna", sample=10)
    drawn = points(DYNA, search={"samples": 3, "sample": {"low": 5, "high": 8}})
    assert all(isinstance(point[0][1], int) for _, point in drawn)


def test_other_peoples_kinds_are_not_judged_by_backcasts_settings():
    assert study([{"kind": "patient", "sample": 0.5}]).runs()[0].agent == bc.agent("patient", sample=0.5)
    assert points(PATIENT, grid={"sample": [0.5]}) == [("patient", (("sample", 0.5),))]
    (drawn,) = points(PATIENT, search={"samples": 1, "sample": {"low": 0, "high": 1}})
    assert 0 < drawn[1][0][1] < 1


def test_two_kinds_have_settings_of_the_same_name_and_of_other_types():
    agents = [{"kind": "patient", "beta": 1}, {"kind": "hasty", "beta": 2}]
    given = [cell.agent.get("beta") for cell in study(agents).runs()]
    assert [(value, type(value)) for value in given] == [(1.0, float), (2, int)]
    found = points(PATIENT, HASTY, grid={"beta": [1, 2]})
    assert [type(point[0][1]) for _, point in found] == [float, float, int, int]
    ranged = points(PATIENT, HASTY, search={"samples": 4, "beta": {"low": 1, "high": 9}})
    types = {kind: {type(point[0][1]) for name, point in ranged if name == kind} for kind in ("patient", "hasty")}
    assert types == {"patient": {float}, "hasty": {int}}


@pytest.mark.parametrize(
    ("agents", "given", "sentence"),
    [
        ([PATIENT], {"grid": {"sample": [5]}}, r"grid\.sample: 5\.0 given, expected a number in \[0, 1\]$"),
        ([HASTY], {"grid": {"beta": [0.5]}}, r"grid\.beta: 0\.5 given, input should be a valid integer.*part$"),
        (
            [PATIENT, HASTY],
            {"grid": {"beta": [0.5]}},
            r"grid\.beta: 0\.5 given, input .* \('hasty' has another setting of this name than other agents\)$",
        ),
        (
            [PATIENT, HASTY],
            {"search": {"beta": {"low": 0, "high": 4}}},
            r"search\.beta: 0 given, expected a whole number, 1 or more \('hasty' has another setting",
        ),
        ([{"kind": "hasty", "grid": {"beta": [0]}}], {}, r"agents\.0\.grid\.beta: 0 given, expected a whole number"),
        ([{"kind": "hasty", "search": {"beta": [0]}}], {}, r"agents\.0\.search\.beta: 0 given, expected a whole num"),
        (
            [HASTY],
            {"search": {"fast": {"low": 0, "high": 1}}},
            r"search\.fast: a range given, but it is not a number",
        ),
        ([HASTY], {"grid": {"fast": ["x"]}}, r"grid\.fast: \"x\" given, input should be a valid bool"),
        ([{"kind": "hasty", "beta": 0.5}], {}, r"agents\.0\.beta: 0\.5 given, input should be a valid integer"),
        ([{"kind": "hasty", "sample": 3}], {}, r"agents\.0\.sample: 3 given, but 'hasty' takes beta, fast"),
        ([{"kind": "hasty", "free": 3}], {}, r"agents\.0\.free: no such key; allowed are .*kind, .*beta, fast; did"),
        ([{"kind": "hasty", "bta": 3}], {}, r"agents\.0\.bta: no such key; .*did you mean 'beta'\?"),
        ([HASTY], {"grid": {"free": [1]}}, r"grid\.free: no agent of the study has this setting; theirs are .*beta"),
    ],
)
def test_refusals_name_the_place_and_what_the_kind_allows(agents, given, sentence):
    with pytest.raises(bc.InputError, match=rf"^s\.toml: {sentence}"):
        study(agents, **given)


def test_what_an_agent_replaces_is_not_asked_of_its_kind():
    agents = [DYNA, {"kind": "patient", "grid": {"sample": [0.5]}}]
    assert [cell.label for cell in study(agents, grid={"sample": [5]}).runs()] == [
        "dyna,sample=5",
        "patient,sample=0.5",
    ]


def test_nothing_is_known_of_a_free_setting_but_that_a_range_has_numbers():
    ((_, point),) = points(PATIENT, search={"samples": 1, "free": {"low": 1, "high": 2}})
    assert 1 < point[0][1] < 2
    found = points(PATIENT, grid={"free": [{"x": [1]}, "text", 3, True]})
    assert [point[0][1] for _, point in found] == [{"x": (1,)}, "text", 3, True]


def test_a_study_is_the_same_after_it_was_written_down():
    agents = [{"kind": "patient", "beta": 1, "free": {"x": [1, 2]}, "grid": {"sample": [0, 1]}}, HASTY]
    first = study(agents, grid={"beta": [1, 2]})
    again = check_study(first.model_dump(mode="json", exclude_defaults=True), "again")
    assert (again, again.runs()) == (first, first.runs())
    assert [cell.group for cell in again.runs()] == [cell.group for cell in first.runs()]


PLUGIN = """
from backcast.extending import KINDS, number, register, whole

@register(
    "slow", settings=(number("sample", "a share", 0, 1, default=0.25), whole("beta", "how often", 1), "lam", "top"),
    defaults={"top": 4},
)
def slow(setup, agent):
    '''Q-learning by another name.'''
    return KINDS["q"].build(setup, agent)
"""
TOML = """
episodes = 2
seeds = 1
plugins = ["slow_plugin"]
[search]
samples = 3
beta = { low = 1, high = 9 }
[[worlds]]
kind = "maze"
text = "S.G"
max_steps = 20
[[agents]]
kind = "slow"
sample = 0.5
lam = 1
[[agents]]
kind = "slow"
label = "ranged"
search = { sample = { low = 0, high = 1 } }
"""


def test_results_are_read_where_the_module_is_not_there(tmp_path, cli, monkeypatch):
    """Its settings, and what ranges of them are drawn from, are known by what was stored."""
    (tmp_path / "slow_plugin.py").write_text(PLUGIN)
    (tmp_path / "s.toml").write_text(TOML)
    monkeypatch.syspath_prepend(tmp_path)
    code, told, _ = cli("sweep", tmp_path / "s.toml", "--dry-run", "--out", tmp_path / "r")
    assert (code, "slow" in KINDS and KINDS["slow"].is_absent) == (0, True)
    assert "agents.0: 'slow' was not looked at" in told
    assert cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r", "--quiet") == (0, "", "")
    made = [cell.label for cell in results(tmp_path / "r")[0].study.runs()]
    sys.modules.pop("slow_plugin")
    del KINDS["slow"]
    assert [cell.label for cell in results(tmp_path / "r")[0].study.runs()] == made
    assert [bc.agent("slow").get(name) for name in ("sample", "beta", "top")] == [0.25, None, 4]
    code, told, complaint = cli("verify", tmp_path / "r")
    assert (code, "0 are not" in told, complaint) == (0, True, "")
    for name in ("best", "report"):
        code, _, complaint = cli(name, tmp_path / "r")
        assert (code, "missing" in complaint) == (0, False)


def test_what_was_stored_by_an_earlier_version_is_read():
    """It says which settings a kind has, but not which of them are its own."""
    given = {"name": "s", "episodes": 2, "worlds": [MAZE], "plugins": ["gone"], "grid": {"beta": [1, 2]}}
    agents = [{"kind": "lost", "sample": 3}]
    found = {"kinds": {"lost": {"settings": ["beta", "sample"], "plans": False}}}
    read = stored_study({**given, "agents": agents}, found, "test", Path())
    assert [cell.label for cell in read.runs()] == ["lost,sample=3,beta=1", "lost,sample=3,beta=2"]
    assert KINDS["lost"].table["sample"].check is KINDS["dyna"].table["sample"].check
