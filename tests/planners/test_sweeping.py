"""Planning by priority over a counted model, by hand, against plain twins, and in the limit."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast import exact
from backcast.agents.kinds import Setup
from backcast.core.interaction import Step
from backcast.drivers.loop import finish, observe
from backcast.drivers.run import one_run
from backcast.drivers.train import Stepwise
from backcast.planners.queue import dequeue, empty_queue, enqueue, promote, settle, withdraw
from backcast.planners.small_backups import take_in
from backcast.planners.sweeping import NEAR
from backcast.testing import AgentConformance
from plain_sweeping import TWINS
from random_worlds import random_mdp, random_policy, random_steps

VARIANTS = ("moore-atkeson", "peng-williams", "mcmahan-gordon")
ALL = (*VARIANTS, "small-backups")
HALF = (0.5, 1.0, 0.5, 0.0)


def make(name, **settings):
    """The agent of a variant of sweeping, or of another kind."""
    return bc.agent("sweeping", variant=name, **settings) if name in VARIANTS else bc.agent(name, **settings)


def walk(agent, n_states, n_actions, discount, steps, rates=HALF):
    """The agent after literal steps (s, a, r, s', ends), each of which may end an episode."""
    everywhere = np.full((n_states, n_actions, n_states), 1 / n_states)
    room = bc.FiniteMDP(everywhere, np.zeros((n_states, n_actions)), 0.5, np.eye(1, n_states)[0])
    parts = agent.build(Setup(n_states, n_actions, discount, bc.worlds.from_mdp(room)))
    for step in steps:
        tell(parts, *step, rates=rates)
    return parts, parts.values.as_array()


def tell(parts, s, a, r, s2, ends, rates=HALF):
    observe(parts, np.array(rates), s, a, float(r), s2, ends, False)
    if ends:
        finish(parts, np.array(rates), s2, True)


# The queue


def drained(queue):
    items = []
    while (item := dequeue(queue)) >= 0:
        items.append(item)
    return items


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["enqueue", "promote", "settle", "withdraw", "dequeue"]),
        st.integers(0, 9),
        st.sampled_from([0.0, 1e-10, 0.5, 1.0, 1.5, 2.0, 7.0, np.inf]),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(OPERATIONS)
def test_the_queue_against_a_sorted_list(operations):
    queue, waiting = empty_queue(10), {}
    order = lambda: sorted(waiting, key=lambda item: (-waiting[item], item))  # noqa: E731
    for operation, item, number in operations:
        if operation == "enqueue":
            enqueue(queue, item, number)
            waiting[item] = number
        elif operation == "promote":
            promote(queue, item, number)
            if number > 1e-9:
                waiting[item] = max(number, waiting.get(item, 0.0))
        elif operation == "settle":
            settle(queue, item, number, 4.0)
            waiting.pop(item, None)
            if number > 1e-9:
                waiting[item] = number / 4
        elif operation == "withdraw":
            withdraw(queue, item)
            waiting.pop(item, None)
        else:
            first = dequeue(queue)
            assert first == (order() or [-1])[0]
            waiting.pop(first, None)
        standing = queue.heap[: queue.length[0]]
        assert sorted(standing) == sorted(waiting)
        assert all(queue.standing[item] == place for place, item in enumerate(standing))
        assert (queue.standing >= 0).sum() == len(waiting)
    expected = order()
    assert drained(queue) == expected


def test_a_thousand_items_come_out_in_order():
    rng = np.random.default_rng(0)
    queue, priority = empty_queue(1000), rng.integers(0, 300, 1000).astype(float)
    for item in rng.permutation(1000):
        enqueue(queue, item, rng.random())
    for item in rng.permutation(1000):
        enqueue(queue, item, priority[item])
    assert drained(queue) == sorted(range(1000), key=lambda item: (-priority[item], item))


# By hand


