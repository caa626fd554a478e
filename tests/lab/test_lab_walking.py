"""The two agents of the lab: they compute what `backcast.run` computes, at any moment, however it was reached."""

import json
import struct

import numpy as np
import pytest

import backcast as bc
from backcast.core.errors import InputError
from backcast.lab import lockstep as lockstep_module
from backcast.lab.config import EPISODES, LabConfig, offered, read_config, setting_descriptions, world_descriptions
from backcast.lab.frames import encode, greedy_masks
from backcast.lab.further import SEEDS, Further, _band
from backcast.lab.inspection import answer
from backcast.lab.lockstep import NEVER, Lockstep, _next_chunk
from backcast.lab.messages import hello
from backcast.lab.scene import Scene
from backcast.studies.statistics import bootstrap

LONG = 60.0  # seconds: as long as it takes


def config(left="forward", right="backward", world=None, **given):
    agents = {side: {"kind": of} if isinstance(of, str) else of for side, of in (("left", left), ("right", right))}
    return {"world": world or {"kind": "maze"}, **agents, "episodes": 12, **given}


def scene(*agents, **given):
    return Scene(read_config(config(*agents, **given)))


def at_the_end(stage):
    pair = Lockstep(stage)
    assert pair.way_to(NEVER)(LONG)
    return pair


WORLDS = {
    "maze": ({"kind": "maze", "slip": 0.3}, "forward", {"kind": "backward", "frame": "previous", "learn": False}),
    "chain": ({"kind": "chain", "levels": [6, 3, 2]}, "forward", "backward"),
    "table": ({"kind": "gymnasium", "id": "FrozenLake-v1"}, "certainty-equivalence", {"kind": "dyna", "sample": 3}),
    "changing": ({"kind": "blocking-maze", "step": 150}, {"kind": "dyna-plus", "epsilon": 0.2}, "q"),
}


@pytest.fixture(scope="module", params=WORLDS)
def walked(request):
    """A run to its end, compiled, and all ticks of it, watched one by one."""
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
    assert pair.credits[first].words == f"Its episode was over after {steps} steps; it waits."
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
    assert ticked.credits[0].words == "Its values exploded; it stands still."


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


def test_a_frame_holds_what_is_seen():
    pair = Lockstep(scene("forward", "backward"))
    pair.way_to(400)(LONG)
    frame = encode(pair, {"frame": 5, "playing": False, "speed": 1.0}, 0)
    (length,) = struct.unpack_from("<I", frame)
    header = json.loads(frame[4 : 4 + length])
    start = -(-(4 + length) // 4) * 4
    values = np.frombuffer(frame, "<f4", 2 * 48, start).reshape(2, 48)
    masks = np.frombuffer(frame, np.uint8, 2 * 48, start + 8 * 48).reshape(2, 48)
    assert (header["at"], header["frame"], header["episode"]) == (400, 5, pair.episode)
    for side, walker in enumerate(pair.walkers):
        np.testing.assert_array_equal(values[side], walker.action_values.max(axis=1).astype(np.float32))
        np.testing.assert_array_equal(masks[side], greedy_masks(walker.action_values))
        assert header["agents"][side]["state"] == walker.now.place.s
        assert header["agents"][side]["curves"]["steps"] == pair.curves[side].steps
    assert len(frame) == start + 10 * 48


def test_greedy_actions_as_bits():
    q = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [-1, -2, -3, -4]], dtype=float)
    assert greedy_masks(q).tolist() == [0b1010, 0, 0b0001]


def test_an_answer_puts_what_is_learned_next_to_what_is_true():
    stage = scene("forward", "backward", world={"kind": "chain", "levels": [4, 3, 2]}, episodes=300)
    pair = at_the_end(stage)
    told = answer(pair, 5)
    back = bc.exact.backward(stage.world.mdp, None).states[5]
    assert told["name"] == stage.name_of(5)
    assert [agent["exact"] for agent in told["agents"]] == pytest.approx([stage.eras[0].truth[5]] * 2)
    for agent in told["agents"]:
        assert {s: p for s, _, p in agent["true_predecessors"]} == pytest.approx(
            {s: back[s] for s in np.flatnonzero(back)}
        )
    onward = dict(told["agents"][0]["true_successors"][0]["to"])
    assert onward == pytest.approx({7: stage.world.rows.toarray()[5, 7], 8: stage.world.rows.toarray()[5, 8]})
    forward, backward = told["agents"]
    assert (forward["predecessors"], backward["successors"]) == (None, None)
    model = bc.run(stage.family, stage.agents[1], 300, 1).models[0]
    assert backward["predecessors"] == list(model.predict(5))
    assert backward["other"] == model.predict(5).each_other > 0
    with pytest.raises(InputError, match="state: 9 given, expected 0 to 8"):
        answer(pair, 9)


