"""Dyna, Dyna-Q+, replay and prioritized replay: by hand, against plain twins, in distribution and in the limit."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import backcast as bc
from backcast.agents.kinds import KINDS, Setup
from backcast.core.interaction import Step
from backcast.core.randomness import imagination
from backcast.drivers.loop import begin, finish, observe
from backcast.planners.dyna import draw_pair, enlist, no_pairs
from backcast.planners.replay import empty_memory, empty_prioritized_memory, write_priority
from backcast.testing import AgentConformance, ModelConformance
from backcast.values.table import zeros
from by_hand import walk
from plain_replaying import PlainDyna, PlainDynaPlus, PlainPrioritizedReplay, PlainReplay
from random_worlds import random_mdp, random_policy

TWINS = {
    "dyna": PlainDyna,
    "dyna-plus": PlainDynaPlus,
    "replay": PlainReplay,
    "prioritized-replay": PlainPrioritizedReplay,
}
EVERYWHERE = [kind for kind in TWINS if kind != "dyna-plus"]
SMALL = {"replay": {"buffer": 37}, "prioritized-replay": {"buffer": 37}, "dyna-plus": {"bonus": 0.05}}
RATES = np.array([0.5, 1.0, 0.5, 0.0])


class TestDyna(AgentConformance, ModelConformance):
    kind = "dyna"
    options = {"sample": 1}  # noqa: RUF012


class TestDynaOften(AgentConformance, ModelConformance):
    kind = "dyna"
    test_value_updates_are_counted = None  # some of the 5 draws may be of the same pair; the twins count


class TestDynaPlus(AgentConformance, ModelConformance):
    kind = "dyna-plus"
    options = {"sample": 1}  # noqa: RUF012


class TestReplay(AgentConformance):
    kind = "replay"
    options = {"sample": 1, "buffer": 50}  # noqa: RUF012


class TestPrioritizedReplay(AgentConformance):
    kind = "prioritized-replay"
    options = {"sample": 1, "buffer": 50}  # noqa: RUF012


# Draws are followed by hand with these numbers, which NumPy promises to give, whatever stream an agent usually has.
DRAWS = [0.838, 0.084, 0.618, 0.703, 0.246, 0.487, 0.652, 0.948, 0.341, 0.286]


def numpys():
    return np.random.PCG64(np.random.SeedSequence(0, spawn_key=(2,)))


def test_the_numbers_that_are_followed_by_hand():
    np.testing.assert_allclose(np.random.Generator(numpys()).random(len(DRAWS)), DRAWS, atol=5e-4)


class Drawing:
    """An agent whose planner draws these numbers."""

    def __init__(self, *arguments, **options):
        self.agent = bc.agent(*arguments, **options)

    def build(self, setup):
        parts, words = self.agent.build(setup), numpys().state["state"]
        parts.planner.stream[:] = [half for word in (words["state"], words["inc"]) for half in divmod(word, 2**64)]
        return parts


def test_dyna_in_prediction():
    """Each planning update takes two numbers: for the pair, and for what follows it.

    0 → 1 with 2: v(0) = 1; the only pair, the only successor: v(0) = 1.5. 0 → 2 with 6, which ends: v(0) = 3.75; 0 and,
    by 0.703 ≥ 1/2, the second of two successors: v(0) += (6 − 3.75) / 2 makes 4.875. 1 → 2 with 4: v(1) = 2; by 0.246
    the first pair, by 0.487 the first successor: v(0) += (2 + 0.5 · 2 − 4.875) / 2.
    """
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 6.0, 2, True, True), (1, 0, 4.0, 2, True, True)]
    parts, v = walk(Drawing("dyna", sample=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [3.9375, 2, 0])
    assert parts.updates.tolist() == [3, 3]


def test_dyna_imagines_the_mean_reward_of_what_it_saw():
    steps = [(0, 1, 1.0, 1, False, True), (0, 1, 3.0, 1, False, True)]
    parts, q = walk(bc.agent("dyna", sample=1, learn=False), 3, 2, 0.5, steps, rates=(1.0, 0.1, 1.0, 0.0))
    np.testing.assert_allclose(q, [[0, 2], [0, 0], [0, 0]])
    assert parts.updates.tolist() == [0, 2]


def test_dyna_plus():
    """One state with three actions, all of which end in state 1 and earn 0, 2 and what is never found out; κ = 1.

    1. a = 0; drawn: action 2, never tried: √1. 2. a = 0; drawn: 0, just tried: 0 (and a number for what follows it).
    3. a = 0; drawn: 2, back to the same state with value 1: 0.5 · 1 + √3. 4. a = 1; drawn: 0, tried 1 step ago: 0 + √1.
    5. a = 1; drawn: 1, just tried: 2. 6. a = 0; drawn: 1, tried 1 step ago: 2 + √1.
    """
    steps = [(0, a, 2.0 * a, 1, True, True) for a in (0, 0, 0, 1, 1, 0)]
    agent = Drawing("dyna-plus", sample=1, learn=False, bonus=1.0)
    parts, q = walk(agent, 2, 3, 0.5, steps, rates=(1.0, 1.0, 1.0, 0.0))
    np.testing.assert_allclose(q, [[1, 3, 0.5 + np.sqrt(3)], [0, 0, 0]])
    assert parts.updates.tolist() == [0, 6]


@pytest.mark.parametrize("kind", ["replay", "prioritized-replay"])
def test_a_memory_of_one_transition(kind):
    """One learning update and two of the same transition, each half of the way; then the next takes its place.

    0 → 1 with 2: 1, 1.5, 1.75. 1 → 2 with 4, which ends: 2, 3, 3.5. Again 0 → 1, towards 2 + 0.5 · 3.5 = 3.75.
    """
    steps = [(0, 0, 2.0, 1, False, True), (1, 0, 4.0, 2, True, False), (0, 0, 2.0, 1, False, True)]
    parts, v = walk(bc.agent(kind, sample=2, buffer=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [3.75 - 2 / 8, 3.5, 0])
    assert parts.updates.tolist() == [3, 6]


def test_replay_bootstraps_with_the_values_of_now():
    """0 → 1 was remembered when v(1) was 0. By 0.084 the first of two transitions is drawn when v(1) = 2."""
    steps = [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    _, v = walk(Drawing("replay", sample=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5 * 0.5 * 2, 2, 0])


@pytest.mark.parametrize("kind", TWINS)
def test_an_end_is_remembered_though_the_state_has_a_value(kind):
    """0 → 1 earns 2 and goes on, 1 → 0 earns 4 and ends: q(1, 0) = 4 whatever q(0, 0) is, and q(0, 0) = 2 + 0.5 · 4."""
    steps = [(0, 0, 2.0, 1, False, True), (1, 0, 4.0, 0, True, False)]
    options = {"dyna-plus": {"bonus": 0.0}, "prioritized-replay": {"exponent": 0.0}}.get(kind, {})
    agent = bc.agent(kind, sample=200, learn=False, **options)
    _, q = walk(agent, 3, 2, 0.5, steps, rates=(1.0, 1.0, 1.0, 0.0))
    np.testing.assert_allclose(q[:2, 0], [4, 4])


def test_prioritized_replay():
    """Two places, exponent 1; p = |δ| + 10⁻⁶, and new transitions get the highest p so far.

    1. 0 → 1 with 2: p = 1; drawn with δ = 2: v(0) = 1. 2. 1 → 2 with 4, which ends: p = 2, 2; by 0.084 the first:
    δ = 1, v(0) = 1.5. 3. Place 0 anew: p = 2, 2; by 0.618 the second: δ = 4, v(1) = 2. 4. Place 1 anew: p = 2, 4; by
    0.703 ≥ 1/3 the second: δ = 2, weight w = √(2/4), v(1) = 2 + 0.5 · w · 2. 5. Place 0 anew: p = 4, 2; by 0.246 the
    first: δ = 2 + 0.5 v(1) − 1.5, with the same weight.
    """
    there, end = (0, 0, 2.0, 1, False, True), (1, 0, 4.0, 2, True, False)
    agent = Drawing("prioritized-replay", sample=1, buffer=2, exponent=1.0, learn=False)
    parts, v = walk(agent, 3, 1, 0.5, [there, end, there, end, there])
    w = np.sqrt(2.000001 / 4.000001)
    delta = 2 + 0.5 * (2 + w) - 1.5
    np.testing.assert_allclose(v[:, 0], [1.5 + 0.5 * w * delta, 2 + w, 0])
    np.testing.assert_allclose(parts.model.sums[2:], [delta + 1e-6, 2.000001])
    assert parts.updates.tolist() == [0, 5]


def feed(world, agent, steps, seed):
    """The parts and the twin, after the same random transitions; step sizes fall.

    Prioritized replay magnifies rounding: an error of 10⁻¹⁶ in the least priority, about 10⁻⁶, is one of 10⁻¹⁰ in the
    weights of all transitions, and so on (a twin whose values begin at 10⁻¹⁵ ends elsewhere than one that begins at 0).
    So its twin is compared after each step, and goes on from the kernel's values.
    """
    setup = Setup(world.n_states, world.n_actions, world.discount, world, seed)
    parts, twin = agent.build(setup), TWINS[agent.kind](agent, setup)
    rng, s = np.random.default_rng(seed), -1
    for taken, rates in enumerate(agent.rates(steps)):
        table = world.at(taken).steps_table
        if first := s < 0:
            s = int(table.draw_start(rng.random()))
            if world.mdp.terminal[s]:
                s = -1
                continue
            begin(parts, rates, s)
        a = int(rng.integers(world.n_actions))
        outcome = table.draw_outcome(s, a, rng.random())
        s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
        ends = bool(world.mdp.terminal[s2])
        observe(parts, rates, s, a, r, s2, ends, first)
        twin.observe(rates, s, a, r, s2, ends)
        if agent.kind == "prioritized-replay":
            assert_same(parts, twin)
            twin.q[:] = parts.values.as_array()
        s = s2
        if ends or rng.random() < 0.01:  # some episodes are cut off
            finish(parts, rates, s, ends)
            s = -1
    return parts, twin


def assert_same(parts, twin):
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-10, atol=1e-10)
    assert parts.updates.tolist() == twin.updates
    if isinstance(twin, PlainPrioritizedReplay):
        leaves = parts.model.sums[parts.model.sums.size // 2 :]
        powers = twin.priority[: len(twin.memory)] ** twin.exponent
        np.testing.assert_allclose(leaves[: len(powers)], powers, rtol=1e-8)
        assert not leaves[len(powers) :].any()


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_twins_on_a_chain(kind, learn):
    world = bc.worlds.chain((12, 6, 3, 5), seed=1)
    assert_same(*feed(world, bc.agent(kind, learn=learn, **SMALL.get(kind, {})), 5000, seed=2))


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("kind", TWINS)
def test_twins_in_a_maze(kind, learn):
    world = bc.worlds.maze("..G.\n.X..\nS..X", slip=0.5, reward_probability=0.5)
    agent = bc.agent(kind, learn=learn, alpha=0.5, alpha_plan=0.3)
    parts, twin = feed(world, agent, 3000, seed=3)
    assert parts.values.as_array().max() > 0
    assert_same(parts, twin)


@pytest.mark.parametrize("forget", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("kind", ["dyna", "dyna-plus"])
def test_twins_that_forget(kind, forget):
    """In a maze whose walls move, so that a pair has led to several states; rewards are random, and forgotten, too."""
    world = bc.worlds.maze("..G.\n.X..\nS..X", 0.3, 0.5, later=(1000, "X.G.\n....\nS.X."))
    parts, twin = feed(world, bc.agent(kind, alpha=0.5, forget=forget), 2000, seed=4)
    assert parts.values.as_array().max() > 0
    assert_same(parts, twin)


@settings(max_examples=40)
@given(st.sampled_from(list(TWINS)), st.booleans(), st.integers(0, 10_000), st.integers(1, 6), st.integers(0, 2))
def test_twins_in_random_worlds_with_cycles(kind, predicts, seed, sample, terminals):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 6, 3, terminals=terminals, density=0.4)
    predicts = predicts and kind != "dyna-plus"
    world = bc.worlds.from_mdp(mdp, random_policy(rng, mdp) if predicts else None, max_steps=50)
    options = dict(SMALL.get(kind, {}))
    if "buffer" in options:
        options["buffer"] = int(rng.integers(1, 70))
    if kind == "prioritized-replay":
        options["exponent"] = float(rng.choice([0.0, 0.5, 1.0, 2.0]))
    agent = bc.agent(kind, alpha=0.3, schedule="constant", sample=sample, **options)
    assert_same(*feed(world, agent, 400, seed))


def likely(counted, probabilities):
    """Whether counts are as they should be, by a χ² test that a fixed seed makes certain."""
    return stats.chisquare(counted, np.asarray(probabilities) * counted.sum()).pvalue > 0.01


def counts(draw, n, times=100_000):
    stream = imagination(1, 0)
    return np.bincount([draw(stream) for _ in range(times)], minlength=n)


def remember(memory, transitions):
    for k in range(transitions):
        memory.learn(zeros(1, 1), Step(k, 0, 0.0, k + 1, False, False), 0.9, RATES)


def test_pairs_are_listed_once_and_drawn_uniformly():
    known = no_pairs(60)
    for pair in [7, *range(10, 40), 7, 20]:
        enlist(known, pair)
    assert known.length[0] == 31
    drawn = counts(lambda stream: draw_pair(known, stream), 60)
    assert set(np.flatnonzero(drawn)) == {7, *range(10, 40)}
    assert likely(drawn[drawn > 0], np.full(31, 1 / 31))


@pytest.mark.parametrize(("places", "transitions"), [(50, 20), (50, 50), (50, 170)])
def test_replay_draws_uniformly_from_the_last_transitions(places, transitions):
    memory = empty_memory(places)
    remember(memory, transitions)
    n = min(places, transitions)
    drawn = counts(memory.draw_place, n)
    assert len(drawn) == n
    assert likely(drawn, np.full(n, 1 / n))
    assert {memory.transition_at(k).s for k in range(n)} == set(range(transitions - n, transitions))


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(("places", "transitions"), [(21, 13), (32, 100), (33, 100)])
def test_prioritized_replay_draws_in_proportion_to_priorities(places, transitions, exponent):
    memory = empty_prioritized_memory(places, exponent)
    remember(memory, transitions)
    n = min(places, transitions)
    errors = np.linspace(-2, 3, n)
    for place, error in enumerate(errors):
        memory.note_error(place, error)
    powers = (np.abs(errors) + 1e-6) ** exponent
    drawn = counts(memory.draw_place, n)
    assert len(drawn) == n
    common = powers / powers.sum() > 1e-4  # χ² wants expected counts that are not small
    assert likely(drawn[common], powers[common] / powers[common].sum())
    chances = powers / powers.sum()
    weights = (n * chances) ** -0.5
    np.testing.assert_allclose([memory.importance_of(k) for k in range(n)], weights / weights.max())


def test_trees_of_priorities():
    """Three of four places, exponent 1: errors 5, 1 and none yet; then a fourth and a fifth transition with p = 5."""
    memory = empty_prioritized_memory(4, 1.0)
    remember(memory, 3)
    memory.note_error(0, -5.0)
    memory.note_error(1, 1.0)
    np.testing.assert_allclose(memory.sums[1:], [7, 6, 1, 5, 1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(memory.minima[1:], [1, 1, 1, 5, 1, 1, np.inf], atol=1e-5)
    memory.note_error(0, 2.0)
    assert memory.highest[0] == 5 + 1e-6
    remember(memory, 2)
    np.testing.assert_allclose(memory.sums[1:], [12, 6, 6, 5, 1, 1, 5], atol=1e-5)
    assert [memory.importance_of(k) for k in (0, 1)] == pytest.approx([np.sqrt(1 / 5), 1])


def test_the_largest_random_number_leads_to_no_place_where_nothing_is_stored():
    """In about one of 100 trees, the sums on the way down are rounded so that 1 − 2⁻⁵³ leads past the last leaf.

    A stream is made to give that number: its next state has complementary halves.
    """
    multiplier = 2549297995355413924 << 64 | 4865540595714422341
    before = (2**64 - 1 - 1) * pow(multiplier, -1, 2**128) % 2**128
    rng = np.random.default_rng(0)
    for places, stored in [(16, 11), (11, 11), (11, 30)] * 300:
        memory = empty_prioritized_memory(places, 1.0)
        remember(memory, stored)
        for place, power in enumerate(rng.random(11) * 10.0 ** rng.integers(-3, 2, 11)):
            write_priority(memory, place, power)
        stream = np.array([before >> 64, before % 2**64, 0, 1], dtype=np.uint64)
        assert memory.draw_place(stream) == 10
        assert (int(stream[0]), int(stream[1])) == (0, 2**64 - 1)


@pytest.mark.parametrize("world", [bc.worlds.chain((6, 4, 3), seed=0), bc.worlds.maze()], ids=lambda w: w.name)
def test_equal_priorities_are_uniform_replay(world):
    """With exponent 0 the tree finds the same places as a multiplication does, and all weights are 1."""
    uniform_replay = bc.run(world, bc.agent("replay", buffer=100, alpha=0.5), 60, 3)
    equal_priorities = bc.run(world, bc.agent("prioritized-replay", buffer=100, alpha=0.5, exponent=0.0), 60, 3)
    assert np.abs(uniform_replay.values).max() > 0
    np.testing.assert_array_equal(equal_priorities.values, uniform_replay.values)


def test_extreme_exponents_leave_numbers():
    memory = empty_prioritized_memory(4, 400.0)
    remember(memory, 4)
    for place, error in enumerate([0.0, 1e-3, 1.0, 1e9]):
        memory.note_error(place, error)
    assert np.isfinite(memory.sums).all()
    assert [memory.importance_of(k) for k in range(4)] == pytest.approx([1, 1, 1e-50, 1e-100], rel=1e-3)
    assert set(np.flatnonzero(counts(memory.draw_place, 4, 100))) == {3}


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("kind", TWINS)
def test_optimal_values_in_a_deterministic_maze(kind, learn):
    """All pairs are tried; constant step sizes do, for there is nothing to average over."""
    world = bc.worlds.maze("..G.\n.X..\nS..X")
    options = {"bonus": 0.0} if kind == "dyna-plus" else {}
    agent = bc.agent(kind, learn=learn, alpha=0.5, epsilon=1.0, schedule="constant", **options)
    values = bc.run(world, agent, 300, 2).values
    optimal = bc.exact.optimal(world.mdp).q
    tried = ~world.mdp.terminal & world.mdp.reachable
    assert tried.sum() > 7
    np.testing.assert_allclose(values[:, tried], np.broadcast_to(optimal[tried], values[:, tried].shape), atol=1e-8)


@pytest.mark.parametrize("kind", ["dyna", "replay"])
def test_what_was_experienced_is_solved_exactly(kind):
    """Planning alone comes to (I − γ P̂)⁻¹ r̂, the value of the chain as it was counted, not of the true one."""
    world = bc.worlds.chain((6, 4, 3), seed=0)
    agent = bc.agent(kind, sample=20_000, learn=False)
    parts = agent.build(Setup(world.n_states, 1, world.discount, world))
    rng, table = np.random.default_rng(0), world.steps_table
    counted, earned = np.zeros((world.n_states, world.n_states)), np.zeros(world.n_states)
    for _ in range(30):
        s, first = int(table.draw_start(rng.random())), True
        while not world.mdp.terminal[s]:
            outcome = table.draw_outcome(s, 0, rng.random())
            s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
            observe(parts, np.zeros(4), s, 0, r, s2, bool(world.mdp.terminal[s2]), first)
            counted[s, s2] += 1
            earned[s] += r
            last, s, first = Step(s, 0, r, s2, False, False), s2, False
    times = np.maximum(counted.sum(axis=1), 1)
    solution = np.linalg.solve(np.eye(len(times)) - world.discount * counted / times[:, None], earned / times)
    average = np.zeros(world.n_states)
    for k in range(300):
        parts.planner.plan(parts.model, parts.values, last, world.discount, np.full(4, 0.1 if k < 50 else 0.001))
        average += parts.values.as_array()[:, 0] / 200 if k >= 100 else 0.0
    assert np.abs(solution - world.truth).max() > 1.0
    np.testing.assert_allclose(average, solution, atol=0.05)


def test_a_bonus_finds_a_shorter_way_that_opened():
    """Greedy agents that know the long way never try the action that has become the shortcut; with a bonus one does."""
    long_way = [(0, 0, 0.0, 1, False, True), (1, 0, 1.0, 2, True, False)]
    tried = {}
    for kind, options in {"dyna": {}, "dyna-plus": {"bonus": 0.05}}.items():
        agent = bc.agent(kind, alpha=0.5, schedule="constant", sample=20, **options)
        _, q = walk(agent, 3, 2, 0.9, long_way * 300)
        tried[kind] = q[0, 1] > q[0, 0]
    assert tried == {"dyna": False, "dyna-plus": True}


@pytest.mark.parametrize("kind", TWINS)
def test_environments_whose_graph_is_not_known(kind):
    class Plain(gymnasium.Env):
        """The maze behind an interface that tells nothing but its spaces."""

        def __init__(self):
            self.inner = gymnasium.make("backcast/Maze-v0").unwrapped
            self.observation_space, self.action_space = self.inner.observation_space, self.inner.action_space
            self.reset, self.step = self.inner.reset, self.inner.step

    agent = bc.agent(kind)
    blind, knowing = bc.train(Plain(), agent, 8, seed=4), bc.run(bc.worlds.maze(), agent, 8, [4])
    np.testing.assert_array_equal(blind.steps, knowing.steps)
    np.testing.assert_array_equal(blind.values, knowing.values)


def test_memory_is_bounded_by_the_buffer():
    world = bc.worlds.maze()
    for kind in ("replay", "prioritized-replay"):
        (model,) = bc.run(world, bc.agent(kind, buffer=5), 3, 1).models
        memory = model if kind == "replay" else model.memory
        assert [field.size for field in memory] == [5, 5, 5, 5, 5, 1]
        assert memory.stored[0] > 5


def test_settings():
    assert {kind: KINDS[kind].settings for kind in TWINS} == {
        "dyna": ("sample", "forget", "features"),
        "dyna-plus": ("sample", "bonus", "forget", "features"),
        "replay": ("sample", "buffer", "features", "memory"),
        "prioritized-replay": ("sample", "buffer", "exponent", "features", "memory"),
    }
    setup = Setup(4, 2, 0.9, None)
    built = {kind: bc.agent(kind).build(setup) for kind in TWINS}
    assert {parts.planner.samples for parts in built.values()} == {5}
    assert built["dyna-plus"].planner.bonus == 1e-4
    assert (built["dyna"].model.forgets, built["dyna-plus"].model.forgets) == (0.0, 0.5)
    assert built["replay"].model.s.size == built["prioritized-replay"].model.memory.s.size == 10_000
    assert built["prioritized-replay"].model.exponent == 0.6
    with pytest.raises(bc.InputError, match="frame: 'current' given, but 'dyna' does not plan from s or s'"):
        bc.agent("dyna", frame="current")
    with pytest.raises(bc.InputError, match="buffer: 0 given, expected a whole number, 1 or more"):
        bc.agent("replay", buffer=0)
    with pytest.raises(bc.InputError, match="'dyna-plus' works in control worlds, this one is for prediction"):
        bc.run(bc.worlds.chain((3, 2), seed=0), bc.agent("dyna-plus"), 1, 1)
