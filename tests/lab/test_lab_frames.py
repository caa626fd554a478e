"""What the lab tells of a moment: its frames, its answers about states, and the mean of further seeds."""

import json
import struct

import numpy as np
import pytest

import backcast as bc
from backcast.core.errors import InputError
from backcast.lab.config import EPISODES
from backcast.lab.frames import encode, greedy_masks
from backcast.lab.further_seeds import SEEDS, Further, _band
from backcast.lab.inspection import answer
from backcast.lab.lockstep import Lockstep
from backcast.studies.statistics import bootstrap
from lab_scenes import LONG, at_the_end, scene


@pytest.mark.interpreted
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


@pytest.mark.interpreted
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


@pytest.mark.interpreted
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