def test_in_control_what_truly_led_here_depends_on_the_policy_of_the_moment():
    pair = Lockstep(scene("certainty-equivalence", "backward", world={"kind": "gymnasium", "id": "FrozenLake-v1"}))
    pair.way_to(40)(LONG)
    for agent, walker in zip(answer(pair, 4)["agents"], pair.walkers, strict=True):
        q, epsilon = walker.action_values, walker.rates[3]
        greedy = (q == q.max(axis=1, keepdims=True)).astype(float)
        policy = epsilon / 4 + (1 - epsilon) * greedy / greedy.sum(axis=1, keepdims=True)
        joint = bc.exact.backward(pair.scene.world.mdp, policy).joint[4]
        expected = {
            (s, a): joint[s, a] for s, a in np.argwhere(joint > 0).tolist() if not pair.scene.world.mdp.terminal[s]
        }
        assert {(s, a): p for s, a, p in agent["true_predecessors"]} == pytest.approx(expected)
        assert agent["about"] == "under the ε-greedy policy of this moment"


@pytest.mark.parametrize(
    ("world", "metric"),
    [
        ({"kind": "chain", "levels": [6, 3, 2]}, "rmsve_inner"),
        ({"kind": "maze"}, "steps"),
        ({"kind": "gymnasium", "id": "FrozenLake-v1"}, "reward"),
    ],
)
def test_further_seeds_have_the_mean_of_runs(world, metric):
    stage = scene("forward", "backward", world=world, seed=4, episodes=6)
    assert stage.describe()["metric"] == metric
    reports = []
    further = Further(stage, reports.append)
    further.start()
    further.wait()
    assert (reports[-1]["done"], reports[-1]["of"]) == (SEEDS, 100)
    for agent, band in zip(stage.agents, reports[-1]["agents"], strict=True):
        errors = getattr(bc.run(stage.family, agent, 6, range(5, 105)), metric)
        assert band["mean"] == pytest.approx(errors.mean(axis=0).tolist())
        for episode, low, high in zip(errors.T, band["low"], band["high"], strict=True):
            interval = bootstrap(episode, seed=0, resamples=1_000)
            assert (low, high) == pytest.approx((interval.low, interval.high))


def test_a_model_over_several_steps_stands_next_to_what_is_true_over_them():
    stage = scene({"kind": "true-backward", "horizon": 2}, "sweeping", world={"kind": "random-walk", "n": 5, "jump": 1})
    pair = Lockstep(stage)
    far, counted = answer(pair, 3)["agents"]
    assert far["predecessors"] == far["true_predecessors"]
    assert far["about"] == "over the steps that the model looks back"
    assert {s for s, _, _ in far["predecessors"]} == {1, 3, 5}
    assert {s: p for s, _, p in counted["true_predecessors"]} == pytest.approx({2: 0.5, 4: 0.5})  # and new episodes


def test_counted_rows_contain_restarts_and_so_does_the_truth_beside_them():
    counts, softmax = {"kind": "backward", "model": "counts"}, {"kind": "backward"}
    stage = scene(counts, softmax, world={"kind": "random-walk", "n": 5, "jump": 1})
    of_counts, of_softmax = answer(Lockstep(stage), 3)["agents"]
    back = bc.exact.backward(stage.world.mdp, None).states[3]
    assert back[2] + back[4] < 1  # 3 is where episodes begin
    assert {s: p for s, _, p in of_counts["true_predecessors"]} == pytest.approx({2: back[2], 4: back[4]})
    assert {s: p for s, _, p in of_softmax["true_predecessors"]} == pytest.approx({2: 0.5, 4: 0.5})


def test_nothing_follows_the_end_of_an_episode():
    pair = Lockstep(scene("true-forward", "forward", world={"kind": "chain", "levels": [3, 2]}))
    told = answer(pair, 4)
    assert [agent[of][0]["to"] for agent in told["agents"] for of in ("true_successors", "successors")] == [[]] * 4


def test_where_values_of_a_further_seed_explode_there_is_no_mean():
    band = _band(np.array([[1.0, np.inf], [3.0, 2.0]]))
    assert (band["mean"], band["high"][1]) == ([2.0, None], None)
    assert _band(np.array([[1.0, 2.0]])) == {"mean": [1.0, 2.0], "low": [None, None], "high": [None, None]}


def test_further_seeds_stop_when_they_are_no_longer_wanted():
    text = "\n".join("S" + "." * 48 + "G" if row == 0 else "." * 50 for row in range(50))
    stage = scene("forward", "backward", world={"kind": "maze", "text": text}, episodes=EPISODES)
    further = Further(stage, lambda report: None)
    further.start()
    further.stop()
    further.wait()


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
    table = {
        "kind": "gymnasium",
        "id": next(name for name in offered()["gymnasium"].sketch.choices()["id"] if name.startswith("Taxi")),
    }
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
