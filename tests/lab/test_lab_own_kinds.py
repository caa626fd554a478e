"""Kinds of agents of one's own in the lab: asked for, bounded, shown, and imported where they are needed."""

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.extending import ALPHA_PLAN, NoModel, NoPlanner, Origins, choice, number, part, register, switch, whole
from backcast.lab.compile_in_child import _tell
from backcast.lab.config import homes_of, read_config, setting_descriptions
from backcast.lab.lockstep import Lockstep
from backcast.lab.scene import Scene
from backcast.lab.snippets import as_python, as_toml
from commands import a_command_line  # noqa: F401  a fixture
from lab_scenes import config
from lab_server import answer, command, page
from patience import PATIENCE

pytestmark = pytest.mark.interpreted
DOCS = Path(__file__).parents[2] / "docs" / "extending.md"


def of_learners(name, *settings, **more):
    """A kind that only learns, with these settings."""

    def build(setup, agent):
        """Learns."""
        return NoModel(), NoPlanner()

    build.__module__ = "my_kinds"
    register(name, settings=settings, **more)(build)
    return KINDS[name]


def test_numbers_with_bounds_are_asked_for_within_them():
    kind = of_learners(
        "mine",
        number("floor", "what is least", 0),
        number("share", "of all", 0, 1, below=True, label="share of all", default=0.5),
        whole("rounds", "how often", 2, 9),
        choice("order", "which comes first", "2", "1"),
        number("hidden", "not for forms", 0, form=None),
        "free",
    )
    asked = setting_descriptions(kind)
    common = ["alpha", "epsilon", "schedule", "alpha_model", "epsilon_schedule"]
    assert list(asked) == [*common, "floor", "share", "rounds", "order"]
    bounds = {name: (told["type"], told.get("least"), told.get("most")) for name, told in asked.items()}
    assert (bounds["floor"], bounds["share"]) == (("number", 0, None), ("number", 0, 1))
    assert bounds["rounds"] == ("whole", 2, 9)
    assert asked["order"]["choices"] == [["2", "2"], ["1", "1"]]
    assert (asked["share"]["label"], asked["share"]["usual"], asked["floor"]["label"]) == ("share of all", 0.5, "floor")


def test_what_is_given_reaches_the_agent():
    of_learners("mine", number("floor", "what is least", 0))
    checked = read_config(config({"kind": "mine", "floor": 0.25}, "q"))
    assert checked.given()["left"] == {"kind": "mine", "learn": True, "floor": 0.25}
    assert checked.left.build() == bc.agent("mine", floor=0.25)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "mine", "floor": -1}, "left.floor: -1 given, expected 0 or more"),
        ({"kind": "mine", "share": 1}, "left.share: 1 given, expected less than 1"),
        ({"kind": "mine", "free": 1}, "left.free: no such field"),
        ({"kind": "mine", "nothing": 1}, "left.nothing: no such field"),
        ({"kind": "q", "floor": 1}, "left: floor does not belong to 'q'; its settings are frame, learn, alpha"),
        ({"kind": "theirs", "floor": 4}, "left.floor: 4 given, expected at most 3"),
    ],
)
def test_what_is_beyond_them_is_refused(given, words):
    """Two kinds may have settings of the same name, each with its own bounds."""
    of_learners("mine", number("floor", "what is least", 0), number("share", "of all", 0, 1, below=True), "free")
    of_learners("theirs", whole("floor", "which one", 1, 3))
    with pytest.raises(bc.InputError, match=re.escape(words)):
        read_config(config(given, "q"))


@pytest.fixture
def patient():
    settings = number("sample", "a share", 0, 1), choice("depth", "how deep", "deep", default="deep"), "top"
    return of_learners("patient", *settings, defaults={"top": 3})


def test_the_form_does_not_take_their_settings_for_backcasts_of_the_same_names(patient):
    asked = setting_descriptions(patient)
    told = {name: (asked[name]["type"], asked[name].get("most"), asked[name]["usual"]) for name in patient.table}
    assert told == {"sample": ("number", 1, None), "depth": ("choice", None, "deep"), "top": ("whole", 1000, 3)}


def test_limits_are_about_settings_of_backcasts_table(patient):
    given = read_config(config("patient", "q", world={"kind": "maze", "text": "S.G"}))
    assert Scene(given).agents[0] == bc.agent("patient")


def test_a_switch_that_is_on_by_default_is_not_part_of_the_name():
    of_learners("mine", switch("careful", "or not", default=True))
    left, right = {"kind": "mine"}, {"kind": "mine", "careful": False}
    checked = read_config(config(left, right))
    assert [side.build().name for side in (checked.left, checked.right)] == ["mine", "mine,careful=false"]


def test_they_are_copied_with_their_modules():
    of_learners("mine")
    given = read_config(config("mine", "mine")).given()
    assert homes_of(given) == ["my_kinds"]
    assert as_python(given).startswith("import my_kinds\nimport backcast as bc\n")
    assert tomllib.loads(as_toml(given))["plugins"] == ["my_kinds"]
    assert homes_of(read_config(config()).given()) == []


