"""Models over several steps on literal ways: options, λ, ends, and what was cut off."""

import numpy as np
import pytest

import backcast as bc
from backcast.core.randomness import streams, uniform
from backcast.models.options import option_chances
from backcast.models.readable import Known
from backcast.models.trajectory import NOBODY, Stop
from backcast.models.truth import backward_rows, restart_rows
from by_hand import follow, walk

pytestmark = pytest.mark.interpreted

E = np.e
WAY = [(0, 1, 1.0, 1, False, True), (1, 0, 2.0, 2, False, False), (2, 1, 4.0, 1, False, False)]


def learned(agent, n_states, n_actions, steps, rates=(0.5, 1.0, 0.5, 0.0)):
    parts, _ = walk(agent, n_states, n_actions, 0.5, steps, rates)
    return parts.model.readable(parts.values)


def test_a_way_back_leads_to_where_an_option_was_initiated():
    """0 →(a=1, 1) 1 →(a=0, 2) 2 →(a=1, 4) 1, initiated in 0 only: all ways begin there.

    To 2: 1 + 0.5·2 = 2, discounted by 0.25. To 1: earns 1 after one step and 1 + 0.5·2 + 0.25·4 = 3 after three.
    """
    model = learned(bc.agent("backward", model="counts", option=bc.Option([1, 0, 0, 0])), 4, 2, WAY)
    assert model.joint[2, 0].tolist() == model.joint[1, 0].tolist() == [0, 1]
    assert (model.reward[0, 2], model.discounted[2, 0]) == (2.0, 0.25)
    assert (model.reward[0, 1], model.discounted[1, 0]) == (2.0, (0.5 + 0.125) / 2)


def test_a_way_back_does_not_lead_through_a_state_where_the_option_terminated():
    """The same, and it terminates in 1: ways to 2 and back to 1 are broken off, and count as arrivals."""
    option = bc.Option([1, 0, 0, 0], termination=[0, 1, 0, 0])
    parts, _ = walk(bc.agent("backward", model="counts", option=option), 4, 2, 0.5, WAY)
    assert parts.model.rows.used.tolist() == [0, 1, 0, 0]
    assert parts.model.rows.total.tolist() == parts.model.arrivals.tolist() == [0, 2, 1, 0]
    assert parts.model.readable(parts.values).joint[1, 0].tolist() == [0, 0.5]


def test_chances_of_an_option_to_stop_or_go_on():
    stop, go_on = option_chances(bc.Option([0.5, 0.0, 1.0], termination=[0.5, 0.25, 0.5]), 3)
    assert (stop.tolist(), go_on.tolist()) == ([0.5, 0.0, 1.0], [0.25, 0.75, 0.0])
    assert option_chances(bc.Option(0.25), 2)[1].tolist() == [0.75, 0.75]


def test_an_option_that_looks_forward_sees_where_it_terminates():
    """0 →(1) 1 →(2) 2 →(4) 3, the end; it terminates in 2, and with the episode.

    From 0 to 2: 1 + 0.5·2 = 2, discounted by 0.25. From 2 to the end, but not from before 2.
    """
    agent = bc.agent("forward", model="counts", option=bc.Option(1.0, termination=[0, 0, 1, 0]))
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 2.0, 2, False, False), (2, 0, 4.0, 3, True, False)]
    model = learned(agent, 4, 1, steps)
    np.testing.assert_array_equal(model.transition[:3, 0], [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert [model.reward[s, 0, following] for s, following in ((0, 2), (1, 2), (2, 3))] == [2.0, 2.0, 4.0]
    assert [model.discounted[s, 0, following] for s, following in ((0, 2), (1, 2), (2, 3))] == [0.25, 0.5, 0.0]


def test_no_random_number_is_spent_beyond_a_step_that_the_option_would_not_take():
    """It would take action 0 and terminates in 2: one number for the arrival in 1, one for that in 2, and no more.

    The way 0 → 1 → 2 counts from 1, whose row is conditioned on its own action, but not from 0.
    """
    option = bc.Option(1.0, termination=[0, 0, 1, 0], policy=[[1, 0]] * 4)
    agent = bc.agent("forward", model="counts", option=option)
    before = walk(agent, 4, 2, 0.5, [])[0].model.ways.stop.stream.copy()
    steps = [(0, 0, 1.0, 1, False, True), (1, 1, 2.0, 2, False, False)]
    parts, _ = walk(agent, 4, 2, 0.5, steps, rates=(0.5, 1.0, 0.5, 0.5))
    assert parts.model.rows.used.tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    uniform(before), uniform(before)
    assert parts.model.ways.stop.stream.tolist() == before.tolist()


def test_a_way_back_to_before_the_first_step_is_dropped_and_counts_as_an_arrival():
    """0 → 1 → 2, and an option that was initiated in 1 only: the way back from 1 passes 0 and ends there."""
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 2.0, 2, False, False)]
    parts, _ = walk(bc.agent("backward", model="counts", option=bc.Option([0, 1, 0, 0])), 4, 1, 0.5, steps)
    assert parts.model.arrivals.tolist() == parts.model.rows.total.tolist() == [0, 1, 1, 0]
    assert parts.model.rows.used.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(("cumulative", "steps"), [([1.0], 1), ([0.0, 0.0, 1.0], 3)])
