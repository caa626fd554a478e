"""A world of one's own in the lab: offered if it has a label, bounded, and copied with the module that registers it."""

import tomllib
from typing import Annotated

import pytest

import backcast as bc
from backcast.core.setting_types import Bounds, Label
from backcast.lab.config import offered, read_config, world_descriptions
from backcast.lab.snippets import as_python, as_toml
from backcast.worlds.kinds import register_world

AGENTS = {"left": {"kind": "q"}, "right": {"kind": "backward"}}


@pytest.fixture
def corridor():
    @register_world("corridor", purpose="control", label="Corridor")
    def corridor(n: Annotated[int, Bounds(2, lab=30), Label("cells of it")], slip: float = 0.25, hint: str = ""):
        """A corridor.

        Args:
            n: cells.
        """
        return bc.worlds.maze("S" + "." * (n - 2) + "G", slip=slip)

    corridor.__module__ = "my_worlds"
    return corridor


def test_a_world_without_a_label_is_not_offered():
    register_world("hidden")(lambda: bc.worlds.maze("S.G"))
    assert "hidden" not in offered()
    with pytest.raises(bc.InputError, match=r"world.kind: expected one of chain, .*maze"):
        read_config({"world": {"kind": "hidden"}, **AGENTS})


def test_its_keys_are_asked_for_as_they_were_declared(corridor):
    told = next(world for world in world_descriptions() if world["kind"] == "corridor")
    assert told == {
        "kind": "corridor",
        "label": "Corridor",
        "purpose": "control",
        "keys": {
            "n": {
                "label": "cells of it",
                "symbol": "",
                "help": "Cells.",
                "type": "whole",
                "usual": None,
                "least": 2,
                "most": 30,
                "needed": True,
            },
            "slip": {
                "label": "slip",
                "symbol": "",
                "help": "",
                "type": "number",
                "usual": 0.25,
                "needed": False,
            },
        },
    }


def test_what_is_too_large_is_refused(corridor):
    with pytest.raises(bc.InputError, match="world: n is 31, expected at most 30 in the lab"):
        read_config({"world": {"kind": "corridor", "n": 31}, **AGENTS})


def test_it_is_copied_with_its_module(corridor):
    given = read_config({"world": {"kind": "corridor", "n": 5}, **AGENTS}).given()
    assert as_python(given).startswith("import my_worlds\nimport backcast as bc\n\nworld = my_worlds.corridor(5)\n")
    study = tomllib.loads(as_toml(given))
    assert (study["plugins"], study["worlds"]) == (["my_worlds"], [{"kind": "corridor", "n": 5}])
