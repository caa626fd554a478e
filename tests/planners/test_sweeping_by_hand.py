"""Planning by priority over a counted model, on literal steps worked out by hand."""

import numpy as np
import pytest

import backcast as bc
from backcast.drivers.loop import finish
from backcast.planners.sweeping import NEAR
from sweeping_by_hand import ALL, HALF, drained, make, tell, walk

pytestmark = pytest.mark.interpreted


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
    assert parts.planner.queue.priority[0] == 2
    assert drained(parts.planner.queue) == [0]
    assert parts.updates.tolist() == [3, 4]  # v(1) is news for 0, in the table beside
    parts, v = walk(make("moore-atkeson", learn=False), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [1.5, 4, 0])
    assert parts.updates.tolist() == [0, 5]


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
    assert parts.updates.tolist() == [0, 4]  # (0) as it was seen, (1), news for (0), (0)
    assert drained(parts.planner.queue) == []
    parts, v = walk(make("peng-williams"), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.75, 3, 0])
    assert parts.updates.tolist() == [2, 4]  # twice news for (0)


def test_peng_and_williams_tell_predecessors_of_what_was_learned():
    """With step size 1 TD leaves no difference at (1); (0) still has to hear of it."""
    parts, v = walk(make("peng-williams"), 3, 1, 0.5, [(0, 0, 0, 1, False), (1, 0, 4, 2, True)], np.ones(4))
    np.testing.assert_allclose(v[:, 0], [2, 4, 0])
    assert parts.updates.tolist() == [2, 2]


def test_mcmahan_and_gordon_by_hand():
    """0 and 1 lead to 2 with rewards 0 and 1; then 2 → the end with reward 4 is found, γ = 0.5.

    1 was passed on before. After v(2) = 4: v(0) = 2, 2 more than was passed on and 2 less than the best; v(1) = 3, 2
    more and 1 less.
    """
    steps = [(0, 0, 0, 2, False), (1, 0, 1, 2, False), (2, 0, 4, 3, True)]
    parts, v = walk(make("mcmahan-gordon", sample=1), 4, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [2, 3, 4, 0])
    np.testing.assert_allclose(parts.planner.told, [0, 1, 4, 0])
    np.testing.assert_allclose(parts.planner.queue.priority[:2], [2 / (2 + 4 * NEAR), 2 / (1 + 4 * NEAR)])
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


@pytest.mark.parametrize("unit", [1.0, 2.0**-600])  # the square of the second one is 0
def test_certainty_equivalence_gives_up_where_there_is_no_solution(unit):
    """A loop that earns the same for ever, without a discount; an episode is cut off there."""
    parts, _ = walk(bc.agent("certainty-equivalence", learn=False), 2, 1, 1.0, [(0, 0, unit, 0, False)])
    finish(parts, np.array(HALF), 0, False)
    assert parts.updates[1] == parts.values.u[0] / unit == 5000


@pytest.mark.parametrize("name", [*ALL, "certainty-equivalence"])
def test_a_state_that_ends_some_episodes_and_not_others(name):
    """1 has the value 8; 0 → 1 with reward 1 ended one of two episodes: v(0) = 1 + 0.5 · 8 / 2."""
    steps = [(1, 0, 8, 2, True), (0, 0, 1, 1, False), (0, 0, 1, 1, True), (1, 0, 8, 2, True)]
    _, v = walk(make(name), 3, 1, 0.5, steps, np.ones(4))
    np.testing.assert_allclose(v[:, 0], [3, 8, 0])


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