PLUGIN = """
from typing import Annotated
import backcast as bc
from backcast.extending import Bounds, NoModel, NoPlanner, number, register, register_world


@register("{name}", settings=(number("floor", "what is least", 0),))
def learner(setup, agent):
    return NoModel(), NoPlanner()


@register_world("{name}-corridor", purpose="control", label="Corridor")
def corridor(n: Annotated[int, Bounds(2, lab=30)] = 3):
    return bc.worlds.maze("S" + "." * (n - 2) + "G")
"""


@pytest.fixture
def elsewhere(tmp_path):
    """The environment of a process that finds two modules with kinds, of which one is announced as a plugin."""
    for name in ("announced", "named"):
        (tmp_path / f"{name}.py").write_text(PLUGIN.format(name=name))
    (tmp_path / "announced-1.0.dist-info").mkdir()
    (tmp_path / "announced-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\n")
    points = "[backcast.plugins]\nannounced = announced\n"
    (tmp_path / "announced-1.0.dist-info" / "entry_points.txt").write_text(points)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"}


def test_the_command_offers_what_is_installed_and_what_it_may_import(elsewhere):
    with (
        command("--no-browser", "--allow-import", "named", **elsewhere) as (_, address),
        page(int(re.search(r":(\d+)/", address)[1])) as opened,
    ):
        told = answer(opened)
        kinds = {kind["name"]: kind for kind in told["kinds"]}
        assert all("floor" in kinds[name]["settings"] for name in ("announced", "named"))
        assert [world["kind"] for world in told["worlds"]][-2:] == ["announced-corridor", "named-corridor"]
        left = {"kind": "announced", "floor": 0.5}
        opened.send(json.dumps({"do": "open", "config": config(left, "q", world={"kind": "named-corridor"})}))
        while (reply := answer(opened))["is"] == "busy":
            pass
        assert (reply["is"], reply["agents"][0]["name"]) == ("scene", "announced,floor=0.5")


def test_a_module_that_cannot_be_imported_is_named(cli):
    code, _, complaint = cli("lab", "--allow-import", "nowhere_to_be_found")
    assert code == 2
    assert "--allow-import: the module 'nowhere_to_be_found' cannot be imported on " in complaint


def test_who_compiles_imports_what_the_scene_needs(elsewhere):
    given = config({"kind": "named", "floor": 0.5}, "q", world={"kind": "named-corridor"})
    for plugins, ends in (["named"], 0), ([], 1):
        command = [sys.executable, "-P", "-m", "backcast.lab.compiler", "further"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | elsewhere
        ) as child:
            child.stdin.write(json.dumps({"plugins": plugins, "config": given}).encode() + b"\n")
            child.stdin.flush()
            assert child.wait(PATIENCE) == ends


def test_who_compiles_is_told_what_to_import():
    of_learners("mine")
    given = read_config(config("mine", "q")).given()
    child = type("Child", (), {"stdin": io.BytesIO()})
    _tell(child, given)
    assert json.loads(child.stdin.getvalue()) == {"plugins": ["my_kinds"], "config": given}


def credits_of(kind, ticks):
    """What the lab shows of the first steps of an agent that walks from left to right."""
    world = {"kind": "maze", "text": "S.G"}
    pair = Lockstep(Scene(read_config(config({"kind": kind, "epsilon": 1.0}, "q", world=world, episodes=3))))
    shown = []
    for _ in range(ticks):
        pair.tick()
        shown.append((pair.walkers[0].way[-1], pair.credits[0]))
    return pair, shown


def test_the_planner_of_the_docs_is_shown_where_it_plans_from():
    block = next(each for each in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S) if '"shown"' in each)
    exec(compile(block.partition("\n\nruns = ")[0], "docs/extending.md", "exec"), {})
    pair, shown = credits_of("shown", 200)
    assert all(credit.origins == [s] for s, credit in shown if credit.words and "waits" not in credit.words)
    arrows = {(origin, s) for _, credit in shown for origin, s, _ in credit.arrows}
    assert arrows
    assert arrows <= {(2, 1), (1, 0), (1, 1), (0, 0), (0, 1)}  # to a cell from one that a step leads to
    assert any("Planned backward from row 1, column 3: " in credit.words for _, credit in shown)
    runs = bc.run(pair.scene.family, pair.walkers[0].agent, 3, [0])
    assert pair.finished
    np.testing.assert_array_equal(pair.walkers[0].action_values, runs.values[0])


@part
class Undirected(NamedTuple):
    """Plans from s, in no direction that it would say."""

    unused: int = 0

    def plan(self, model, values, step, discount, rates):
        """Plan from s."""
        return self.plan_from(model, values, step.s, False, discount, rates)

    def origins(self, model, step):
        """From s."""
        return Origins(True, False)

    def plans_first(self, model):
        """Not when an episode begins."""
        return False

    def plan_from(self, model, values, s, ends, discount, rates):
        """Add 1 to the first value of s."""
        values.nudge(s * values.n_actions, rates[ALPHA_PLAN])
        return 1


def test_a_planner_that_says_no_direction_is_shown_where_it_plans_from_as_well():
    register("undirected", frame="previous")(lambda setup, agent: (NoModel(), Undirected()))
    _, [(_, credit)] = credits_of("undirected", 1)
    assert credit.origins == [0]
    assert credit.words == "Planned from row 1, column 1: changed 1 state, most of all row 1, column 1 by +1."
