"""Runs in blocks: the same bytes however seeds are put together, by whatever number of workers; models left out."""

import pickle
from unittest import mock

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.core.copies import arrays_of
from backcast.core.randomness import PURPOSES, imagination
from backcast.drivers import seed_blocks
from backcast.drivers.seed_blocks import Job, SeedBlocks, setup_for
from backcast.extending import NoModel, Setup, register
from backcast.learners import TD
from backcast.planners import NoPlanner

MAZE, CHAIN = bc.worlds.maze("S..\n.#.\n..G"), bc.worlds.chain((6, 4, 3), seed=None)
FEATURES = bc.features.random_binary(d=12, active=3)
CASES = [
    (MAZE, bc.agent("backward"), 0),
    (MAZE, bc.agent("dyna"), 2**64 - 20),
    (MAZE, bc.agent("expected-trace"), 2**64 - 3),
    pytest.param(CHAIN, bc.agent("backward", model="counts", horizon=2, sample=2), 0, marks=pytest.mark.interpreted),
    (CHAIN, bc.agent("true-backward"), 0),
    (bc.worlds.chain((6, 4, 3), seed=None, branches=2), bc.agent("forward"), 0),
    (bc.worlds.noisy_tv(4, 3, seed=None), bc.agent("forward"), 0),
    (bc.worlds.garnet(6, 2, 2, seed=None), bc.agent("backward"), 0),
    pytest.param(
        *(bc.worlds.chain((6, 4, 3), seed=1), bc.agent("backward", features=FEATURES, alpha=0.1), 0),
        marks=pytest.mark.slow,
    ),
]


def written(runs):
    arrays = runs.steps, runs.reward, runs.rmsve, runs.rmsve_inner, runs.updates.by_episode, runs.values, runs.weights
    return [None if array is None else array.tobytes() for array in (*arrays, runs.diverged, np.asarray(runs.updates))]


def learned(model):
    """All that a model consists of."""
    return [array.tobytes() for array in arrays_of((getattr(model, "model", None), getattr(model, "values", None)))]


@pytest.mark.parametrize(("world", "agent", "first"), CASES)
def test_blocks_and_workers_make_no_difference(world, agent, first):
    seeds = [first + k for k in range(17)]
    each = [bc.run(world, agent, 6, [seed], max_steps=40) for seed in seeds]
    ones = [b"".join(rows) if rows[0] is not None else None for rows in zip(*map(written, each), strict=True)]
    for most in (1, 5, 64):
        for workers in (1, 3):
            with mock.patch.object(seed_blocks, "_MOST_SEEDS", most):
                runs = bc.run(world, agent, 6, seeds, max_steps=40, workers=workers)
            assert written(runs) == ones
            assert [learned(model) for model in runs.models] == [learned(one.models[0]) for one in each]


@pytest.mark.interpreted
@pytest.mark.parametrize("world", [MAZE, CHAIN])
def test_seeds_of_our_kinds_begin_alike(world):
    """But for their random numbers, which a block gives to each copy."""
    drawn = [world.draw(seed) for seed in (3, 8)]
    here = drawn[0].purpose
    for name, kind in KINDS.items():
        if not kind.is_builtin or kind.true or kind.only not in (None, here):
            continue
        first, second = (
            bc.agent(name).build(setup_for(each, seed, 50)) for each, seed in zip(drawn, (3, 8), strict=True)
        )
        for one, other in zip(arrays_of(first), arrays_of(second), strict=True):
            own = [purpose for purpose in PURPOSES if np.array_equal(one, imagination(3, purpose))]
            expected = imagination(8, own[0]) if own else one
            np.testing.assert_array_equal(other, expected, err_msg=name)


def test_other_peoples_kinds_may_do_anything_with_the_seed():
    @register("seeded", only="control")
    def seeded(setup: Setup, agent):
        """Learns if its seed is even."""
        return NoModel(), NoPlanner(), TD(setup.seed % 2 == 0)

    runs = bc.run(MAZE, bc.agent("seeded"), 3, 8, max_steps=20)
    np.testing.assert_array_equal(runs.updates.learning > 0, [True, False] * 4)


def test_random_features_that_every_seed_draws():
    agent = bc.agent("td", features=bc.features.random_binary(d=12, active=3, seed=None), alpha=0.1)
    assert not agent.begins_alike
    world = bc.worlds.chain((6, 4, 3), seed=1)
    runs = bc.run(world, agent, 5, 4)
    for seed in range(4):
        assert bc.run(world, agent, 5, [seed]).values.tobytes() == runs.values[seed].tobytes()


@pytest.mark.interpreted
def test_large_agents_are_made_one_by_one():
    agent = bc.agent("replay", buffer=1_000_000)
    job = Job(MAZE, agent, agent.rates(2), 20)
    job.allow_blocks(0)
    assert job.most_seeds == 1
    small = Job(MAZE, bc.agent("q"), agent.rates(2), 20)
    small.allow_blocks(0)
    assert small.most_seeds == 64


@pytest.mark.interpreted
def test_blocks_are_as_long_as_runs_allow_and_small_in_the_end():
    shared = SeedBlocks(range(1000), most=64, takers=2)
    assert next(shared) == (0, range(0, 1))
    shared.learn(1, 0.01)
    assert next(shared) == (1, range(1, 6))
    shared.learn(5, 1e-6)
    sizes = [len(block) for _, block in shared]
    assert sizes[0] == max(sizes) == 64
    assert sizes[-1] == 1
    assert sum(sizes) == 994
    slow = SeedBlocks(range(20), most=64, takers=1)
    for _, block in slow:
        slow.learn(len(block), 3.0 * len(block))
        assert len(block) == 1


def test_models_can_be_left_out():
    runs, without = (bc.run(MAZE, bc.agent("backward"), 3, 4, models=models) for models in (True, False))
    assert written(runs) == written(without)
    for look in (lambda: without.models[0], lambda: list(without.models)):
        with pytest.raises(bc.InputError, match=r"models: they were left out of these runs; .* models=True"):
            look()
    with pytest.raises(bc.InputError, match=r"models: 'no' given, expected True or False"):
        bc.run(MAZE, bc.agent("q"), 1, 1, models="no")


def test_models_are_a_sequence():
    runs = bc.run(MAZE, bc.agent("backward"), 3, 4)
    assert len(runs.models) == 4
    assert runs.models[-1] is runs.models[3]
    assert [learned(model) for model in runs.models[1:3]] == [learned(runs.models[1]), learned(runs.models[2])]
    with pytest.raises(IndexError):
        runs.models[4]
    again = pickle.loads(pickle.dumps(runs))
    assert again.models[2].states.tobytes() == runs.models[2].states.tobytes()
