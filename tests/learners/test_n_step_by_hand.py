"""n-step TD and Q-learning, SARSA and Expected SARSA on literal steps, worked out by hand."""

import numpy as np
import pytest
from scipy import sparse

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, finish, observe
from backcast.learners.window import empty_window
from backcast.values.linear import features_of, zero_values
from backcast.values.policies import expected
from backcast.values.table import zeros

pytestmark = pytest.mark.interpreted

RATES = np.array([0.5, 0.25, 0.5, 0.5])  # α = ½ and ε = ½


def built(agent, n_states, n_actions=1, q=None):
    """An agent whose discount is ½, with these values."""
    parts = agent.build(Setup(n_states, n_actions, 0.5))
    if q is not None:
        parts.values.fill(np.array(q, dtype=float))
    return parts


def walk(parts, *steps, cut=False):
    """One episode of literal steps (s, a, r, s'), which ends with the last of them or is cut off there."""
    for t, (s, a, r, s2) in enumerate(steps):
        if t == 0:
            begin(parts, RATES, s)
        observe(parts, RATES, s, a, r, s2, t == len(steps) - 1 and not cut, t == 0)
    finish(parts, RATES, s2, not cut)
    return parts.values.as_array()


def test_two_step_td():
    """The returns of the states are 1 + 2/2 + v(2)/4, 2 + 4/2 and 4; v(2) is 0, then 2."""
    parts = built(bc.agent("td", horizon=2), 4)
    episode = (0, 0, 1.0, 1), (1, 0, 2.0, 2), (2, 0, 4.0, 3)
    np.testing.assert_allclose(walk(parts, *episode)[:, 0], [1, 2, 2, 0])
    np.testing.assert_allclose(walk(parts, *episode)[:, 0], [1 + 0.5 * (2.5 - 1), 3, 3, 0])
    assert parts.updates.tolist() == [6, 0]


def test_n_step_td_bootstraps_where_an_episode_was_cut_off():
    """Of a state, two steps after it or one: 2 + v(2)/4 and 2 + v(2)/2."""
    parts = built(bc.agent("td", horizon=2), 4, q=[1.75, 3, 3, 0])
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 2), cut=True)
    np.testing.assert_allclose(v[:, 0], [1.75 + 0.5 * 1, 3 + 0.5 * 0.5, 3, 0])
    v = walk(built(bc.agent("td", horizon=9), 4, q=[0, 0, 8, 0]), (0, 0, 1.0, 1), (1, 0, 2.0, 2), cut=True)
    np.testing.assert_allclose(v[:, 0], [0.5 * (1 + 1 + 2), 0.5 * (2 + 4), 8, 0])


def test_what_is_left_at_the_end_is_learned_from_the_oldest_visit_on():
    """Both returns of state 0, 2 and 4, are known at the end: v = ½ (2 + 4) = 3 − ½, not ½ (4 / 2 + 2)."""
    v = walk(built(bc.agent("td", horizon=5), 2), (0, 0, 0.0, 0), (0, 0, 4.0, 1))
    np.testing.assert_allclose(v[:, 0], [0.5 * 1 + 0.5 * 4, 0])


@pytest.mark.parametrize(("kind", "n_actions"), [("td", 1), ("q", 2), ("sarsa", 2), ("expected-sarsa", 2)])
@pytest.mark.parametrize("n", [1, 3])
def test_nothing_of_an_episode_is_left_for_the_next(kind, n_actions, n):
    parts = built(bc.agent(kind, horizon=n), 5, n_actions)
    walk(parts, (0, 0, 2.0, 4))
    observe(parts, RATES, 2, 0, 8.0, 3, False, True)  # not concluded, as where values explode
    q = walk(parts, (0, 0, 0.0, 1), (1, 0, 2.0, 4))
    learned_at_once = n == 1 and kind != "sarsa"
    np.testing.assert_allclose(q[:, 0], [0.5 if n == 1 else 1, 1, 4 if learned_at_once else 0, 0, 0])


def test_a_window_of_three_over_several_blocks():
    """Rewards 1 … 8, γ = ½: r_t + r_{t+1} / 2 + r_{t+2} / 4 = 7 t / 4 + 1 from t = 1 on, and v / 8."""
    window, values = empty_window(3, 0.5), zeros(8, 1)
    for t in range(1, 9):
        window.enter(t - 1, float(t))
        if window.is_full():
            assert window.learn_oldest(values, 8.0, np.ones(4)) == 1
    np.testing.assert_allclose(values.as_array()[:6, 0], [7 * t / 4 + 2 for t in range(1, 7)])
    assert window.learn_all(values, 8.0, np.ones(4)) == 2
    np.testing.assert_allclose(values.as_array()[6:, 0], [7 + 4 + 2, 8 + 4])
    assert window.learn_all(values, 8.0, np.ones(4)) == 0


def test_what_is_forgotten_is_not_learned():
    window, values = empty_window(2, 0.5), zeros(4, 2)
    window.enter(3, 1.0)
    window.enter(6, 2.0)
    window.forget_states(np.array([1]), 2)
    assert window.learn_oldest(values, 0.0, np.ones(4)) == 0
    assert window.learn_all(values, 0.0, np.ones(4)) == 1
    np.testing.assert_array_equal(values.as_array(), [[0, 0], [0, 0], [0, 0], [2, 0]])


