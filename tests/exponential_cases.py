"""Agents with models of exponential families, their twins, and small worlds for both."""

import numpy as np

import backcast as bc
from backcast.agents.setup import Setup
from backcast.models.linear.sparse_rows import as_dense
from plain_exponential import PlainCorrection, PlainExponential
from random_worlds import random_mdp, random_policy

KINDS = ("backward", "forward")


def setup_of(world):
    return Setup(world.n_states, world.n_actions, world.discount, world)


def made(world, agent):
    """The parts of an agent, and its twin."""
    twin = PlainCorrection if agent.get("model") == "abstract" else PlainExponential
    return agent.build(setup_of(world)), twin(agent, setup_of(world))


def psi_of(parts):
    """Ψ of a kernel, (D, C)."""
    return as_dense(parts.model.family.psi.rows, len(parts.model.family.psi.y)).T


def copied(parts, twin):
    """The twin with all that the kernel has learned."""
    model = parts.model
    twin.w, twin.psi = parts.values.w.copy(), psi_of(parts)
    twin.theta = as_dense(model.rewards.theta.rows, len(model.rewards.theta.y)).T
    twin.mean_square, twin.steps = model.scale
    if twin.forward:
        twin.goes_on = model.goes_on.copy()
    return twin


def random_world(rng, control, terminals=0, density=0.5, n_states=6):
    mdp = random_mdp(rng, n_states, 2, terminals=terminals, density=density)
    return bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp))


def pasts(world):
    """The probability that a step, not a restart, led to each state; NaN where nothing did."""
    past = bc.exact.linear_backward(world.mdp, world.policy, np.eye(world.n_states)).past
    return np.where(past > 0, past, np.nan)
