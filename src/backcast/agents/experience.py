"""Neighbours that plan from what was experienced: Dyna, by a model of it, and replay, by the experience itself."""

from dataclasses import replace
from typing import Any

import numpy as np

from backcast.agents.kinds import Agent, Setup, register
from backcast.agents.settings import LINEAR_VALUES
from backcast.agents.tabular_models import forward_model
from backcast.planners.dyna import Dyna, DynaPlus, no_pairs
from backcast.planners.replay import Replay, empty_memory, empty_prioritized_memory

_SAMPLES, _BUFFER, _BONUS, _EXPONENT = 5, 10_000, 1e-4, 0.6
_FORGETS = 0.5  # of Dyna-Q+: docs/agents.md has what was measured


@register(
    "dyna",
    plans=True,
    numbered=True,
    settings=("sample", "forget", "features"),
    reference="Sutton, Integrated Architectures for Learning, Planning, and Reacting, ICML 1990",
)
def dyna(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Dyna-Q: counts what follows, and updates pairs drawn uniformly from those experienced."""
    pairs = no_pairs(setup.n_states * setup.n_actions)
    return _counts(setup, agent), Dyna(agent.get("sample", _SAMPLES), pairs, setup.stream())


@register(
    "dyna-plus",
    only="control",
    plans=True,
    numbered=True,
    settings=("sample", "bonus", "forget", "features"),
    reference="Sutton and Barto, Reinforcement Learning: An Introduction, 2018, section 8.3",
)
def dyna_plus(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Dyna-Q+: Dyna-Q whose counts forget, and that imagines a bonus for what was not tried for long."""
    n_pairs = setup.n_states * setup.n_actions
    planner = DynaPlus(
        agent.get("sample", _SAMPLES),
        no_pairs(n_pairs),
        np.zeros(n_pairs, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        agent.get("bonus", _BONUS),
        setup.stream(),
    )
    return _counts(setup, agent, _FORGETS), planner


@register(
    "replay",
    plans=True,
    learns_model=False,
    settings=("sample", "buffer", *LINEAR_VALUES),
    reference="Lin, Self-Improving Reactive Agents Based on Reinforcement Learning, Planning and Teaching, 1992",
)
def replay(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Remembers transitions and learns again from some of them, drawn uniformly."""
    return empty_memory(agent.get("buffer", _BUFFER)), _replay(setup, agent)


@register(
    "prioritized-replay",
    plans=True,
    learns_model=False,
    settings=("sample", "buffer", "exponent", *LINEAR_VALUES),
    reference="Schaul, Quan, Antonoglou and Silver, Prioritized Experience Replay, ICLR 2016",
)
def prioritized_replay(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Remembers transitions and learns again from some of them, likelier where the error was large."""
    memory = empty_prioritized_memory(agent.get("buffer", _BUFFER), agent.get("exponent", _EXPONENT))
    return memory, _replay(setup, agent)


def _counts(setup: Setup, agent: Agent, forgets: float = 0.0) -> Any:
    """The one-step forward model by counts, which forget at the rate of the agent's `forget`, or by default this."""
    settings = ("model", "counts"), ("forget", agent.get("forget", forgets))
    return forward_model(setup, replace(agent, settings=settings))


def _replay(setup: Setup, agent: Agent) -> Replay:
    return Replay(agent.get("sample", _SAMPLES), setup.stream())