def test_no_random_number_is_spent_on_a_number_of_steps_that_is_certain(cumulative, steps):
    stream, _ = streams(0)
    before = stream.tolist()
    assert Stop(np.array(cumulative), NOBODY, NOBODY, stream).horizon() == steps
    assert stream.tolist() == before


def test_a_way_is_as_much_likelier_as_all_of_its_steps_are():
    """ε = ½, two actions, all of them the best ones: each was taken with probability ¾, and the greedy policy is sure.

    So a way of two steps has the weight (4/3)².
    """
    agent = bc.agent("backward", model="counts", horizon=2, importance=True, learn=False)
    parts, _ = walk(agent, 4, 2, 0.5, [])
    parts.values.fill([0, 1, 0, 1, 0, 1, 0, 0])
    follow(parts, [(0, 1, 1.0, 1, False, True), (1, 1, 2.0, 2, False, False)], (0.5, 1.0, 0.0, 0.5))
    np.testing.assert_allclose(parts.model.arrivals, [0, 0, 16 / 9, 0])
    assert parts.model.rows.weight[parts.model.rows.offset[2]] == pytest.approx(16 / 9)


def test_of_two_models_the_one_that_looks_back_hears_of_a_restart():
    """0 → 1 → 0 → 2, the end, and again: one of two arrivals in 0 was from 1, the other from the end."""
    episode = [(0, 0, 1.0, 1, False, True), (1, 0, 4.0, 0, False, False), (0, 0, 2.0, 2, True, False)]
    both = learned(bc.agent("both"), 3, 1, [*episode, (0, 0, 1.0, 1, False, True)])
    assert both.backward.states[0].tolist() == [0, 0.5, 0.5]
    np.testing.assert_allclose(both.forward.transition[0, 0], [0, 2 / 3, 1 / 3])


def test_nobody_plans_from_where_an_episode_begins_after_one_that_was_cut_off():
    """Two episodes of one step, the first cut off: planning from 1 and from 2, not from the beginning of the second."""
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 1.0, 2, False, True)]
    parts, _ = walk(bc.agent("backward", model="counts"), 4, 1, 0.5, steps)
    assert parts.updates.tolist() == [2, 2]
    parts, _ = walk(bc.agent("backward", model="counts", frame="previous"), 4, 1, 0.5, steps)
    assert parts.updates.tolist() == [2, 0]


def test_a_softmax_over_two_steps():
    """0 → 1 → 2 moves the row of 2 by one step of size 1 towards 0: weights e : 1 : 1."""
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    model = learned(bc.agent("backward", model="softmax", horizon=2), 3, 1, steps)
    np.testing.assert_allclose(model.states[2], np.array([E, 1, 1]) / (E + 2))
    assert [(s, a) for s, a, _ in model.predict(2)] == [(0, 0)]
    assert model.predict(2).each_other == pytest.approx(1 / (E + 2))


@pytest.mark.parametrize(("kind", "earned"), [("backward", 0.5 * 2 + 0.25 * 4), ("forward", 0.5 * 2 + 0.25 * 5)])
def test_a_state_that_follows_itself_bootstraps_from_itself(kind, earned):
    """0 → 0 twice, rewards 2 and 4, λ = 0.5 and α = 0.5.

    First the row is (1, 2, 0.5): probability, earned, discounted. The second step keeps half of it, adds a quarter of
    the row prolonged by that step (it earns 2 + 0.5·4 at its end, or 4 + 0.5·2 at its beginning) and of the step alone.
    """
    agent = bc.agent(kind, lam=0.5, lam_by="td")
    steps = [(0, 0, 2.0, 0, False, True), (0, 0, 4.0, 0, False, False)]
    parts, _ = walk(agent, 3, 1, 0.5, steps, rates=(0.5, 0.5, 0.5, 0.0))
    rows = parts.model.rows
    assert rows.used.tolist() == [1, 0, 0]
    assert rows.weight[0] == 0.5 + 0.25 + 0.25
    assert rows.reward[0] == earned + 0.25 * 4
    assert rows.carried[0] == 0.5 * 0.5 + 0.25 * 0.5 * 0.5 + 0.25 * 0.5


