"""Agents on literal steps, to be compared with numbers worked out by hand."""

import numpy as np

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, finish, observe


def walk(agent, n_states, n_actions, discount, steps, rates=(0.5, 1.0, 0.5, 0.0)):
    """The agent after literal steps (s, a, r, s', ends, first)."""
    parts = agent.build(Setup(n_states, n_actions, discount, line(n_states, n_actions, discount)))
    return parts, follow(parts, steps, rates)


def follow(parts, steps, rates):
    for s, a, r, s2, ends, first in steps:
        if first:
            begin(parts, np.array(rates), s)
        observe(parts, np.array(rates), s, a, r, s2, ends, first)
        if ends:
            finish(parts, np.array(rates), s2, True)
    return parts.values.as_array()


def line(n_states, n_actions, discount):
    """A world in which everything can follow everything but the last state ends: room for any literal steps."""
    mdp = bc.FiniteMDP(
        np.full((n_states, n_actions, n_states), 1 / n_states),
        np.zeros((n_states, n_actions)),
        discount,
        np.eye(1, n_states)[0],
        np.arange(n_states) == n_states - 1,
    )
    return bc.worlds.from_mdp(mdp)
