"""Seeded runs: their random numbers, their shapes, and what is known of their results."""

import signal
import subprocess
import sys
import textwrap
import time

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.core.randomness import streams, uniform
from patience import PATIENCE

MAZE = bc.worlds.maze()


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 7])
def test_streams_are_numpys(seed):
    world, agent = streams(seed)
    assert [uniform(world) for _ in range(50)] == np.random.default_rng(seed).random(50).tolist()
    drawn = [uniform(agent) for _ in range(10_000)]
    assert np.mean(drawn) == pytest.approx(0.5, abs=5 / np.sqrt(12 * 10_000))
    assert abs(np.corrcoef(drawn, np.random.default_rng(seed).random(10_000))[0, 1]) < 0.05


def test_the_worlds_stream_is_gymnasiums():
    env = gymnasium.make("backcast/Maze-v0")
    env.reset(seed=11)
    world, _ = streams(11)
    uniform(world)  # the start was drawn
    assert env.unwrapped.np_random.random() == uniform(world)


def test_results_have_the_promised_shapes():
    runs = bc.run(MAZE, bc.agent("backward"), 7, 3)
    assert runs.steps.shape == runs.reward.shape == (3, 7)
    assert runs.rmsve is None
    assert runs.values.shape == (3, 48, 4)
    assert runs.updates.learning.shape == runs.updates.planning.shape == runs.updates.total.shape == (3,)
    np.testing.assert_array_equal(np.asarray(runs.updates).sum(axis=1), runs.updates.total)
    assert len(runs.models) == 3
    assert runs.seeds == (0, 1, 2)
    means = f"mean steps per episode {runs.steps.mean():.1f}, mean reward {runs.reward.mean():.3g}"
    assert repr(runs) == f"Runs(backward in maze: 3 seeds × 7 episodes, {means})"
    chain = bc.run(bc.worlds.chain((4, 3, 2), None), bc.agent("forward"), 7, [4, 9])
    assert chain.rmsve.shape == chain.rmsve_inner.shape == (2, 7)
    assert chain.values.shape == (2, 9)
    assert "mean RMSVE" in repr(chain)


def test_agents_see_the_same_worlds_and_trajectories_in_prediction():
    world = bc.worlds.chain((10, 5, 3), seed=None)
    one, two = (bc.run(world, bc.agent(kind), 20, 5) for kind in ("td", "backward"))
    np.testing.assert_array_equal(one.reward, two.reward)
    assert len(np.unique(one.reward.sum(axis=1))) == 5


def test_reported_errors_are_those_of_the_final_values():
    world = bc.worlds.chain((10, 5, 3), seed=2)
    runs = bc.run(world, bc.agent("backward"), 30, 3)
    error = (runs.values - world.truth) ** 2
    np.testing.assert_allclose(runs.rmsve[:, -1], np.sqrt(error.mean(axis=1)))
    inner = error[:, ~world.mdp.terminal]
    np.testing.assert_allclose(runs.rmsve_inner[:, -1], np.sqrt(inner.mean(axis=1)))


def test_td_finds_the_values_of_a_chain():
    world = bc.worlds.chain((5, 4, 3), seed=0)
    runs = bc.run(world, bc.agent("td"), 4000, 10)
    assert runs.rmsve[:, -1].mean() < 0.2 * runs.rmsve[:, 0].mean()


@pytest.mark.parametrize(
    ("kind", "frame", "mean", "error"),
    [
        # measured over 2,000 seeds with an independent dense implementation of the same algorithms (backward) and with
        # the first version of this one (the others); standard error of the mean over 400 seeds is at most 0.6
        ("q", None, 53.3, 0.6),
        ("backward", "previous", 31.9, 0.4),
        ("backward", "current", 34.7, 0.4),
        ("forward", "previous", 50.4, 0.5),
        ("forward", "current", 53.3, 0.6),
    ],
)
def test_steps_per_episode_in_the_papers_maze(kind, frame, mean, error):
    runs = bc.run(MAZE, bc.agent(kind, frame=frame), 100, 400)
    assert runs.steps.mean() == pytest.approx(mean, abs=4 * error)