def test_n_step_q_learning_is_cut_where_the_agent_explores():
    """In state 1 action 0 is not the best: the return before it ends with the best, 1 + 4/2. Ties are greedy."""
    parts = built(bc.agent("q", horizon=3), 4, 2, q=[[0, 0], [0, 4], [0, 0], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 2), (2, 1, 8.0, 3))
    np.testing.assert_allclose(q, [[0.5 * 3, 0], [0.5 * (2 + 4), 4], [0, 0.5 * 8], [0, 0]])
    assert parts.updates.tolist() == [3, 0]


def test_two_step_q_learning_takes_the_best_value_two_steps_later():
    parts = built(bc.agent("q", horizon=2), 4, 2, q=[[0, 0], [0, 0], [2, 8], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), (1, 1, 2.0, 2), cut=True)
    np.testing.assert_allclose(q, [[0.5 * (1 + 1 + 2), 0], [0, 0.5 * (2 + 4)], [2, 8], [0, 0]])


def test_sarsa_learns_from_the_action_that_was_taken():
    """From state 1 action 1 is taken, worth 2; Q-learning would have taken 6."""
    parts = built(bc.agent("sarsa"), 4, 2, q=[[0, 0], [6, 2], [0, 0], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), (1, 1, 2.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(q, [[0.5 * (1 + 1), 0], [6, 2], [2, 0], [0, 0]])
    assert parts.updates.tolist() == [3, 0]


def test_sarsa_learns_when_the_next_action_is_known():
    parts = built(bc.agent("sarsa"), 3, 2, q=[[0, 0], [6, 2], [0, 0]])
    for first, step in ((True, (0, 0, 1.0, 1)), (False, (1, 1, 2.0, 0))):
        observe(parts, RATES, *step, False, first)
        np.testing.assert_allclose(parts.values.get(0, 0), 0.0 if first else 1.0)
        assert parts.updates[0] == (0 if first else 1)
    assert parts.values.get(1, 1) == 2.0


def test_sarsa_of_a_state_that_follows_itself():
    """As in the book, a' is chosen before q(s, a) moves: ½ (1 + 0), then halfway on to 2."""
    q = walk(built(bc.agent("sarsa"), 2, 2), (0, 0, 1.0, 0), (0, 0, 2.0, 1))
    np.testing.assert_allclose(q[0], [0.5 + 0.5 * 1.5, 0])


def test_two_step_sarsa():
    """1 + 2/2 + q(2, 1)/4 for the first pair; then 2 + 4/2 and 4 at the end."""
    parts = built(bc.agent("sarsa", horizon=2), 4, 2, q=[[0, 0], [0, 0], [0, 8], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), (1, 1, 2.0, 2), (2, 1, 4.0, 3))
    np.testing.assert_allclose(q, [[0.5 * (1 + 1 + 2), 0], [0, 0.5 * 4], [0, 8 + 0.5 * (4 - 8)], [0, 0]])


@pytest.mark.parametrize("kind", ["sarsa", "expected-sarsa"])
@pytest.mark.parametrize("n", [1, 3])
def test_an_episode_that_is_cut_off_goes_on_with_what_the_policy_expects(kind, n):
    """ε = ½: of the values 6 and 2 it expects ½ · 6 + ½ · 4 = 5."""
    parts = built(bc.agent(kind, horizon=n), 3, 2, q=[[0, 0], [6, 2], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), cut=True)
    np.testing.assert_allclose(q, [[0.5 * (1 + 2.5), 0], [6, 2], [0, 0]])


def test_expected_sarsa_does_not_depend_on_the_action_that_was_taken():
    parts = built(bc.agent("expected-sarsa"), 4, 2, q=[[0, 0], [6, 2], [0, 0], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), (1, 1, 2.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(q, [[0.5 * (1 + 2.5), 0], [6, 2], [2, 0], [0, 0]])
    parts = built(bc.agent("expected-sarsa", horizon=2), 4, 2, q=[[0, 0], [0, 0], [6, 2], [0, 0]])
    q = walk(parts, (0, 0, 1.0, 1), (1, 1, 2.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(q, [[0.5 * (1 + 1 + 5 / 4), 0], [0, 0.5 * 4], [5, 2], [0, 0]])


@pytest.mark.parametrize(
    ("q", "epsilon", "worth"), [([1, 3, 3, 1], 0.0, 3), ([1, 3, 3, 1], 1.0, 2), ([1, 3, 3, 1], 0.5, 2.5), ([4], 0.3, 4)]
)
def test_what_an_epsilon_greedy_policy_expects(q, epsilon, worth):
    values = zeros(2, len(q))
    values.fill(np.array([np.zeros(len(q)), q]))
    assert expected(values, 1, epsilon) == pytest.approx(worth)


def test_two_step_td_with_features():
    """x(0) = (1, 0), x(1) = (1, 1). G_0 = 1 + 2/2 moves w to (1, 0), and G_1 = 2 moves it on by ½ (2 − 1) x(1)."""
    values = zero_values(features_of(sparse.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])), 2, 2, 1)
    parts = built(bc.agent("td", horizon=2), 3)._replace(values=values)
    walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 2))
    np.testing.assert_allclose(values.as_weights(), [[1.5, 0.5]])
