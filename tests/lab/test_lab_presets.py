"""What the presets say is so, and what is copied from the page gives what is on it."""

import ast
import contextlib
import functools
import io
import json
import re
import tomllib

import numpy as np
import pytest

import backcast as bc
from backcast.lab.config import read_config
from backcast.lab.lockstep import Lockstep
from backcast.lab.presets import PRESETS
from backcast.lab.scene import Scene
from backcast.lab.snippets import as_python, as_toml
from backcast.studies import check_study
from backcast.studies.spec import AgentSpec
from backcast.studies.statistics import paired_difference
from backcast.studies.units import Finished, Unit, perform
from backcast.studies.worldspec import WorldSpec

NAMES = [preset.name for preset in PRESETS]
CHANNELLING, BROADCASTING, FRAME, REWARDS, TRANSITIONS, CHOOSING = (preset.config for preset in PRESETS)
COUNTS = {"model": "counts"}
ODD_MAZE = "\n   S #.\n   . .G\r\n   #  .\n\n"


def runs_of(config, side, seeds, **changed):
    """The runs of one agent of a configuration, perhaps with other settings; a setting of None is left out."""
    chosen = {name: value for name, value in {**config[side], **changed}.items() if value is not None}
    return _runs(json.dumps(config["world"]), json.dumps(chosen), config["episodes"], seeds)


@functools.cache
def _runs(world, agent, episodes, seeds):
    return bc.run(WorldSpec(**json.loads(world)).build(), bc.agent(**json.loads(agent)), episodes, seeds)


def shown(runs):
    """What the first chart shows, (seeds, episodes): in a table other than a maze, reward."""
    if runs.rmsve is None:
        return runs.steps if "maze" in runs.world else runs.reward
    return runs.rmsve_inner


def difference(config, seeds=100, left=None, right=None):
    """The interval of left − right of the means over episodes, perhaps of other agents."""
    pair = [
        shown(runs_of(config, side, seeds, **(other or {}))).mean(axis=1)
        for side, other in (("left", left), ("right", right))
    ]
    return paired_difference(*pair, seed=0)


def test_they_tell_the_story_in_order():
    assert NAMES == [
        "channelling",
        "broadcasting",
        "frame-of-reference",
        "stochastic-rewards",
        "stochastic-transitions",
        "choosing",
    ]
    for preset in PRESETS:
        assert preset.sentence.count(".") == 1  # one sentence
        told = preset.as_dict()
        assert json.loads(json.dumps(told)) == told
        assert told["config"] == preset.config


@pytest.mark.parametrize("preset", PRESETS, ids=NAMES)
def test_what_was_measured_comes_out_again_and_the_seed_on_the_screen_agrees(preset):
    left, right = (shown(runs_of(preset.config, side, 100)) for side in ("left", "right"))
    by = paired_difference(left.mean(axis=1), right.mean(axis=1), seed=0)
    measured, _, _ = preset.measured.partition(";")
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", measured)]
    assert numbers == pytest.approx([left.mean(), right.mean(), 100, by.estimate, by.low, by.high], rel=0.01, abs=0.02)
    assert by.excludes_zero
    sign = 1 if preset.ahead == "right" else -1
    assert by.estimate * sign > 0
    seed = preset.config["seed"]
    assert (left[seed].mean() - right[seed].mean()) * sign > 0.5 * abs(by.estimate)


@pytest.mark.parametrize("preset", PRESETS, ids=NAMES)
def test_it_can_be_watched_within_a_minute(preset):
    config = read_config(preset.config)
    pair = [runs_of(preset.config, side, (config.seed,)).steps[0] for side in ("left", "right")]
    ticks = np.maximum(*pair).sum()
    a_moment = preset.name in ("frame-of-reference", "choosing")  # of which the first arrival is to be seen
    assert a_moment or 20 <= (ticks - preset.at) / preset.speed <= 60


@pytest.mark.interpreted
def test_boards_differ_soon_after_a_panel_is_opened():
    for preset in PRESETS:
        pair = Lockstep(Scene(read_config(preset.config)))
        assert pair.way_to(preset.at)(60.0)
        pair.way_to(preset.at + int(3 * preset.speed))(60.0)
        assert np.abs(pair.walkers[0].action_values - pair.walkers[1].action_values).max() > 0.01, preset.name


def test_forward_planning_is_ahead_in_broadcasting_after_ten_or_fifteen_episodes():
    for seeds in ((BROADCASTING["seed"],), 30):
        left, right = (shown(runs_of(BROADCASTING, side, seeds)).mean(axis=0) for side in ("left", "right"))
        assert left[5] > right[5]
        assert (left[15:] < right[15:]).all()


