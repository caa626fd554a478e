"""The kinds of the paper: learning alone, and planning forward or backward with a learned or a true model."""

import dataclasses
from typing import Any, cast

from backcast.agents.combinations import LEARNING, PLANNING
from backcast.agents.estimators import ESTIMATORS, Estimated, Estimator
from backcast.agents.kinds import Agent, Built, register
from backcast.agents.linear_models import BUFFER, LEARN_BY
from backcast.agents.settings import NEURAL_MODELS, NEURAL_VALUES, usual_model
from backcast.agents.setup import Setup
from backcast.agents.tabular_models import lambda_by_td
from backcast.core.errors import InputError, nearest
from backcast.core.setting_types import Depends
from backcast.learners import NStep
from backcast.learners.window import empty_window
from backcast.models import BothModels, NoModel
from backcast.models.contract import BackwardRows, ForwardRows, ModelPart
from backcast.planners import BackwardPlanner, BothPlanners, ForwardPlanner, NoPlanner
from backcast.planners.backward import Correction
from backcast.planners.forward import Reevaluation

_SPANS = ("horizon", "weights", "lam", "lam_by", "option")
_LINEAR = ("features", "model_features", "learn_by", "ridge", "memory")
_NEURAL = (*NEURAL_VALUES, *NEURAL_MODELS)
_FORWARD = (*_LINEAR, "model", *_SPANS, "sample", "top", "forget", *_NEURAL)
_BACKWARD = (
    *(*_LINEAR, "model", *_SPANS, "conditioned", "sample", "top", "depth", "forget", "importance", "buffer"),
    *_NEURAL,
)
_BOTH = ("model", "sample", "top", "forget", "features", *_NEURAL)
_MODEL_OF_BOTH = Depends(
    lambda given: "counts" if given.get("network") is None else usual_model(given),
    "counts; contrastive with a network",
    "counts",
)
_PAPER = "Chelu, Precup and van Hasselt, Forethought and Hindsight in Credit Assignment, NeurIPS 2020"


@register(
    "td",
    family="TD and SARSA",
    label="TD",
    only="prediction",
    counterpart="q",
    learns_model=False,
    settings=("horizon", "features", *NEURAL_VALUES),
    defaults={"horizon": 1},
    rules=LEARNING,
    reference="Sutton, Learning to Predict by the Methods of Temporal Differences, 1988; over n steps: Sutton and"
    " Barto, Reinforcement Learning, 2nd ed. 2018, section 7.1",
    spans=False,
    averages=True,
)
def td(setup: Setup, agent: Agent) -> Built:
    """Learns values from real steps only: TD(0), or n-step TD."""
    n = agent.shared("horizon", 1)
    if n == 1:
        return NoModel(), NoPlanner()
    return NoModel(), NoPlanner(), NStep(empty_window(n, setup.discount, agent.step_sizes(setup)))


@register(
    "q",
    family="TD and SARSA",
    label="Q-learning",
    only="control",
    counterpart="td",
    learns_model=False,
    settings=("horizon", "features", *NEURAL_VALUES),
    defaults={"horizon": 1},
    rules=LEARNING,
    reference="Watkins, Learning from Delayed Rewards, 1989",
    spans=False,
    averages=True,
)
def q(setup: Setup, agent: Agent) -> Built:
    """Learns values from real steps only: Q-learning, or over n steps, cut by exploration."""
    return td(setup, agent)


@register(
    "forward",
    family="Forward planning",
    frame="previous",
    direction="forward",
    settings=_FORWARD,
    defaults={"learn_by": LEARN_BY},
    rules=PLANNING,
    averages=True,
    reference=_PAPER,
)
def forward(setup: Setup, agent: Agent) -> tuple[ModelPart, ForwardPlanner]:
    """Learns a forward model and re-evaluates a state from its imagined successors (Algorithm 3)."""
    model, how = _model_and_how(setup, agent, looks_forward=True)
    return model, ForwardPlanner(agent.plans_from_current, not agent.learn, cast(Reevaluation[Any, Any], how))


@register(
    "backward",
    family="Backward planning",
    frame="current",
    direction="backward",
    settings=_BACKWARD,
    defaults={"learn_by": LEARN_BY, "buffer": BUFFER},
    rules=PLANNING,
    averages=True,
    reference=_PAPER,
)
def backward(setup: Setup, agent: Agent) -> tuple[ModelPart, BackwardPlanner]:
    """Learns a backward model and corrects all states that lead to a state (Algorithms 2 and 4)."""
    model, how = _model_and_how(setup, agent, looks_forward=False)
    return model, BackwardPlanner(agent.plans_from_current, not agent.learn, cast(Correction[Any, Any], how))


@register(
    "true-forward",
    family="Forward planning",
    frame="previous",
    direction="forward",
    true=True,
    learns_model=False,
    settings=("features", "horizon", "weights", "lam", "option", "sample", "top"),
    rules=PLANNING,
    reference=_PAPER,
    averages=True,
)
def true_forward(setup: Setup, agent: Agent) -> Built:
    """Plans forward with the true transitions, rewards and terminations."""
    return forward(setup, agent)


@register(
    "true-backward",
    family="Backward planning",
    frame="current",
    direction="backward",
    true=True,
    learns_model=False,
    only="prediction",
    counterpart="backward",
    settings=("features", "horizon", "weights", "lam", "option", "sample", "top", "depth"),
    rules=PLANNING,
    reference=_PAPER,
    averages=True,
)
def true_backward(setup: Setup, agent: Agent) -> Built:
    """Plans backward with the true backward model of the policy that is evaluated."""
    return backward(setup, agent)


@register(
    "both",
    family="Backward planning",
    label="forward and backward",
    frame="each",
    direction="both",
    numbered=True,
    settings=_BOTH,
    defaults={"model": _MODEL_OF_BOTH},
    rules=PLANNING,
    averages=True,
    reference=_PAPER,
)
def both(setup: Setup, agent: Agent) -> Built:
    """Plans forward from s and backward from s' in each step, with counted models of both directions."""
    others = (pair for pair in agent.settings if pair[0] != "model")
    counted = (("model", agent.get("model", "counts")), *others)
    ahead, behind = (dataclasses.replace(agent, kind=kind, settings=counted) for kind in ("forward", "backward"))
    (model, planner), (back, planner_back) = forward(setup, ahead), backward(setup, behind)
    return BothModels(cast(ForwardRows, model), cast(BackwardRows, back)), BothPlanners(planner, planner_back)


def _model_and_how(setup: Setup, agent: Agent, looks_forward: bool) -> Estimated:
    """The model chosen by the agent's setting `model`, and how to plan with it."""
    if agent.shared("lam_by") == "td":
        return lambda_by_td(setup, agent, looks_forward)
    estimator = estimator_of(agent)
    if not estimator.linear:
        setup.refuse_observations(agent.name)
    model, how = estimator.build(setup, agent, looks_forward)
    rows = getattr(model, "rows", None)
    if rows is not None and bool(rows.width) != estimator.leaves:
        verb, flag = ("leaves something", True) if rows.width else ("leaves nothing", False)
        raise InputError(f"model: {estimator.name!r} {verb} to outcomes never observed; register it with leaves={flag}")
    return model, how


def estimator_of(agent: Agent) -> Estimator:
    """The estimator of an agent's model."""
    name = "true" if agent.knows_the_truth else agent.shared("model", usual_model(dict(agent.settings)))
    if name not in ESTIMATORS:
        raise InputError(f"model: {name!r} given, expected one of {', '.join(ESTIMATORS)}{nearest(name, ESTIMATORS)}")
    return ESTIMATORS[name]
