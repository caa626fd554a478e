"""Algorithms 2, 3 and 4 on worlds small enough to follow with pencil and paper."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.agents.setup import Setup
from by_hand import follow, line, walk

pytestmark = pytest.mark.interpreted

E = np.e


def test_td():
    _, v = walk(bc.agent("td"), 3, 1, 0.5, [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, True, False)])
    np.testing.assert_allclose(v[:, 0], [0, 2, 0])
    _, v = walk(bc.agent("td"), 3, 1, 0.5, [(1, 0, 4.0, 2, True, True), (0, 0, 1.0, 1, False, True)])
    np.testing.assert_allclose(v[:, 0], [0.5 * (1 + 0.5 * 2), 2, 0])


def test_q_learning_takes_the_best_next_action():
    steps = [(1, 1, 4.0, 2, True, True), (1, 0, 1.0, 2, True, True), (0, 1, 0.0, 1, False, True)]
    _, q = walk(bc.agent("q"), 3, 2, 0.5, steps)
    np.testing.assert_allclose(q, [[0, 0.5 * 0.5 * 2], [0.5, 2], [0, 0]])


def test_backward_dyna_in_prediction_algorithm_2():
    """States 0, 1, 2; one step 0 → 1 with reward 2, then planning from 1.

    The row of 1 was (0, 0, 0); one step of size 1 towards 0 makes it (2/3, −1/3, −1/3): weights e : 1 : 1.
    TD: v(0) = 0.5 · 2 = 1. Planning from 1 with v(1) = 0, r(0, 1) = 2: v(0) += 0.5 · e/(e+2) · (2 − 1).
    """
    parts, v = walk(bc.agent("backward"), 3, 1, 0.5, [(0, 0, 2.0, 1, False, True)])
    p = E / (E + 2)
    np.testing.assert_allclose(parts.model.readable(parts.values).states[1], [p, 1 / (E + 2), 1 / (E + 2)])
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * p * (2 - 1), 0, 0])
    assert parts.updates.tolist() == [1, 3]


def test_backward_planning_from_a_terminal_state_moves_all_states_with_the_reward_alone():
    """1 → 2 ends with reward 6. Row of 2: weights 1 : e : 1. Target 6 for the observed pair, 0 for the others."""
    _, v = walk(bc.agent("backward", learn=False), 3, 1, 0.5, [(1, 0, 6.0, 2, True, True)])
    np.testing.assert_allclose(v[:, 0], [0, 0.5 * E / (E + 2) * 6, 0])


def test_backward_dyna_in_control_algorithm_4():
    """Two states and two actions: 4 logits a row. 0, a=1 → 1 with reward 1; then planning from 1.

    In control the reward belongs to the state: r(1) = 1, and it reaches also the pairs never observed.
    Row of 1: weights 1 : e : 1 : 1 for the pairs (0,0), (0,1), (1,0), (1,1). y = r(1) + γ max q(1, ·) = 1.
    """
    _, q = walk(bc.agent("backward"), 2, 2, 0.5, [(0, 1, 1.0, 1, False, True)])
    rest, seen = 0.5 / (E + 3), 0.5 * E / (E + 3)
    np.testing.assert_allclose(q, [[rest, 0.5 + seen * (1 - 0.5)], [rest, rest]])


def test_backward_from_previous_skips_the_first_step_and_pure_planning_adds_the_end():
    steps = [(0, 0, 1.0, 1, False, True)]
    _, v = walk(bc.agent("backward", frame="previous"), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5, 0, 0])
    steps = [(0, 0, 0.0, 1, False, True), (1, 0, 6.0, 2, True, False)]
    parts, v = walk(bc.agent("backward", frame="previous", learn=False), 3, 1, 0.5, steps)
    # from 1: everything is 0; then once more from the end 2: v(1) = 0.5 · e/(e+2) · 6
    np.testing.assert_allclose(v[:, 0], [0, 0.5 * E / (E + 2) * 6, 0])
    assert parts.updates.tolist() == [0, 6]


def test_forward_dyna_in_prediction():
    """0 → 1 with reward 2, planning from 0: row of 0 has weights 1 : e : 1; r(0, 1) = 2, values ahead are 0 or v(0).

    TD: v(0) = 1. Expected target: e/(e+2) · 2 + 1/(e+2) · 0.5 · v(0), for 0 may follow itself.
    """
    _, v = walk(bc.agent("forward"), 3, 1, 0.5, [(0, 0, 2.0, 1, False, True)])
    target = (E * 2 + 0.5 * 1) / (E + 2)
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * (target - 1), 0, 0])


def test_forward_dyna_where_one_state_was_never_seen_to_follow():
    """Two states: 0 → 1 ends with reward 2. The row of 0 has weights 1 : e, and 0 itself is the only one unobserved."""
    _, v = walk(bc.agent("forward"), 2, 1, 0.5, [(0, 0, 2.0, 1, True, True)])
    target = (E * 2 + 0.5 * 1) / (E + 1)
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * (target - 1), 0])


def test_forward_dyna_in_control_algorithm_3():
    """0, a=0 → 1 with reward 1, planning from 0. State 1 was seen to go on; 0 was never entered: it counts as ending.

    r(1) = 1. Row (0,0): weights 1 : e, target e/(e+1); row (0,1): equal weights, target 1/2.
    """
    parts, q = walk(bc.agent("forward"), 2, 2, 0.5, [(0, 0, 1.0, 1, False, True)])
    np.testing.assert_allclose(q[0], [0.5 + 0.5 * (E / (E + 1) - 0.5), 0.5 * 0.5])
    model = parts.model.readable(parts.values)
    np.testing.assert_array_equal(model.ends, [True, False])
    assert parts.updates.tolist() == [1, 2]


def test_forward_from_next_is_skipped_at_the_end_and_pure_planning_adds_the_beginning():
    parts, v = walk(bc.agent("forward", frame="current"), 3, 1, 0.5, [(0, 0, 1.0, 2, True, True)])
    np.testing.assert_allclose(v[:, 0], [0.5, 0, 0])
    assert parts.updates.tolist() == [1, 0]
    parts, _ = walk(bc.agent("forward", frame="current", learn=False), 3, 1, 0.5, [(0, 0, 1.0, 2, True, True)])
    assert parts.updates.tolist() == [0, 1]


def test_true_models_in_aline():
    """0 → 1 → 2, the last step earns 4: true-backward from 2 corrects 1 fully (α = 1), from 1 corrects 0."""
    line = bc.FiniteMDP(
        [[[0, 1, 0]], [[0, 0, 1]], [[0, 0, 1]]], [[0, 0, 0], [0, 0, 4.0], [0, 0, 0]], 0.5, [1, 0, 0], [0, 0, 1]
    )
    world = bc.worlds.from_mdp(line)
    runs = bc.run(world, bc.agent("true-backward", learn=False), 2, 1)
    np.testing.assert_allclose(runs.values[0], [0.5 * (0.5 * 4), 4, 0])  # step size 1, then 1/2
    runs = bc.run(world, bc.agent("true-forward", learn=False), 2, 1)
    np.testing.assert_allclose(runs.values[0], [0.5 * (0.5 * 4), 4, 0])
    np.testing.assert_allclose(runs.rmsve[0], [np.sqrt(((0 - 2) ** 2) / 3), np.sqrt(((1 - 2) ** 2) / 3)])
    np.testing.assert_allclose(runs.rmsve_inner[0, 0], np.sqrt(((0 - 2) ** 2) / 2))
    assert runs.updates.planning.tolist() == [4]


def test_termination_is_learned_as_a_two_way_softmax():
    parts, _ = walk(bc.agent("forward"), 2, 2, 0.9, [(0, 0, 0.0, 1, False, True)])
    assert parts.model.goes_on[1] == pytest.approx(2 * 1.0 * (1 - 0.5))
    parts, _ = walk(bc.agent("forward"), 2, 2, 0.9, [(0, 0, 0.0, 1, False, True), (0, 0, 0.0, 1, True, True)])
    assert parts.model.goes_on[1] == pytest.approx(1 - 2 / (1 + np.exp(-1)))


# Looking forward in prediction, terminations are not learned: v(end) is read, and is 0 because nobody writes it
READS_ENDS = {"prediction": ("forward", "both", "dyna"), "control": ()}


@pytest.mark.parametrize("here", ["prediction", "control"])
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_bootstraps_from_the_end(kind, here):
    """Values of non-terminal states are the same whatever the value of the terminal state is."""
    if KINDS[kind].only not in (None, here) or kind in READS_ENDS[here]:
        return
    n_actions = 1 if here == "prediction" else 2
    if here == "control" and kind == "true-backward":
        return
    ends = [(0, 0, 1.0, 1, False, True), (1, n_actions - 1, 4.0, 2, True, False)]
    found = []
    for value in (0.0, 100.0):
        parts = bc.agent(kind).build(Setup(3, n_actions, 0.5, line(3, n_actions, 0.5), max_steps=9))
        for a in range(n_actions):
            parts.values.put(2, a, value)
        found.append(follow(parts, ends * 3, (0.5, 0.5, 0.5, 0.0))[:2])
    np.testing.assert_array_equal(*found)
    assert found[0].any()