def test_a_restart_earns_nothing_and_bootstraps_from_how_the_end_was_reached():
    """λ = 0.5. 0 →(2) 2, cut off; 1 →(4) 2, which ends; then a restart in 0.

    Row of 2: half from each, earned 1 and 2, discounted by 0.25 and 0. Row of 0: half of that, and half from 2 itself.
    """
    steps = [(0, 0, 2.0, 2, False, True), (1, 0, 4.0, 2, True, True), (0, 0, 0.0, 1, False, True)]
    agent = bc.agent("backward", lam=0.5, lam_by="td")
    model = learned(agent, 3, 1, steps, rates=(0.5, 0.5, 0.5, 0.0))
    np.testing.assert_allclose(model.states[[2, 0]], [[0.5, 0.5, 0], [0.25, 0.25, 0.5]])
    np.testing.assert_allclose(model.earned[[2, 0]], [[1, 2, 0], [0.5, 1, 0]])
    np.testing.assert_allclose(model.discounted[[2, 0]], [[0.25, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("kind", ["backward", "forward"])
def test_a_mean_of_one_reward_is_that_reward_to_the_last_bit(kind):
    """As 1 + (0.1 − 1) is not."""
    parts, _ = walk(bc.agent(kind, model="counts"), 3, 1, 0.7, [(0, 0, 0.1, 1, False, True)])
    rows = parts.model.rows
    row = rows.offset[1 if kind == "backward" else 0]
    assert (rows.reward[row], rows.weight[row]) == (0.1, 1.0)


def test_weights_of_one_number_of_steps_are_a_horizon():
    steps = [(0, 0, 1.0, 1, False, True), (1, 0, 2.0, 2, False, False), (2, 0, 4.0, 3, False, False)]
    of_weights = learned(bc.agent("backward", model="counts", weights=(0.0, 1.0, 0.0)), 5, 1, steps)
    of_horizon = learned(bc.agent("backward", model="counts", horizon=2), 5, 1, steps)
    np.testing.assert_array_equal(of_weights.states, of_horizon.states)
    assert (of_weights.states[3, 1], of_weights.reward[1, 3]) == (1.0, 2 + 0.5 * 4)


def test_in_control_what_is_earned_belongs_to_the_state_arrived_in():
    """0, a=1 → 1 with reward 3: the row of 1 has weights 1 : e : 1 : 1 for (0,0), (0,1), (1,0), (1,1), and r(1) = 3."""
    model = learned(bc.agent("backward"), 2, 2, [(0, 1, 3.0, 1, False, True)])
    assert model.model.predecessors(1).reward.tolist() == [3]
    np.testing.assert_allclose(model.states[1], np.array([1 + E, 2]) / (3 + E))
    np.testing.assert_allclose(model.reward, [0, 3])
    np.testing.assert_allclose(model.earned, [[0, 0], 3 * np.array([1 + E, 2]) / (3 + E)])


def test_episodes_that_end_where_they_begin_are_no_part_of_true_rows():
    """Half of the episodes begin in the end 1, with no step; all steps to 1 come from 0."""
    mdp = bc.FiniteMDP([[[0, 1]], [[0, 1]]], np.zeros((2, 1)), 0.5, [0.5, 0.5], [False, True])
    rows = backward_rows(bc.worlds.from_mdp(mdp))
    assert rows.used.tolist() == [0, 1]
    assert (rows.key[0], rows.weight[0]) == (0, 1.0)


@pytest.mark.parametrize("name", ["initiation", "termination"])
@pytest.mark.parametrize("chances", [1.5, -0.5, [0.5, 1.5], [0.5, -0.5], [], [[0.5]]], ids=str)
def test_chances_of_options_are_probabilities(name, chances):
    with pytest.raises(bc.InputError, match=rf"option\.{name}: expected a probability in \[0, 1\]"):
        bc.Option(**{"initiation": 1.0, name: chances})


@pytest.mark.parametrize("policy", [[0.5, 0.5], [[0.5, 0.6]], [[1.5, -0.5]]], ids=str)
def test_policies_of_options_are_probabilities(policy):
    with pytest.raises(bc.InputError, match=r"option\.policy: expected \(S, A\) probabilities"):
        bc.Option(1.0, policy=policy)


@pytest.mark.parametrize(("horizon", "row"), [(1, 0), (2, 1)])
def test_true_rows_of_restarts(horizon, row):
    """0 → 1 → 2, the end, and again: 2 is one step before 0 and two steps before 1."""
    mdp = bc.FiniteMDP([[[0, 1, 0]], [[0, 0, 1]], [[0, 0, 1]]], np.zeros((3, 1)), 0.5, [1, 0, 0], [0, 0, 1])
    rows = restart_rows(bc.worlds.from_mdp(mdp), ("horizon", horizon))
    assert rows.used.tolist() == [int(s == row) for s in range(3)]
    place = rows.offset[row]
    assert (rows.key[place], rows.weight[place], rows.total[row], rows.width) == (2, 1.0, 1.0, 0)


@pytest.mark.parametrize(
    ("given", "targets"),
    [
        ({}, [1 + 0.5 * 10, 2 + 0.5 * 30]),
        ({"ends": np.array([False, True])}, [1 + 0.5 * 10, 2]),
        ({"discount": np.array([0.1, 0.2])}, [1 + 0.1 * 10, 2 + 0.2 * 30]),
    ],
)
def test_targets_of_what_is_known_to_follow(given, targets):
    known = Known(np.array([0, 2]), np.array([0.5, 0.5]), np.array([1.0, 2.0]), **given)
    np.testing.assert_allclose(known.targets(np.array([10.0, 20.0, 30.0]), 0.5), targets)
