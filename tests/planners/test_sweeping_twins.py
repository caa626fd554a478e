"""Planning by priority over a counted model, against plain twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import observe
from backcast.drivers.train import Stepwise
from plain_sweeping import TWINS
from random_worlds import random_mdp, random_policy, random_steps, random_world
from sweeping_by_hand import ALL, make, waiting

pytestmark = pytest.mark.interpreted

SMALL = "..G.\n.X..\nS..X"  # a random walk finds the goal
MAZE, NOISY = bc.worlds.maze(SMALL), bc.worlds.maze(SMALL, slip=0.5, reward_probability=0.5)


def feed(world, agent, twin, steps, seed):
    """Both, after the same random transitions, with falling step sizes; and the twin's largest deviation."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    parts, plain = agent.build(setup), twin(agent, setup)
    schedule, deviation = agent.rates(40), 0.0
    for number, step in enumerate(random_steps(world, np.random.default_rng(seed), steps, cut=0.01)):
        rates = schedule[number * 40 // steps]
        observe(parts, rates, *step)
        plain.observe(rates, *step)
        if number % 25 == 0:
            deviation = max(deviation, plain.deviation())
    return parts, plain, max(deviation, plain.deviation())


def assert_same(parts, plain, deviation):
    assert plain.q.any()
    np.testing.assert_allclose(parts.values.as_array(), plain.q, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.planner.told, plain.V, rtol=1e-10, atol=1e-10)
    assert parts.updates.tolist() == plain.updates
    assert len(plain.waiting) == waiting(parts.planner.queue)
    assert deviation < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("forget", [0.05, 0.5])
@pytest.mark.parametrize("name", ALL)
def test_twins_that_forget(name, forget):
    world = NOISY
    assert_same(*feed(world, make(name, alpha=0.9, sample=3, forget=forget), TWINS[name], 2_000, seed=3))


@pytest.mark.parametrize("name", ALL)
def test_twins_that_average(name):
    world = NOISY
    agent = make(name, alpha=0.9, alpha_plan=0.8, sample=3, schedule="average")
    parts, plain, deviation = feed(world, agent, TWINS[name], 2_000, seed=3)
    assert parts.values.as_array().max() > 0
    assert_same(parts, plain, deviation)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize(
    "world",
    [bc.worlds.chain((12, 6, 3, 5), seed=1), MAZE, NOISY],
    ids=lambda world: world.name,
)
def test_twins_over_two_thousand_steps(name, learn, world):
    agent = make(name, learn=learn, alpha=0.9, sample=3)
    assert_same(*feed(world, agent, TWINS[name], 2_000, seed=3))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("learn", [True, False], ids=["learn", "pure"])
@pytest.mark.parametrize("control", [True, False], ids=["control", "prediction"])
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000), terminals=st.integers(0, 2), sample=st.integers(1, 20))
def test_twins_in_random_worlds_with_cycles(name, learn, control, seed, terminals, sample):
    world = random_world(seed, control, terminals=terminals)
    agent = make(name, learn=learn, alpha=[0.2, 0.7, 1.0][seed % 3], schedule="constant", sample=sample)
    assert_same(*feed(world, agent, TWINS[name], 400, seed))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("forget", [0.0, 0.3])
def test_expectations_are_exact_after_every_step(name, control, forget):
    """q(s, a) = r(s, a) + γ Σ_s' P(s' | s, a) U(s'), of the agent's own values where backups are small.

    The counts of both directions are the same, and those of a state that led to nothing else add up.
    """
    rng = np.random.default_rng(8)
    mdp = random_mdp(rng, 6, 3, terminals=1, density=0.5)
    world = bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp))
    agent = make(name, sample=2, schedule="constant", forget=forget)
    walker = Stepwise(agent, Setup(world.n_states, world.n_actions, world.discount, world), 1, 0)
    table, s, walked = world.steps_table, -1, 0
    while walked < 400:
        s = int(table.draw_start(rng.random())) if s < 0 else s
        outcome = table.draw_outcome(s, a := int(rng.integers(world.n_actions)), rng.random())
        s2 = int(table.next_state[outcome])
        ends = bool(mdp.terminal[s2])
        walker.observe(s, a, table.reward[outcome], s2, ends)
        s, walked = -1 if ends else s2, walked + 1
        planner, rows = walker.parts.planner, walker.parts.model.rows
        own = getattr(planner, "expected", walker.parts.values).as_array().ravel()
        for pair in np.flatnonzero(rows.total):
            places = slice(rows.offset[pair], rows.offset[pair] + rows.used[pair])
            ahead = world.discount * np.where(mdp.terminal, 0.0, planner.told)[rows.key[places]]
            expected = rows.weight[places] / rows.total[pair] @ (rows.reward[places] + ahead)
            assert own[pair] == pytest.approx(expected, abs=1e-10)
        assert_counts_agree(walker.parts.model)


def assert_counts_agree(model):
    forward, backward = (
        {
            (row, key): (rows.weight[k], rows.reward[k], rows.carried[k])
            for row in range(len(rows.used))
            for k, key in enumerate(rows.key[rows.offset[row] :][: rows.used[row]].tolist(), start=rows.offset[row])
        }
        for rows in (model.rows, model.led_here)
    )
    assert forward == {(pair, s): entry for (s, pair), entry in backward.items()}
    for rows in (model.rows, model.led_here):
        sums = [rows.weight[first : first + n].sum() for first, n in zip(rows.offset[:-1], rows.used, strict=True)]
        np.testing.assert_allclose(rows.total, sums, rtol=1e-12)
        np.testing.assert_allclose(rows.share[rows.total > 0], 1 / rows.total[rows.total > 0])