def test_the_model_counts_both_ways():
    """0 leads to 1 twice (once it is the end) and to 2 once; 1 leads to 2."""
    steps = [(0, 0, 1, 1, False), (0, 0, 3, 1, True), (0, 0, 5, 2, False), (1, 0, 7, 2, False)]
    (model, *_), _ = walk(make("moore-atkeson"), 3, 1, 0.8, steps)
    rows, back = model.rows, model.led_here
    places = rows.offset[0] + np.arange(2)
    np.testing.assert_array_equal(rows.key[places], [1, 2])
    np.testing.assert_allclose(rows.weight[places] * rows.share[0], [2 / 3, 1 / 3])
    np.testing.assert_allclose(rows.reward[places], [2, 5])
    np.testing.assert_allclose(rows.carried[places], [0.4, 0.8])
    places = back.offset[2] + np.arange(2)
    np.testing.assert_array_equal(back.key[places], [0, 1])
    np.testing.assert_allclose(back.weight[places] * rows.share[back.key[places]], [1 / 3, 1])
    assert back.used.tolist() == [0, 1, 2]
    assert back.carried[back.offset[1]] == pytest.approx(0.4)


def test_moore_and_atkeson_by_hand():
    """0 → 1 or, half of the time, the end with reward 1; then 1 → the end with reward 4 is found, γ = 0.5.

    v(1) = 4 and Δ = 4, so that 0 waits with P(1 | 0) Δ = 2 and becomes (0.5 · 4 + 1) / 2 = 1.5. The step size is 1.
    """
    steps = [(0, 0, 0, 1, False), (0, 0, 1, 2, True), (1, 0, 4, 2, True)]
    parts, v = walk(make("moore-atkeson", sample=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5, 4, 0])
    assert parts.planner.queue.priority[dequeue(parts.planner.queue)] == 2
    assert parts.updates.tolist() == [3, 3]
    parts, v = walk(make("moore-atkeson", learn=False), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [1.5, 4, 0])
    assert parts.updates.tolist() == [0, 4]


def test_moore_and_atkeson_raise_a_priority_and_never_lower_it():
    """0 leads to 1 and, two times in three, to 2. v(1) changes by 9: 0 waits with 3; v(2) by 3: 2 is less; by 6: 4."""
    ways = [(0, 0, 0, 1, False), (0, 0, 0, 2, False), (0, 0, 0, 2, False)]
    parts, _ = walk(make("moore-atkeson", sample=1), 4, 1, 0.5, [*ways, (1, 0, 9, 3, True)])
    for reward, priority in ((9, 3), (3, 3), (15, 4)):  # v(2) = 3, then the mean of 3 and 15: 9
        if reward != 9:
            tell(parts, 2, 0, reward, 3, True)
        assert parts.planner.queue.priority[0] == pytest.approx(priority)


def test_a_backup_sets_all_actions_tried_and_only_a_better_best_one_is_news():
    """1 has two ways to the end, with rewards 4 and 1; two actions lead from 0 to 1, with rewards 0 and 1."""
    steps = [(0, 0, 0, 1, False), (0, 1, 1, 1, False), (1, 0, 4, 2, True)]
    parts, q = walk(make("moore-atkeson"), 3, 3, 0.5, steps)
    np.testing.assert_allclose(q, [[2, 3, 0], [4, 0, 0], [0, 0, 0]])
    planned = parts.updates[1]
    tell(parts, 1, 1, 1, 2, True)
    assert parts.updates[1] - planned == 2  # both actions of 1, and nobody else
    np.testing.assert_allclose(parts.values.as_array()[1], [4, 1, 0])


def test_peng_and_williams_by_hand():
    """0 → 1 → the end with reward 4, γ = 0.5, step size 0.5.

    The pair (1) differs by 4 and becomes 2; then (0), of which 1 is expected, becomes 0.5. What is left of the first
    difference does not wait again. With TD beside, v(1) is 2 before and 3 after planning: 1.5 is expected of (0).
    """
    steps = [(0, 0, 0, 1, False), (1, 0, 4, 2, True)]
    parts, v = walk(make("peng-williams", learn=False), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5, 2, 0])
    assert parts.updates.tolist() == [0, 2]
    assert drained(parts.planner.queue) == []
    parts, v = walk(make("peng-williams"), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.75, 3, 0])
    assert parts.updates.tolist() == [2, 2]


