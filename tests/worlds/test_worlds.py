import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import backcast as bc
from backcast.studies import check_study
from backcast.worlds.envs import TableEnv

worlds = bc.worlds


def test_chain_has_the_papers_structure():
    world = worlds.chain((30, 20, 10), seed=3)
    mdp = world.mdp
    assert (world.name, world.n_states, world.n_actions, world.discount) == ("chain-30-20-10", 60, 1, 0.9)
    assert world.is_prediction
    np.testing.assert_array_equal(np.flatnonzero(mdp.terminal), np.arange(50, 60))
    np.testing.assert_array_equal(np.flatnonzero(mdp.start), np.arange(30))
    transition = mdp.transition[:, 0]
    assert (transition[:30, 30:50] > 0).all()
    assert (transition[30:50, 50:] > 0).all()
    assert transition[:30, :30].sum() == transition[:30, 50:].sum() == transition[30:50, :50].sum() == 0
    reward = mdp.reward[:, 0]
    assert (reward[:30] == 0).all()
    sample = reward[30:50, 50:]
    assert sample.mean() == pytest.approx(10, abs=5 * 10 / np.sqrt(200))
    assert sample.std() == pytest.approx(10, rel=0.25)


def test_transition_weights_are_uniform_and_normalised():
    row = worlds.chain((1, 1900), seed=0).mdp.transition[0, 0, 1:]
    assert row.max() / row.mean() == pytest.approx(2, abs=0.1)  # U(0, 1) divided by its sum
    assert (row * 1900).std() == pytest.approx(1 / np.sqrt(3), rel=0.05)


