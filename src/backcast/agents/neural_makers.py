"""Functions that make models computed by a network: the argument `by_network` of estimators.

Each takes the sizes of the environment, the agent and whether to look forward. It returns a model and a function that
makes its planner. JAX is imported only when one of them is called.
"""

import functools
from typing import TYPE_CHECKING, cast

from backcast.agents.kinds import Agent
from backcast.core.errors import InputError

if TYPE_CHECKING:
    from backcast.agents.neural import ModelAtWork, Planned, Told
    from backcast.models.neural.contract import NeuralCorrectionModel
    from backcast.planners.neural import NeuralPlanner
    from backcast.values.neural import NeuralValues

SAMPLES = 4  # the default number of pairs that a generative model draws for each state


def contrastive(told: "Told", agent: Agent, forward: bool) -> "Planned":
    """A softmax over remembered candidates; looking backward, over one or several steps."""
    from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward, ContrastiveWays

    n_actions, steps = told.spec.n_actions, agent.shared("horizon", 1)
    if forward:
        return ContrastiveForward(n_actions), _with_outcomes
    one_step = ContrastiveBackward(n_actions)
    return one_step if steps == 1 else ContrastiveWays(one_step, steps), _with_outcomes


def softmax(told: "Told", agent: Agent, forward: bool) -> "Planned":
    """A softmax over numbered states or pairs."""
    from backcast.models.neural.softmax import SoftmaxBackward, SoftmaxForward

    spec = told.spec
    if not spec.n_states:
        raise InputError("model: 'softmax' is over numbered states, and here they have none; use 'contrastive'")
    return (SoftmaxForward if forward else SoftmaxBackward)(spec.n_states, spec.n_actions), _with_outcomes


def generative(told: "Told", agent: Agent, forward: bool) -> "Planned":
    """A mixture from which earlier observations are drawn."""
    from backcast.models.neural.generative import GenerativeBackward

    spec, samples = told.spec, agent.get("sample", SAMPLES)
    model = GenerativeBackward(spec.shape, spec.n_actions, agent.get("components"), samples)
    return model, functools.partial(_with_outcomes, drawn=True)


def deterministic(told: "Told", agent: Agent, forward: bool) -> "Planned":
    """The mean of the next observation."""
    from backcast.models.neural.deterministic import DeterministicForward

    return DeterministicForward(told.spec.shape, told.spec.n_actions), _with_outcomes


def abstract(told: "Told", agent: Agent, forward: bool) -> "Planned":
    """The corrections themselves."""
    from backcast.models.neural.abstraction import NeuralCorrections

    return NeuralCorrections(told.n_parameters, told.spec.n_actions, forward), _with_corrections


def _with_outcomes(
    agent: Agent, values: "NeuralValues", at_work: "ModelAtWork", drawn: bool = False
) -> "NeuralPlanner":
    """Plan in expectation or with `sample` predecessors; if `drawn`, with all samples that the model draws."""
    from backcast.agents.neural import plan_with_outcomes

    return plan_with_outcomes(agent, values, at_work, 0 if drawn else agent.get("sample") or 0)


def _with_corrections(agent: Agent, values: "NeuralValues", at_work: "ModelAtWork") -> "NeuralPlanner":
    """Plan by the learned corrections, from the same states as other models."""
    from backcast.agents.neural import plan_with_outcomes
    from backcast.planners.neural import NeuralCorrector

    usual = plan_with_outcomes(agent, values, at_work)
    return NeuralCorrector(values, at_work.function, cast("NeuralCorrectionModel", at_work.model), usual)
