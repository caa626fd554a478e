"""Garnets: their rows, rewards, starts and ends; what can be reached; what is drawn; what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.studies import check_study
from backcast.worlds.garnet import _draw_pieces, _draw_subsets, _leads_to_the_goal

pytestmark = pytest.mark.interpreted

garnet = bc.worlds.garnet


def dense(mdp):
    """P(s' | s, a) and r(s, a, s'), (S, A, S), whatever the form."""
    shape = mdp.n_states, mdp.n_actions, mdp.n_states
    return mdp.table.toarray().reshape(shape), mdp.table_reward.toarray().reshape(shape)


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 30), st.integers(1, 3), st.integers(2, 5), st.sampled_from([0.0, 0.1, 1.0]), st.integers(0, 99))
def test_the_rows_of_any_garnet(states, actions, branching, end, seed):
    branching = min(branching, states - 1)
    world = garnet(states, actions, branching, seed, end=end, reward=0.5)
    transition, reward = dense(world.mdp)
    inner, last = slice(None, -1), states - 1
    np.testing.assert_allclose(transition.sum(axis=2), 1)
    np.testing.assert_array_equal(np.flatnonzero(world.mdp.terminal), [last])
    successors = (transition[inner] > 0).sum(axis=2)
    if end == 0:
        assert (successors == branching).all()
        np.testing.assert_array_equal(reward[inner, :, last], (transition[inner, :, last] > 0).astype(float))
        assert world.mdp.start[0] == 1
        assert world.max_steps == 100 * states
    else:
        assert (successors == (branching + 1 if end < 1 else 1)).all()
        np.testing.assert_allclose(transition[inner, :, last], end)
        assert not reward[inner, :, last].any()
        np.testing.assert_allclose(world.mdp.start[:-1], 1 / (states - 1))
        assert world.max_steps is None
    assert (world.n_states, world.n_actions, world.is_prediction) == (states, actions, actions == 1)


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 40), st.integers(1, 3), st.integers(2, 3), st.booleans(), st.integers(0, 99))
def test_theory_holds_in_any_garnet(states, actions, branching, goal, seed):
    """Every state that is reached leads to the end, so that the recurrent chain has a single class."""
    mdp = garnet(states, actions, branching, seed, end=0 if goal else 0.05).mdp
    uniform = np.full((states, actions), 1 / actions)
    d, v = bc.exact.stationary(mdp, uniform), bc.exact.value(mdp, uniform)
    np.testing.assert_array_equal(d > 0, mdp.reachable)
    back = bc.exact.backward(mdp, uniform).states
    np.testing.assert_allclose(back[mdp.reachable].sum(axis=1), 1)
    transition, reward = dense(mdp)
    expected = (uniform[:, :, None] * transition * (reward + mdp.discount * v)).sum(axis=(1, 2))
    np.testing.assert_allclose(v[:-1], expected[:-1], atol=1e-10)
    assert v[-1] == 0


def test_every_set_of_successors_is_equally_likely():
    subsets = _draw_subsets(60_000, 5, 3, np.random.default_rng(1))
    assert (np.diff(subsets, axis=1) > 0).all()
    kinds, counts = np.unique(subsets, axis=0, return_counts=True)
    assert len(kinds) == 10
    assert np.abs(counts - 6000).max() < 4 * np.sqrt(6000)
    np.testing.assert_array_equal(_draw_subsets(2, 3, 3, np.random.default_rng(0)), [[0, 1, 2]] * 2)


def test_probabilities_are_pieces_of_the_unit_interval():
    """Dirichlet with all parameters 1: each piece has mean 1/b and mean square 2 / (b (b + 1))."""
    pieces = _draw_pieces(40_000, 4, np.random.default_rng(2))
    np.testing.assert_allclose(pieces.sum(axis=1), 1)
    np.testing.assert_allclose(pieces.mean(axis=0), 1 / 4, atol=0.005)
    np.testing.assert_allclose((pieces**2).mean(axis=0), 2 / 20, atol=0.003)
    np.testing.assert_array_equal(_draw_pieces(3, 1, np.random.default_rng(0)), np.ones((3, 1)))


def test_a_share_of_the_transitions_is_rewarded():
    earned = garnet(2000, 1, 10, seed=4, reward=0.3).mdp.table_reward.data
    some = earned[earned != 0]
    assert some.size == pytest.approx(0.3 * 19_990, rel=0.05)
    assert some.mean() == pytest.approx(0, abs=0.05)
    assert some.std() == pytest.approx(1, abs=0.03)
    assert not garnet(50, 1, 5, reward=0).mdp.table_reward.data.any()


def test_defaults_follow_the_purpose():
    prediction, control = garnet(), garnet(20, 4, 3)
    assert (prediction.name, prediction.judged_by, prediction.discount) == ("garnet-50-1-5", "rmsve", 0.95)
    assert (control.name, control.judged_by, control.max_steps) == ("garnet-20-4-3", "steps", 2000)
    assert dense(prediction.mdp)[0][0, 0, -1] == pytest.approx(0.05)
    assert garnet(20, 4, 3, end=0.1).judged_by == "reward"
    assert garnet(20, 4, 3, reward=0.1).judged_by == "reward"
    assert garnet(9, 1, 2, reward=0.5, end=0.1).name == "garnet-9-1-2-reward-0.5-end-0.1"
    assert garnet(9, 1, 2, end=0, max_steps=7).max_steps == 7


def test_a_seed_is_a_garnet():
    """Results of studies depend on it: another world for the same seed would be another study."""
    transition, reward = dense(garnet(4, 1, 2, seed=0, reward=0.5, end=0.1).mdp)
    np.testing.assert_allclose(
        transition[:, 0],
        [[0.7411, 0.1589, 0, 0.1], [0, 0.6935, 0.2065, 0.1], [0.5037, 0, 0.3963, 0.1], [0, 0, 0, 1]],
        atol=1e-4,
    )
    np.testing.assert_allclose(reward[:3, 0, :3], [[-0.4389, 0, 0], [0, 0.9636, 0], [0.2775, 0, 0]], atol=1e-4)
    assert garnet(30, 2, 3, seed=5).mdp == garnet(30, 2, 3, seed=5).mdp
    assert garnet(30, 2, 3, seed=5).mdp != garnet(30, 2, 3, seed=6).mdp


def test_every_seed_of_a_run_draws_its_own():
    world = garnet(30, 2, 3, seed=None)
    assert (world.purpose, world.max_steps) == ("control", 3000)
    assert world.draw(6).mdp == garnet(30, 2, 3, seed=6).mdp
    assert pickle.loads(pickle.dumps(world)).draw(6).mdp == world.draw(6).mdp
    with pytest.raises(bc.InputError, match="every seed draws its own world"):
        _ = world.mdp
    together = bc.run(garnet(12, 1, 3, seed=None), bc.agent("td", alpha=0.5), 4, 3)
    alone = bc.run(garnet(12, 1, 3, seed=2), bc.agent("td", alpha=0.5), 4, [2])
    np.testing.assert_array_equal(together.rmsve[2], alone.rmsve[0])


def test_a_goal_can_be_reached_from_every_state_that_is():
    layout = garnet(4, 1, 1, end=0).layout
    for successors, leads in [
        ([1, 2, 3, 0], True),
        ([3, 1, 1, 0], True),  # states 1 and 2 are never reached
        ([1, 2, 1, 3], False),  # round and round
        ([0, 3, 3, 1], False),
    ]:
        assert _leads_to_the_goal(np.array(successors)[:, None], layout) == leads
    for seed in range(20):  # of 300 states with one successor each, few draws have a way of any length to the goal
        mdp = garnet(300, 1, 1, seed=seed, end=0).mdp
        assert mdp.reachable[-1]


def test_large_garnets_are_sparse():
    mdp = garnet(3000, 2, 3).mdp
    assert mdp.is_sparse
    assert mdp.table.nnz == 2999 * 2 * 3 + 2
    assert not garnet(500, 2, 3).mdp.is_sparse


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: garnet(1), "states: 1 given, expected a whole number, 2 or more"),
        (lambda: garnet(10, 0), "actions: 0 given, expected a whole number, 1 or more"),
        (lambda: garnet(10, 1, 0), "branching: 0 given, expected a whole number, 1 or more"),
        (lambda: garnet(10, 1, 10), "branching: 10 given, expected at most 9, the number of states that do not end an"),
        (lambda: garnet(10, 2, 11), "branching: 11 given, expected at most 10, the number of states"),
        (lambda: garnet(reward=1.5), r"reward: 1\.5 given, expected a probability in \[0, 1\]"),
        (lambda: garnet(end=-0.1), r"end: -0\.1 given, expected a probability in \[0, 1\]"),
        (lambda: garnet(seed=-1), "seed: -1 given, expected a whole number, 0 or more"),
        (lambda: garnet(10**6, 10, 10), "states × actions × branching: 110,000,000 transitions, expected at most"),
        (
            lambda: garnet(10**5, 1, 1, end=0).mdp,
            "branching: 1 given, actions 1 and states 100,000, but in 100 draws the goal could not be reached from"
            " every state that can be reached; give a larger branching, more actions, or an end above 0",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(bc.InputError, match=message):
        make()


def test_studies_have_them():
    small = {"kind": "garnet", "states": 20, "actions": 3, "branching": 2, "seed": 4, "end": 0.1}
    agents = [{"kind": "td", "only": "prediction"}, {"kind": "q", "only": "control"}]
    given = {"name": "x", "episodes": 1, "agents": agents}
    study = check_study({**given, "worlds": [{"kind": "garnet"}, small]}, "x.toml")
    assert study.worlds[1].build().mdp == garnet(20, 3, 2, 4, end=0.1).mdp
    assert study.worlds[0].build().draw(3).mdp == garnet(seed=3).mdp
    cells = [(cell.world.name, cell.label) for cell in study.runs()]
    assert cells == [("garnet-50-1-5", "td"), ("garnet-20-3-2-end-0.1", "q")]
    with pytest.raises(bc.InputError, match="branching: 30 given, expected at most 19"):
        check_study({**given, "worlds": [{"kind": "garnet", "states": 20, "branching": 30}]}, "x.toml")