def test_peng_and_williams_tell_predecessors_of_what_was_learned():
    """With step size 1 TD leaves no difference at (1); (0) still has to hear of it."""
    parts, v = walk(make("peng-williams"), 3, 1, 0.5, [(0, 0, 0, 1, False), (1, 0, 4, 2, True)], np.ones(4))
    np.testing.assert_allclose(v[:, 0], [2, 4, 0])
    assert parts.updates.tolist() == [2, 1]


def test_mcmahan_and_gordon_by_hand():
    """0 and 1 lead to 2 with rewards 0 and 1; then 2 → the end with reward 4 is found, γ = 0.5.

    1 was passed on before. After v(2) = 4: v(0) = 2, 2 more than was passed on and 2 less than the best; v(1) = 3, 2
    more and 1 less.
    """
    steps = [(0, 0, 0, 2, False), (1, 0, 1, 2, False), (2, 0, 4, 3, True)]
    parts, v = walk(make("mcmahan-gordon", sample=1), 4, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [2, 3, 4, 0])
    np.testing.assert_allclose(parts.planner.told, [0, 1, 4, 0])
    np.testing.assert_allclose(parts.planner.queue.priority[:2], [2 / (2 + NEAR), 2 / (1 + NEAR)])
    assert parts.planner.urgency.largest[0] == 4
    assert parts.updates.tolist() == [0, 5]
    assert drained(parts.planner.queue) == [1, 0]


def test_small_backups_by_hand():
    """As for Moore and Atkeson: v(1) = 4 is passed on to 0, which becomes 0.5 + 0.5 · P(1 | 0) · 4 = 1.5.

    With one backup a step: 0 → 1 changes nothing; 0 → end makes v(0) = 0.5, which nobody has to hear; 1 → end is heard.
    Three corrections for counts, one small backup.
    """
    steps = [(0, 0, 0, 1, False), (0, 0, 1, 2, True), (1, 0, 4, 2, True)]
    parts, v = walk(make("small-backups", sample=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [1.5, 4, 0])
    np.testing.assert_allclose(parts.planner.told, [0.5, 4, 0])
    assert parts.updates.tolist() == [0, 4]
    tell(parts, 0, 0, 2, 1, False)  # counts change: (0.5 · 4 + 1 + (2 + 0.5 · 4)) / 3
    assert parts.values.u[0] == pytest.approx(7 / 3)
    assert parts.planner.told[0] == pytest.approx(7 / 3)


def test_certainty_equivalence_by_hand():
    """0 → 1 → the end with reward 4: one sweep back solves it, one forward finds no change; TD is overwritten."""
    steps = [(0, 0, 0, 1, False), (1, 0, 4, 2, True)]
    parts, v = walk(bc.agent("certainty-equivalence"), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [2, 4, 0])
    assert parts.planner.tried.pairs.tolist() == [0, 1, 0]
    assert parts.updates.tolist() == [2, 4]
    tell(parts, 0, 0, 1, 2, True, rates=np.ones(4))  # TD: v(0) = 1; but P(1 | 0) = 1/2, so that v(0) = (2 + 1) / 2
    np.testing.assert_allclose(parts.values.as_array()[:, 0], [1.5, 4, 0])
    assert parts.updates.tolist() == [3, 8]


def test_certainty_equivalence_gives_up_where_there_is_no_solution():
    """A loop that earns 1 for ever, without a discount; an episode is cut off there."""
    parts, _ = walk(bc.agent("certainty-equivalence", learn=False), 2, 1, 1.0, [(0, 0, 1, 0, False)])
    finish(parts, np.array(HALF), 0, False)
    assert parts.updates[1] == parts.values.u[0] == 5000


@pytest.mark.parametrize("name", [*ALL, "certainty-equivalence"])
def test_a_state_that_ends_some_episodes_and_not_others(name):
    """1 has the value 8; 0 → 1 with reward 1 ended one of two episodes: v(0) = 1 + 0.5 · 8 / 2."""
    steps = [(1, 0, 8, 2, True), (0, 0, 1, 1, False), (0, 0, 1, 1, True), (1, 0, 8, 2, True)]
    _, v = walk(make(name), 3, 1, 0.5, steps, np.ones(4))
    np.testing.assert_allclose(v[:, 0], [3, 8, 0])


# Against the twins


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
    np.testing.assert_allclose(parts.values.as_array(), plain.q, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(parts.planner.told, plain.V, rtol=1e-10, atol=1e-10)
    assert parts.updates.tolist() == plain.updates
    assert len(plain.waiting) == parts.planner.queue.length[0]
    assert deviation < 1e-10


@pytest.mark.parametrize("forget", [0.05, 0.5])
@pytest.mark.parametrize("name", ALL)
def test_twins_that_forget(name, forget):
    world = bc.worlds.maze(slip=0.5, reward_probability=0.5)
    assert_same(*feed(world, make(name, alpha=0.9, sample=3, forget=forget), TWINS[name], 3_000, seed=3))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize(
    "world",
    [bc.worlds.chain((12, 6, 3, 5), seed=1), bc.worlds.maze(), bc.worlds.maze(slip=0.5, reward_probability=0.5)],
    ids=lambda world: world.name,
)
def test_twins_over_thousands_of_steps(name, learn, world):
    agent = make(name, learn=learn, alpha=0.9, sample=3)
    assert_same(*feed(world, agent, TWINS[name], 6_000, seed=3))


@settings(max_examples=100)
@given(
    st.sampled_from(ALL), st.booleans(), st.booleans(), st.integers(0, 10_000), st.integers(0, 2), st.integers(1, 20)
)
def test_twins_in_random_worlds_with_cycles(name, learn, control, seed, terminals, sample):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, terminals=terminals, density=0.4)
    world = bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp), max_steps=50)
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


