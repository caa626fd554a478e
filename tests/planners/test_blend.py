"""The planner that chooses: literal numbers, its limits, and its prior."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import PLANNING, begin, observe
from backcast.planners.prior import (
    FOUND,
    FOUND_MEAN,
    FOUND_SQUARES,
    ONCE,
    drawn_to_zero,
    no_experience,
    unseen_species,
)
from backcast.worlds.envs import TableEnv
from random_worlds import random_steps, random_world
from sweeping_by_hand import tell, waiting, walk

pytestmark = pytest.mark.interpreted

RATES = np.full(4, 0.5)
UNLIMITED = 10**6


def test_prediction_by_hand():
    """0 → 1 or, half of the time, the end with reward 1; then 1 → the end with reward 4 is found, γ = 0.5.

    E(0) = (0 + 1) / 2; then E(1) = 4 brings 4, which 0 learns of as γ P · 4 = 1. The mean gain of a real step is
    (0 + 0.5 + 4) / 3 = 1.5 by then: 1 is not worth it. If it were, 0 would be worth 1.5.
    """
    steps = [(0, 0, 0, 1, False), (0, 0, 1, 2, True), (1, 0, 4, 2, True)]
    parts, v = walk(bc.agent("blend", prior=False), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5, 4, 0])
    assert parts.planner.gate.brings.tolist() == [1.5, 3]
    assert parts.updates.tolist() == [0, 3]
    assert parts.planner.chosen() == [(1, 4.0)]
    parts, v = walk(bc.agent("blend", prior=False, gate=0.5), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [1.5, 4, 0])
    assert parts.planner.chosen() == [(1, 4.0), (0, 1.0)]
    assert parts.updates.tolist() == [0, 5]  # three steps; E(0) is told; v(0) follows


def test_it_explains_its_choices():
    steps = [(0, 0, 0, 1, False), (0, 0, 1, 2, True), (1, 0, 4, 2, True)]
    parts, _ = walk(bc.agent("blend", prior=False), 3, 1, 0.5, steps)
    assert parts.planner.explain(str) == "Forethought: 1 gained 4. Nothing else is queued."
    parts, _ = walk(bc.agent("blend", prior=False, gate=0.5, sample=1), 4, 1, 0.5, [(3, 0, 0, 1, False), *steps])
    assert parts.planner.explain("s{}".format) == (
        "Forethought: s1 gained 4. Hindsight, by what they promised: s3 (2)."
        " S0 promises 1, but the limit on updates is reached."
    )


def test_it_says_why_it_stops_and_names_few():
    """From 1 to 5 all lead to 6, which turns out to be worth 4: each would gain 2, a step brought 4/6 on average."""
    steps = [*((s, 0, 0, 6, False) for s in range(1, 6)), (6, 0, 4, 7, True)]
    parts, _ = walk(bc.agent("blend", prior=False, sample=4), 8, 1, 0.5, steps)
    assert parts.planner.explain("s{}".format) == (
        "Forethought: s6 gained 4. Hindsight, by what they promised: s1 (2), s2 (2), s3 (2) and 1 more."
        " S5 promises 2, but the limit on updates is reached."
    )
    tell(parts, 7, 0, 0, 0, False)
    assert parts.planner.explain("s{}".format).startswith("Forethought: s7 gained 0. Hindsight, by what they")
    tell(parts, 0, 0, 0.1, 7, True)
    assert parts.planner.explain("s{}".format) == "Forethought: s0 gained 0.1. Nothing else is queued."


def test_news_accumulate_until_they_are_worth_it():
    """1 is worth 4, then 3, then 2.67: told are E(0) = 2 and, once it has moved by enough, the last."""
    steps = [(0, 0, 0, 1, False), (1, 0, 4, 2, True)]
    parts, v = walk(bc.agent("blend", prior=False, gate=0.5), 3, 1, 0.5, steps)
    assert v[:, 0].tolist() == [2, 4, 0]
    tell(parts, 1, 0, 2, 2, True)  # v(1) = 3: 0 would change by 0.5, and steps brought (0 + 4 + 1) / 3 · 0.5 = 0.83
    assert parts.values.as_array()[:, 0].tolist() == [2, 3, 0]
    tell(parts, 1, 0, 0, 2, True)  # v(1) = 2: by 1, and 0.5 · (0 + 4 + 1 + 1) / 4 = 0.75
    assert parts.values.as_array()[:, 0].tolist() == [1, 2, 0]


def test_control_by_hand():
    """From 0, action 0 leads to 1 and action 1 to the end with reward 1; from 1 the end is reached with reward 4 or 6.

    E(0, 1) = 1 is chosen; then E(1, 0) = 4 makes E(0, 0) = 0.5 · 4 = 2 the better one, and q(0, 1) is left as it is.
    Action 1 of state 1 is better still: E(1, 1) = 6, and q(0, 0) = 3.
    """
    steps = [(0, 1, 1, 2, True), (0, 0, 0, 1, False), (1, 0, 4, 2, True)]
    parts, q = walk(bc.agent("blend", prior=False, gate=0.0), 3, 2, 0.5, steps)
    np.testing.assert_allclose(q, [[2, 1], [4, 0], [0, 0]])
    assert parts.planner.policy.tolist() == [0, 0, 0]
    tell(parts, 1, 1, 6, 2, True)
    assert parts.planner.policy.tolist() == [0, 1, 0]
    np.testing.assert_allclose(parts.values.as_array(), [[3, 1], [4, 6], [0, 0]])


def test_actions_are_shown_below_the_one_that_is_followed():
    """Both actions of 0 end it: with 2, and with 3 and then −1, so that 1 is expected of the second, which is followed.

    To evaluate it anew changes 2, to choose the first again 1: the first is shown below 1 until that is planned.
    """
    steps = [(0, 0, 2, 1, True), (0, 1, 3, 1, True), (0, 1, -1, 1, True)]
    parts, q = walk(bc.agent("blend", prior=False, sample=0), 2, 2, 0.5, steps)
    assert parts.planner.policy[0] == 1
    np.testing.assert_allclose(q[0], [1, 1])
    assert q[0, 0] < q[0, 1]
    parts, q = walk(bc.agent("blend", prior=False, gate=0.0), 2, 2, 0.5, steps)
    assert parts.planner.policy[0] == 0
    np.testing.assert_allclose(q[0], [2, 1])


def model_of(parts, world):
    """P (S·A, S), r (S·A,) and whether a pair was tried, as counted."""
    rows = parts.model.counts.rows
    P, r = np.zeros((len(rows.used), world.n_states)), np.zeros(len(rows.used))
    for pair in np.flatnonzero(rows.used):
        places = slice(rows.offset[pair], rows.offset[pair] + rows.used[pair])
        share = rows.weight[places] * rows.share[pair]
        P[pair, rows.key[places]] = share * rows.carried[places]
        r[pair] = share @ rows.reward[places]
    return P, r, rows.used > 0


@pytest.mark.parametrize("control", [True, False], ids=["control", "prediction"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), terminals=st.integers(0, 2))
def test_without_a_gate_and_with_unlimited_backups_it_is_certainty_equivalence(control, seed, terminals):
    """After every step v solves the counted model: v = max_a (r + γ P v), an action never tried being worth 0."""
    world = random_world(seed, control, terminals=terminals)
    agent = bc.agent("blend", prior=False, gate=0.0, sample=UNLIMITED)
    parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
    for number, step in enumerate(random_steps(world, np.random.default_rng(seed), 60, cut=0.05)):
        observe(parts, RATES, *step)
        if number % 10 == 9:
            P, r, tried = model_of(parts, world)
            v, q = parts.planner.value, np.where(tried, r + P @ parts.planner.value, 0.0).reshape(world.n_states, -1)
            visited = tried.reshape(world.n_states, -1).any(axis=1)
            np.testing.assert_allclose(v[visited], q.max(axis=1)[visited], atol=1e-7)
            np.testing.assert_allclose(parts.values.as_array().max(axis=1)[visited], v[visited], atol=1e-7)


@pytest.mark.parametrize("world", [bc.worlds.chain((12, 6, 3), seed=1), random_world(3, False, terminals=1)])
def test_with_no_backups_it_is_forward_planning_with_counts_and_step_size_1(world):
    """In prediction: v(s) becomes the mean over all that followed s, as it is valued now."""
    chosen = bc.run(world, bc.agent("blend", sample=0, prior=False), 30, 3)
    forward = bc.agent("forward", model="counts", frame="previous", learn=False, alpha_plan=1.0, schedule="constant")
    np.testing.assert_allclose(chosen.values, bc.run(world, forward, 30, 3).values, rtol=1e-12, atol=1e-12)
    assert np.array_equal(chosen.updates.total, chosen.steps.sum(axis=1))


def test_in_a_deterministic_maze_it_does_what_prioritized_sweeping_does():
    """Along the same steps the largest value of each state is that of small backups."""
    world = bc.worlds.maze()
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    agents = bc.agent("blend", prior=False, sample=UNLIMITED), bc.agent("small-backups", sample=UNLIMITED)
    blend, sweeping = (agent.build(setup) for agent in agents)
    for step in random_steps(world, np.random.default_rng(5), 1_500, cut=0.0):
        for parts in (blend, sweeping):
            observe(parts, RATES, *step)
        np.testing.assert_allclose(
            blend.values.as_array().max(axis=1), sweeping.values.as_array().max(axis=1), atol=1e-12
        )
    assert blend.values.as_array().max() == 1.0
    assert blend.updates[PLANNING] < 1.3 * sweeping.updates[PLANNING]


@pytest.mark.parametrize("prior", [True, False])
def test_what_is_planned_passes_the_gate(prior):
    """After every step all that was chosen promised at least what real steps bring, and what waits promises less."""
    world = bc.worlds.maze(slip=0.3)
    agent = bc.agent("blend", prior=prior, sample=UNLIMITED)
    parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
    for step in random_steps(world, np.random.default_rng(2), 600, cut=0.0):
        observe(parts, RATES, *step)
        planner = parts.planner
        assert all(promised >= planner.gate.brings[0] for _, promised in planner.chosen()[1:])
        assert planner.queue.priority.max() < planner.gate.brings[0] or not waiting(planner.queue)


def test_what_is_shown_is_shrunk_and_what_others_learn_from_is_not():
    """Two states that end with 1, 3 and with 6: E = 2 and 6, mean 4, variance 8; within (2 + 5 · 8) / 6 = 7.

    Between: 8 − 7 (1/2 + 1) / 2 = 2.75. k(0) = (2 + 5 · 7) / 6 / 2.75, k(1) = 7 / 2.75. The mean is drawn to
    4 (1 − 8 / (2 · 16)) = 3.
    """
    steps = [(0, 0, 1, 2, True), (0, 0, 3, 2, True), (1, 0, 6, 2, True)]
    parts, v = walk(bc.agent("blend", prior=["shrinkage"]), 3, 1, 0.5, steps)
    np.testing.assert_allclose(parts.planner.value, [2, 6, 0])
    np.testing.assert_allclose(parts.planner.prior.estimates[[3, 9, 8]], [3, 2.75, 7])
    k = 7 / 2.75
    assert v[1, 0] == pytest.approx((6 + 3 * k) / (1 + k))
    tell(parts, 0, 0, 2, 2, True)  # a third visit: E stays 2, scatter 2, variance 8, within (1 + 40) / 6
    within, between = 41 / 6, 8 - 41 / 6 * (1 / 3 + 1) / 2
    k = (2 + 5 * within) / 7 / between
    assert parts.values.as_array()[0, 0] == pytest.approx((3 * 2 + 3 * k) / (3 + k))


def test_states_never_met_are_worth_what_discoveries_were():
    """States 0 to 2 are met once, each ends with reward 6: of the states not met, 3 are expected not to end it."""
    parts, _ = walk(bc.agent("blend", prior=["unseen"], gate=0.0), 8, 1, 0.5, [])
    for s in range(3):
        begin(parts, RATES, s)
        tell(parts, s, 0, 6, 7, True)
    assert unseen_species(3, 0) == 3
    np.testing.assert_allclose(parts.values.as_array()[:, 0], [6, 6, 6, 6, 6, 6, 6, 0])
    begin(parts, RATES, 3)
    observe(parts, RATES, 3, 0, 0.0, 4, True, True)  # a state that was given a value turns out to end an episode
    assert parts.values.as_array()[4, 0] == 0


@pytest.mark.parametrize(("found", "n"), [(4, 4), (20, 20), (100, 20)])
def test_no_more_than_the_last_twenty_discoveries_count(found, n):
    """Discoveries have mean 2 and variance 8: 2 (1 − 8 / (n · 4)). Nothing ended, so that states not met do not."""
    prior = no_experience(3, 1, shrinks=False, assumes=True, hopes=False)
    prior.discoveries[[ONCE, FOUND, FOUND_MEAN, FOUND_SQUARES]] = 2, found, 2, 12
    values = bc.agent("blend").build(Setup(3, 1, 0.5)).values
    assert prior.assume(values, 0.0) == 3
    np.testing.assert_allclose(values.as_array()[:, 0], 2 * (1 - 2 / n))


def test_an_action_never_tried_is_worth_the_mean_of_all():
    """Action 0 earns 1 in state 0 and 3 in state 1: the mean 2, drawn to 2 (1 − 2 / (2 · 4)) = 1.5, is more than 1."""
    steps = [(0, 0, 1, 2, True), (1, 0, 3, 2, True), (0, 0, 1, 2, True)]
    parts, q = walk(bc.agent("blend", prior=["untried"], gate=0.0), 3, 2, 0.5, steps)
    assert parts.planner.policy.tolist() == [1, 0, 0]
    np.testing.assert_allclose(q, [[1, 1.5], [3, 0], [0, 0]])
    assert walk(bc.agent("blend", prior=False, gate=0.0), 3, 2, 0.5, steps)[1][0].tolist() == [1, 0]


@pytest.mark.parametrize(("n_actions", "pieces"), [(1, (True, True, False)), (2, (False, False, True))])
def test_states_are_assumed_about_in_prediction_and_actions_in_control(n_actions, pieces):
    prior = no_experience(3, n_actions, shrinks=True, assumes=True, hopes=True)
    assert (prior.shrinks, prior.assumes, prior.hopes) == pieces


def test_means_that_are_not_sure_are_drawn_to_zero():
    assert drawn_to_zero(2.0, 4.0, 4.0) == 1.5
    assert drawn_to_zero(1.0, 9.0, 4.0) == 0.0
    assert drawn_to_zero(0.0, 1.0, 2.0) == 0.0
    assert [unseen_species(*counts) for counts in ((0, 3), (1, 0), (4, 2))] == [0, 0, 2]


@pytest.mark.parametrize("forget", [0.0, 0.3])
def test_rows_that_grow_and_counts_that_forget(forget):
    """Behind a wrapper the graph is not known and rows grow; the numbers do not change."""
    agent, world = bc.agent("blend", forget=forget), bc.worlds.maze("..G\n.X.\nS..", slip=0.3)
    known = bc.train(TableEnv(world), agent, 4, 3, max_steps=400)
    unknown = bc.train(gymnasium.Wrapper(TableEnv(world)), agent, 4, 3, max_steps=400)
    assert known.values.any()
    np.testing.assert_array_equal(known.values, unknown.values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": "hope"}, "prior: 'hope' given, expected True, False or some of shrinkage, unseen, untried"),
        ({"prior": []}, r"prior: \[\] given"),
        ({"prior": 1}, "prior: 1 given"),
        ({"gate": -1}, "gate: -1 given, expected a number, 0 or more"),
        ({"features": "onehot"}, "it sets one value to what its model expects"),
        ({"top": 3}, "top: 3 given, but 'blend' takes"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(bc.InputError, match=message):
        bc.agent("blend", **settings)


def test_names():
    assert bc.agent("blend").name == "blend"
    assert bc.agent("blend", prior=["untried", "shrinkage"]).name == "blend,prior=shrinkage+untried"
    assert bc.agent("blend", prior="shrinkage+untried") == bc.agent("blend", prior=["untried", "shrinkage"])
    assert bc.agent("blend", sample=0, prior=False).name == "blend,sample=0,prior=false"


def test_what_promises_exactly_the_gain_of_a_step_is_worth_it():
    """0 → 1, then 1 → the end with reward 4: 0 may change by 0.5 · 4 = 2, the mean of 0 and 4."""
    steps = [(0, 0, 0, 1, False), (1, 0, 4, 2, True)]
    parts, v = walk(bc.agent("blend", prior=False, gate=1.0), 3, 1, 0.5, steps)
    assert v[:, 0].tolist() == [2, 4, 0]
    assert parts.planner.chosen() == [(1, 4.0), (0, 2.0)]


def test_it_says_that_the_limit_is_reached_if_what_is_left_is_worth_it():
    """0 and 3 lead to 1, which is worth 6: each promises 3, exactly the least, 1.5 · (0 + 0 + 6) / 3."""
    steps = [(0, 0, 0, 1, False), (3, 0, 0, 1, False), (1, 0, 6, 2, True)]
    parts, v = walk(bc.agent("blend", prior=False, gate=1.5, sample=1), 4, 1, 0.5, steps)
    assert v[:, 0].tolist() == [3, 6, 0, 0]
    assert parts.planner.explain("s{}".format) == (
        "Forethought: s1 gained 6. Hindsight, by what they promised: s0 (3)."
        " S3 promises 3, but the limit on updates is reached."
    )
