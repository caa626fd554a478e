"""The kinds of the paper: learning alone, and planning forward or backward with a learned or a true model."""

import dataclasses
from typing import Any

import numpy as np

from backcast.agents.kinds import Agent, Setup, register
from backcast.agents.linear_models import LinearModels
from backcast.agents.settings import LINEAR, LINEAR_VALUES
from backcast.agents.tabular_models import backward_model, forward_model
from backcast.models import BothModels, NoModel
from backcast.planners import (
    AllPredecessors,
    AllSuccessors,
    BackwardPlanner,
    BothPlanners,
    ForwardPlanner,
    NoPlanner,
    Predecessors,
    SampledPredecessors,
    SampledSuccessors,
)
from backcast.planners.linear import WeighedPredecessors

_SPANS = ("horizon", "weights", "lam", "lam_by", "option")
_LINEAR = ("features", "model_features", "learn_by", "ridge", "memory")
_FORWARD = (*_LINEAR, "model", *_SPANS, "sample", "top", "forget")
_BACKWARD = (*_LINEAR, "model", *_SPANS, "conditioned", "sample", "top", "depth", "forget", "importance", "buffer")
_BOTH = ("model", "sample", "top", "forget", "features")
_PAPER = "Chelu, Precup and van Hasselt, Forethought and Hindsight in Credit Assignment, NeurIPS 2020"


@register(
    "td",
    only="prediction",
    counterpart="q",
    learns_model=False,
    settings=LINEAR_VALUES,
    reference="Sutton, Learning to Predict by the Methods of Temporal Differences, 1988",
)
def td(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns values from real steps only: TD(0)."""
    return NoModel(), NoPlanner()


@register(
    "q",
    only="control",
    counterpart="td",
    learns_model=False,
    settings=LINEAR_VALUES,
    reference="Watkins, Learning from Delayed Rewards, 1989",
)
def q(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns values from real steps only: Q-learning."""
    return td(setup, agent)


@register("forward", frame="previous", direction="forward", settings=_FORWARD, reference=_PAPER)
def forward(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns a forward model and re-evaluates a state from its imagined successors (Algorithm 3)."""
    model, how = _model_and_how(setup, agent, looks_forward=True)
    return model, ForwardPlanner(agent.plans_from_current, not agent.learn, how)


@register("backward", frame="current", direction="backward", settings=_BACKWARD, reference=_PAPER)
def backward(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns a backward model and corrects all states that lead to a state (Algorithms 2 and 4)."""
    model, how = _model_and_how(setup, agent, looks_forward=False)
    return model, BackwardPlanner(agent.plans_from_current, not agent.learn, how)


@register(
    "true-forward",
    frame="previous",
    direction="forward",
    true=True,
    learns_model=False,
    settings=("features", "horizon", "weights", "lam", "option", "sample", "top"),
    reference=_PAPER,
)
def true_forward(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Plans forward with the true transitions, rewards and terminations."""
    return forward(setup, agent)


@register(
    "true-backward",
    frame="current",
    direction="backward",
    true=True,
    learns_model=False,
    only="prediction",
    settings=("features", "horizon", "weights", "lam", "option", "sample", "top", "depth"),
    reference=_PAPER,
)
def true_backward(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Plans backward with the true backward model of the policy that is evaluated."""
    return backward(setup, agent)


@register("both", frame="each", direction="both", numbered=True, settings=_BOTH, reference=_PAPER)
def both(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Forward planning from s and backward planning from s' in each step, with counted models of both directions."""
    counted = agent.settings if agent.get("model") else (("model", "counts"), *agent.settings)
    ahead, behind = (dataclasses.replace(agent, kind=kind, settings=counted) for kind in ("forward", "backward"))
    (model, planner), (back, planner_back) = forward(setup, ahead), backward(setup, behind)
    return BothModels(model, back), BothPlanners(planner, planner_back)


def _model_and_how(setup: Setup, agent: Agent, looks_forward: bool) -> tuple[Any, Any]:
    """A model, and how it is planned with: one of features if the agent's is, else one with rows of states."""
    learned = agent.get("features") is not None and not agent.knows_the_truth
    if learned and agent.get("model", "expectation") in LINEAR:
        return LinearModels(setup, agent, looks_forward).build()
    if looks_forward:
        return forward_model(setup, agent), _successors(setup, agent)
    return backward_model(setup, agent), _predecessors(setup, agent)


def _successors(setup: Setup, agent: Agent) -> Any:
    """Expected updates over all or the most probable successors, or sampled ones."""
    samples = agent.get("sample")
    return AllSuccessors(agent.get("top", 0)) if samples is None else SampledSuccessors(samples, setup.stream(2))


def _predecessors(setup: Setup, agent: Agent) -> Any:
    """Corrections of all predecessors, of the most probable or of sampled ones, and of theirs in turn."""
    samples, top, depth = agent.get("sample"), agent.get("top", 0), agent.get("depth", 1)
    if samples is not None:
        return SampledPredecessors(samples, depth, setup.stream())
    if top or depth > 1:
        return Predecessors(top, depth, *(np.zeros(depth, dtype=np.int64) for _ in range(3)))
    if agent.get("features") is not None:
        return WeighedPredecessors(np.zeros(setup.n_states * setup.n_actions))
    return AllPredecessors()
