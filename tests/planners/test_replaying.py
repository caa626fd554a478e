"""Dyna, Dyna-Q+, replay and prioritized replay: what they come to, and how the parts fit together."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.agents.setup import Setup
from backcast.core.interaction import Step
from backcast.drivers.loop import observe
from conforming import AgentConformance, ModelConformance
from environments import PlainMaze
from plain_replaying import TWINS


class TestDyna(AgentConformance, ModelConformance):
    kind = "dyna"
    options = {"sample": 1}  # noqa: RUF012


class TestDynaOften(AgentConformance, ModelConformance):
    kind = "dyna"
    test_value_updates_are_counted = None  # some of the 5 draws may be of the same pair; the twins count


class TestDynaPlus(AgentConformance, ModelConformance):
    kind = "dyna-plus"
    options = {"sample": 1}  # noqa: RUF012


class TestReplay(AgentConformance):
    kind = "replay"
    options = {"sample": 1, "buffer": 50}  # noqa: RUF012


class TestPrioritizedReplay(AgentConformance):
    kind = "prioritized-replay"
    options = {"sample": 1, "buffer": 50}  # noqa: RUF012


@pytest.mark.parametrize("world", [bc.worlds.chain((6, 4, 3), seed=0), bc.worlds.maze()], ids=lambda w: w.name)
def test_equal_priorities_are_uniform_replay(world):
    """With exponent 0 the tree finds the same places as a multiplication does, and all weights are 1."""
    uniform_replay = bc.run(world, bc.agent("replay", buffer=100, alpha=0.5), 60, 3)
    equal_priorities = bc.run(world, bc.agent("prioritized-replay", buffer=100, alpha=0.5, exponent=0.0), 60, 3)
    assert np.abs(uniform_replay.values).max() > 0
    np.testing.assert_array_equal(equal_priorities.values, uniform_replay.values)


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("kind", TWINS)
def test_optimal_values_in_a_deterministic_maze(kind, learn):
    """All pairs are tried; constant step sizes do, for there is nothing to average over."""
    world = bc.worlds.maze("..G.\n.X..\nS..X")
    options = {"bonus": 0.0} if kind == "dyna-plus" else {}
    agent = bc.agent(kind, learn=learn, alpha=0.5, epsilon=1.0, schedule="constant", **options)
    values = bc.run(world, agent, 300, 2).values
    optimal = bc.exact.optimal(world.mdp).q
    tried = ~world.mdp.terminal & world.mdp.reachable
    assert tried.sum() > 7
    np.testing.assert_allclose(values[:, tried], np.broadcast_to(optimal[tried], values[:, tried].shape), atol=1e-8)


@pytest.mark.parametrize("kind", ["dyna", "replay"])
def test_what_was_experienced_is_solved_exactly(kind):
    """Planning alone comes to (I − γ P̂)⁻¹ r̂, the value of the chain as it was counted, not of the true one."""
    world = bc.worlds.chain((6, 4, 3), seed=0)
    agent = bc.agent(kind, sample=20_000, learn=False)
    parts = agent.build(Setup(world.n_states, 1, world.discount, world))
    rng, table = np.random.default_rng(0), world.steps_table
    counted, earned = np.zeros((world.n_states, world.n_states)), np.zeros(world.n_states)
    for _ in range(30):
        s, first = int(table.draw_start(rng.random())), True
        while not world.mdp.terminal[s]:
            outcome = table.draw_outcome(s, 0, rng.random())
            s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
            observe(parts, np.zeros(4), s, 0, r, s2, bool(world.mdp.terminal[s2]), first)
            counted[s, s2] += 1
            earned[s] += r
            last, s, first = Step(s, 0, r, s2, False, False), s2, False
    times = np.maximum(counted.sum(axis=1), 1)
    solution = np.linalg.solve(np.eye(len(times)) - world.discount * counted / times[:, None], earned / times)
    average = np.zeros(world.n_states)
    for k in range(300):
        parts.planner.plan(parts.model, parts.values, last, world.discount, np.full(4, 0.1 if k < 50 else 0.001))
        average += parts.values.as_array()[:, 0] / 200 if k >= 100 else 0.0
    assert np.abs(solution - world.truth).max() > 1.0
    np.testing.assert_allclose(average, solution, atol=0.05)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", TWINS)
def test_environments_whose_graph_is_not_known(kind):
    agent = bc.agent(kind)
    blind, knowing = bc.train(PlainMaze(), agent, 8, seed=4), bc.run(bc.worlds.maze(), agent, 8, [4])
    np.testing.assert_array_equal(blind.steps, knowing.steps)
    np.testing.assert_array_equal(blind.values, knowing.values)


def test_memory_is_bounded_by_the_buffer():
    world = bc.worlds.maze()
    for kind in ("replay", "prioritized-replay"):
        (model,) = bc.run(world, bc.agent(kind, buffer=5), 3, 1).models
        memory = model if kind == "replay" else model.memory
        assert [field.size for field in memory] == [5, 5, 5, 5, 5, 1]
        assert memory.stored[0] > 5


def test_settings():
    network = ("network", "batch", "every", "memory", "target_every", "double", "optimiser", "loss", "precision")
    assert {kind: KINDS[kind].settings for kind in TWINS} == {
        "dyna": ("sample", "forget", "features"),
        "dyna-plus": ("sample", "bonus", "forget", "features"),
        "replay": ("sample", "buffer", "features", *network),
        "prioritized-replay": ("sample", "buffer", "exponent", "features", "memory"),
    }
    setup = Setup(4, 2, 0.9, None)
    built = {kind: bc.agent(kind).build(setup) for kind in TWINS}
    assert {parts.planner.samples for parts in built.values()} == {5}
    assert built["dyna-plus"].planner.bonus == 1e-4
    assert (built["dyna"].model.forgets, built["dyna-plus"].model.forgets) == (0.0, 0.5)
    assert built["replay"].model.s.size == built["prioritized-replay"].model.memory.s.size == 10_000
    assert built["prioritized-replay"].model.exponent == 0.6
    with pytest.raises(bc.InputError, match="frame: 'current' given, but 'dyna' does not plan from s or s'"):
        bc.agent("dyna", frame="current")
    with pytest.raises(bc.InputError, match="buffer: 0 given, expected a whole number, 1 or more"):
        bc.agent("replay", buffer=0)
    with pytest.raises(bc.InputError, match="'dyna-plus' works in control worlds, this one is for prediction"):
        bc.run(bc.worlds.chain((3, 2), seed=0), bc.agent("dyna-plus"), 1, 1)
