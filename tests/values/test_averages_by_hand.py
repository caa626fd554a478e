"""schedule="average": the n-th update of an entry has the step size α / n, on literal steps worked out by hand."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.models.rows import connect, empty_rows
from backcast.values.step_sizes import Averaged, AveragedAtFirst, Scheduled
from by_hand import walk

pytestmark = pytest.mark.interpreted

WHOLE = (1.0, 1.0, 1.0, 0.0)  # all step sizes are 1, ε is 0


def average(kind, **settings):
    return bc.agent(kind, schedule="average", **settings)


def test_a_step_is_divided_by_the_weights_so_far():
    sizes = Averaged(np.zeros(2))
    assert [sizes.of(1, 0.5 * w, w) for w in (1.0, 1.0, 2.0)] == [0.5, 0.25, 0.25]
    assert sizes.of(1, 0.5, 0.0) == 0.125  # counted before
    assert sizes.of(0, 0.0, 0.0) == 0.0  # nothing was ever counted
    assert sizes.n.tolist() == [0.0, 4.0]
    assert Scheduled().of(1, 0.5, 3.0) == 0.5
    at_first = AveragedAtFirst(np.zeros(1))
    assert [at_first.of(0, 0.4, 1.0) for _ in range(3)] == [1.0, 0.5, 0.4]


def test_td():
    """v(1) is the mean of 4, 1 and 1; v(0) of 0 + 2 / 2 and 2 + 2 / 2."""
    ends, leads = [(1, 0, r, 2, True, True) for r in (4.0, 1.0, 1.0)], [(0, 0, r, 1, False, True) for r in (0.0, 2.0)]
    parts, v = walk(average("td"), 3, 1, 0.5, ends + leads, WHOLE)
    np.testing.assert_allclose(v[:, 0], [2, 2, 0])
    assert parts.learner.step_size.n.tolist() == [2, 3, 0]
    _, v = walk(average("td"), 3, 1, 0.5, ends, (0.5, 1, 1, 0))  # α is 1/2: steps of 1/2, 1/4 and 1/6
    np.testing.assert_allclose(v[1, 0], 2 - 0.25 - 0.75 / 6)


def test_q_learning_counts_pairs():
    steps = [(1, 1, 4.0, 2, True, True), (1, 0, 1.0, 2, True, True), (1, 1, 2.0, 2, True, True)]
    parts, q = walk(average("q"), 3, 2, 0.5, steps, WHOLE)
    np.testing.assert_allclose(q, [[0, 0], [1, 3], [0, 0]])
    assert parts.learner.step_size.n.tolist() == [0, 0, 1, 2, 0, 0]


def test_of_a_list_each_episode_has_its_own_step_size():
    """The step to the goal earns 1: q moves towards 1 by 0.5, then by 0.25 / 2, then by 1 / 3."""
    world = bc.worlds.maze("SG")
    agent = bc.agent("q", alpha=[0.5, 0.25, 1.0], epsilon=1.0, schedule="average")
    q = bc.run(world, agent, 3, 1).values[0].max()
    np.testing.assert_allclose(1 - q, (1 - 0.5) * (1 - 0.25 / 2) * (1 - 1 / 3))


def test_monte_carlo_is_the_mean_of_the_returns():
    """Of state 1: 4 and 3, of state 0: 2 and 2.5, all in one episode."""
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 2.0, 0, False, False), (0, 0, 0.0, 1, False, False)]
    _, v = walk(average("monte-carlo"), 3, 1, 0.5, [*steps, (1, 0, 4.0, 2, True, False)], WHOLE)
    np.testing.assert_allclose(v[:, 0], [2.25, 3.5, 0])


def test_traces_count_visits():
    """γλ = 1/4. In the second episode 0 → 1 has δ = 2 and n(0) = 2; 1 → 2 ends with δ = 4, a quarter of it for 0."""
    episode = [(0, 0, 0.0, 1, False, True), (1, 0, 2.0, 2, True, False)]
    parts, v = walk(average("td-lambda", lam=0.5), 3, 1, 0.5, episode, WHOLE)
    np.testing.assert_allclose(v[:, 0], [0.25 * 2, 2, 0])
    again = [(0, 0, 1.5, 1, False, True), (1, 0, 6.0, 2, True, False)]
    parts, v = walk(average("td-lambda", lam=0.5), 3, 1, 0.5, episode + again, WHOLE)
    np.testing.assert_allclose(v[:, 0], [0.5 + 2 / 2 + 4 * 0.25 / 2, 2 + 4 / 2, 0])
    assert parts.learner.step_size.n.tolist() == [2, 2, 0]


def test_expected_traces_are_means_and_count_visits():
    """0 and 1 both lead to 2, γλ = 1/2: z(2) is the mean of both traces, though α of the model is 1."""
    first, second = ([(s, 0, 0.0, 2, False, True), (2, 0, r, 3, True, False)] for s, r in ((0, 4.0), (1, 6.0)))
    parts, v = walk(average("expected-trace", lam=1.0), 4, 1, 0.5, first + second, WHOLE)
    np.testing.assert_allclose(parts.model.matrix[2], [0.25, 0.25, 1, 0])
    # 1 → 2: v(1) = 0 + 4 / 2; 2 ends: δ = 6 − 4, of which all of a half goes to 2, and a quarter of all to 0 and 1
    np.testing.assert_allclose(v[:, 0], [2 + 2 * 0.25, 2 + 2 * 0.25, 4 + 2 / 2, 0])


@pytest.mark.parametrize(("schedule", "value"), [("constant", 4.0), ("average", 3.0)])
def test_forward_planning_averages_expectations_only_if_it_should(schedule, value):
    """0 → 1 earned 2, 0 → 2 ended with 6. Expected: 2, then 4: with counts and α = 1 it is taken as it is."""
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 6.0, 2, True, True)]
    agent = bc.agent("forward", model="counts", learn=False, alpha_plan=1.0, schedule=schedule)
    _, v = walk(agent, 3, 1, 0.5, steps, WHOLE)
    np.testing.assert_allclose(v[:, 0], [value, 0, 0])


def test_backward_planning_counts_as_much_as_a_predecessor_is_probable():
    """0 → 2 → 3, then 0 → 1 → 2 → 3; γ = 1/2, pure planning from s'.

    0 → 2: v(0) = 2 with weight 1. 2 → 3 ends: v(2) = 8. 0 → 1: v(0) moves by a half towards 0. 1 → 2: what led to 2 was
    0 or 1, 1/2 each: v(1) = 4 + 8 / 2, its first update; v(0) = 1 moves by 0.5 / 2.5 towards 2 + 8 / 2. 2 → 3 ends:
    v(2) moves by a half towards the mean 5.
    """
    steps = [(0, 0, 2.0, 2, False, True), (2, 0, 8.0, 3, True, False)]
    steps += [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, False, False), (2, 0, 2.0, 3, True, False)]
    parts, v = walk(average("backward", model="counts", learn=False), 4, 1, 0.5, steps, WHOLE)
    np.testing.assert_allclose(v[:, 0], [1 + 0.2 * 5, 8, 8 - 1.5, 0])
    np.testing.assert_allclose(parts.planner.how.step_size.n, [2.5, 0.5, 2, 0])


def test_learning_and_planning_count_apart():
    steps = [(0, 0, 2.0, 1, True, True)] * 3
    parts, _ = walk(average("dyna", sample=2), 2, 1, 0.5, steps, WHOLE)
    assert parts.learner.step_size.n.tolist() == [3, 0]
    assert parts.planner.step_size.n.tolist() == [6, 0]
    parts, _ = walk(average("both"), 2, 1, 0.5, steps, WHOLE)
    assert parts.planner.forward.how.step_size.n.tolist() == parts.planner.backward.how.step_size.n.tolist() == [3, 0]


@pytest.mark.parametrize("n_actions", [1, 2])
def test_a_softmax_averages_rewards_and_its_logits_do_not_know(n_actions):
    """Rewards 2, 6 and 7 of one transition; those of other schedules are the last one where α of the model is 1."""
    steps, found = [(0, 0, r, 1, True, True) for r in (2.0, 6.0, 7.0)], {}
    for kind, settings in (("forward", {}), ("backward", {"sample": 1})):
        for schedule in ("constant", "average"):
            agent = bc.agent(kind, schedule=schedule, **settings)
            model = walk(agent, 2, n_actions, 0.5, steps, WHOLE)[0].model
            found[schedule] = model
            rewards = model.rows.reward.max() if n_actions == 1 else model.state_reward[1]
            assert rewards == pytest.approx(5.0 if schedule == "average" else 7.0)
        np.testing.assert_array_equal(found["average"].rows.weight, found["constant"].rows.weight)
        np.testing.assert_array_equal(found["average"].rows.share, found["constant"].rows.share)


def test_counters_of_a_row_move_with_it_when_rows_grow():
    """Row 0 grows while row 1 has a mean of two rewards; then row 1 sees its third."""
    rows = empty_rows(np.zeros(2, dtype=np.int64), 9, averages=True).with_room((0, 1), (0, 1))
    for r in (2.0, 6.0):
        connect(rows, 1, 5, r, 0.5, 1.0, 1.0)
    for key in range(6):
        rows = rows.with_room((0,), (0,))
        connect(rows, 0, key, 1.0, 0.5, 1.0, 1.0)
    connect(rows, 1, 5, 7.0, 0.5, 1.0, 1.0)
    assert rows.reward[rows.offset[1]] == pytest.approx(5.0)
    assert rows.step_size.n.sum() == 9
    assert rows.step_size.n[rows.offset[1]] == 3


def test_weights_of_a_softmax_count_as_they_are():
    """Weights 1/2 and 2, α = 1: steps of 1 and 4/5 of the way."""
    rows = empty_rows(np.array([1]), 3, averages=True)
    connect(rows, 0, 1, 4.0, 0.5, 1.0, 0.5)
    connect(rows, 0, 1, 9.0, 0.5, 1.0, 2.0)
    assert rows.reward[0] == pytest.approx(4 + 0.8 * 5)


@pytest.mark.parametrize(
    ("agent", "step"),
    [
        (average("forward"), 0.5 / 3),
        (average("forward", sample=1), 0.5 / 3),
        (bc.agent("forward"), 0.5),
        (bc.agent("q"), 0.5),
    ],
    ids=lambda given: getattr(given, "name", given),
)
def test_a_planner_says_how_far_it_went_and_asking_does_not_count(agent, step):
    parts = agent.build(Setup(2, 2, 0.5))
    for part in (parts.planner, getattr(parts.planner, "how", None)):
        if isinstance(getattr(part, "step_size", None), Averaged):
            part.step_size.of(1, 1.0, 3.0)
    assert parts.planner.step_taken(1, 0.5) == parts.planner.step_taken(1, 0.5) == pytest.approx(step)