def test_branches_are_chains_side_by_side_with_rewards_of_opposite_sign():
    world = worlds.chain((200, 100, 40), seed=3, branches=2)
    assert world.name == "chain-200-100-40-branches-2"
    transition, reward = world.mdp.transition[:, 0], world.mdp.reward[:, 0]
    branch = np.concatenate([np.arange(n) * 2 // n for n in (200, 100, 40)])
    live = ~world.mdp.terminal
    assert not transition[live][branch[live][:, None] != branch].any()
    np.testing.assert_allclose(transition.sum(axis=1)[live], 1)
    earned = [reward[200:300, 300:][transition[200:300, 300:] * (branch[200:300] == b)[:, None] > 0] for b in (0, 1)]
    assert abs(earned[0].mean() - 10) < 1
    assert abs(earned[1].mean() + 10) < 1
    value = bc.exact.value(world.mdp)[:200]
    assert value[:100].min() > 0 > value[100:].max()
    with pytest.raises(bc.InputError, match="branches: 6 given, expected at most 5"):
        worlds.chain((10, 5), branches=6)


@pytest.mark.parametrize("levels", [(500, 50, 5), (5, 50, 500), (7, 1, 9, 130, 3), (300, 2)])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_chains_are_drawn_directly_as_their_mdp_is(levels, discount):
    for seed in range(3):
        world = bc.worlds.chain(levels, seed, discount)
        by_mdp = dataclasses.replace(world, direct=None)
        for one, other in zip(world.steps_table, by_mdp.steps_table, strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(world.truth, by_mdp.truth, rtol=1e-14)


def test_chains_that_are_not_drawn_directly_are_walked_through_by_their_mdp():
    for world in (bc.worlds.chain((6, 4, 3), 0, branches=2), bc.worlds.chain([2] * 20, 0)):
        by_mdp = dataclasses.replace(world, direct=None)
        assert world.direct() is None
        for one, other in zip(world.steps_table, by_mdp.steps_table, strict=True):
            np.testing.assert_array_equal(one, other)


def test_every_seed_draws_its_own_chain():
    family = worlds.chain((4, 3, 2), seed=None)
    assert family.draw(5).mdp == worlds.chain((4, 3, 2), seed=5).mdp
    assert family.draw(5).mdp != family.draw(6).mdp
    with pytest.raises(bc.InputError, match=r"every seed draws its own world; world\.draw\(seed\)\.mdp"):
        _ = family.mdp


@pytest.mark.parametrize("levels", [(5,), (), (3, 0), (3, 2.5), "abc", 7, (2, -1)])
def test_chain_refuses_levels(levels):
    with pytest.raises(bc.InputError, match=r"levels: .* given, expected"):
        worlds.chain(levels)


def test_the_papers_maze():
    world = worlds.maze()
    assert (world.name, world.n_states, world.n_actions, world.max_steps) == ("maze", 48, 4, 400)
    assert (world.layout == "X").sum() == 7
    best = bc.exact.optimal(world.mdp)
    assert best.v[16] == pytest.approx(0.99**12)  # the shortest path has 13 steps
    np.testing.assert_array_equal(np.flatnonzero(world.mdp.terminal), [7])
    np.testing.assert_array_equal(world.mdp.reachable, (world.layout != "X").ravel())
    d = bc.exact.stationary(world.mdp, np.full((48, 4), 0.25))
    np.testing.assert_array_equal(d > 0, (world.layout != "X").ravel())


def test_moves_and_walls():
    world = worlds.maze("S.\nXG")
    moves = world.mdp.transition.argmax(axis=2)
    np.testing.assert_array_equal(moves[0], [0, 1, 0, 0])  # up, right, down (wall), left
    np.testing.assert_array_equal(moves[1], [1, 1, 3, 0])
    np.testing.assert_array_equal(world.mdp.reward[1, 2], [0, 0, 0, 1])


def test_slip_keeps_the_intended_move_and_shares_the_rest():
    world = worlds.maze("...\n.S.\n..G", slip=0.5)
    assert world.name == "custom-maze-slip-0.5"
    np.testing.assert_allclose(world.mdp.transition[4, 0, [1, 5, 7, 3]], [0.625, 0.125, 0.125, 0.125])
    assert worlds.maze(slip=0.5).name == "maze-slip-0.5"


def test_random_rewards_are_outcomes_and_their_mean_is_in_the_mdp():
    world = worlds.maze("SG", reward_probability=0.1)
    assert world.mdp.reward[0, 1, 1] == pytest.approx(0.1)
    runs = bc.run(world, bc.agent("q"), 400, 5)
    assert set(np.unique(runs.reward)) == {0.0, 1.0}
    assert runs.reward.mean() == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / 2000))
    assert [worlds.maze(reward_probability=p).name for p in (0.5, 0.1)] == ["maze-reward-0.5", "maze-reward-0.1"]


def test_an_indented_maze_is_the_same_maze():
    indented = worlds.maze("""
        S.G
        .X.
    """)
    np.testing.assert_array_equal(indented.layout, worlds.maze("S.G\n.X.").layout)


def test_large_chains_are_sparse_and_limits_of_wrappers_count():
    assert worlds.chain((3000, 5)).mdp.is_sparse
    env = gymnasium.make("backcast/Maze-v0", max_episode_steps=10)
    assert worlds.from_gymnasium(env).max_steps == 10


def test_several_starts_and_goals():
    world = worlds.maze("S.G\n...\nG.S")
    np.testing.assert_allclose(world.mdp.start[[0, 8]], 0.5)
    np.testing.assert_array_equal(np.flatnonzero(world.mdp.terminal), [2, 6])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S.\n.?", r"line 2, column 2 is '\?'; allowed are '\.' floor"),
        ("S..\n.G", r"line 2 ends after column 2, line 1 after column 3"),
        ("..\n.G", r"no start \('S'\)"),
        ("S.\n..", r"no goal \('G'\)"),
        ("SXG", r"the goal at line 1, column 3 cannot be reached from any start"),
        ("SG\nXX\nSX", r"no goal can be reached from the start at line 3, column 1"),
        ("\n", r"text: it is empty"),
    ],
)
def test_maze_refuses_with_line_and_column(text, message):
    with pytest.raises(bc.InputError, match=message):
        worlds.maze(text)


def test_rewards_have_the_papers_mean_and_spread():
    sample = worlds.chain((100, 400), seed=1).mdp.reward[:100, 0, 100:]
    assert sample.mean() == pytest.approx(10, abs=5 * 10 / np.sqrt(sample.size))
    assert sample.std() == pytest.approx(10, rel=5 / np.sqrt(2 * sample.size))


def test_what_a_world_looks_like_does_not_tell_what_happens_in_it():
    drawn = worlds.chain((1, 1900), seed=4).mdp.transition[0, 0, 1:]
    happens = np.random.default_rng(4).random(1900)
    assert abs(np.corrcoef(drawn, happens)[0, 1]) < 5 / np.sqrt(1900)


@pytest.mark.parametrize(("name", "value"), [("slip", 1.5), ("slip", -0.1), ("reward_probability", 2)])
def test_maze_refuses_probabilities(name, value):
    with pytest.raises(bc.InputError, match=f"{name}: {value} given, expected a probability"):
        worlds.maze(**{name: value})


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_from_gymnasium(name):
    env = gymnasium.make(name)
    world = worlds.from_gymnasium(env, discount=0.9)
    assert world.name == name
    table = env.unwrapped.P
    for s in np.flatnonzero(world.mdp.reachable & ~world.mdp.terminal)[:40]:
        for a in range(world.n_actions):
            expected = sum(p * r for p, _, r, _ in table[s][a])
            assert world.mdp.expected_reward[s, a] == pytest.approx(expected)
            for p, s2, _, ends in table[s][a]:
                if p:
                    assert world.mdp.terminal[s2] == ends
    runs = bc.run(world, bc.agent("q"), 5, 2, max_steps=300)
    assert (runs.steps > 0).all()


