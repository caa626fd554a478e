"""Configurations of the lab: what is refused, and what a page is told of all that can be set."""

import pytest

from backcast.core.errors import InputError
from backcast.lab.config import EPISODES, LabConfig, offered, read_config, setting_descriptions, world_descriptions
from backcast.lab.lockstep import Lockstep
from backcast.lab.messages import hello
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
        ({"episodes": EPISODES + 1}, "episodes: 5001 given, input should be less than or equal to 5000"),
        ({"seed": -1}, "seed: -1 given"),
        ({"left": {"kind": "backwards"}}, "did you mean 'backward'"),
        ({"left": {"kind": "dyna", "sample": 10**6}}, "left.sample: 1000000 given"),
        ({"left": {"kind": "backward", "features": "tiles"}}, "left.features: no such field"),
        ({"left": {"kind": "q", "alpha": float("nan")}}, "left.alpha: nan given"),
        ({"cells": 3}, "cells: no such field"),
    ],
)
def test_what_is_too_large_or_unknown_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        read_config({**config(), **given})


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
    with pytest.raises(InputError, match="world: text: no goal"):
        scene(world={"kind": "maze", "text": "S..."})
    wide = {"kind": "maze", "text": "\n".join(["S" + "." * 38 + "G"] + ["." * 40] * 39)}
    with pytest.raises(InputError, match=r"left: 'backward,lam=0\.5' may connect every state"):
        scene({"kind": "backward", "lam": 0.5}, "backward", world=wide)
    with pytest.raises(InputError, match="right: 'backward,depth=4' may correct"):
        scene("td", {"kind": "backward", "depth": 4}, world={"kind": "random-walk", "n": 500, "jump": 50})
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
    names = {name for kind in told["kinds"] for name in kind["settings"]}
    assert names <= set(setting_descriptions())
    assert told["settings"]["alpha"] == {
        "help": "Step size of learning.",
        "type": "number",
        "least": 0,
        "most": 1,
        "symbol": "α",
        "usual": 1.0,
    }
    assert told["settings"]["frame"]["choices"] == ["previous", "current"]
    assert told["settings"]["learn"]["type"] == "switch"
    assert told["settings"]["horizon"] == {"help": "Steps that the model looks back or ahead.", "type": "whole"} | {
        "least": 1,
        "most": 20,
        "symbol": "n",
        "usual": None,
    }
    assert [world["kind"] for world in world_descriptions()] == [world["kind"] for world in told["worlds"]]
