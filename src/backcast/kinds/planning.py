"""The kinds of the paper: learning alone, and planning forward or backward with a learned or a true model."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from backcast.arrays import Indices, Vector
from backcast.errors import InputError
from backcast.kinds.registry import Setup, register
from backcast.models import (
    BackwardModel,
    BothModels,
    ExtendedForward,
    ExtendedModel,
    ForwardModel,
    LambdaModel,
    NoModel,
)
from backcast.models.counts import empty_counts
from backcast.models.lambda_td import empty_mixtures
from backcast.models.past import GREEDY, NOBODY, Stop, empty_past
from backcast.models.reach import room_for
from backcast.models.rows import empty_rows
from backcast.models.truth import backward_rows, extended_rows, forward_rows
from backcast.options import option_chances, per_state
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

if TYPE_CHECKING:
    from backcast.agents import Agent

_SPANS = ("horizon", "weights", "lam", "lam_by", "option")
_FORWARD = ("model", *_SPANS, "sample", "top", "forget")
_BACKWARD = ("model", *_SPANS, "conditioned", "sample", "top", "depth", "forget", "importance")
_LONGEST = 2048  # steps that a λ-model looks back at most
_PAPER = "Chelu, Precup and van Hasselt, Forethought and Hindsight in Credit Assignment, NeurIPS 2020"


@register("td", only="prediction", reference="Sutton, Learning to Predict by the Methods of Temporal Differences, 1988")
def td(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Learns values from real steps only: TD(0)."""
    return NoModel(), NoPlanner()


