"""The two agents of the lab: they compute what `backcast.run` computes, at any moment, however it was reached."""

import json
import struct

import numpy as np
import pytest

import backcast as bc
from backcast.lab import lockstep as lockstep_module
from backcast.lab.frames import encode
from backcast.lab.inspection import answer
from backcast.lab.lockstep import NEVER, Lockstep, _next_chunk
from lab_scenes import LONG, at_the_end, scene

pytestmark = pytest.mark.interpreted
WORLDS = {
    "maze": ({"kind": "maze", "slip": 0.3}, "forward", {"kind": "backward", "frame": "previous", "learn": False}),
    "chain": ({"kind": "chain", "levels": [6, 3, 2]}, "forward", "backward"),
    "table": ({"kind": "gymnasium", "id": "FrozenLake-v1"}, "certainty-equivalence", {"kind": "dyna", "sample": 3}),
    "changing": ({"kind": "blocking-maze", "step": 150}, {"kind": "dyna-plus", "epsilon": 0.2}, "q"),
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] if name in ("maze", "table") else []) for name in WORLDS],
)
def walked(request):
    """A run to its end, and all ticks of it, watched one by one."""
    world, left, right = WORLDS[request.param]
    stage = scene(left, right, world=world, seed=3)
    ticked = Lockstep(stage)
    moments = [(0, 0, -1, ("", ""), [walker.action_values for walker in ticked.walkers])]
    while not ticked.finished:
        ticked.tick()
        words = tuple(credit.words for credit in ticked.credits)
        values = [walker.action_values for walker in ticked.walkers]
        moments.append((ticked.at, ticked.step, ticked.episode, words, values))
    return stage, at_the_end(stage), moments


def test_at_the_end_values_and_curves_are_those_of_a_run(walked):
    stage, pair, _ = walked
    for walker, curves in zip(pair.walkers, pair.curves, strict=True):
        runs = bc.run(stage.family, walker.agent, stage.episodes, [3])
        values = walker.action_values[:, 0] if stage.world.is_prediction else walker.action_values
        np.testing.assert_array_equal(values, runs.values[0])
        assert curves.steps == runs.steps[0].tolist()
        assert curves.reward == pytest.approx(runs.reward[0].tolist())
        assert curves.updates == runs.updates.by_episode[0].tolist()
        if stage.world.is_prediction:
            assert curves.error == pytest.approx(runs.rmsve_inner[0].tolist())


def test_ticks_lead_where_compiled_walking_leads(walked):
    _, pair, moments = walked
    at, step, episode, _, values = moments[-1]
    assert (pair.at, pair.step, pair.episode) == (at, step, episode)
    for walker, q in zip(pair.walkers, values, strict=True):
        np.testing.assert_array_equal(walker.action_values, q)
    longest = [max(left, right, 1) for left, right in zip(pair.curves[0].steps, pair.curves[1].steps, strict=True)]
    assert pair.at == sum(longest)


def test_every_moment_can_be_returned_to(walked, monkeypatch):
    stage, _, moments = walked
    monkeypatch.setattr(lockstep_module, "_FIRST_INTERVAL", 16)
    pair = at_the_end(stage)
    rng = np.random.default_rng(0)
    for at in [len(moments) - 1, 1, 0, *rng.integers(len(moments), size=12).tolist()]:
        assert pair.way_to(at)(LONG)
        expected = moments[at]
        assert (pair.at, pair.step, pair.episode) == expected[:3]
        if at:
            assert tuple(credit.words for credit in pair.credits) == expected[3]
        for walker, q in zip(pair.walkers, expected[4], strict=True):
            np.testing.assert_array_equal(walker.action_values, q)
    assert pair.furthest == len(moments) - 1
    assert len(pair.curves[0].steps) == stage.episodes


def test_what_is_beyond_the_end_is_the_end(walked):
    stage, _, moments = walked
    pair = Lockstep(stage)
    assert pair.way_to(10**9)(LONG)
    assert pair.finished
    assert pair.at == len(moments) - 1
    assert tuple(credit.words for credit in pair.credits) == moments[-1][3]


def test_a_moment_that_takes_long_is_reached_in_slices(walked):
    stage, _, moments = walked
    pair = Lockstep(stage)
    way, slices = pair.way_to(len(moments) - 1), 1
    while not way(0.0):
        slices += 1
    assert pair.finished
    assert slices > 3
    np.testing.assert_array_equal(pair.walkers[1].action_values, moments[-1][4][1])


def test_how_far_it_is_walked_between_looks_at_the_clock():
    assert _next_chunk(100, 0.004) == 100
    assert _next_chunk(100, 0.04) == 10
    assert _next_chunk(100, 0.0) == 400  # at most four times as far
    assert _next_chunk(1, 10.0) == 1


def test_few_positions_are_kept_however_long_it_takes(monkeypatch):
    monkeypatch.setattr(lockstep_module, "_FIRST_INTERVAL", 1)
    monkeypatch.setattr(lockstep_module, "_MOST_KEPT", 8)
    pair = at_the_end(scene("forward", "backward", world={"kind": "chain", "levels": [6, 3, 2]}, episodes=200))
    assert len(pair._kept) <= 9
    assert pair._kept[0].at == 0
    assert pair.way_to(37)(LONG)
    assert pair.at == 37


def test_one_waits_for_the_other():
    stage = scene("forward", "backward", episodes=8)
    left, right = (curves.steps for curves in at_the_end(stage).curves)
    episode = next(e for e in range(8) if left[e] != right[e])
    pair = Lockstep(stage)
    assert pair.way_to(NEVER, episode)(LONG)
    assert (pair.episode, pair.step, pair.between) == (episode, max(left[episode], right[episode]), True)
    first, steps = (0, left[episode]) if left[episode] < right[episode] else (1, right[episode])
    assert pair.credits[first].words == f"Its episode ended after {steps} steps. It waits for the other agent."
    assert pair.walkers[first].now.place.steps == steps


