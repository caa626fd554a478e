"""Cells that are changed while agents live in a maze."""

import json

import numpy as np
import pytest

import backcast as bc
from backcast.core.errors import InputError
from backcast.lab.config import MOST_CHANGES, read_config
from backcast.lab.frames import encode
from backcast.lab.further_seeds import Further
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.snippets import as_python, as_toml
from lab_scenes import LONG, at_the_end, config, scene

pytestmark = pytest.mark.interpreted
TEXT, LATER = "S..\n.X.\n..G", "S.X\n...\n..G"  # cell 2 becomes a wall, the wall at 4 is torn down
STEPS = (30, 21)
CHANGES = [[*STEPS, 2, "X"], [*STEPS, 4, "."]]
AGENTS = ({"kind": "dyna", "epsilon": 0.2}, {"kind": "blend", "epsilon": 0.2})


def changed(changes, **given):
    return scene(*AGENTS, world={"kind": "maze", "text": TEXT, "slip": 0.2}, seed=3, changes=changes, **given)


def test_walls_change_as_in_a_maze_that_changes_after_so_many_steps_of_each_agent():
    pair = at_the_end(changed(CHANGES))
    for walker, step, agent in zip(pair.walkers, STEPS, AGENTS, strict=True):
        runs = bc.run(bc.worlds.maze(TEXT, slip=0.2, later=(step, LATER)), bc.agent(**agent), 12, [3])
        np.testing.assert_array_equal(walker.action_values, runs.values[0])
    assert [curve.steps for curve in pair.curves][1] == runs.steps[0].tolist()


def test_the_past_is_what_it_was_without_the_change():
    before, after = Lockstep(changed([])), Lockstep(changed(CHANGES))
    for pair in (before, after):
        assert pair.way_to(20)(LONG)
    for one, other in zip(before.walkers, after.walkers, strict=True):
        np.testing.assert_array_equal(one.action_values, other.action_values)


def test_a_page_sees_walls_rewards_and_exact_values_of_the_moment():
    stage = changed([*CHANGES, [40, 40, 3, -0.5]])
    told = json.loads(json.dumps(stage.describe(), allow_nan=False))
    assert told["changeable"]
    assert told["layout"]["kinds"] == TEXT.replace("\n", "")
    assert [era["kinds"] for era in told["later"]] == [LATER.replace("\n", "")] * 2
    assert [era["rewards"] for era in told["later"]] == [[], [[3, -0.5]]]
    assert told["config"]["changes"] == [*CHANGES, [40, 40, 3, -0.5]]
    pair = Lockstep(stage)
    eras = []
    while not pair.finished:
        pair.tick()
        frame = encode(pair, {}, 0)
        header = json.loads(frame[4 : 4 + int.from_bytes(frame[:4], "little")])
        eras.append([(agent["era"], agent["taken"]) for agent in header["agents"]])
    for side, step in enumerate(STEPS):
        assert all(
            era == (0 if taken < step else 1 if taken < 40 else 2) for era, taken in (each[side] for each in eras)
        )
    assert {each[0][0] for each in eras} == {0, 1, 2}


def test_several_changes_are_watched_as_they_are_walked():
    stage = changed([*CHANGES, [40, 40, 3, -0.5], [41, 60, 2, "."]])
    watched, walked = Lockstep(stage), at_the_end(stage)
    while not watched.finished:
        watched.tick()
    for one, other in zip(watched.walkers, walked.walkers, strict=True):
        np.testing.assert_array_equal(one.action_values, other.action_values)
    assert walked.way_to(10, NEVER)(LONG)
    assert walked.walkers[0].era_number == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([[0, 0, 2, "S"]], "changes.0.3"),
        ([[0, 0, 2, 1000]], "changes.0.3"),
        ([[0, 0, 2500, "X"]], "changes.0.2"),
        ([[-1, 0, 2, "X"]], "changes.0.0: -1 given, expected 0 or more"),
        ([[5, 5, 2, "X"], [4, 6, 3, "X"]], "changes: they must be in the order in which they happen"),
        ([[0, 0, 2, "X"]] * (MOST_CHANGES + 1), "changes: "),
    ],
)
def test_changes_that_are_none_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        read_config(config(changes=changes))


def test_what_cannot_be_changed_says_so():
    with pytest.raises(InputError, match="changes: the goal at line 3, column 3 cannot be reached"):
        changed([[0, 0, 5, "X"], [1, 1, 7, "X"]])
    with pytest.raises(InputError, match="changes: blocking-maze-changes-1000 cannot be changed; mazes can"):
        scene("q", "q", world={"kind": "blocking-maze"}, changes=[[0, 0, 2, "X"]])
    with pytest.raises(InputError, match="left: agent: 'true-forward' plans with the true model"):
        Lockstep(scene("true-forward", "q", world={"kind": "maze"}, changes=[[0, 0, 1, "X"]]))


def test_further_seeds_have_no_such_moment_and_what_is_copied_says_so():
    told = []
    further = Further(changed(CHANGES), told.append)
    further.start()
    further.wait()
    (message,) = told
    assert message["about"] == "further"
    assert message["message"].startswith("further seeds: the world was changed by hand at a moment of this seed;")
    given = read_config(config(changes=CHANGES[:1])).given()
    comment = "# In the lab a cell was changed during the run; here the maze stays as it was at the start.\n"
    assert comment in as_python(given)
    assert comment in as_toml(given)
    assert "# In the lab" not in as_python(read_config(config()).given())
