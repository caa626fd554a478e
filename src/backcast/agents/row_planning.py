"""How to plan with a model that has rows of states, given an agent's settings and values."""

from typing import Any

import numpy as np

from backcast.agents.kinds import Agent
from backcast.agents.setup import Setup
from backcast.core.errors import InputError
from backcast.models.contract import HasRows
from backcast.planners import (
    AllPredecessors,
    AllSuccessors,
    Predecessors,
    SampledPredecessors,
    SampledSuccessors,
)
from backcast.planners.backward import Correction
from backcast.planners.edges import no_edges
from backcast.planners.forward import Reevaluation
from backcast.planners.linear import WeighedPredecessors


def how_to_plan(
    setup: Setup, agent: Agent, forward: bool, model: HasRows
) -> Correction[Any, Any] | Reevaluation[Any, Any]:
    """Return the `how` of a `ForwardPlanner` or a `BackwardPlanner` for a model with rows of states.

    It depends on whether values are a table or linear in features, and on the agent's `sample`, `top` and `depth`.

    Args:
        setup: the setup that the kind was given.
        agent: the agent.
        forward: whether planning is forward.
        model: the model to plan with; it has `rows`.

    Raises:
        InputError: if no valid planning exists.
    """
    if setup.values is not None and model.rows.width > 0:
        raise InputError(
            "features: the model leaves something to states never observed, which is applied to all values by one map"
            " of a table; leave features out, or use a model that leaves nothing"
        )
    return _successors(setup, agent) if forward else _predecessors(setup, agent)


def _successors(setup: Setup, agent: Agent) -> Reevaluation[Any, Any]:
    """Expected updates over all or the most probable successors, or sampled ones."""
    samples = agent.shared("sample")
    if samples is None:
        return AllSuccessors(agent.shared("top", 0), agent.step_sizes(setup), no_edges())
    return SampledSuccessors(samples, setup.stream(2), agent.step_sizes(setup), no_edges())


def _predecessors(setup: Setup, agent: Agent) -> Correction[Any, Any]:
    """Corrections of all, the most probable or sampled predecessors, and of their predecessors in turn."""
    samples, top, depth = agent.shared("sample"), agent.shared("top", 0), agent.shared("depth", 1)
    step_sizes = agent.step_sizes(setup)
    if samples is not None:
        return SampledPredecessors(samples, depth, setup.stream(), step_sizes, no_edges())
    if (top or depth > 1) and setup.values is not None:
        raise InputError(f"{'top' if top else 'depth'}: with features all predecessors are corrected at once")
    if top or depth > 1:
        state, place, taken = (np.zeros(depth, dtype=np.int64) for _ in range(3))
        return Predecessors(top, depth, state, place, taken, step_sizes, no_edges())
    if setup.values is not None:
        return WeighedPredecessors(np.zeros(setup.n_states * setup.n_actions), step_sizes, no_edges())
    return AllPredecessors(step_sizes, no_edges())
