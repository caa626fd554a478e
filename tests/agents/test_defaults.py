"""Defaults are in the table of each kind: agents, lists, docs, exports and the lab have them from there."""

import inspect

import numpy as np
import pytest

import backcast as bc
from backcast.agents import agent
from backcast.agents.settings import COMMON
from backcast.core.setting_types import Depends
from backcast.extending import KINDS, number, register, whole
from commands import a_command_line  # noqa: F401  a fixture

pytestmark = pytest.mark.interpreted

BUILTIN = [kind for kind in KINDS.values() if kind.is_builtin]
CONSTANT = [
    pytest.param(kind.name, name, setting.default, id=f"{kind.name}-{name}")
    for kind in BUILTIN
    for name, setting in kind.table.items()
    if setting.default is not None and not isinstance(setting.default, Depends)
]


def test_the_arguments_of_agent_have_the_defaults_of_the_table():
    arguments = inspect.signature(agent).parameters
    assert list(COMMON) == [name for name in arguments if name not in ("kind", "settings")]
    for name, setting in COMMON.items():
        always = None if isinstance(setting.default, Depends) else setting.default
        assert (name, arguments[name].default) == (name, always)


@pytest.mark.parametrize(("kind", "name", "default"), CONSTANT)
def test_a_default_that_is_given_changes_nothing(kind, name, default):
    """What lists and docs call the default is what an agent does that was not given the setting."""
    world = bc.worlds.chain((4, 3, 2), seed=0) if KINDS[kind].only == "prediction" else bc.worlds.maze("S..\n.X.\n..G")
    usual, given = bc.agent(kind), bc.agent(kind, **{name: default})
    assert (usual.get(name), usual.settings, usual.name) == (default, (), kind)
    runs = [bc.run(world, each, 4, 2, max_steps=40) for each in (usual, given)]
    np.testing.assert_array_equal(runs[0].values, runs[1].values)
    np.testing.assert_array_equal(runs[0].updates.by_episode, runs[1].updates.by_episode)


def test_these_are_the_defaults():
    found = {(case.values[0], case.values[1]): case.values[2] for case in CONSTANT}
    assert found == {
        **{(kind, "sample"): 5 for kind in ("dyna", "dyna-plus", "replay", "prioritized-replay")},
        **{(kind, "sample"): 5 for kind in ("sweeping", "small-backups", "blend")},
        **{(kind, "forget"): 0.0 for kind in ("forward", "backward", "both", "dyna", "sweeping", "small-backups")},
        **{("blend", "forget"): 0.0, ("blend", "gate"): 1.0, ("blend", "prior"): True},
        **{(kind, "horizon"): 1 for kind in ("td", "q", "sarsa", "expected-sarsa")},
        **{("certainty-equivalence", "forget"): 0.0, ("dyna-plus", "forget"): 0.5, ("dyna-plus", "bonus"): 1e-4},
        **{(kind, "buffer"): 10_000 for kind in ("replay", "prioritized-replay")},
        **{(kind, "lam"): 0.9 for kind in ("td-lambda", "q-lambda", "expected-trace")},
        **{(kind, "traces"): "accumulating" for kind in ("td-lambda", "q-lambda")},
        **{("backward", "conditioned"): False, ("backward", "importance"): False},
        **{("backward", "depth"): 1, ("true-backward", "depth"): 1, ("sweeping", "variant"): "moore-atkeson"},
        ("prioritized-replay", "exponent"): 0.6,
    }


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("backward", {}, {"model": "softmax", "horizon": 1, "lam_by": None, "learn_by": None, "memory": None}),
        ("both", {}, {"model": "counts"}),
        ("backward", {"conditioned": True}, {"model": "counts"}),
        ("backward", {"option": bc.Option(0.5, 0.5)}, {"model": "counts", "horizon": None}),
        ("backward", {"lam": 0.5}, {"model": "softmax", "horizon": None, "lam_by": "mc"}),
        ("forward", {"weights": [0.5, 0.5]}, {"horizon": None}),
        ("backward", {"lam": 0.5, "lam_by": "td"}, {"model": None}),
        (
            "backward",
            {"features": "onehot"},
            {"model": "expectation", "learn_by": "lms", "memory": 4096, "ridge": None},
        ),
        ("backward", {"features": "onehot", "learn_by": "rls"}, {"ridge": 1e-6}),
        ("backward", {"features": "onehot", "model": "gaussian"}, {"buffer": 50}),
        ("backward", {"features": "onehot", "model": "counts"}, {"learn_by": None, "buffer": None}),
        ("td", {"features": "onehot"}, {"memory": 4096}),
    ],
)
def test_some_defaults_depend_on_other_settings(kind, given, expected):
    chosen = bc.agent(kind, **given)
    assert {name: chosen.get(name) for name in expected} == expected


# other people's kinds


@pytest.fixture
def patient():
    @register(
        "patient", settings=(number("x", "how much", 0, 9, default=1.0), "sample", "beta"), defaults={"beta": [3]}
    )
    def patient(setup, agent):
        """Q-learning by another name."""
        return KINDS["q"].build(setup, agent)


def test_a_registered_default_is_what_an_agent_gets(patient):
    chosen = bc.agent("patient")
    assert [chosen.get(name) for name in ("x", "sample", "beta")] == [1.0, None, (3,)]
    assert (chosen.settings, chosen.name) == ((), "patient")
    assert [bc.agent("patient", x=2).get("x"), chosen.get("sample", 7), chosen.get("x", 7)] == [2.0, 7, 1.0]


def test_lists_show_it(patient, cli):
    told = cli("list", "patient")[1]
    assert "a number in [0, 9] (default 1.0)" in told
    assert "anything (default [3])" in told
    assert "a whole number, 0 or more (default 5)" in cli("list", "dyna")[1]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"settings": (whole("x", "", default=0),)}, "x: 0 given, expected a whole number, 1 or more"),
        ({"settings": ("sample",), "defaults": {"sample": 0.5}}, "sample: 0.5 given, expected a whole number"),
        ({"settings": ("x",), "defaults": {"y": 1}}, "defaults: 'y' given, but 'patient' takes x"),
        ({"defaults": {"y": 1}}, "defaults: 'y' given, but 'patient' takes no settings"),
    ],
)
def test_a_default_that_is_not_allowed_is_refused(given, sentence):
    with pytest.raises(bc.InputError, match=sentence):
        register("patient", **given)(lambda setup, agent: None)
    assert "patient" not in KINDS


def test_a_kind_that_is_made_of_another_has_the_defaults_of_that_one():
    @register("dyna-by-another-name", plans=True)
    def other(setup, agent):
        """Dyna-Q."""
        return KINDS["dyna"].build(setup, agent)

    world = bc.worlds.maze("S..\n.X.\n..G")
    runs = [bc.run(world, bc.agent(kind), 4, 2) for kind in ("dyna", "dyna-by-another-name")]
    np.testing.assert_array_equal(runs[0].values, runs[1].values)
