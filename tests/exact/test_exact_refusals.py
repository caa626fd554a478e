import numpy as np
import pytest
from scipy import sparse

import backcast as bc
from backcast.exact.chains import as_policy

exact = bc.exact
T = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.2, 0.8]]])
MDP = bc.FiniteMDP(T, np.zeros((2, 2, 2)), 0.9, [1, 0])
PI = np.full((2, 2), 0.5)
ISLANDS = bc.FiniteMDP(np.eye(3)[:, None, :], np.zeros((3, 1)), 0.9, [0.5, 0, 0.5])

REFUSALS = {
    "several classes": (
        lambda: exact.stationary(ISLANDS),
        r"2 recurrent classes .* states 0 and 2 .* never reach",
    ),
    "no policy": (
        lambda: exact.value(MDP),
        r"policy: none given, but there are 2 actions; expected shape \(2, 2\)",
    ),
    "policy shape": (
        lambda: exact.value(MDP, np.ones((2, 3))),
        r"policy: shape \(2, 3\) given, expected \(S, A\)",
    ),
    "policy sum": (
        lambda: exact.value(MDP, [[0.5, 0.5], [0.5, 0.6]]),
        r"policy: the row of state 1 sums to 1\.1",
    ),
    "policy negative": (lambda: exact.value(MDP, [[1.5, -0.5], [1, 0]]), r"π\(a=1 \| s=0\) is -0\.5"),
    "policy nan": (lambda: exact.value(MDP, [[np.nan, 1], [1, 0]]), r"policy: entry \(0, 0\) is nan"),
    "no such action": (lambda: exact.value(MDP, [0, 2]), r"policy: action 2 in state 1; actions are 0 to 1"),
    "policy ragged": (lambda: exact.value(MDP, [[0.5, 0.5], [1.0]]), r"policy: expected an array of numbers"),
    "t": (lambda: exact.distribution(MDP, PI, t=-1), r"t: -1 given, expected a whole number, 0 or more"),
    "n": (lambda: exact.n_step(MDP, PI, 0), r"n: 0 given, expected a whole number, 1 or more"),
    "n nan": (lambda: exact.n_step(MDP, PI, float("nan")), r"n: nan given, expected a whole number"),
    "n None": (lambda: exact.equivalences(MDP, PI, n=None), r"n: None given, expected a whole number"),
    "weights sum": (lambda: exact.multi_time(MDP, PI, [0.5, 0.4]), r"weights: they sum to 0\.9"),
    "weights negative": (lambda: exact.multi_time(MDP, PI, [1.5, -0.5]), r"weights: they sum to 1, smallest -0\.5"),
    "weights shape": (lambda: exact.multi_time(MDP, PI, []), r"weights: shape \(0,\) given"),
    "lam": (lambda: exact.lambda_model(MDP, PI, 1.5), r"lam: 1\.5 in state 0, expected a number in \[0, 1\]"),
    "lam shape": (
        lambda: exact.lambda_model(MDP, PI, [0.5]),
        r"lam: shape \(1,\) given, expected a number or \(2,\)",
    ),
    "lam in one state": (lambda: exact.lambda_model(MDP, PI, [0.5, 1.5]), r"lam: 1\.5 in state 1, expected a number"),
    "lam of states, forward": (
        lambda: exact.lambda_model(MDP, PI, [0.5, 0.5], "forward"),
        r"lam: one for each state belongs to the predecessors; looking forward give a number",
    ),
    "lam one": (lambda: exact.lambda_model(MDP, PI, 1.0), r"lam: it is 1 \(or nearly\) in every visited state"),
    "lam almost one": (lambda: exact.lambda_model(MDP, PI, 1 - 1e-13), r"lam: it is 1 \(or nearly\)"),
    "initiation": (lambda: exact.option_model(MDP, PI, 0.0), r"initiation: it is 0 in every visited state"),
    "initiation nearly 0": (lambda: exact.option_model(MDP, PI, 1e-13), r"initiation: it is 0 in every visited state"),
    "features": (
        lambda: exact.backward_correction(MDP, PI, np.eye(3), np.ones(3)),
        r"features: shape \(3, 3\) given",
    ),
    "weights": (
        lambda: exact.backward_correction(MDP, PI, np.eye(2), np.ones(3)),
        r"weights: shape \(3,\) given",
    ),
    "values": (
        lambda: exact.tabular_correction(MDP, exact.n_step(MDP, PI), [np.nan, 0]),
        r"values: entry 0 is nan",
    ),
    "method": (
        lambda: exact.optimal(MDP, "guessing"),
        r"method: 'guessing' given, expected one of auto, policy-it",
    ),
    "method no word": (lambda: exact.optimal(MDP, PI), r"(?s)method: array.* given, expected one of auto"),
    "no iterations": (
        lambda: exact.optimal(MDP, max_iterations=0),
        r"max_iterations: 0 given, expected a whole number",
    ),
    "states": (
        lambda: exact.offline_td([0, -1], [1.0, 1.0], [0, 0], 0.9),
        r"states: expected whole numbers from 0 to 1",
    ),
    "rows": (lambda: exact.offline_td([0], [1.0], [0, 0], 0.9, [[1.0]]), r"features: shape \(1, 1\) given"),
    "features flat": (lambda: exact.offline_td([0], [1.0], [0, 0], 0.9, [1.0, 1.0]), r"features: shape \(2,\) given"),
    "tolerance": (lambda: exact.optimal(MDP, tolerance=0), r"tolerance: 0 given, expected a positive number"),
    "text": (lambda: exact.optimal(MDP, tolerance="1e-3"), r"tolerance: '1e-3' given, expected a positive number"),
    "iterations": (
        lambda: exact.optimal(bc.FiniteMDP(T, T, 0.9, [1, 0]), "value-iteration", max_iterations=1),
        r"max_iterations: 1 sweeps were not enough",
    ),
    "rewards": (
        lambda: exact.offline_td([0, 1], [1.0], [0, 0], 0.9),
        r"rewards: shape \(1,\) given, expected \(2,\)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_say_what_was_given_and_what_is_allowed(case):
    call, message = REFUSALS[case]
    with pytest.raises(bc.InputError, match=message):
        call()


def test_several_classes_are_fine_when_only_one_is_reached():
    start = [1.0, 0, 0]
    mdp = bc.FiniteMDP(np.eye(3)[:, None, :], np.zeros((3, 1)), 0.9, start)
    np.testing.assert_array_equal(exact.stationary(mdp), start)
    np.testing.assert_array_equal(exact.backward(mdp).undefined, [1, 2])


def test_discount_one_refuses_a_policy_that_may_never_end_and_keep_earning():
    circle = [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]
    mdp = bc.FiniteMDP(circle, [[[1.0, 0], [0, 0]], [[0, 0], [0, 0]]], 1.0, [1, 0], [False, True])
    with pytest.raises(bc.InputError, match=r"with discount 1, state 0 may never reach a terminal state and keep earn"):
        exact.value(mdp, [0, 0])
    assert exact.value(mdp, [1, 0])[0] == 0


def test_discount_one_allows_what_is_earned_once_or_never_reached():
    # 0 → 1 or the end (3); 1 → 2 earning 5; 2 rests; 4 is a wall where every step costs 1
    transition = np.zeros((5, 1, 5))
    transition[0, 0, [1, 3]] = 0.5
    transition[[1, 2, 4], 0, [2, 2, 4]] = 1
    reward = np.zeros((5, 5))
    reward[1, 2], reward[4, 4] = 5, -1
    mdp = bc.FiniteMDP(transition, reward, 1.0, np.eye(1, 5)[0], np.arange(5) == 3)
    np.testing.assert_allclose(exact.value(mdp), [2.5, 5, 0, 0, np.nan])


def test_with_discount_one_only_policies_that_end_compete():
    # staying in 0 for ever would cost nothing; the only way to an end costs 1
    mdp = bc.FiniteMDP(
        [[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[[0, 0], [0, -1.0]], [[0, 0], [0, 0]]], 1.0, [1, 0], [0, 1]
    )
    assert exact.optimal(mdp).v[0] == -1


def test_a_policy_may_be_empty_where_episodes_end():
    mdp = bc.FiniteMDP(T, np.zeros((2, 2, 2)), 0.9, [1, 0], [False, True])
    np.testing.assert_allclose(exact.stationary(mdp, [[0.5, 0.5], [0, 0]]), exact.stationary(mdp, PI))


def test_a_policy_is_kept_where_episodes_end_if_it_says_something():
    mdp = bc.FiniteMDP(T, np.zeros((2, 2, 2)), 0.9, [1, 0], [False, True])
    for row in ([1, 0], [0.25, 0.75]):
        np.testing.assert_array_equal(as_policy(mdp, [[0.5, 0.5], row])[1], row)
    np.testing.assert_array_equal(as_policy(mdp, [[0.5, 0.5], [0, 0]])[1], [0.5, 0.5])


def test_a_deterministic_policy_may_be_given_as_actions():
    for policy in ([1, 0], np.array([[0, 1], [1, 0]])):  # a matrix of whole numbers is one of probabilities
        np.testing.assert_array_equal(as_policy(MDP, policy), [[0, 1], [1, 0]])
    np.testing.assert_allclose(exact.value(MDP, [1, 0]), exact.value(MDP, [[0, 1], [1, 0]]))


def test_a_gap_where_only_one_side_is_undefined_is_not_zero():
    assert np.isnan(exact.Equivalence("x", np.array([np.nan]), np.array([1.0])).gap)


def test_names_and_modules():
    assert set(bc.__all__) <= set(dir(bc))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bc.nothing  # noqa: B018
    assert sparse.issparse(exact.chain(bc.FiniteMDP(MDP.table, MDP.table_reward, 0.9, [1, 0]), PI))
