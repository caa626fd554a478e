"""Agents with a network in studies: networks and views are plain data, and results are stored like all others."""

import csv

import pytest

import backcast as bc
from backcast.studies.worldspec import WorldSpec
from commands import a_command_line  # noqa: F401  a fixture

pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX

STUDY = """
name = "seen"
episodes = 3
seeds = 2

[[worlds]]
kind = "maze"
text = "S..\\n.X.\\n..G"
view = "coordinates"

[[agents]]
kind = "q"
network = {kind = "mlp", widths = [8]}
batch = 8
memory = 100
"""


def test_a_study_has_networks_and_views(cli, tmp_path):
    study, stored, table = tmp_path / "s.toml", tmp_path / "r", tmp_path / "t.csv"
    study.write_text(STUDY)
    assert cli("sweep", study, "--out", stored, "--quiet", "--workers", 1)[0] == 0
    assert cli("export", stored, "--to", table)[0] == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {(row["world"], row["agent"]) for row in rows} == {
        ("custom-maze:coordinates", "q,memory=100,network=mlp-8,batch=8")
    }
    world = bc.worlds.maze("S..\n.X.\n..G").view("coordinates")
    agent = bc.agent("q", network=bc.networks.mlp(8), batch=8, memory=100)
    steps = bc.run(world, agent, 3, 2).steps
    found = [float(row["value"]) for row in rows if row["metric"] == "steps"]
    assert found == steps.ravel().tolist()
    assert "2 runs, of which 0 are to be made" in cli("sweep", study, "--out", stored, "--dry-run")[1]


def test_a_view_is_part_of_what_a_world_is():
    plain, seen = (WorldSpec(kind="maze", **more) for more in ({}, {"view": "pixels"}))
    assert plain.identity == {"kind": "maze"}
    assert seen.identity == {"kind": "maze", "view": "pixels"}
    assert (plain.name, seen.name, seen.unmade().name) == ("maze", "maze:pixels", "maze:pixels")
    assert seen.build().observations.shape == (48, 3, 6, 8)