def test_what_is_forgotten_by_hand():
    """(0, a) leads to 1 with 4, then to 2 with 0 and back to 1 with 7; half of each count is forgotten every time.

    Counts: 1; then 1/2 and 1; then 1/4 + 1 and 1/2. The mean reward of 1 is (4 · 1/4 + 7) / (5/4) = 6.4. Meanwhile 2
    was reached from 1, once, which forgetting (0, a) leaves alone.
    """
    steps = [(0, 0, 4, 1, False), (1, 0, 1, 2, False), (0, 0, 0, 2, False), (0, 0, 7, 1, False)]
    (model, *_), v = walk(make("small-backups", sample=1, forget=0.5), 3, 1, 0.0, steps)
    rows, back = model.rows, model.led_here
    assert rows.weight[rows.offset[0] :][:2].tolist() == [1.25, 0.5]
    assert rows.reward[rows.offset[0]] == pytest.approx(6.4)
    assert dict(zip(back.key[back.offset[2] :][:2], back.weight[back.offset[2] :][:2], strict=True)) == {0: 0.5, 1: 1.0}
    assert back.total.tolist() == [0.0, 1.25, 1.5]
    assert v[0, 0] == pytest.approx(6.4 * 1.25 / 1.75)


def test_a_rate_near_one_leaves_the_last_transition():
    """1 − forget is so small that a count of it is lost beside 1: a pair is listed once, nothing is divided by 0."""
    steps = [(0, 0, 1, s2, True) for s2 in (1, 2) * 30]
    for name in (*ALL, "certainty-equivalence"):
        (model, *_), v = walk(make(name, forget=1 - 2.0**-53), 3, 1, 0.5, steps)
        assert v[0, 0] == pytest.approx(1.0)
        assert model.rows.weight[model.rows.offset[0] :][:2].tolist() == pytest.approx([0.0, 1.0])


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


@settings(max_examples=60)
@given(
    st.sampled_from([*ALL, "certainty-equivalence"]), st.booleans(), st.booleans(), st.integers(0, 10_000),
    st.integers(0, 2),
)  # fmt: skip
def test_enough_backups_solve_the_learned_model(name, learn, control, seed, terminals):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 2, terminals=terminals, density=0.4)
    world = bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp), max_steps=30)
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


# The order of backups


