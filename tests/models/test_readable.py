"""What learned models tell of themselves, on literal steps."""

import numpy as np
import pytest

import backcast as bc
from by_hand import walk

pytestmark = pytest.mark.interpreted

STEP = (0, 1, 1.0, 1, False, True)


def learned(agent, steps, n_actions=2):
    parts, _ = walk(agent, 4, n_actions, 0.5, steps)
    return parts.model.readable(parts.values)


def test_successors_are_predicted_the_likeliest_first():
    """From (0, 1) to 2 once and to 1 three times."""
    steps = [(0, 1, 1.0, 2, False, True), *[STEP] * 3]
    model = learned(bc.agent("forward", model="counts"), steps)
    found = model.predict(0, 1)
    assert (found.states.tolist(), found.probability.tolist()) == ([1, 2], [0.75, 0.25])


def test_predecessors_are_predicted_the_likeliest_first():
    steps = [(2, 1, 1.0, 1, False, True), *[STEP] * 3]
    found = learned(bc.agent("backward", model="counts"), steps).predict(1)
    assert (found.states.tolist(), found.actions.tolist()) == ([0, 2], [1, 1])
    assert found.probability.tolist() == [0.75, 0.25]


def test_what_follows_in_two_steps_belongs_to_the_state_and_action_before():
    """(1, 1) → 0 → 2: the row of (1, 1), and of no other pair, has 2."""
    steps = [(1, 1, 1.0, 0, False, True), (0, 0, 2.0, 2, False, False)]
    model = learned(bc.agent("forward", model="counts", horizon=2), steps)
    assert model.transition[1, 1].tolist() == [0, 0, 1, 0]
    assert np.isnan(model.transition[[0, 0, 1], [0, 1, 0]]).all()
    assert model.discounted[1, 1].tolist() == [0, 0, 0.25, 0]


def test_what_is_discounted_is_weighted_with_the_probability():
    """Two steps from 1: over 0 to 2 and, once of twice, to the end 3, which nothing is carried beyond."""
    steps = [(1, 0, 1.0, 0, False, True), (0, 0, 2.0, 2, False, False)]
    steps += [(1, 0, 1.0, 0, False, True), (0, 0, 2.0, 3, True, False)]
    model = learned(bc.agent("forward", model="counts", horizon=2), steps)
    assert model.transition[1, 0].tolist() == [0, 0, 0.5, 0.5]
    assert model.discounted[1, 0].tolist() == [0, 0, 0.125, 0]


def test_a_conditioned_model_that_forgets_still_has_rows_that_sum_to_one():
    """State 1 is reached by both actions, one after the other; each arrival halves what was known before."""
    agent = bc.agent("backward", model="counts", conditioned=True, forget=0.5)
    model = learned(agent, [(0, 0, 1.0, 1, False, True), STEP, STEP])
    assert model.joint[1].sum() == pytest.approx(1.0)
    assert model.joint[1, 0].tolist() == pytest.approx([1 / 7, 6 / 7])  # weights ¼ and ½ + 1


def test_rewards_of_states_are_moved_by_the_step_size_of_the_model():
    parts, _ = walk(bc.agent("forward"), 4, 2, 0.5, [(0, 1, 4.0, 1, False, True)], rates=(1.0, 0.5, 0.0, 0.0))
    assert parts.model.state_reward.tolist() == [0, 2, 0, 0]


def test_models_of_steps_contain_no_restarts_and_counts_do():
    assert not learned(bc.agent("backward"), [STEP]).contains_restarts
    assert learned(bc.agent("backward", model="counts"), [STEP]).contains_restarts


def test_what_led_to_a_state_is_read_from_the_row_of_the_state_alone():
    """0, a=1 → 1: with one-hot features the logits are a table, and a step of size 1 leaves 1 : e : 1 : … in it."""
    model = learned(bc.agent("backward", model="likelihood", features=np.eye(4)), [STEP])
    led = np.array([1, np.e, *[1] * 6])
    np.testing.assert_allclose(model.states, [np.full(8, 1 / 8), led / led.sum(), *[np.full(8, 1 / 8)] * 2])


@pytest.mark.parametrize("name", ["states", "expectation", "second_moment", "reward"])
def test_a_model_of_corrections_says_nothing_else(name):
    model = learned(bc.agent("backward", model="abstract", features=np.eye(4)), [STEP])
    with pytest.raises(bc.InputError, match=f"{name}: a .* says nothing about it"):
        getattr(model, name)


def test_the_reward_between_two_states_is_the_mean_whatever_the_probability():
    """0 → 1 earned 1 and 3, 2 → 1 earned 5: of what led to 1, 2/3 and 1/3."""
    steps = [(0, 1, 1.0, 1, False, True), (0, 1, 3.0, 1, False, True), (2, 0, 5.0, 1, False, True)]
    model = learned(bc.agent("backward", model="counts"), steps)
    assert model.reward[:, 1].tolist() == pytest.approx([2, 0, 5, 0])
    assert model.earned[1].tolist() == pytest.approx([2 * 2 / 3, 0, 5 / 3, 0])


def test_a_linked_model_knows_what_follows_a_pair():
    """(0, 1) → 1 and (1, 0) → 2: what follows (1, 0) is not what follows (0, 1)."""
    parts, _ = walk(bc.agent("blend"), 4, 2, 0.5, [STEP, (1, 0, 2.0, 2, False, False)])
    assert [parts.model.successors(*pair).keys.tolist() for pair in ((0, 1), (1, 0), (0, 0))] == [[1], [2], []]
