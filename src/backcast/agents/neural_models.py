"""The models that only a network computes: what the setting `model` calls them. `backcast.agents.neural` makes them."""

from typing import Any, NoReturn

from backcast.agents.estimators import register_estimator
from backcast.agents.kinds import Agent, Setup
from backcast.core.errors import InputError


@register_estimator("contrastive", network=True)
def contrastive(setup: Setup, agent: Agent, forward: bool) -> tuple[Any, Any]:
    """Which of the pairs, or next states, remembered belongs to a state: a softmax over candidates (InfoNCE)."""
    _refuse(agent)


def _refuse(agent: Agent) -> NoReturn:
    raise InputError(f"model: {agent.get('model')!r} is computed by a network; give network as well")
