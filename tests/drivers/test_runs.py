import os
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


AGENT_REFUSALS = [
    (("backwards",), {}, r"kind: 'backwards' given, expected one of td, q, forward.*did you mean 'backward'\?"),
    (("td",), {"frame": "current"}, r"frame: 'current' given, but 'td' does not plan"),
    (("backward",), {"frame": "next"}, r"frame: 'next' given, expected 'previous' \(plan from s\) or 'current'"),
    (("q",), {"learn": False}, r"learn: False given, but 'q' does nothing else"),
    (("backward",), {"learn": "False"}, r"learn: 'False' given, expected True or False"),
    (("td",), {"alpha": 0}, r"alpha: 0 given, expected a step size in \(0, 1\]"),
    (("td",), {"alpha": 1.5}, r"alpha: 1\.5 given"),
    (("td",), {"alpha": float("nan")}, r"alpha: nan given"),
    (("td",), {"alpha": "big"}, r"alpha: 'big' given"),
    (("backward",), {"alpha_model": -1}, r"alpha_model: -1 given"),
    (("backward",), {"alpha_plan": 2.0}, r"alpha_plan: 2\.0 given"),
    (("q",), {"epsilon": 1.2}, r"epsilon: 1\.2 given, expected a probability in \[0, 1\]"),
    (("q",), {"schedule": "cosine"}, r"schedule: 'cosine' given, expected 'linear' or 'constant'"),
    (("q",), {"alpha": []}, r"alpha: \[\] given"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), AGENT_REFUSALS)
def test_agent_refuses_with_what_is_allowed(arguments, options, message):
    with pytest.raises(bc.InputError, match=message):
        bc.agent(*arguments, **options)


CHAIN = bc.worlds.chain((3, 2))
ENDLESS = bc.worlds.from_mdp(bc.FiniteMDP(np.eye(2)[:, None, :], np.zeros((2, 1)), 0.9, [1, 0]))
TRAP = bc.worlds.from_mdp(
    bc.FiniteMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], np.zeros((3, 1)), 0.9, [1, 0, 0], [False, False, True])
)
RUN_REFUSALS = [
    (lambda: bc.run("maze", bc.agent("q"), 1, 1), r"world: str given, expected a World, made by backcast\.worlds"),
    (lambda: bc.run(MAZE, "q", 1, 1), r"agent: 'q' given, expected one made by backcast\.agent"),
    (lambda: bc.run(MAZE, bc.agent("q"), 0, 1), r"episodes: 0 given, expected a whole number, 1 or more"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 0), r"seeds: 0 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, []), r"seeds: an empty list given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [-1]), r"seeds: -1 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, "12"), r"seeds: '12' given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [[1, -1]]), r"seeds: -1 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [[]]), r"seeds: an empty list given as one of them"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 2.5), r"seeds: 2\.5 given, expected a whole number, 1 or more"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, None), r"seeds: None given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 1, max_steps=2**70), r"max_steps: \d+ given, expected a whole number"),
    (lambda: bc.run(TRAP, bc.agent("td"), 1, 1), r"no episode that comes to state 1 ever ends; give a number"),
    (lambda: bc.train("FrozenLake-v1", bc.agent("q"), 1, 0), r"env: str given, expected a Gymnasium environment"),
    (lambda: bc.train(gymnasium.make("FrozenLake-v1"), bc.agent("q"), 1, -1), r"seed: -1 given"),
    (lambda: bc.worlds.maze(5), r"text: int given, expected the maze as text"),
    (lambda: bc.worlds.maze(slip="0.5"), r"slip: '0\.5' given, expected a probability in \[0, 1\]"),
    (lambda: bc.worlds.maze(max_steps="400"), r"max_steps: '400' given"),
    (lambda: bc.worlds.chain(seed=1.5), r"seed: 1\.5 given, expected a whole number, 0 or more"),
    (lambda: bc.agent(["q"]), r"kind: \['q'\] given"),
    (lambda: bc.agent("q", epsilon=None), r"epsilon: None given"),
    (lambda: bc.run(MAZE, bc.agent("backward"), 1, 1).models[0].predict(48), r"s: 48 given, expected 0 to 47"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [1, 1]), r"seeds: a seed is given twice"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 1, max_steps=0), r"max_steps: 0 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 1, workers=0), r"workers: 0 given"),
    (lambda: bc.run(MAZE, bc.agent("td"), 1, 1), r"'td' works in prediction worlds, .* control; in control use 'q'"),
    (lambda: bc.run(CHAIN, bc.agent("q"), 1, 1), r"'q' works in control worlds, .* prediction; in prediction use 'td'"),
    (
        lambda: bc.run(MAZE, bc.agent("true-backward"), 1, 1),
        r"the model is tied to a policy.*from_mdp\(mdp, pol",
    ),
    (lambda: bc.run(MAZE, bc.agent("q", alpha=[1.0]), 2, 1), r"alpha: a list of 1 given for 2 episodes"),
    (
        lambda: bc.run(ENDLESS, bc.agent("td"), 1, 1),
        r"max_steps: none given, but in mdp no episode that comes to state 0 ever ends",
    ),
]