def test_rates_follow_the_schedule():
    agent = bc.agent("backward", alpha=0.8, alpha_model=0.4, epsilon=0.5)
    np.testing.assert_allclose(agent.rates(4), np.outer([1, 0.75, 0.5, 0.25], [0.8, 0.4, 0.8, 0.5]))
    constant = bc.agent("backward", alpha=0.8, alpha_plan=0.1, schedule="constant").rates(3)
    np.testing.assert_allclose(constant, np.tile([0.8, 1.0, 0.1, 0.5], (3, 1)))
    listed = bc.agent("q", alpha=[1.0, 0.5, 0.0], epsilon=[0.9, 0.1, 0.0]).rates(3)
    np.testing.assert_allclose(listed[:, 0], [1, 0.5, 0])
    np.testing.assert_allclose(listed[:, 3], [0.9, 0.1, 0])


def test_ties_are_broken_at_random():
    """With ε = 0 and all values 0, the four actions of the first step are equally likely."""
    world = bc.worlds.maze("....\n.S..\n...G")
    firsts = np.zeros(4)
    for seed in range(400):
        runs = bc.run(world, bc.agent("forward", epsilon=0.0), 1, [seed], max_steps=1)
        model = runs.models[0]
        firsts += [len(model.predict(5, a).states) for a in range(4)]
    assert firsts.sum() == 400
    np.testing.assert_allclose(firsts / 400, 0.25, atol=5 * np.sqrt(0.1875 / 400))


def test_truncated_episodes_bootstrap():
    """Two cells and a goal far away: an episode is cut after one step, and its value is that of going on."""
    world = bc.worlds.maze("S..G")
    runs = bc.run(world, bc.agent("q", alpha=1.0, epsilon=1.0, schedule="constant"), 2000, 1, max_steps=3)
    best = bc.exact.optimal(world.mdp).q
    np.testing.assert_allclose(runs.values[0, 0], best[0], rtol=1e-6)


