"""The order in which planners by priority make their backups."""

import numpy as np
import pytest

import backcast as bc
from backcast.core.interaction import Step
from backcast.planners.small_backups import take_in
from sweeping_by_hand import make, tell, waiting, walk

pytestmark = pytest.mark.interpreted


def known_ways(name, edges, n_states, n_actions, discount, sample):
    """An agent that knows all ways (s, a, r, s') of a deterministic world and has planned nothing."""
    parts, _ = walk(make(name, sample=sample, learn=False), n_states, n_actions, discount, [])
    table = getattr(parts.planner, "expected", parts.values)
    for s, a, r, s2 in edges:
        step = Step(s, a, float(r), s2, False, False)
        parts.model.learn(parts.values, step, discount, np.ones(4))
        take_in(table, parts.planner.told, parts.model, step, discount)
    return parts


def backups_needed(name, world, goal_step):
    """How many states are taken off the queue until it is empty, after the goal was found."""
    for sample in range(1, 1000):
        parts = known_ways(name, *world, sample)
        tell(parts, *goal_step)
        if waiting(parts.planner.queue) == 0:
            return sample
    return None


def order_of_backups(name, world, goal_step):
    """The states in the order in which they are taken off the queue after the goal was found, with their values."""
    parts, order = known_ways(name, *world, 1), []
    tell(parts, *goal_step)
    while True:
        order.append(int(np.flatnonzero(parts.planner.told)[~np.isin(np.flatnonzero(parts.planner.told), order)][0]))
        if waiting(parts.planner.queue) == 0:
            return order, parts.planner.told
        s, a, r, s2, ends = goal_step  # once more, which changes nothing, to take one more state off
        parts.planner.plan(parts.model, parts.values, Step(s, a, float(r), s2, ends, False), world[3], np.ones(4))


def the_papers_maze():
    """Its ways, without the one into the goal; and that one. It is entered from below only."""
    world = bc.worlds.maze()
    table, states = world.steps_table, np.flatnonzero(world.mdp.reachable & ~world.mdp.terminal)
    ways = [(int(s), a, 0.0, int(table.next_state[table.offset[4 * s + a]])) for s in states for a in range(4)]
    (last,) = [(s, a, 1.0, s2, True) for s, a, _, s2 in ways if world.mdp.terminal[s2]]
    edges = [way for way in ways if way[:2] != last[:2]]
    return (edges, world.n_states, 4, world.discount), last, len(states)


def costly_ways(seed, n_states=30, n_actions=4):
    """Ways with random costs, no discount, one way into the goal, which earns 1000."""
    rng = np.random.default_rng(seed)
    following = rng.integers(0, n_states - 1, (n_states - 1, n_actions))
    following[1:, 0] = np.arange(n_states - 2)  # so that all states can reach the first one
    edges = [(s, a, -int(rng.integers(1, 50)), int(following[s, a])) for s in range(n_states - 1) for a in range(1, 4)]
    edges += [(s, 0, -int(rng.integers(1, 50)), s - 1) for s in range(1, n_states - 1)]
    return (edges, n_states, n_actions, 1.0), (0, 0, 1000, n_states - 1, True), n_states - 1


def shortest(world, goal_step):
    """Dijkstra's values, plainly: relax all ways as often as there are states."""
    edges, n_states, _, discount = world
    value = np.full(n_states, -np.inf)
    value[goal_step[0]] = goal_step[2]
    for _ in range(n_states):
        for s, _, r, s2 in edges:
            value[s] = max(value[s], r + discount * value[s2])
    return value


@pytest.mark.parametrize("ways", [the_papers_maze(), costly_ways(0), costly_ways(1)], ids=["maze", "costs", "costs"])
def test_mcmahan_and_gordon_solve_a_deterministic_world_in_dijkstras_order(ways):
    world, goal_step, n_states = ways
    order, told = order_of_backups("mcmahan-gordon", world, goal_step)
    assert len(order) == len(set(order)) == n_states == backups_needed("mcmahan-gordon", world, goal_step)
    value = shortest(world, goal_step)
    np.testing.assert_allclose(told[order], value[order])
    assert (np.diff(value[order]) <= 1e-12).all()


def test_moore_and_atkeson_need_at_least_as_many_backups():
    world, goal_step, n_states = the_papers_maze()
    assert backups_needed("moore-atkeson", world, goal_step) >= n_states
    for seed in range(5):
        world, goal_step, n_states = costly_ways(seed)
        assert backups_needed("moore-atkeson", world, goal_step) > n_states
