"""Model-free baselines: SARSA, Monte Carlo returns, eligibility traces and expected traces."""

from typing import Any

from backcast.agents.combinations import about_memory
from backcast.agents.kinds import Agent, Built, register
from backcast.agents.settings import LINEAR_VALUES
from backcast.agents.setup import Setup
from backcast.core.errors import InputError
from backcast.learners.expected_trace import ExpectedTraceLearner, expected_traces
from backcast.learners.monte_carlo import monte_carlo as monte_carlo_learner
from backcast.learners.sarsa import ExpectedSarsa, Sarsa
from backcast.learners.traces import TraceLearner, no_traces
from backcast.learners.window import Window, empty_window
from backcast.models import NoModel
from backcast.planners import NoPlanner
from backcast.values.step_sizes import step_sizes_at_first

_LEARNS: dict[str, Any] = {"learns_model": False, "averages": True, "rules": (about_memory,)}
_LAM = 0.9
_MOST_PLACES = 20_000_000  # entries of expected traces, 24 bytes each


@register(
    "sarsa",
    family="TD and SARSA",
    label="SARSA",
    only="control",
    counterpart="td",
    settings=("horizon", *LINEAR_VALUES),
    defaults={"horizon": 1},
    reference="Rummery and Niranjan, On-Line Q-Learning Using Connectionist Systems, 1994; over n steps: Sutton and"
    " Barto, Reinforcement Learning, 2nd ed. 2018, section 7.2",
    spans=False,
    **_LEARNS,
)
def sarsa(setup: Setup, agent: Agent) -> Built:
    """SARSA or n-step SARSA: learns the values of the behaviour policy from the next action taken."""
    return NoModel(), NoPlanner(), Sarsa(_window(setup, agent))


@register(
    "expected-sarsa",
    family="TD and SARSA",
    label="expected SARSA",
    only="control",
    counterpart="td",
    settings=("horizon", *LINEAR_VALUES),
    defaults={"horizon": 1},
    reference="van Seijen, van Hasselt, Whiteson and Wiering, A Theoretical and Empirical Analysis of Expected Sarsa,"
    " ADPRL 2009",
    spans=False,
    **_LEARNS,
)
def expected_sarsa(setup: Setup, agent: Agent) -> Built:
    """Expected SARSA, also over n steps: learns the values of the behaviour policy, averaging over next actions."""
    return NoModel(), NoPlanner(), ExpectedSarsa(_window(setup, agent))


@register(
    "monte-carlo",
    family="Returns and traces",
    label="Monte Carlo",
    settings=LINEAR_VALUES,
    reference="Sutton and Barto, Reinforcement Learning, 2nd ed. 2018, chapter 5; every visit:"
    " Singh and Sutton, Reinforcement Learning with Replacing Eligibility Traces, Machine Learning 1996",
    **_LEARNS,
)
def monte_carlo(setup: Setup, agent: Agent) -> Built:
    """Every-visit Monte Carlo: learns values from the returns of whole episodes."""
    return NoModel(), NoPlanner(), monte_carlo_learner(setup.max_steps, agent.step_sizes(setup))


@register(
    "td-lambda",
    family="Returns and traces",
    label="TD(λ)",
    only="prediction",
    counterpart="q-lambda",
    spans=False,
    settings=("lam", "traces", *LINEAR_VALUES),
    defaults={"lam": _LAM},
    reference="Sutton, Learning to Predict by the Methods of Temporal Differences, Machine Learning 1988",
    **_LEARNS,
)
def td_lambda(setup: Setup, agent: Agent) -> Built:
    """TD(λ): learns values from real steps, with eligibility traces."""
    traces = no_traces(1, setup.n_states * setup.n_actions)
    replacing = agent.shared("traces") == "replacing"
    return NoModel(), NoPlanner(), TraceLearner(traces, _lam(agent), replacing, agent.step_sizes(setup))


@register(
    "q-lambda",
    family="Returns and traces",
    label="Q(λ)",
    only="control",
    counterpart="td-lambda",
    spans=False,
    settings=("lam", "traces", *LINEAR_VALUES),
    defaults={"lam": _LAM},
    reference="Watkins, Learning from Delayed Rewards, 1989",
    **_LEARNS,
)
def q_lambda(setup: Setup, agent: Agent) -> Built:
    """Watkins's Q(λ): learns values from real steps, with traces that are cut by exploration."""
    return td_lambda(setup, agent)


@register(
    "expected-trace",
    family="Returns and traces",
    numbered=True,
    spans=False,
    connects_pairs=True,
    settings=("lam", "features"),
    defaults={"lam": _LAM},
    reference="van Hasselt, Madjiheurem, Hessel, Silver, Barreto and Borsa, Expected Eligibility Traces, AAAI 2021",
    averages=True,
)
def expected_trace(setup: Setup, agent: Agent) -> Built:
    """Expected eligibility traces, ET(λ): learns which pairs lead to a pair and gives credit to all of them."""
    pairs = setup.n_states * setup.n_actions
    if pairs**2 > _MOST_PLACES:
        raise InputError(
            f"agent: {agent.kind!r} keeps a trace between any two of the state-action pairs, here {pairs:,} × {pairs:,}"
            f" of them; at most {_MOST_PLACES:,} are allowed"
        )
    model = expected_traces(pairs, _lam(agent), step_sizes_at_first(agent.averages, pairs))
    return model, NoPlanner(), ExpectedTraceLearner(model, agent.step_sizes(setup))


def _window(setup: Setup, agent: Agent) -> Window:
    """A window with room for the steps of an n-step method."""
    return empty_window(agent.get("horizon", 1), setup.discount, agent.step_sizes(setup))


def _lam(agent: Agent) -> float:
    lam = agent.shared("lam", _LAM)
    if isinstance(lam, tuple):
        raise InputError(
            f"lam: one for each state given, but {agent.kind!r} has traces that fade everywhere alike;"
            " expected a number in [0, 1]"
        )
    return float(lam)
