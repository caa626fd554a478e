"""Monte Carlo, eligibility traces and expected eligibility traces on literal steps, worked out by hand."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, finish, observe

pytestmark = pytest.mark.interpreted


RATES = np.array([0.5, 0.25, 0.5, 0.0])


def built(agent, n_states, n_actions=1, max_steps=None):
    return agent.build(Setup(n_states, n_actions, 0.5, max_steps=max_steps))


def walk(parts, *steps, cut=False):
    """One episode of literal steps (s, a, r, s'), which ends with the last of them or is cut off there."""
    for t, (s, a, r, s2) in enumerate(steps):
        if t == 0:
            begin(parts, RATES, s)
        observe(parts, RATES, s, a, r, s2, t == len(steps) - 1 and not cut, t == 0)
    finish(parts, RATES, s2, not cut)
    return parts.values.as_array()


def test_monte_carlo_learns_from_every_visit():
    """Returns from the last step to the first: 4, 2, 3 and 2.5, of the states 1, 0, 1 and 0."""
    parts = built(bc.agent("monte-carlo"), 3)
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 0), (0, 0, 0.0, 1), (1, 0, 4.0, 2))
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * (2.5 - 1), 2 + 0.5 * (3 - 2), 0])
    assert parts.updates.tolist() == [4, 0]


@pytest.mark.parametrize(("cut", "goes_on"), [(True, 3.0), (False, 0.0)])
def test_monte_carlo_bootstraps_where_an_episode_was_cut_off(cut, goes_on):
    parts = built(bc.agent("monte-carlo"), 4, 2)
    parts.values.fill([0, 0, 1, 3, 0, 0, 0, 0])
    q = walk(parts, (2, 1, 4.0, 0), (0, 1, 1.0, 1), cut=cut)
    g = 1 + 0.5 * goes_on
    np.testing.assert_allclose(q, [[0, 0.5 * g], [1, 3], [0, 0.5 * (4 + 0.5 * g)], [0, 0]])


def test_monte_carlo_forgets_the_oldest_visits_of_a_long_episode():
    parts = built(bc.agent("monte-carlo"), 4, max_steps=2)
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(v[:, 0], [0, 0.5 * 4, 0.5 * 4, 0])
    assert parts.updates.tolist() == [2, 0]
    v = walk(parts, (0, 0, 6.0, 3))
    np.testing.assert_allclose(v[:, 0], [3, 2, 2, 0])
    room = {limit: built(bc.agent("monte-carlo"), 4, max_steps=limit).learner.past.pairs.size for limit in (7, 10**9)}
    assert room == {7: 7, 10**9: 100_000}
    assert built(bc.agent("monte-carlo"), 4).learner.past.pairs.size == 100_000


@pytest.mark.parametrize(
    ("traces", "v0"), [("accumulating", 0.78125 + 0.5 * 3.21875 * 1.0625), ("replacing", 2.390625)]
)
def test_td_lambda(traces, v0):
    """γλ = 1/4. 0 → 1: δ = 1; 1 → 0: δ = 2.25, v(0) = 0.78125; 0 → 2 ends: δ = 3.21875 with e(0) = 17/16 or 1."""
    parts = built(bc.agent("td-lambda", lam=0.5, traces=traces), 3)
    v = walk(parts, (0, 0, 1.0, 1), (1, 0, 2.0, 0), (0, 0, 4.0, 2))
    np.testing.assert_allclose(v[:, 0], [v0, 1.125 + 0.5 * 3.21875 * 0.25, 0])
    assert parts.updates.tolist() == [5, 0]


def test_td_lambda_of_1_moves_towards_the_return_where_no_state_is_visited_twice():
    """The returns are 3, 4 and 4; the traces of one episode play no part in the next."""
    parts = built(bc.agent("td-lambda", lam=1), 4)
    episode = (0, 0, 1.0, 1), (1, 0, 2.0, 2), (2, 0, 4.0, 3)
    np.testing.assert_allclose(walk(parts, *episode)[:, 0], [1.5, 2, 2, 0])
    np.testing.assert_allclose(walk(parts, *episode)[:, 0], [2.25, 3, 3, 0])
    np.testing.assert_allclose(walk(parts, *episode[2:], cut=True)[:, 0], [2.25, 3, 3.5, 0])


def test_q_lambda_cuts_traces_where_the_action_is_not_the_best_by_the_values_it_was_chosen_with():
    """γλ = 1/2. Ties are greedy. At the last step a = 0 is not greedy in state 1, though it is after the update."""
    parts = built(bc.agent("q-lambda", lam=1.0), 4, 2)
    q = walk(parts, (0, 0, 0.0, 1), (1, 1, 4.0, 2), (2, 0, 0.0, 1), (1, 0, 8.0, 3))
    np.testing.assert_allclose(q, [[1 + 0.125, 0], [4, 2 + 0.25], [0.5, 0], [0, 0]])
    assert parts.updates.tolist() == [1 + 2 + 3 + 1, 0]


def test_replacing_traces_leave_those_of_other_actions():
    parts = built(bc.agent("q-lambda", lam=1.0, traces="replacing"), 3, 2)
    q = walk(parts, (0, 0, 0.0, 0), (0, 1, 0.0, 0), (0, 1, 4.0, 2))
    np.testing.assert_allclose(q[0], [0.5 * 4 * 0.25, 0.5 * 4])


def test_expected_traces_give_credit_to_states_of_other_episodes():
    """0 and 1 both lead to 2. γλ = 1/2; the second visit of 2 moves z(2) by 1/2, though α of the model is 1/4."""
    parts = built(bc.agent("expected-trace", lam=1.0), 4)
    v = walk(parts, (0, 0, 0.0, 2), (2, 0, 4.0, 3))
    np.testing.assert_allclose(v[:, 0], [1, 0, 2, 0])
    v = walk(parts, (1, 0, 0.0, 2), (2, 0, 6.0, 3))
    np.testing.assert_allclose(v[:, 0], [1 + 0.5 * 4 * 0.25, 0.5 + 0.5 * 4 * 0.25, 4, 0])
    np.testing.assert_allclose(parts.model.matrix, [[1, 0, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 1, 0], [0, 0, 0, 0]])
    assert parts.updates.tolist() == [1 + 2 + 1 + 3, 0]
    for _ in range(3):
        walk(parts, (0, 0, 0.0, 2), (2, 0, 6.0, 3))
    # the third visit moves z(2) by 1/3, the fourth and the fifth by 1/4
    np.testing.assert_allclose(parts.model.matrix[2, 1], 0.25 * (2 / 3) * 0.75 * 0.75)


@pytest.mark.parametrize("kind", ["monte-carlo", "q-lambda", "expected-trace"])
def test_values_may_be_kept_scaled_and_shifted(kind):
    """As backward planning keeps them: q = u / 2 + 3."""
    episode = (0, 0, 1.0, 1), (1, 1, 2.0, 0), (0, 1, 4.0, 2), (2, 0, 1.0, 1)
    plain, shifted = (built(bc.agent(kind), 3, 2) for _ in range(2))
    shifted.values.affine[:] = 0.5, 3.0, 2.0
    shifted.values.u[:] = -6.0
    for cut in (True, False, True):
        np.testing.assert_allclose(walk(shifted, *episode, cut=cut), walk(plain, *episode, cut=cut), atol=1e-12)
