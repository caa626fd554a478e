"""The model-free neighbours of the paper's agents: returns, traces, and the traces that are expected."""

from typing import Any

from backcast.agents.kinds import Agent, Setup, register
from backcast.agents.settings import LINEAR_VALUES
from backcast.core.errors import InputError
from backcast.learners.expected_trace import ExpectedTraceLearner, expected_traces
from backcast.learners.monte_carlo import monte_carlo as monte_carlo_learner
from backcast.learners.traces import TraceLearner, no_traces
from backcast.models import NoModel
from backcast.planners import NoPlanner

_LAM = 0.9
_MOST_PLACES = 20_000_000  # of expected traces, 24 bytes each


@register(
    "monte-carlo",
    learns_model=False,
    settings=LINEAR_VALUES,
    reference="Sutton and Barto, Reinforcement Learning, 2nd ed. 2018, chapter 5; every visit:"
    " Singh and Sutton, Reinforcement Learning with Replacing Eligibility Traces, Machine Learning 1996",
)
def monte_carlo(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns values from the returns of whole episodes: every-visit Monte Carlo."""
    return NoModel(), NoPlanner(), monte_carlo_learner(setup.max_steps)


@register(
    "td-lambda",
    only="prediction",
    counterpart="q-lambda",
    learns_model=False,
    settings=("lam", "traces", *LINEAR_VALUES),
    reference="Sutton, Learning to Predict by the Methods of Temporal Differences, Machine Learning 1988",
)
def td_lambda(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns values from real steps, with eligibility traces: TD(λ)."""
    traces = no_traces(1, setup.n_states * setup.n_actions)
    return NoModel(), NoPlanner(), TraceLearner(traces, _lam(agent), agent.get("traces") == "replacing")


@register(
    "q-lambda",
    only="control",
    counterpart="td-lambda",
    learns_model=False,
    settings=("lam", "traces", *LINEAR_VALUES),
    reference="Watkins, Learning from Delayed Rewards, 1989",
)
def q_lambda(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns values from real steps, with traces that are cut by exploration: Watkins's Q(λ)."""
    return td_lambda(setup, agent)


@register(
    "expected-trace",
    numbered=True,
    settings=("lam", "features"),
    reference="van Hasselt, Madjiheurem, Hessel, Silver, Barreto and Borsa, Expected Eligibility Traces, AAAI 2021",
)
def expected_trace(setup: Setup, agent: Agent) -> tuple[Any, ...]:
    """Learns which pairs lead to a pair and gives all of them credit: expected eligibility traces, ET(λ)."""
    pairs = setup.n_states * setup.n_actions
    if pairs**2 > _MOST_PLACES:
        raise InputError(
            f"agent: {agent.kind!r} keeps a trace between any two of the state-action pairs, here {pairs:,} × {pairs:,}"
            f" of them; at most {_MOST_PLACES:,} are allowed"
        )
    model = expected_traces(pairs, _lam(agent))
    return model, NoPlanner(), ExpectedTraceLearner(model)


def _lam(agent: Agent) -> float:
    lam = agent.get("lam", _LAM)
    if isinstance(lam, tuple):
        raise InputError(
            f"lam: one for each state given, but {agent.kind!r} has traces that fade everywhere alike;"
            " expected a number in [0, 1]"
        )
    return float(lam)
