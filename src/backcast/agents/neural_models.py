"""Estimators that need a network: values of the setting `model` (`backcast.agents.neural_makers` makes the models)."""

from typing import Any, NoReturn

from backcast.agents import neural_makers
from backcast.agents.estimators import register_estimator
from backcast.agents.kinds import Agent
from backcast.agents.setup import Setup
from backcast.core.errors import InputError


@register_estimator("contrastive", network=True, by_network=neural_makers.contrastive, far_by_network=True)
def contrastive(setup: Setup, agent: Agent, forward: bool) -> tuple[Any, Any]:
    """Which of the pairs, or next states, remembered belongs to a state: a softmax over candidates (InfoNCE)."""
    _refuse(agent)


@register_estimator(
    "generative",
    network=True,
    by_network=neural_makers.generative,
    not_forward="it draws previous observations; use 'deterministic' or 'contrastive'",
    not_planner_aware="no gradient passes through its samples",
)
def generative(setup: Setup, agent: Agent, forward: bool) -> tuple[Any, Any]:
    """Looking backward, earlier observations drawn from a mixture (Gaussian for vectors, Bernoulli for images)."""
    _refuse(agent)


@register_estimator(
    "deterministic",
    network=True,
    by_network=neural_makers.deterministic,
    not_backward="the mean of several predecessors is not a state; use 'contrastive' or 'generative'",
)
def deterministic(setup: Setup, agent: Agent, forward: bool) -> tuple[Any, Any]:
    """Looking forward, the mean of the next observation, from which values are bootstrapped."""
    _refuse(agent)


def _refuse(agent: Agent) -> NoReturn:
    raise InputError(f"model: {agent.get('model')!r} is computed by a network; give network as well")
