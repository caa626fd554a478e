"""Configurations of the lab: what is refused, and what a page is told of all that can be set."""

import pytest

from backcast.agents.kinds import KINDS
from backcast.agents.settings import NEURAL_MODELS, NEURAL_VALUES
from backcast.core.errors import InputError
from backcast.lab.config import (
    EPISODES,
    LabConfig,
    RefusedError,
    offered,
    read_config,
    setting_descriptions,
    world_descriptions,
)
from backcast.lab.lockstep import Lockstep
from backcast.lab.messages import hello
from backcast.studies.search import takes
from lab_scenes import config, scene


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"world": {"kind": "maze", "text": "\n".join(["." * 51] * 3)}},
            "number of columns is 51, expected at most 50",
        ),
        ({"world": {"kind": "maze", "text": "\n".join(["."] * 51)}}, "number of rows is 51"),
        ({"world": {"kind": "chain", "levels": [600, 600]}}, "number of states is 1,200, expected at most 1,000"),
        ({"world": {"kind": "chain", "levels": [500, 500]}}, "number of transitions is 250,000"),
        ({"world": {"kind": "chain", "levels": [1] * 21}}, "number of levels is 21"),
        ({"world": {"kind": "boyan", "n": 10**7}}, "n is 10,000,000"),
        ({"world": {"kind": "random-walk", "n": 500, "jump": 400}}, "jump is 400"),
        ({"world": {"kind": "noisy-tv", "signals": 400}}, "signals is 400"),
        ({"world": {"kind": "garnet", "states": 2_000}}, "states is 2,000"),
        (
            {"world": {"kind": "garnet", "states": 900, "actions": 9, "branching": 9}},
            "the number of transitions is 81,000",
        ),
        ({"world": {"kind": "random-maze", "size": [5, 60]}}, "the number of columns is 60"),
        ({"world": {"kind": "maze", "max_steps": 10**9}}, "max_steps is 1,000,000,000"),
        ({"world": {"kind": "gymnasium", "id": "os:system"}}, "expected one of FrozenLake-v1"),
        ({"world": {"kind": "gymnasium", "id": "CartPole-v1"}}, "expected one of FrozenLake-v1"),
        ({"world": {"kind": "maze", "episodes": 3}}, "belong to studies"),
        ({"world": {"kind": "moon"}}, "expected one of"),
        ({"world": {"kind": "maze", "path": "x"}}, "world.path: no such field"),
        (
            {"world": {"kind": "maze", "later": [5, "S" * 51 + "G"]}},
            "world: the number of columns is 52, expected at mo",
        ),
        ({"world": {"kind": "maze", "later": [5]}}, "world.later"),
        ({"world": {"kind": "maze", "step": 5}}, "world: step does not belong to a maze"),
        ({"world": {"kind": "blocking-maze", "step": 10**10}}, "world: the step at which it changes is 10,000,000,000"),
        ({"episodes": EPISODES + 1}, "episodes: 5001 given, expected at most 5,000"),
        ({"seed": -1}, "seed: -1 given"),
        ({"left": {"kind": "backwards"}}, "did you mean 'backward'"),
        ({"left": {"kind": "dyna", "sample": 10**6}}, "left.sample: 1000000 given"),
        ({"left": {"kind": "backward", "features": "tiles"}}, "left.features: no such field"),
        ({"left": {"kind": "td", "lam": 0.5}}, "left: lam does not belong to 'td'; its settings are frame, learn, alp"),
        ({"left": {"alpha": 0.5}}, "left.kind: "),
        ({"left": 3}, "left: 3 given"),
        ({"left": {"kind": ["q"]}}, r"left.kind: \['q'\] given"),
        ({"left": {"kind": "q", "alpha": float("nan")}}, "left.alpha: nan given"),
        ({"cells": 3}, "cells: no such field"),
    ],
)
def test_what_is_too_large_or_unknown_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        read_config({**config(), **given})


def test_forms_ask_for_lists_where_there_are_several_numbers():
    asked = {world["kind"]: world["keys"] for world in world_descriptions()}
    assert asked["chain"]["levels"]["type"] == "list"
    assert asked["random-maze"]["size"]["type"] == "whole"  # one number makes a square
    assert setting_descriptions(KINDS["blend"])["alpha"]["type"] == "number"


def test_what_is_refused_is_named():
    with pytest.raises(RefusedError) as refused:
        read_config({**config(), "left": {"kind": "q", "alpha": 0, "epsilon": "a"}, "episodes": 0})
    assert str(refused.value) == (
        "left.alpha: 0 given, expected more than 0; left.epsilon: a given, expected a number;"
        " episodes: 0 given, expected 1 or more"
    )
    assert refused.value.fields == ("left.alpha", "left.epsilon", "episodes")
    with pytest.raises(RefusedError) as refused:
        scene("q", "backward", world={"kind": "maze", "text": "S.."})
    assert refused.value.fields == ("world",)