def test_optimal_policy_of_frozen_lake_is_the_known_one():
    world = worlds.from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False), discount=0.9)
    assert bc.exact.optimal(world.mdp).v[0] == pytest.approx(0.9**5)


def test_an_id_stands_for_its_environment():
    made = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=7)
    named = worlds.from_gymnasium("FrozenLake-v1", 0.9, is_slippery=False, max_episode_steps=7)
    assert (named.mdp, named.max_steps, named.name) == (worlds.from_gymnasium(made, 0.9).mdp, 7, "FrozenLake-v1")
    assert worlds.from_gymnasium("backcast/Maze-v0").mdp == worlds.maze().mdp


@pytest.mark.parametrize(
    ("env", "given", "words"),
    [
        ("FrozenLack-v1", {}, r"env: 'FrozenLack-v1' cannot be made \(.*Did you mean: `FrozenLake`"),
        ("FrozenLake-v1", {"slippery": True}, r"env: 'FrozenLake-v1' cannot be made \(.*slippery"),
        (gymnasium.make("FrozenLake-v1"), {"is_slippery": True}, "is_slippery: given with an environment that is made"),
        (worlds.maze().mdp, {}, "env: FiniteMDP given, expected a Gymnasium environment or its id"),
    ],
)
def test_from_gymnasium_refuses_what_it_cannot_make(env, given, words):
    with pytest.raises(bc.InputError, match=words):
        worlds.from_gymnasium(env, **given)


class Bare(gymnasium.Env):
    """An environment of these spaces, without a table."""

    def __init__(self, observations, actions=None):
        self.observation_space, self.action_space = observations, actions or gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}


NUMBERS, COORDINATES = gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(0.0, 1.0, (2,))
NO_TABLE = r"env: Bare carries no table \(env\.unwrapped\.P\), which backcast\.run and studies need; "
SEVERAL = (gymnasium.spaces.Dict(here=COORDINATES), gymnasium.spaces.Tuple([NUMBERS, NUMBERS]))


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Bare(NUMBERS), "backcast.train runs agents in it step by step$"),
        (
            Bare(COORDINATES),
            r"backcast.train runs agents in it step by step if they have features, .*features\.tiles\(\)",
        ),
        (
            Bare(SEVERAL[0]),
            "backcast.train needs none, but its observation space is Dict.*gymnasium.wrappers.FlattenObservation",
        ),
        (
            Bare(SEVERAL[1]),
            "backcast.train needs none, but its observation space is Tuple.*gymnasium.wrappers.FlattenObservation",
        ),
        (Bare(NUMBERS, COORDINATES), "backcast.train needs none, but its action space is Box.*expected Discrete$"),
    ],
)
def test_environments_without_a_table_are_told_what_train_can_do(env, words):
    with pytest.raises(bc.InputError, match=NO_TABLE + words):
        worlds.from_gymnasium(env)


@pytest.mark.parametrize("space", SEVERAL)
def test_train_names_the_wrapper_that_makes_a_box(space):
    with pytest.raises(bc.InputError, match=r"observation space is .*gymnasium\.wrappers\.FlattenObservation"):
        bc.train(Bare(space), bc.agent("q", features=bc.features.tiles()), 1, 0)


def test_flattened_observations_can_be_trained_on():
    class Walk(Bare):
        """Ends after 5 steps."""

        def reset(self, seed=None, options=None):
            self.left = 5
            return super().reset(seed, options)

        def step(self, action):
            self.left -= 1
            return self.observation_space.sample(), 1.0, self.left == 0, False, {}

    flat = gymnasium.wrappers.FlattenObservation(Walk(SEVERAL[0]))
    runs = bc.train(flat, bc.agent("q", features=bc.features.tiles(), alpha=0.1), episodes=3, seed=0)
    assert runs.steps.tolist() == [[5, 5, 5]]