@pytest.mark.parametrize(("call", "message"), RUN_REFUSALS)
def test_run_refuses_with_what_is_allowed(call, message):
    with pytest.raises(bc.InputError, match=message):
        call()


def test_episodes_that_begin_at_the_end_have_no_steps():
    mdp = bc.FiniteMDP([[[0, 1]], [[0, 1]]], [[1.0], [0.0]], 0.9, [0.5, 0.5], [False, True])
    runs = bc.run(bc.worlds.from_mdp(mdp), bc.agent("backward"), 200, 1)
    assert set(np.unique(runs.steps)) == {0, 1}


def test_train_in_environments_without_a_table():
    """Rows grow where the graph is not known; the numbers are those of a run that knows it."""

    class Plain(gymnasium.Env):
        """The maze behind an interface that tells nothing but its spaces."""

        def __init__(self):
            self.inner = gymnasium.make("backcast/Maze-v0").unwrapped
            self.observation_space, self.action_space = self.inner.observation_space, self.inner.action_space
            self.reset, self.step = self.inner.reset, self.inner.step

    for kind, frame in (("forward", "current"), ("backward", "previous"), ("q", None)):
        agent = bc.agent(kind, frame=frame)
        blind = bc.train(Plain(), agent, 15, seed=4)
        knowing = bc.run(MAZE, agent, 15, [4])
        np.testing.assert_array_equal(blind.steps, knowing.steps)
        np.testing.assert_array_equal(blind.values, knowing.values)
        assert blind.world == "Plain"
    with pytest.raises(bc.InputError, match="'true-forward' plans with the true model, but this environment carries"):
        bc.train(Plain(), bc.agent("true-forward"), 1, 0)


def test_a_wrapper_that_renumbers_states_does_not_meet_the_table():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    shifted = gymnasium.wrappers.TransformObservation(env, lambda s: s + 16, gymnasium.spaces.Discrete(32))
    runs = bc.train(shifted, bc.agent("backward"), 5, seed=0)
    assert (runs.values[0, :16] == runs.values[0, 0]).all()
    with pytest.raises(bc.InputError, match="this environment carries no table"):
        bc.train(shifted, bc.agent("true-forward"), 1, seed=0)


