"""Variants of sweeping by name, and agents on literal steps of which each may end an episode."""

import numpy as np

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import finish, observe
from backcast.planners.queue import NONE, dequeue

VARIANTS = ("moore-atkeson", "peng-williams", "mcmahan-gordon")
ALL = (*VARIANTS, "small-backups")
HALF = (0.5, 1.0, 0.5, 0.0)


def make(name, **settings):
    """The agent of a variant of sweeping, or of another kind."""
    return bc.agent("sweeping", variant=name, **settings) if name in VARIANTS else bc.agent(name, **settings)


def walk(agent, n_states, n_actions, discount, steps, rates=HALF):
    """The agent after literal steps (s, a, r, s', ends)."""
    everywhere = np.full((n_states, n_actions, n_states), 1 / n_states)
    room = bc.FiniteMDP(everywhere, np.zeros((n_states, n_actions)), 0.5, np.eye(1, n_states)[0])
    parts = agent.build(Setup(n_states, n_actions, discount, bc.worlds.from_mdp(room)))
    for step in steps:
        tell(parts, *step, rates=rates)
    return parts, parts.values.as_array()


def tell(parts, s, a, r, s2, ends, rates=HALF):
    """One more step."""
    observe(parts, np.array(rates), s, a, float(r), s2, ends, False)
    if ends:
        finish(parts, np.array(rates), s2, True)


def waiting(queue):
    """How many items wait."""
    return np.count_nonzero(queue.priority[: queue.level[1]] != NONE)


def drained(queue):
    """All items, in the order in which they leave the queue."""
    items = []
    while (item := dequeue(queue)) >= 0:
        items.append(item)
    return items