def test_with_learned_models_chains_come_out_otherwise():
    learns = {"learn": True}
    counted = {**learns, **COUNTS}
    tie = difference(CHANNELLING, 40, {"kind": "forward", **counted}, {"kind": "backward", **counted})
    assert not tie.excludes_zero
    reversed_ = difference(BROADCASTING, 20, {"kind": "forward", **learns}, {"kind": "backward", **learns})
    assert reversed_.low > 0


def test_the_first_arrival_is_passed_on_from_s_and_not_from_the_state_reached():
    """In the first episode, of which both agents take the same steps, learning corrects one pair."""
    changed = []
    for side in ("left", "right"):
        once = {"alpha": [1.0], "alpha_model": [1.0], "epsilon": [0.5]}
        first = runs_of({**FRAME, "episodes": 1}, side, (FRAME["seed"],), **once)
        assert first.steps[0, 0] == 275
        changed.append(np.count_nonzero(first.values))
    assert changed[0] == 1
    assert changed[1] > 1
    assert 270 <= PRESETS[2].at < 275


def test_forward_planning_gains_more_from_s_too():
    by = difference(FRAME, 100, {"kind": "forward"}, {"kind": "forward"})
    assert by.low > 0


@pytest.mark.parametrize(
    ("config", "steps", "sign"), [(REWARDS, "88.7", 1), (TRANSITIONS, "106.5", 0)], ids=["rewards", "transitions"]
)
def test_how_q_learning_does(config, steps, sign):
    q = {"kind": "q", "frame": None, "model": None}
    by = difference(config, 100, left=q)
    assert (by.low > 0) == (sign == 1)
    assert by.excludes_zero == (sign == 1)
    assert f"{shown(runs_of(config, 'left', 100, **q)).mean():.1f}" == steps
    assert any(f"Q-learning takes {steps}" in preset.measured for preset in PRESETS if preset.config is config)


def test_choosing_takes_few_updates():
    sweeping = {"kind": "small-backups", "frame": None, "model": None, "alpha": None, "alpha_model": None}
    left, right, swept = (
        runs_of(CHOOSING, side, 100, **other) for side, other in (("left", {}), ("right", {}), ("left", sweeping))
    )
    each = [f"{runs.updates.total.sum() / runs.steps.sum():.1f}" for runs in (left, right, swept)]
    told = PRESETS[-1].measured
    assert f"with {each[0]} against {each[1]} value updates for each step" in told
    assert f"small backups takes {shown(swept).mean():.1f} steps, with {each[2]} each" in told


@pytest.mark.interpreted
def test_the_planner_that_chooses_says_what_it_chose_when_the_goal_is_reached():
    pair = Lockstep(Scene(read_config(CHOOSING)))
    assert pair.way_to(PRESETS[-1].at)(60.0)
    words = []
    while not pair.between:
        pair.tick()
        words.append(pair.credits[1].words)
    assert "Hindsight, by what they promised" in words[-1]
    assert len(words) < 8


def test_with_counted_models_slipping_is_a_tie():
    assert not difference(TRANSITIONS, 100, COUNTS, COUNTS).excludes_zero


def configuration(world, left, right, seed=3, episodes=6):
    return read_config({"world": world, "left": left, "right": right, "seed": seed, "episodes": episodes}).given()


OTHERS = {
    "odd maze": configuration({"kind": "maze", "text": ODD_MAZE, "slip": 0.25}, {"kind": "q"}, {"kind": "backward"}),
    "same names": configuration({"kind": "maze"}, {"kind": "q", "alpha": 1e-06}, {"kind": "q"}, seed=21),
    "many settings": configuration(
        {"kind": "chain", "levels": [5, 4, 3], "seed": 2, "branches": 2, "discount": 0.5},
        {"kind": "backward", "frame": "previous", "learn": False, "model": "counts", "alpha": 0.3, "alpha_plan": 0.2},
        {"kind": "td", "schedule": "constant", "alpha": 0.1},
    ),
    "a table": configuration(
        {"kind": "gymnasium", "id": "FrozenLake-v1", "max_steps": 3, "discount": 0.9},
        {"kind": "q"},
        {"kind": "forward"},
    ),
    "Taxi": configuration({"kind": "gymnasium", "id": "Taxi-v4"}, {"kind": "q"}, {"kind": "backward"}, episodes=2),
    "random walk": configuration({"kind": "random-walk", "n": 9, "jump": 2}, {"kind": "td"}, {"kind": "backward"}),
    "television": configuration({"kind": "noisy-tv", "signals": 4, "channels": 3}, {"kind": "td"}, {"kind": "forward"}),
    "changing maze": configuration(
        {"kind": "maze", "text": ODD_MAZE, "later": [9, ODD_MAZE.replace("X", "#")], "slip": 0.25},
        {"kind": "q"},
        {"kind": "small-backups", "forget": 0.5},
    ),
    "blocking maze": configuration(
        {"kind": "blocking-maze", "step": 100}, {"kind": "dyna-plus"}, {"kind": "dyna", "forget": 0.5}
    ),
    "boyan": configuration({"kind": "boyan", "n": 5}, {"kind": "td"}, {"kind": "true-forward"}),
}
COPIED = {preset.name: read_config(preset.config).given() for preset in PRESETS} | OTHERS


