"""Planning by priority over a counted model: in the limit, and how the parts fit together."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast import exact
from backcast.agents.setup import Setup
from backcast.drivers.run import one_run
from backcast.drivers.train import Stepwise
from conforming import AgentConformance
from random_worlds import random_mdp, random_world
from sweeping_by_hand import ALL, make

# In the limit


def solution(model, n_states, n_actions, discount):
    """The values (S, A) that solve a model: what was never tried is worth 0, what ended leads to one more state."""
    rows, nowhere = model.rows, n_states
    transition = np.zeros((n_states + 1, n_actions, n_states + 1))
    reward = np.zeros_like(transition)
    for pair in range(n_states * n_actions):
        s, a = divmod(pair, n_actions)
        for k in range(rows.offset[pair], rows.offset[pair] + rows.used[pair]):
            p, on = rows.weight[k] / rows.total[pair], rows.carried[k] / discount
            transition[s, a, rows.key[k]] += p * on
            transition[s, a, nowhere] += p * (1 - on)
            reward[s, a] += p * rows.reward[k]
        if not rows.used[pair]:
            transition[s, a, nowhere] = 1.0
    ends = np.arange(n_states + 1) == nowhere
    mdp = bc.FiniteMDP(transition, reward, discount, np.eye(n_states + 1)[0], ends)
    return (exact.value(mdp)[:, None] if n_actions == 1 else exact.optimal(mdp).q)[:n_states]


@pytest.mark.parametrize("name", [*ALL, "certainty-equivalence"])
@settings(max_examples=12)
@given(learn=st.booleans(), control=st.booleans(), seed=st.integers(0, 10_000), terminals=st.integers(0, 2))
def test_enough_backups_solve_the_learned_model(name, learn, control, seed, terminals):
    world = random_world(seed, control, 6, 2, 30, terminals=terminals)
    plenty = {} if name == "certainty-equivalence" else {"sample": 20_000}
    agent = make(name, learn=learn, epsilon=1.0, schedule="constant", forget=[None, 0.2][seed % 2], **plenty)
    _, parts, *_ = one_run(world, agent, seed, agent.rates(4), 30)
    solved = solution(parts.model, world.n_states, world.n_actions, world.discount)
    np.testing.assert_allclose(parts.values.as_array(), solved, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [*ALL, "certainty-equivalence"])
def test_much_experience_gives_the_truth(name):
    mdp = random_mdp(np.random.default_rng(5), 5, 2, discount=0.8)
    world = bc.worlds.from_mdp(mdp)
    agent = make(name, epsilon=1.0, schedule="constant", alpha=0.1, alpha_plan=1.0)
    runs = bc.run(world, agent, 10, 1, max_steps=30_000)
    np.testing.assert_allclose(runs.values[0], exact.optimal(mdp).q, atol=0.02)


def test_certainty_equivalence_solves_after_every_episode_in_the_papers_maze():
    world = bc.worlds.maze(slip=0.3)
    agent = bc.agent("certainty-equivalence")
    for episodes in (1, 5, 40):
        _, parts, *_ = one_run(world, agent, 7, agent.rates(40)[:episodes], 400)
        solved = solution(parts.model, world.n_states, world.n_actions, world.discount)
        np.testing.assert_allclose(parts.values.as_array(), solved, atol=1e-6)


@pytest.mark.interpreted
@pytest.mark.parametrize("terminals", [0, 1])
@pytest.mark.parametrize("control", [True, False], ids=["control", "prediction"])
@pytest.mark.parametrize("short_of_1", [1e-3, 1e-5, 1e-7])
def test_certainty_equivalence_solves_however_near_the_discount_is_to_1(short_of_1, control, terminals):
    """Sweeps alone would take 20 / (1 − γ). To stop at changes of 10⁻⁹ of a value would leave an error of 0.01."""
    world = random_world(4, control, 6, 2, 30, terminals=terminals, discount=1 - short_of_1)
    agent = bc.agent("certainty-equivalence", learn=False, epsilon=1.0, schedule="constant")
    for episodes in (1, 3):
        _, parts, *_ = one_run(world, agent, 7, agent.rates(4)[:episodes], 30)
        solved = solution(parts.model, world.n_states, world.n_actions, world.discount)
        np.testing.assert_allclose(parts.values.as_array(), solved, atol=2e-6 * np.abs(solved).max())
        assert parts.updates[1] < 1_500 * episodes * world.n_states * world.n_actions


# How the parts fit together


def test_moore_and_atkeson_overwrite_what_is_learned_beside():
    world = bc.worlds.maze(slip=0.3)
    beside, pure = (bc.run(world, make("moore-atkeson", learn=learn), 20, 3) for learn in (True, False))
    assert np.array_equal(beside.values, pure.values)
    assert np.array_equal(beside.updates.planning, pure.updates.planning)
    assert np.array_equal(beside.updates.learning, beside.steps.sum(axis=1))


@pytest.mark.parametrize("name", ["small-backups", "mcmahan-gordon"])
def test_small_backups_learn_by_planning_alone(name):
    world = bc.worlds.maze(slip=0.3)
    one, other = (bc.run(world, make(name, learn=learn), 20, 3) for learn in (True, False))
    assert np.array_equal(one.values, other.values)
    assert (one.updates.learning == 0).all()
    assert (one.updates.planning >= one.steps.sum(axis=1)).all()


@pytest.mark.interpreted
@pytest.mark.parametrize("name", [*ALL, "certainty-equivalence"])
def test_rows_grow_where_the_graph_is_not_known(name):
    world = bc.worlds.maze(slip=0.5)
    agent = make(name)
    compiled = one_run(world, agent, 3, agent.rates(6), 400)[1]
    walker = Stepwise(agent, Setup(world.n_states, world.n_actions, world.discount), 6, 3)
    env = gymnasium.make("backcast/Maze-v0", slip=0.5)
    for episode in range(6):
        s, _ = env.reset(seed=3 if episode == 0 else None)
        walker.begin_episode(int(s))
        over = False
        while not over:
            a = walker.act(int(s))
            s2, r, terminated, truncated, _ = env.step(a)
            walker.observe(int(s), a, float(r), int(s2), terminated)
            s, over = s2, terminated or truncated
        walker.end_episode(int(s), terminated)
    assert np.array_equal(walker.parts.values.as_array(), compiled.values.as_array())
    assert walker.parts.updates.tolist() == compiled.updates.tolist()


class _Sweeping(AgentConformance):
    def test_value_updates_are_counted(self):
        """A value may be written twice in a planning step; the twins count what they write, one by one."""
        for world in self.worlds():
            runs = bc.run(world, self.agent(), 12, 2)
            learns = self.kind == "sweeping" and self.options.get("variant") != "mcmahan-gordon"
            assert np.array_equal(runs.updates.learning, runs.steps.sum(axis=1) * learns)
            assert (runs.updates.planning > 0).all()


class TestMooreAtkeson(_Sweeping):
    kind = "sweeping"
    test_without_planning_it_is_model_free = None  # its backups have no step size


class TestPengWilliams(_Sweeping):
    kind = "sweeping"
    options = {"variant": "peng-williams", "alpha": 0.5}  # noqa: RUF012


class TestMcMahanGordon(_Sweeping):
    kind = "sweeping"
    options = {"variant": "mcmahan-gordon"}  # noqa: RUF012
    test_without_planning_it_is_model_free = None  # its backups have no step size


class TestSmallBackups(_Sweeping):
    kind = "small-backups"
    test_without_planning_it_is_model_free = None  # its backups have no step size


class TestCertaintyEquivalence(AgentConformance):
    kind = "certainty-equivalence"
    test_without_planning_it_is_model_free = None  # its sweeps have no step size