def test_true_models_are_refused_where_the_world_changes():
    with pytest.raises(
        InputError, match="left: agent: 'true-forward' plans with the true model, but blocking-maze-cha"
    ):
        Lockstep(scene("true-forward", "q", world={"kind": "blocking-maze"}))


def test_what_does_not_fit_together_names_the_side():
    with pytest.raises(InputError, match="left: agent: 'td' works in prediction worlds"):
        Lockstep(scene("td", "backward"))
    with pytest.raises(InputError, match="right: frame: 'current' given, but 'q' does not plan"):
        scene("forward", {"kind": "q", "frame": "current"})
    with pytest.raises(InputError, match="left: schedule: 'average' counts the updates of each value"):
        scene({"kind": "backward", "schedule": "average"}, "q")
    with pytest.raises(InputError, match="world: text: no goal"):
        scene(world={"kind": "maze", "text": "S..."})
    wide = {"kind": "maze", "text": "\n".join(["S" + "." * 38 + "G"] + ["." * 40] * 39)}
    with pytest.raises(InputError, match=r"left: 'backward,lam=0\.5' may connect every state"):
        scene({"kind": "backward", "lam": 0.5}, "backward", world=wide)
    with pytest.raises(InputError, match="right: 'backward,depth=4' may correct"):
        scene("td", {"kind": "backward", "depth": 4}, world={"kind": "random-walk", "n": 500, "jump": 50})
    scene("q", {"kind": "q-lambda", "lam": 0.9}, world=wide)  # its λ is that of traces
    tables = offered()["gymnasium"].sketch.choices()["id"]
    table = {"kind": "gymnasium", "id": next(name for name in tables if name.startswith("Taxi"))}
    with pytest.raises(InputError, match="left: 'expected-trace' may connect every state"):
        scene("expected-trace", "q", world=table)


def test_a_configuration_is_given_back_as_it_came():
    given = config({"kind": "backward", "frame": "previous", "alpha": 0.5}, "q", seed=7)
    checked = read_config(given)
    assert checked.given()["left"] == {"kind": "backward", "frame": "previous", "alpha": 0.5, "learn": True}
    assert LabConfig.model_validate(checked.given()) == checked


def test_the_greeting_describes_everything_that_can_be_set():
    told = hello()
    kinds = {kind["name"]: kind for kind in told["kinds"]}
    settings = kinds["backward"]["settings"]
    assert settings["alpha"] == {
        "label": "step size α",
        "symbol": "α",
        "help": "Step size of learning.",
        "type": "number",
        "usual": 1.0,
        "least": 0,
        "most": 1,
    }
    assert settings["frame"]["choices"] == [["previous", "s, the previous"], ["current", "s′, the current"]]
    assert (settings["frame"]["usual"], kinds["forward"]["settings"]["frame"]["usual"]) == ("current", "previous")
    assert kinds["both"]["settings"]["frame"]["usual"] is None  # each of its planners has its own
    assert settings["learn"]["type"] == "switch"
    assert settings["horizon"] == {
        "label": "horizon",
        "symbol": "n",
        "help": "Number of steps of a model or of a return. By default 1 unless weights, lam or option is given.",
        "type": "whole",
        "usual": None,
        "least": 1,
        "most": 20,
    }
    usual = {name: {key: told["usual"] for key, told in kind["settings"].items()} for name, kind in kinds.items()}
    assert (usual["dyna"]["sample"], usual["dyna"]["forget"], usual["dyna-plus"]["forget"]) == (5, 0.0, 0.5)
    assert (usual["td-lambda"]["lam"], usual["td-lambda"]["traces"]) == (0.9, "accumulating")
    assert (usual["backward"]["sample"], usual["backward"]["alpha_plan"], usual["td"]["horizon"]) == (None, None, 1)
    assert (usual["blend"]["sample"], usual["blend"]["prior"], usual["blend"]["gate"]) == (5, True, 1.0)
    assert [world["kind"] for world in world_descriptions()] == [world["kind"] for world in told["worlds"]]
    assert [kinds[name]["counterpart"] for name in ("td", "q-lambda", "dyna")] == ["q", "td-lambda", None]
    assert all(kind["counterpart"] in kinds for kind in told["kinds"] if kind["only"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_asks_for_what_makes_a_difference_to_a_kind(kind):
    asked = setting_descriptions(KINDS[kind])
    without_form = {"features", "model_features", "learn_by", "ridge", "memory", "weights", "option"}
    without_form |= {*NEURAL_VALUES, *NEURAL_MODELS}
    assert set(asked) == set(takes(kind)) - without_form
    everywhere = [name for name, told in asked.items() if "only" not in told]
    assert set(everywhere) == set(takes(kind, "prediction")) - without_form


def test_a_form_does_not_ask_for_the_step_size_of_a_model_that_counts():
    assert list(setting_descriptions(KINDS["sweeping"])) == [
        "alpha", "epsilon", "schedule", "learn", "alpha_plan", "epsilon_schedule", "variant", "sample", "forget"
    ]  # fmt: skip
