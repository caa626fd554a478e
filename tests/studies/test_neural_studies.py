"""Agents with a network in studies: networks and views are plain data, and results are stored like all others."""

import csv

import numpy as np
import pytest

import backcast as bc
from backcast.report.page import write_report
from backcast.studies import NEURAL, Store, named_study
from backcast.studies.runner import run_study
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


def test_a_view_of_random_features_is_one_of_a_study():
    chain = WorldSpec(kind="chain", levels=[4, 3, 2], view="random-5")
    assert chain.picture.title == "Channelling: 4 → 3 → 2 states, as random-5"
    world = chain.build()
    assert world.name == "chain-4-3-2:random-5"
    assert world.draw(0).observations.shape == (9, 5)
    assert (world.draw(0).observations == world.draw(1).observations).all()
    with pytest.raises(ValueError, match=r"view: 'random' given, expected an array .* or one of onehot, .*, random-64"):
        WorldSpec(kind="maze", view="random")


@pytest.mark.parametrize("name", NEURAL)
def test_every_study_has_enough_seeds_and_its_controls(name):
    study = named_study(name)
    agents = [cell.agent for cell in study.runs()]
    assert study.seeds >= 30
    assert all(agent.has_network for agent in agents)
    assert {"replay", "backward"} <= {agent.kind for agent in agents}
    untrained = [agent for agent in agents if agent.kind == "backward" and agent.alpha_model == 0]
    assert untrained, "a model that never learns"
    updates = {agent.get("batch") * (agent.get("batch") + agent.get("candidates")) for agent in untrained}
    assert updates <= {agent.get("sample") for agent in agents if agent.kind == "replay"}, "replay with as many updates"


@pytest.mark.slow
@pytest.mark.parametrize("name", NEURAL)
def test_the_studies_can_be_run(name, tmp_path):
    study = named_study(name)
    worlds = [world.model_copy(update={"episodes": 2}) for world in study.worlds[:1]]
    run_study(Store(tmp_path, create=True), study.model_copy(update={"worlds": worlds, "episodes": 2}), 2)
    page = write_report(tmp_path).read_text()
    assert all(f"{name} {plot}".replace("-", " ") in page for plot in study.plots)


@pytest.mark.slow
def test_cart_and_pole_is_solved_with_the_usual_settings():
    """A mean return of 475 over 100 episodes within 500,000 steps; ε falls to 0 over the run."""
    agent = bc.agent(
        "q", network=bc.networks.mlp(120, 84), batch=128, every=10, memory=10_000, target_every=500, alpha=2.5e-4,
        epsilon=1.0, schedule="constant", epsilon_schedule="linear",
    )  # fmt: skip
    runs = bc.run(bc.worlds.cartpole(), agent, steps=500_000, seeds=2)
    for row in runs.reward:
        assert np.convolve(row[np.isfinite(row)], np.full(100, 0.01), "valid").max() >= 475