def test_a_study_in_a_box_says_what_train_can_do():
    study = {"name": "pole", "episodes": 3, "worlds": [{"kind": "gymnasium", "id": "CartPole-v1"}]}
    with pytest.raises(
        bc.InputError, match=r"my\.toml: worlds\.0: env: CartPoleEnv carries no table.*if they have features"
    ):
        check_study({**study, "agents": [{"kind": "q"}]}, "my.toml")


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (worlds.maze().mdp, r"world: FiniteMDP given, expected a World: backcast\.worlds\.from_mdp\(mdp\) makes one"),
        (
            gymnasium.make("FrozenLake-v1"),
            r"world: .* given, expected a World: backcast\.worlds\.from_gymnasium\(env\)",
        ),
        ("maze", r"world: str given, expected a World, made by backcast\.worlds$"),
    ],
)
def test_run_says_how_to_make_a_world(world, words):
    with pytest.raises(bc.InputError, match=words):
        bc.run(world, bc.agent("q"), 1, 1)


def test_from_gymnasium_refuses_tables_that_are_no_mdp():
    class Tabular(gymnasium.Env):
        def __init__(self, P, start=None):
            self.P, self.initial_state_distrib = P, start

    table = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 1.0, True)]}}
    with pytest.raises(bc.InputError, match="start: Tabular does not say where episodes begin"):
        worlds.from_gymnasium(Tabular(table))
    table[2] = {0: [(1.0, 0, 0.0, False)]}
    with pytest.raises(bc.InputError, match="entering state 0 sometimes ends the episode and sometimes does not"):
        worlds.from_gymnasium(Tabular(table, [0, 0.5, 0.5]))


def test_from_mdp_with_a_policy_is_a_prediction_world():
    mdp = worlds.maze().mdp
    uniform = np.full((48, 4), 0.25)
    world = worlds.from_mdp(mdp, uniform, max_steps=1000)
    assert world.is_prediction
    assert world.n_actions == 1
    np.testing.assert_allclose(world.truth, bc.exact.value(mdp, uniform))
    runs = bc.run(world, bc.agent("td", alpha=0.5), 300, 4)
    assert runs.rmsve[:, -1].mean() < 0.5 * runs.rmsve[:, 0].mean()
    with pytest.raises(bc.InputError, match=r"mdp: str given, expected a backcast\.FiniteMDP"):
        worlds.from_mdp("maze")
    with pytest.raises(bc.InputError, match="max_steps: 0 given"):
        worlds.from_mdp(mdp, max_steps=0)


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("name", ["Chain", "Maze"])
def test_environments_pass_gymnasiums_own_check(name, render_mode):
    env = gymnasium.make(f"backcast/{name}-v0", render_mode=render_mode)
    check_env(env.unwrapped, skip_render_check=render_mode is None)


def test_terminated_and_truncated_are_kept_apart():
    env = gymnasium.make("backcast/Maze-v0", text="S.G", max_steps=2)
    env.reset(seed=0)
    assert env.step(1)[2:4] == (False, False)
    assert env.step(1)[2:4] == (True, False)
    env.reset(seed=0)
    env.step(0)
    assert env.step(0)[2:4] == (False, True)


def test_rendering():
    env = gymnasium.make("backcast/Maze-v0", render_mode="ansi")
    env.reset(seed=0)
    assert env.render().splitlines()[2] == "@.X...X."
    env.step(1)
    assert env.render().splitlines()[2] == "S>X...X."
    picture = gymnasium.make("backcast/Maze-v0", render_mode="rgb_array")
    picture.reset(seed=0)
    assert picture.render().shape == (6 * 24, 8 * 24, 3)
    chain = gymnasium.make("backcast/Chain-v0", levels=(3, 2), render_mode="ansi")
    chain.reset(seed=1)
    assert chain.render().startswith("level 1 of 2, state ")
    plain = TableEnv(worlds.from_mdp(worlds.maze().mdp), render_mode="ansi")
    plain.reset(seed=0)
    assert plain.render() == "state 16 of 48\n"


def test_environment_refuses_with_a_reason():
    env = gymnasium.make("backcast/Maze-v0").unwrapped
    with pytest.raises(bc.InputError, match=r"call reset\(\) before"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(bc.InputError, match="action: 7 given, expected 0 to 3"):
        env.step(7)
    with pytest.raises(bc.InputError, match="render_mode: 'human' given"):
        TableEnv(worlds.maze(), render_mode="human")


def test_trajectories_are_those_of_the_table():
    """A long rollout visits states as often as the stationary distribution says."""
    world = worlds.chain((4, 3, 2), seed=0)
    env = TableEnv(world)
    rng_visits = np.zeros(world.n_states)
    s, _ = env.reset(seed=9)
    for _ in range(9000):
        rng_visits[s] += 1
        s, _, terminated, _, _ = env.step(0)
        if terminated:
            rng_visits[s] += 1
            s, _ = env.reset()
    d = bc.exact.stationary(world.mdp)
    np.testing.assert_allclose(rng_visits / rng_visits.sum(), d, atol=5 * np.sqrt(0.25 / 9000))