def test_the_way_of_an_episode_is_remembered():
    pair = Lockstep(scene("forward", "backward"))
    ways = []
    for _ in range(30):
        pair.tick()
        ways.append(pair.walkers[0].now.place.s)
    assert pair.walkers[0].way[1:] == ways
    assert Lockstep(scene("forward", "backward")).walkers[0].way == []
    again = Lockstep(scene("forward", "backward"))
    again.way_to(30)(LONG)
    assert again.walkers[0].way == pair.walkers[0].way


def test_values_that_explode_stand_still_however_one_walks():
    stage = scene("forward", "backward")
    ticked, walked = Lockstep(stage), Lockstep(stage)
    ticked.way_to(30)(LONG)
    ticked.walkers[0].now.parts.values.fill(1e9)
    ticked.tick()
    assert [walker.lost for walker in ticked.walkers] == [True, False]
    walked._restore(ticked._save())
    assert walked.way_to(NEVER)(LONG)
    while not ticked.finished:
        ticked.tick()
    assert walked.at == ticked.at
    assert [curves.steps for curves in walked.curves] == [curves.steps for curves in ticked.curves]
    assert walked.curves[0].steps == [None] * stage.episodes
    assert ticked.credits[0].words == "Its values diverged; it stays where it is."


def test_what_nobody_wants_any_more_stops():
    pair = Lockstep(scene("forward", "backward"))
    pair.tick()
    pair.stop[0] = 1
    assert not pair.way_to(NEVER)(LONG)
    assert pair.at == 1


def test_one_may_start_again():
    stage = scene("forward", "backward")
    pair = at_the_end(stage)
    pair.start_again()
    assert (pair.at, pair.furthest, pair.curves[0].steps) == (0, 0, [])
    assert pair.way_to(NEVER)(LONG)
    np.testing.assert_array_equal(pair.walkers[1].action_values, at_the_end(stage).walkers[1].action_values)


def test_what_never_changes_is_shared_by_copies():
    world = {"kind": "chain", "levels": [20, 10, 2]}
    pair = Lockstep(scene("true-forward", "true-backward", world=world))
    for walker in pair.walkers:
        copied = walker.save()
        assert copied.parts.model.rows.weight is walker.now.parts.model.rows.weight
        assert copied.parts.values.u is not walker.now.parts.values.u
        assert copied.n_bytes < walker.now.parts.model.rows.weight.nbytes + 20_000


def test_pure_planning_from_s_plans_from_the_end_as_well():
    pure = {"kind": "backward", "frame": "previous", "learn": False, "model": "counts"}
    pair = Lockstep(scene(pure, "backward", world={"kind": "maze", "text": "S.G"}))
    assert pair.way_to(NEVER, 0)(LONG)
    goal, before = pair.scene.name_of(2), pair.scene.name_of(1)
    assert pair.credits[0].words.endswith(f"Planned backward from {goal}: corrected {before} by +1.")
    assert (2, 1, 1.0) in pair.credits[0].arrows


def test_a_maze_that_changes_is_shown_as_it_is_for_each_agent():
    """One has taken more steps than the other, which waited; going back restores the walls."""
    pair = at_the_end(scene("dyna-plus", "q", world={"kind": "blocking-maze", "step": 300}, episodes=5))
    told = pair.scene.describe()
    taken = [sum(curves.steps) for curves in pair.curves]
    assert [walker.now.taken for walker in pair.walkers] == taken
    walls = [told["layout"]["kinds"], told["later"][0]["kinds"]]
    assert [kinds[27:36] for kinds in walls] == ["XXXXXXXX.", ".XXXXXXXX"]
    assert not told["layout"]["editable"]
    seen = set()
    for at in np.linspace(pair.at, 1, 30).astype(int).tolist():
        assert pair.way_to(at)(LONG)
        eras = [int(walker.now.taken >= 300) for walker in pair.walkers]
        (size,) = struct.unpack("<I", (shown := encode(pair, {}, 0))[:4])
        assert [agent["era"] for agent in json.loads(shown[4 : 4 + size])["agents"]] == eras
        for agent, era in zip(answer(pair, 35 - 9)["agents"], eras, strict=True):  # above the gap on the right
            assert agent["true_successors"][2]["to"] == [(35, 1.0) if era == 0 else (26, 1.0)]
            assert agent["exact"] == pytest.approx(0.95)
        for agent, era in zip(answer(pair, 48)["agents"], eras, strict=True):  # the start
            assert agent["exact"] == pytest.approx(0.95 ** (15 if era else 9))
        seen.add(tuple(eras))
    assert len(seen) == 3  # before, after, and one agent after the other


@pytest.mark.parametrize("schedule", ["linear", "constant", "average"])
def test_arrows_of_forward_planning_add_up_to_what_it_changed(schedule):
    planner = {"kind": "forward", "model": "counts", "learn": False, "alpha": 0.8, "schedule": schedule}
    pair = Lockstep(scene(planner, "td", world={"kind": "chain", "levels": [2, 3, 2]}, seed=3, episodes=12))
    changes = 0
    while not pair.finished:
        before = pair.walkers[0].action_values
        pair.tick()
        by = (pair.walkers[0].action_values - before)[:, 0]
        for s in np.flatnonzero(np.abs(by) > 1e-9):
            assert sum(arrow[2] for arrow in pair.credits[0].arrows if arrow[1] == s) == pytest.approx(by[s], rel=0.05)
            changes += 1
    assert changes > 10