def test_states_outside_of_the_space_are_refused_before_they_reach_a_kernel():
    class Lying(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 7, 0.0, False, False, {}

    with pytest.raises(bc.InputError, match="next_state: 7 observed, but the environment's space has 0 to 2"):
        bc.train(Lying(), bc.agent("backward"), 1, 0)


def test_the_switch_interval_is_what_it_was_after_runs_at_once():
    import threading

    before = sys.getswitchinterval()
    threads = [threading.Thread(target=bc.run, args=(MAZE, bc.agent("q"), 50, 20)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getswitchinterval() == before


def test_train_refuses():
    with pytest.raises(bc.InputError, match=r"has a table, and needs numbered states; .*features\.tiles"):
        bc.train(gymnasium.make("CartPole-v1"), bc.agent("q"), 1, 0)
    with pytest.raises(bc.InputError, match="episodes: 0 given"):
        bc.train(gymnasium.make("FrozenLake-v1"), bc.agent("q"), 0, 0)


def test_train_solves_frozen_lake():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    runs = bc.train(env, bc.agent("backward", frame="previous", epsilon=1.0), 150, seed=0)
    assert runs.reward[0, -10:].mean() >= 0.8
    assert runs.world == "FrozenLake-v1"


def test_ctrl_c_stops_a_compiled_run_within_a_second(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(
        textwrap.dedent("""
        import backcast as bc
        bc.run(bc.worlds.maze(), bc.agent("backward"), 2, 2)
        print("ready", flush=True)
        bc.run(bc.worlds.maze(), bc.agent("backward"), 10_000_000, 4)
        """)
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    before = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    assert time.monotonic() - before < 5  # a second, and room for a busy machine


def test_kernels_are_found_by_the_next_process(tmp_path):
    code = textwrap.dedent("""
        import backcast as bc
        from backcast.drivers.loop import run_episodes
        bc.run(bc.worlds.maze(), bc.agent("backward"), 2, 1)
        print(sum(run_episodes.stats.cache_hits.values()), sum(run_episodes.stats.cache_misses.values()))
    """)
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(tmp_path)}
    outputs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs == ["0 1\n", "1 0\n"]


def test_a_cache_that_cannot_be_written_is_no_trouble(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    environment = {**os.environ, "BACKCAST_CACHE_DIR": str(blocked)}
    code = "import backcast as bc; print(bc.run(bc.worlds.maze(), bc.agent('q'), 2, 1).steps.shape)"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "(1, 2)\n"


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


def assert_nothing_beyond_its_room(part):
    """All rows within a model have as many places as they use."""
    part = getattr(part, "model", part)
    if hasattr(part, "offset"):
        assert (part.used <= np.diff(part.offset)).all()
    for field in getattr(part, "_fields", vars(part) if hasattr(part, "__dict__") else ()):
        if hasattr(getattr(part, field), "_fields") or field in ("forward", "backward"):
            assert_nothing_beyond_its_room(getattr(part, field))


def test_a_wrapper_may_change_what_follows():
    """A world behind a wrapper is not trusted to know the graph: rows grow."""
    from gymnasium.wrappers import StickyAction

    from backcast.worlds.envs import TableEnv

    for kind, settings in (("backward", {}), ("backward", {"conditioned": True}), ("forward", {})):
        env = StickyAction(TableEnv(bc.worlds.maze()), 0.3)
        runs = bc.train(env, bc.agent(kind, epsilon=1.0, **settings), 20, 0, max_steps=500)
        assert_nothing_beyond_its_room(runs.models[0])


def test_counted_starts_of_an_unknown_world_have_room():
    """Several ends lead to several starts: rows of starts grow, too, and sum to 1."""
    import gymnasium

    class Fork(gymnasium.Env):
        observation_space, action_space = gymnasium.spaces.Discrete(6), gymnasium.spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            self.s = int(self.np_random.integers(2))
            return self.s, {}

        def step(self, a):
            if self.s < 2:
                self.s = 2
                return 2, 0.0, False, False, {}
            self.s = 3 + int(self.np_random.integers(3))
            return self.s, 1.0, True, False, {}

    for settings in ({"model": "counts"}, {"conditioned": True}):
        model = bc.train(Fork(), bc.agent("backward", **settings), 300, 0).models[0]
        np.testing.assert_allclose(model.states[:2].sum(axis=1), 1)


def test_stepwise_agents_with_rows_that_grow_learn_what_others_do():
    """Where the graph is not known, rows of every kind of model grow; the numbers do not change."""
    import gymnasium

    for kind, settings in (
        ("backward", {"model": "counts"}),
        ("backward", {"conditioned": True}),
        ("forward", {"model": "counts"}),
        ("forward", {"model": "counts", "horizon": 2}),
        ("both", {}),
        ("sweeping", {}),
        ("dyna", {}),
    ):
        agent = bc.agent(kind, alpha=0.5, **settings)
        env = gymnasium.make("FrozenLake-v1")
        cliff = bc.train(gymnasium.make("CliffWalking-v1"), agent, 12, 0, max_steps=300)
        assert_nothing_beyond_its_room(cliff.models[0])
        known = bc.run(bc.worlds.from_gymnasium(env, discount=0.99), agent, 40, [3], max_steps=100)
        unknown = bc.train(gymnasium.make("FrozenLake-v1"), agent, 40, 3, max_steps=100)
        assert unknown.updates.total[0] > 0
        assert_nothing_beyond_its_room(unknown.models[0])
        assert np.isfinite(unknown.values).all()
        assert known.values.shape == unknown.values.shape


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