@register("q", only="control", reference="Watkins, Learning from Delayed Rewards, 1989")
def q(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Learns values from real steps only: Q-learning."""
    return td(setup, agent)


@register("forward", frame="previous", settings=_FORWARD, reference=_PAPER)
def forward(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Learns a forward model and re-evaluates a state from its imagined successors (Algorithm 3)."""
    return forward_model(setup, agent), forward_planner(setup, agent)


@register("backward", frame="current", settings=_BACKWARD, reference=_PAPER)
def backward(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Learns a backward model and corrects all states that lead to a state (Algorithms 2 and 4)."""
    return backward_model(setup, agent), backward_planner(setup, agent)


@register(
    "true-forward",
    frame="previous",
    settings=("horizon", "weights", "lam", "option", "sample", "top"),
    reference=_PAPER,
)
def true_forward(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Plans forward with the true transitions, rewards and terminations."""
    return forward(setup, agent)


@register(
    "true-backward",
    frame="current",
    only="prediction",
    settings=("horizon", "weights", "lam", "option", "sample", "top", "depth"),
    reference=_PAPER,
)
def true_backward(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Plans backward with the true backward model of the policy that is evaluated."""
    return backward(setup, agent)


@register("both", frame="each", settings=("model", "sample", "top", "forget"), reference=_PAPER)
def both(setup: Setup, agent: "Agent") -> tuple[Any, ...]:
    """Forward planning from s and backward planning from s' in each step, with counted models of both directions."""
    counted = agent.settings if agent.get("model") else (("model", "counts"), *agent.settings)
    ahead, behind = (dataclasses.replace(agent, kind=kind, settings=counted) for kind in ("forward", "backward"))
    (model, planner), (back, planner_back) = forward(setup, ahead), backward(setup, behind)
    return BothModels(model, back), BothPlanners(planner, planner_back)


def forward_planner(setup: Setup, agent: "Agent") -> ForwardPlanner:
    """Expected updates over all or the most probable successors, or sampled ones."""
    samples = agent.get("sample")
    how: Any = AllSuccessors(agent.get("top", 0)) if samples is None else SampledSuccessors(samples, setup.stream(2))
    return ForwardPlanner(agent.plans_from_current, not agent.learn, how)


def backward_planner(setup: Setup, agent: "Agent") -> BackwardPlanner:
    """Corrections of all predecessors, of the most probable or of sampled ones, and of theirs in turn."""
    samples, top, depth = agent.get("sample"), agent.get("top", 0), agent.get("depth", 1)
    how: Any = AllPredecessors()
    if samples is not None:
        how = SampledPredecessors(samples, depth, setup.stream())
    elif top or depth > 1:
        how = Predecessors(top, depth, *(np.zeros(depth, dtype=np.int64) for _ in range(3)))
    return BackwardPlanner(agent.plans_from_current, not agent.learn, agent.looks_far, how)


def forward_model(setup: Setup, agent: "Agent") -> Any:
    """One step: softmax, counts or the truth; several steps: learned along the way, or the truth."""
    n, outcomes = setup.n_states, setup.n_states * setup.n_actions
    if agent.looks_far:
        if agent.get("lam_by") == "td":
            if not setup.is_prediction:
                raise InputError("lam_by: looking forward, 'td' needs a prediction world: rows of states, not of pairs")
            return _lambda_by_td(setup, agent, forward=True)
        ways = _extended(setup, agent, forward=True)
        return ExtendedForward(ways, ways.rows, np.zeros(n), np.zeros(2))
    by_state, goes_on = not setup.is_prediction, np.ones(n)
    kind = _kind_of_model(agent)
    if kind == "true":
        assert setup.world is not None
        rows: Any = forward_rows(setup.world)
        goes_on, by_state = np.where(setup.world.mdp.terminal, -1.0, 1.0), False
    elif kind == "counts":
        rows, by_state = empty_counts(setup.fan_out()), False
    else:
        rows = empty_rows(setup.fan_out(), n)
    if kind != "true" and not setup.is_prediction:
        goes_on = np.zeros(n)
    assert len(rows.used) == outcomes
    learns, control = kind != "true", not setup.is_prediction
    forget = agent.get("forget", 0.0)
    return ForwardModel(
        rows,
        np.zeros(n),
        goes_on,
        np.zeros(n),
        np.zeros(2),
        setup.n_actions,
        not by_state,
        learns and control,
        learns,
        forget,
    )


def backward_model(setup: Setup, agent: "Agent") -> Any:
    """One step of the paper's softmax or of the truth; else what is learned along the way."""
    if agent.get("lam_by") == "td":
        return _lambda_by_td(setup, agent, forward=False)
    kind = _kind_of_model(agent)
    if agent.looks_far or agent.get("conditioned") or kind == "counts":
        return _extended(setup, agent, forward=False)
    if kind == "true":
        assert setup.world is not None
        return BackwardModel(
            backward_rows(setup.world), np.zeros(setup.n_states), setup.n_actions, True, False, 0.0, NOBODY
        )
    rows = empty_rows(setup.fan_in(), setup.n_states * setup.n_actions)
    return BackwardModel(
        rows,
        np.zeros(setup.n_states),
        setup.n_actions,
        setup.is_prediction,
        True,
        agent.get("forget", 0.0),
        _follow(setup, agent),
    )


def _kind_of_model(agent: "Agent") -> str:
    if agent.knows_the_truth:
        return "true"
    ends = getattr(agent.get("option"), "termination", None) is not None
    return str(agent.get("model", "counts" if agent.get("conditioned") or ends else "softmax"))


def _lambda_by_td(setup: Setup, agent: "Agent", forward: bool) -> LambdaModel:
    width = setup.n_states * (1 if forward else setup.n_actions)
    room_for(setup, agent, forward)
    rows = empty_mixtures(setup.n_states, width)
    lam = per_state("lam", agent.get("lam"), setup.n_states)
    return LambdaModel(rows, lam, np.full(1, -1), setup.n_actions, forward, NOBODY, NOBODY)


def _extended(setup: Setup, agent: "Agent", forward: bool) -> ExtendedModel:
    """A model that is learned along the way: counts, or softmax rows over several steps; or the truth."""
    n, pairs = setup.n_states, setup.n_states * setup.n_actions
    kind, conditioned = _kind_of_model(agent), bool(agent.get("conditioned"))
    room, restarts = room_for(setup, agent, forward)
    if kind == "true":
        rows: Any = extended_rows(setup.world, _span(agent), forward)
    elif kind == "counts":
        rows = empty_counts(_split(room, n, setup.n_actions) if conditioned else room)
    else:
        rows = empty_rows(room, n if forward else pairs)
    option = agent.get("option")
    ends = None if option is None else option.termination
    if forward and option is not None and ends is None:
        raise InputError("option.termination: none given, but looking forward an option needs an end to look to")
    return ExtendedModel(
        rows,
        empty_counts(restarts),
        np.zeros(pairs),
        np.zeros(n),
        np.ones(n) if ends is None else per_state("option.termination", ends, n),
        empty_past(_length(agent)),
        _stop(setup, agent),
        _usual_discount(setup, agent),
        _follow(setup, agent),
        agent.get("forget", 0.0),
        setup.n_actions,
        conditioned,
        forward,
        forward and option is not None,
        kind != "true",
    )


def _split(room: Indices, n_states: int, n_actions: int) -> Indices:
    """Room for rows (s, ã) over s̃, given that for rows s over (s̃, ã)."""
    return np.repeat(np.minimum(room, n_states), n_actions)


def _span(agent: "Agent") -> tuple[str, Any]:
    for name in ("weights", "lam", "option"):
        if agent.get(name) is not None:
            return name, agent.get(name)
    return "horizon", agent.get("horizon", 1)


def _length(agent: "Agent") -> int:
    name, value = _span(agent)
    return {"horizon": value, "weights": len(value) if name == "weights" else 0}.get(name, _LONGEST)


def _usual_discount(setup: Setup, agent: "Agent") -> float:
    """What a softmax takes for the discount between pairs never observed: γⁿ in the mean over n, if n has a mean."""
    name, value = _span(agent)
    gamma = setup.discount
    if name == "lam" and np.ndim(value) == 0:
        return float(gamma * (1 - value) / (1 - value * gamma))
    weights = {"horizon": lambda: np.arange(1, value + 1) == value, "weights": lambda: value}
    each = np.asarray(weights.get(name, lambda: (1.0,))(), dtype=np.float64)
    return float(each @ gamma ** np.arange(1, len(each) + 1))


def _stop(setup: Setup, agent: "Agent") -> Stop:
    name, value = _span(agent)
    stop = go_on = np.zeros(0)
    cumulative = np.ones(1)
    if name == "horizon":
        cumulative = (np.arange(value) == value - 1).astype(np.float64)
    elif name == "weights":
        cumulative = np.cumsum(value)
    elif name == "lam":
        go_on = per_state("lam", value, setup.n_states)
        stop = 1.0 - go_on
    else:
        stop, go_on = option_chances(value, setup.n_states)
    return Stop(cumulative, stop, go_on, setup.stream(1))


def _follow(setup: Setup, agent: "Agent") -> Vector:
    """The policy that steps are weighted towards: an option's, the greedy one, or nobody's."""
    option = agent.get("option")
    policy = None if option is None else option.policy
    if policy is None:
        if agent.get("importance") and setup.is_prediction:
            raise InputError("importance: in a prediction world there is one policy, and steps are taken by it")
        return GREEDY if agent.get("importance") else NOBODY
    probabilities = np.asarray(policy, dtype=np.float64)
    if setup.is_prediction:
        raise InputError("option.policy: in a prediction world the policy is that of the world; leave it out")
    if probabilities.shape != (setup.n_states, setup.n_actions):
        raise InputError(
            f"option.policy: shape {probabilities.shape} given, expected ({setup.n_states}, {setup.n_actions})"
        )
    return probabilities.ravel()