def test_models_can_be_asked():
    runs = bc.run(bc.worlds.maze("S.G"), bc.agent("backward", schedule="constant", epsilon=1.0), 200, 1)
    model = runs.models[0]
    guess = model.predict(2)
    assert (guess.states[0], guess.actions[0]) == (1, 1)
    assert guess.probability[0] > 0.9
    assert sum(p for _, _, p in guess) + (12 - len(guess.states)) * guess.each_other == pytest.approx(1)
    np.testing.assert_allclose(model.joint.sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(model.states, model.joint.sum(axis=2))
    assert model.reward[2] == pytest.approx(1)
    forward = bc.run(bc.worlds.maze("S.G"), bc.agent("forward", schedule="constant", epsilon=1.0), 200, 1).models[0]
    assert forward.predict(1, 1).states[0] == 2
    np.testing.assert_allclose(forward.transition.sum(axis=2), 1)
    np.testing.assert_array_equal(forward.ends, [False, False, True])


def test_learned_models_approach_the_true_ones():
    world = bc.worlds.chain((6, 4, 3), seed=0)
    settings = dict(alpha=0.5, alpha_model=0.3)
    backward = bc.run(world, bc.agent("backward", **settings), 60_000, 1).models[0]
    truth = bc.exact.backward(world.mdp).states
    np.testing.assert_allclose(backward.states[6:], truth[6:], atol=0.1)
    np.testing.assert_allclose(backward.reward[6:10, 10:], world.mdp.reward[6:10, 0, 10:], rtol=1e-6)
    forward = bc.run(world, bc.agent("forward", **settings), 60_000, 1).models[0]
    np.testing.assert_allclose(forward.transition[:10, 0], world.mdp.transition[:10, 0], atol=0.1)


def test_episodes_that_begin_at_the_end_have_no_steps():
    mdp = bc.FiniteMDP([[[0, 1]], [[0, 1]]], [[1.0], [0.0]], 0.9, [0.5, 0.5], [False, True])
    runs = bc.run(bc.worlds.from_mdp(mdp), bc.agent("backward"), 200, 1)
    assert set(np.unique(runs.steps)) == {0, 1}


def test_the_switch_interval_is_what_it_was_after_runs_at_once():
    import threading

    before = sys.getswitchinterval()
    threads = [threading.Thread(target=bc.run, args=(MAZE, bc.agent("q"), 50, 20)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getswitchinterval() == before


def test_ctrl_c_stops_a_compiled_run(tmp_path):
    """One episode is a random walk of 10⁹ steps: nobody would wait for its end."""
    script = tmp_path / "long.py"
    script.write_text(
        textwrap.dedent("""
        import backcast as bc
        agent = bc.agent("backward", epsilon=1.0, schedule="constant")
        bc.run(bc.worlds.maze(), agent, 2, 2)
        print("ready", flush=True)
        bc.run(bc.worlds.maze("S" + 50_000 * "." + "G", max_steps=10**15), agent, 1, 4)
        """)
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)  # so that it is compiled code that is interrupted
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0


def test_a_budget_of_value_updates_ends_a_run_and_repeats_its_last_episode():
    world, agent = bc.worlds.chain((6, 4, 3), seed=0), bc.agent("dyna", sample=4, schedule="constant")
    free, bounded = bc.run(world, agent, 50, 3), bc.run(world, agent, 50, 3, updates=101)
    assert free.updates.by_episode[0].tolist() == [10 * (k + 1) for k in range(50)]  # 2 steps of 1 + 4 updates
    assert bounded.updates.total.tolist() == [110] * 3
    np.testing.assert_array_equal(bounded.rmsve[:, :11], free.rmsve[:, :11])
    np.testing.assert_array_equal(bounded.rmsve[:, 11:], np.repeat(free.rmsve[:, 10:11], 39, axis=1))
    np.testing.assert_array_equal(bounded.updates.by_episode[:, 11:], 110)
    assert (free.seconds > 0).all()
    with pytest.raises(bc.InputError, match="updates: 0 given"):
        bc.run(world, agent, 50, 3, updates=0)


def test_settings_are_part_of_the_name_and_can_be_read():
    agent = bc.agent("backward", frame="previous", lam=(0.5, 0.25), model="counts", forget=0.1, top=None)
    assert agent.name == "backward@previous,model=counts,lam=0.5-0.25,forget=0.1"
    assert (agent.get("lam"), agent.get("top"), agent.get("top", 7)) == ((0.5, 0.25), None, 7)
    assert bc.agent("backward", conditioned=True).name == "backward,conditioned=true"


def test_seeds_may_be_whatever_a_seed_sequence_takes():
    agent = bc.agent("q")
    given = [3, np.int64(4), 2**80, (1, 2), np.array([1, 3])]
    runs = bc.run(MAZE, agent, 2, given)
    assert runs.seeds == (3, 4, 2**80, (1, 2), (1, 3))
    again = bc.run(MAZE, agent, 2, reversed(given))
    np.testing.assert_array_equal(runs.values, again.values[::-1])
    np.testing.assert_array_equal(runs.values[:2], bc.run(MAZE, agent, 2, (s for s in (3, 4))).values)
    np.testing.assert_array_equal(runs.values[:2], bc.run(MAZE, agent, 2, {3, 4}).values)
    assert len({steps.tobytes() for steps in bc.run(MAZE, agent, 20, given).steps}) == 5


def test_fresh_entropy_is_told_so_that_a_run_can_be_repeated():
    runs = bc.run(MAZE, bc.agent("q"), 2, [None, None])
    assert len(set(runs.seeds)) == 2
    np.testing.assert_array_equal(runs.values, bc.run(MAZE, bc.agent("q"), 2, runs.seeds).values)


def test_a_run_is_described_in_few_words_whatever_the_unit_of_its_rewards():
    mdp = bc.FiniteMDP(np.ones((1, 1, 1)), [[1e200]], 0.5, [1.0], [False])
    runs = bc.run(bc.worlds.from_mdp(mdp, [[1.0]], max_steps=5), bc.agent("td"), 3, 1)
    assert len(repr(runs)) < 80