def known_ways(name, edges, n_states, n_actions, discount, sample):
    """An agent that knows all ways (s, a, r, s') of a deterministic world and has planned nothing."""
    parts, _ = walk(make(name, sample=sample, learn=False), n_states, n_actions, discount, [])
    table = getattr(parts.planner, "expected", parts.values)
    for s, a, r, s2 in edges:
        step = Step(s, a, float(r), s2, False, False)
        parts.model.learn(parts.values, step, discount, np.ones(4))
        take_in(table, parts.planner.told, parts.model, step, discount)
    return parts


def backups_needed(name, world, goal_step):
    """How many states are taken off the queue until it is empty, after the goal was found."""
    for sample in range(1, 1000):
        parts = known_ways(name, *world, sample)
        tell(parts, *goal_step)
        if parts.planner.queue.length[0] == 0:
            return sample
    return None


def order_of_backups(name, world, goal_step):
    """The states in the order in which they are taken off the queue after the goal was found, with their values."""
    parts, order = known_ways(name, *world, 1), []
    tell(parts, *goal_step)
    while True:
        order.append(int(np.flatnonzero(parts.planner.told)[~np.isin(np.flatnonzero(parts.planner.told), order)][0]))
        if parts.planner.queue.length[0] == 0:
            return order, parts.planner.told
        s, a, r, s2, ends = goal_step  # once more, which changes nothing, to take one more state off
        parts.planner.plan(parts.model, parts.values, Step(s, a, float(r), s2, ends, False), world[3], np.ones(4))


def the_papers_maze():
    """Its ways, without the one into the goal; and that one. It is entered from below only."""
    world = bc.worlds.maze()
    table, states = world.steps_table, np.flatnonzero(world.mdp.reachable & ~world.mdp.terminal)
    ways = [(int(s), a, 0.0, int(table.next_state[table.offset[4 * s + a]])) for s in states for a in range(4)]
    (last,) = [(s, a, 1.0, s2, True) for s, a, _, s2 in ways if world.mdp.terminal[s2]]
    edges = [way for way in ways if way[:2] != last[:2]]
    return (edges, world.n_states, 4, world.discount), last, len(states)


def costly_ways(seed, n_states=30, n_actions=4):
    """Ways with random costs, no discount, one way into the goal, which earns 1000."""
    rng = np.random.default_rng(seed)
    following = rng.integers(0, n_states - 1, (n_states - 1, n_actions))
    following[1:, 0] = np.arange(n_states - 2)  # so that all states can reach the first one
    edges = [(s, a, -int(rng.integers(1, 50)), int(following[s, a])) for s in range(n_states - 1) for a in range(1, 4)]
    edges += [(s, 0, -int(rng.integers(1, 50)), s - 1) for s in range(1, n_states - 1)]
    return (edges, n_states, n_actions, 1.0), (0, 0, 1000, n_states - 1, True), n_states - 1


def shortest(world, goal_step):
    """Dijkstra's values, plainly: relax all ways as often as there are states."""
    edges, n_states, _, discount = world
    value = np.full(n_states, -np.inf)
    value[goal_step[0]] = goal_step[2]
    for _ in range(n_states):
        for s, _, r, s2 in edges:
            value[s] = max(value[s], r + discount * value[s2])
    return value


@pytest.mark.parametrize("ways", [the_papers_maze(), costly_ways(0), costly_ways(1)], ids=["maze", "costs", "costs"])
def test_mcmahan_and_gordon_solve_a_deterministic_world_in_dijkstras_order(ways):
    world, goal_step, n_states = ways
    order, told = order_of_backups("mcmahan-gordon", world, goal_step)
    assert len(order) == len(set(order)) == n_states == backups_needed("mcmahan-gordon", world, goal_step)
    value = shortest(world, goal_step)
    np.testing.assert_allclose(told[order], value[order])
    assert (np.diff(value[order]) <= 1e-12).all()


def test_moore_and_atkeson_need_at_least_as_many_backups():
    world, goal_step, n_states = the_papers_maze()
    assert backups_needed("moore-atkeson", world, goal_step) >= n_states
    for seed in range(5):
        world, goal_step, n_states = costly_ways(seed)
        assert backups_needed("moore-atkeson", world, goal_step) > n_states


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