def on_screen(given):
    """What is on the screen: the name of each agent, its runs of the one seed."""
    world = WorldSpec(**given["world"]).build()
    return [bc.run(world, bc.agent(**given[side]), given["episodes"], [given["seed"]]) for side in ("left", "right")]


@pytest.mark.parametrize("given", COPIED.values(), ids=COPIED)
def test_the_script_prints_what_is_on_the_screen(given):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(as_python(given), "copied", "exec"), {})
    lines = out.getvalue().splitlines()
    assert len(lines) == 6
    for runs, (name, numbers, updates) in zip(on_screen(given), (lines[:3], lines[3:]), strict=True):
        assert name == runs.agent.name
        assert ast.literal_eval(numbers.partition(": ")[2]) == shown(runs)[0].round(4).tolist()
        assert updates.endswith(f": {runs.updates.learning[0]} {runs.updates.planning[0]}")


@pytest.mark.parametrize("given", COPIED.values(), ids=COPIED)
def test_the_study_has_what_is_on_the_screen(given):
    study = check_study({"name": "copied", **tomllib.loads(as_toml(given))}, "copied")
    assert study.seeds == max(20, given["seed"] + 1)
    cells = study.runs()
    assert len(cells) == 2
    for cell, runs in zip(cells, on_screen(given), strict=True):
        done = perform(Unit(cell, (given["seed"],)))
        assert isinstance(done, Finished)
        metrics = {"maze": "steps", "blocking-maze": "steps", "gymnasium": "reward"}
        metric = metrics.get(given["world"]["kind"], "rmsve_inner")
        assert done.table[metric].to_pylist() == shown(runs)[0].tolist()
        assert done.table["updates"].to_pylist() == runs.updates.by_episode[0].tolist()
        assert study.plots == ["error-curves" if metric == "rmsve_inner" else f"{metric}-per-episode"]


def test_a_maze_is_copied_as_it_was_understood():
    block = '"""\nS.X.\n...G\nX...\n"""'
    assert f"text={block}" in as_python(OTHERS["odd maze"])
    assert f"text = {block}" in as_toml(OTHERS["odd maze"])


def test_a_change_is_copied_with_its_maze():
    block = '"""\nS.X.\n...G\nX...\n"""'
    assert f"later=(9, {block})" in as_python(OTHERS["changing maze"])
    assert f"later = [9, {block}]" in as_toml(OTHERS["changing maze"])
    assert "bc.worlds.blocking_maze(step=100)" in as_python(OTHERS["blocking maze"])


def test_agents_of_one_name_are_told_apart():
    agents = tomllib.loads(as_toml(OTHERS["same names"]))["agents"]
    assert [each["label"] for each in agents] == ["q,side=left", "q,side=right"]
    assert [each.get("alpha") for each in agents] == [1e-06, None]
    assert all("label" not in each for each in tomllib.loads(as_toml(OTHERS["odd maze"]))["agents"])
    assert AgentSpec(**agents[0]).kind == "q"


def test_a_chain_without_a_seed_is_drawn_by_the_seed_of_the_run():
    assert "bc.worlds.chain(levels=(24, 6, 2), seed=None)" in as_python(COPIED["channelling"])
    assert "seed=2" in as_python(OTHERS["many settings"])


def test_the_study_says_which_seed_is_on_the_screen():
    assert "seeds = 22  # 0 to 21; the lab shows seed 21\n" in as_toml(OTHERS["same names"])


def test_every_setting_is_copied():
    settings = {"lam": 0.5, "lam_by": "mc", "conditioned": True, "model": "counts", "forget": 0.001, "importance": True}
    left = {"kind": "backward", "frame": "previous", "learn": False, "alpha_model": 0.3, "epsilon": 0.0, **settings}
    given = configuration({"kind": "maze"}, left, {"kind": "sweeping", "variant": "peng-williams", "sample": 7})
    assert tomllib.loads(as_toml(given))["agents"] == [
        left,
        {"kind": "sweeping", "variant": "peng-williams", "sample": 7},
    ]
    script = as_python(given)
    made = script[script.index("left = ") : script.index("right = ")].removeprefix("left = ")
    assert eval(made, {"bc": bc}) == bc.agent(**left)
    assert made.startswith('bc.agent(\n    "backward",\n    frame="previous",\n    learn=False,\n')
