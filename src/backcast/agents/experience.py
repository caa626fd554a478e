"""Baselines that plan from experience: Dyna with a model of it, replay with the experience itself."""

import numpy as np

from backcast.agents.combinations import LEARNING, about_memory
from backcast.agents.kinds import Agent, Built, register
from backcast.agents.settings import LINEAR_VALUES, NEURAL_VALUES
from backcast.agents.setup import Setup
from backcast.agents.tabular_models import one_step_forward
from backcast.models.counts import empty_counts
from backcast.models.forward import ForwardModel
from backcast.planners.dyna import Dyna, DynaPlus, no_draws, no_pairs
from backcast.planners.edges import no_edges
from backcast.planners.replay import Replay, empty_memory, empty_prioritized_memory

_SAMPLES, _BUFFER, _BONUS, _EXPONENT = 5, 10_000, 1e-4, 0.6
_FORGETS = 0.5  # default of Dyna-Q+; docs/agents.md has the measurements


@register(
    "dyna",
    family="Replay and Dyna",
    label="Dyna",
    plans=True,
    numbered=True,
    settings=("sample", "forget", "features"),
    defaults={"sample": _SAMPLES},
    reference="Sutton, Integrated Architectures for Learning, Planning, and Reacting, ICML 1990",
    averages=True,
)
def dyna(setup: Setup, agent: Agent) -> Built:
    """Dyna-Q: counts successors, and updates pairs drawn uniformly from those experienced."""
    pairs, samples = no_pairs(setup.n_states * setup.n_actions), agent.shared("sample", _SAMPLES)
    step_sizes = agent.step_sizes(setup)
    planner = Dyna(samples, pairs, setup.stream(), no_draws(samples), step_sizes, no_edges())
    return _counts(setup, agent), planner


@register(
    "dyna-plus",
    family="Replay and Dyna",
    label="Dyna+",
    only="control",
    counterpart="dyna",
    plans=True,
    numbered=True,
    settings=("sample", "bonus", "forget", "features"),
    defaults={"sample": _SAMPLES, "bonus": _BONUS, "forget": _FORGETS},
    reference="Sutton and Barto, Reinforcement Learning: An Introduction, 2018, section 8.3",
    averages=True,
)
def dyna_plus(setup: Setup, agent: Agent) -> Built:
    """Dyna-Q+: Dyna-Q whose counts forget, and that adds an imagined bonus for pairs not tried for long."""
    n_pairs = setup.n_states * setup.n_actions
    planner = DynaPlus(
        agent.shared("sample", _SAMPLES),
        no_pairs(n_pairs),
        np.zeros(n_pairs, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        agent.shared("bonus", _BONUS),
        setup.stream(),
        agent.step_sizes(setup),
        no_edges(),
    )
    return _counts(setup, agent, _FORGETS), planner


@register(
    "replay",
    family="Replay and Dyna",
    plans=True,
    learns_model=False,
    settings=("sample", "buffer", "features", *NEURAL_VALUES),
    defaults={"sample": _SAMPLES, "buffer": _BUFFER},
    rules=LEARNING,
    reference="Lin, Self-Improving Reactive Agents Based on Reinforcement Learning, Planning and Teaching, 1992",
    averages=True,
    replays=True,
)
def replay(setup: Setup, agent: Agent) -> Built:
    """Experience replay: learns again from remembered transitions, drawn uniformly."""
    return empty_memory(agent.shared("buffer", _BUFFER)), _replay(setup, agent)


@register(
    "prioritized-replay",
    family="Replay and Dyna",
    plans=True,
    learns_model=False,
    settings=("sample", "buffer", "exponent", *LINEAR_VALUES),
    defaults={"sample": _SAMPLES, "buffer": _BUFFER, "exponent": _EXPONENT},
    rules=(about_memory,),
    reference="Schaul, Quan, Antonoglou and Silver, Prioritized Experience Replay, ICLR 2016",
    averages=True,
    replays=True,
)
def prioritized_replay(setup: Setup, agent: Agent) -> Built:
    """Prioritized replay: learns again from remembered transitions, more often where the error was large."""
    memory = empty_prioritized_memory(agent.shared("buffer", _BUFFER), agent.shared("exponent", _EXPONENT))
    return memory, _replay(setup, agent)


def _counts(setup: Setup, agent: Agent, forgets: float = 0.0) -> ForwardModel:
    """A counted one-step forward model, which forgets at the agent's rate `forget`, by default `forgets`."""
    rows = empty_counts(setup.fan_out())
    return one_step_forward(setup, agent, rows, forgets=agent.shared("forget", forgets))


def _replay(setup: Setup, agent: Agent) -> Replay:
    return Replay(agent.shared("sample", _SAMPLES), setup.stream(), agent.step_sizes(setup), no_edges())
