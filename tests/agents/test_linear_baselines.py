"""Baselines whose values are linear in features: with one feature for each state they are those of a table."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS

pytestmark = pytest.mark.interpreted

CHAIN = bc.worlds.chain((6, 4, 3), seed=0)
MAZE = bc.worlds.maze("..G\n.X.\nS..", 0.2, 0.7)
KINDS_OF_PREDICTION = ["monte-carlo", "td-lambda", "expected-trace", "dyna", "replay", "prioritized-replay", "both"]
KINDS_OF_CONTROL = [
    *("monte-carlo", "q-lambda", "expected-trace", "dyna", "dyna-plus", "replay", "prioritized-replay", "both"),
]


@pytest.mark.parametrize(
    ("world", "kind"),
    [(CHAIN, kind) for kind in KINDS_OF_PREDICTION] + [(MAZE, kind) for kind in KINDS_OF_CONTROL],
    ids=lambda given: getattr(given, "name", given),
)
def test_one_feature_for_each_state_is_a_table(world, kind):
    rates = {"alpha": 0.5, "alpha_model": 0.5, "alpha_plan": 0.25, "epsilon": 0.3}
    table, linear = (
        bc.run(world, bc.agent(kind, **rates, **given), 10, 2, max_steps=60)
        for given in ({}, {"features": np.eye(world.n_states)})
    )
    assert np.array_equal(table.steps, linear.steps)
    np.testing.assert_allclose(linear.values, table.values, rtol=1e-9, atol=1e-12)
    assert linear.weights is not None


def test_td_lambda_with_features_by_hand():
    """Two states share a feature: 0 → 1 (reward 1) → end (reward 2); x(0) = (1, 0), x(1) = (1, 1), λ = γ = α = ½.

    First step: δ = 1 + 0 − 0 = 1, e = x(0), w = (½, 0). Second: δ = 2 − ½ = 1.5, e = ¼ x(0) + x(1) = (1.25, 1),
    w = (½, 0) + ½ · 1.5 · (1.25, 1) = (1.4375, 0.75).
    """
    transition = np.zeros((3, 1, 3))
    transition[0, 0, 1] = transition[1, 0, 2] = transition[2, 0, 2] = 1
    mdp = bc.FiniteMDP(transition, np.array([[1.0], [2.0], [0.0]]), 0.5, [1, 0, 0], [False, False, True])
    features = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    world, given = bc.worlds.from_mdp(mdp), {"lam": 0.5, "alpha": 0.5, "schedule": "constant", "features": features}
    runs = bc.run(world, bc.agent("td-lambda", **given), 1, 1)
    np.testing.assert_allclose(runs.weights[0], [1.4375, 0.75])


@pytest.mark.parametrize("kind", ["sweeping", "small-backups", "certainty-equivalence"])
def test_what_needs_a_table_says_why(kind):
    with pytest.raises(bc.InputError, match=rf"features: '{kind}' needs a table of values: it .* share features"):
        bc.agent(kind, features=np.eye(3))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].numbered])
def test_what_needs_numbers_says_so_in_a_box(kind):
    import gymnasium

    with pytest.raises(bc.InputError, match="has a model of numbered states; the observation space is Box"):
        bc.train(gymnasium.make("MountainCar-v0"), bc.agent(kind, features=bc.features.tiles()), 1, 0)


@pytest.mark.parametrize("kind", ["monte-carlo", "q-lambda", "replay", "prioritized-replay"])
def test_in_a_box_what_is_forgotten_is_no_longer_learned_from(kind):
    """A memory of 20 observations, of which there are hundreds: their numbers are given again and again."""
    import gymnasium

    chosen = bc.agent(kind, features=bc.features.tiles(bins=4), memory=20, alpha=0.05, epsilon=1.0)
    runs = bc.train(gymnasium.make("CartPole-v1"), chosen, 5, 0)
    assert runs.steps.sum() > 60
    assert np.isfinite(runs.weights).all()
    assert np.abs(runs.weights).max() > 0


def test_a_memory_forgets_transitions_of_states_whose_numbers_are_given_again():
    from backcast.core.interaction import Step
    from backcast.planners.replay import empty_prioritized_memory, held
    from backcast.values.table import zeros

    memory, rates = empty_prioritized_memory(4, 1.0), np.ones(4)
    for s in range(4):
        memory.learn(zeros(6, 1), Step(s, 0, float(s), s + 1, False, False), 0.9, rates)
        memory.note_error(s, 10.0**s)
    memory.forget_states(np.array([1]), 1)
    assert held(memory.memory) == 2
    assert memory.memory.s[:2].tolist() == [2, 3]
    assert memory.memory.r[:2].tolist() == [2.0, 3.0]
    # |δ| / ρ, where ρ was the largest |reward| so far
    np.testing.assert_allclose(memory.sums[1], 100 / 2 + 1000 / 3, rtol=1e-6)
    np.testing.assert_allclose(memory.minima[1], 100 / 2, rtol=1e-6)
