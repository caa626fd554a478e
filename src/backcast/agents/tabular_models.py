"""The models of forward and backward planning, made as an agent's settings say."""

from typing import Any, NamedTuple

import numpy as np

from backcast.agents.kinds import Agent, Setup
from backcast.agents.room import room_for
from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError
from backcast.models import BackwardModel, ExtendedForward, ExtendedModel, ForwardModel, LambdaModel
from backcast.models.counts import CountRows, empty_counts
from backcast.models.lambda_td import empty_mixtures
from backcast.models.options import option_chances, per_state
from backcast.models.past import GREEDY, NOBODY, Stop, empty_past
from backcast.models.rows import empty_rows
from backcast.models.truth import backward_rows, extended_rows, forward_rows, restart_rows

_LONGEST = 2048  # steps that a model looks back at most where states decide


def forward_model(setup: Setup, agent: Agent) -> Any:
    """Over one step softmax, counts or the truth; over several what is learned along the way, or the truth."""
    n, control, how = setup.n_states, not setup.is_prediction, _how(agent)
    if agent.get("lam_by") == "td":
        if control:
            raise InputError("lam_by: looking forward, 'td' needs a prediction world: rows of states, not of pairs")
        return _lambda_by_td(setup, agent, forward=True)
    if agent.looks_far:
        ways = _along_the_way(setup, agent, forward=True)
        return ExtendedForward(ways, ways.rows, np.zeros(n), np.zeros(2))
    goes_on = np.zeros(n) if control else np.ones(n)
    if how == "true":
        assert setup.world is not None
        rows: Any = forward_rows(setup.world)
        goes_on = np.where(setup.world.mdp.terminal, -1.0, 1.0)
    else:
        rows = empty_counts(setup.fan_out()) if how == "counts" else empty_rows(setup.fan_out(), n)
    return ForwardModel(
        rows=rows,
        state_reward=np.zeros(n),
        goes_on=goes_on,
        ahead=np.zeros(n),
        sum_ahead=np.zeros(2),
        n_actions=setup.n_actions,
        by_pair=how != "softmax" or not control,
        learns_ends=how != "true" and control,
        learns=how != "true",
        forgets=agent.get("forget", 0.0),
    )


def backward_model(setup: Setup, agent: Agent) -> Any:
    """One step of the paper's softmax or of the truth; else what is learned along the way."""
    if agent.get("lam_by") == "td":
        return _lambda_by_td(setup, agent, forward=False)
    how = _how(agent)
    if agent.looks_far or how == "counts":
        return _along_the_way(setup, agent, forward=False)
    if how == "true":
        assert setup.world is not None
        rows = backward_rows(setup.world)
    else:
        rows = empty_rows(setup.fan_in(), setup.n_states * setup.n_actions)
    return BackwardModel(
        rows=rows,
        state_reward=np.zeros(setup.n_states),
        n_actions=setup.n_actions,
        by_pair=setup.is_prediction,
        learns=how != "true",
        forgets=agent.get("forget", 0.0),
        target_policy=_target_policy(setup, agent),
        restarts=_restarts(setup, agent, np.zeros(setup.n_states, dtype=np.int64)),
    )


def _how(agent: Agent) -> str:
    """How the model is estimated: "softmax", unless that cannot be, "counts" or "true"."""
    if agent.knows_the_truth:
        return "true"
    ends = getattr(agent.get("option"), "termination", None) is not None
    return str(agent.get("model", "counts" if agent.get("conditioned") or ends else "softmax"))


def _lambda_by_td(setup: Setup, agent: Agent, forward: bool) -> ExtendedForward | LambdaModel:
    width = setup.n_states * (1 if forward else setup.n_actions)
    room_for(setup, agent, forward)  # refuses worlds that are too large
    rows = empty_mixtures(setup.n_states, width)
    lam = per_state("lam", agent.get("lam"), setup.n_states)
    told = np.zeros(1, dtype=np.bool_)
    model = LambdaModel(rows, lam, np.full(1, -1), told, setup.n_actions, forward)
    return ExtendedForward(model, rows, NOBODY, NOBODY) if forward else model


def _along_the_way(setup: Setup, agent: Agent, forward: bool) -> ExtendedModel:
    """Counts, or softmax rows over several steps; or the truth in their place."""
    n, pairs = setup.n_states, setup.n_states * setup.n_actions
    how, span, option = _how(agent), _span(setup, agent), agent.get("option")
    conditioned = bool(agent.get("conditioned"))
    ends = None if option is None else option.termination
    if forward and option is not None and ends is None:
        raise InputError("option.termination: none given, but looking forward an option needs an end to look to")
    room, restarts = room_for(setup, agent, forward)
    if how == "true":
        rows: Any = extended_rows(setup.world, agent.span, forward)
    elif how == "counts":
        rows = empty_counts(_given_action(room, n, setup.n_actions) if conditioned else room)
    else:
        rows = empty_rows(room, n if forward else pairs)
    return ExtendedModel(
        rows=rows,
        restarts=_restarts(setup, agent, restarts),
        led=np.zeros(pairs),
        arrivals=np.ones(n) if how == "true" else np.zeros(n),
        weight=np.ones(n) if ends is None else per_state("option.termination", ends, n),
        past=empty_past(len(span.weights) or _LONGEST),
        stop=Stop(np.cumsum(span.weights), span.stop, span.go_on, setup.stream(1)),
        usual_discount=_usual_discount(span, setup.discount),
        target_policy=_target_policy(setup, agent),
        forgets=agent.get("forget", 0.0),
        n_actions=setup.n_actions,
        conditioned=conditioned,
        forward=forward,
        terminates=forward and option is not None,
        learns=how != "true",
    )


def _restarts(setup: Setup, agent: Agent, room: Indices) -> CountRows:
    """Ways that began at a terminal state: counted, or true where sampled planning goes on over them."""
    if not agent.knows_the_truth or agent.get("depth", 1) == 1 or agent.get("sample") is None:
        return empty_counts(room)
    assert setup.world is not None
    return restart_rows(setup.world, agent.span)


def _given_action(room: Indices, n_states: int, n_actions: int) -> Indices:
    """Room for rows (s, ã) over s̃, given that for rows s over (s̃, ã)."""
    return np.repeat(np.minimum(room, n_states), n_actions)


class Span(NamedTuple):
    """How far a model looks: 1, 2, … steps with these weights, or back until a state at which it stops.

    Attributes:
        weights: (N,), empty where states decide.
        stop: (S,) the probability of stopping at s̃, empty where they do not.
        go_on: (S,) the probability of going on.
    """

    weights: Vector
    stop: Vector
    go_on: Vector


def _span(setup: Setup, agent: Agent) -> Span:
    name, value = agent.span
    none = np.zeros(0)
    if name == "lam":
        lam = per_state("lam", value, setup.n_states)
        return Span(none, 1.0 - lam, lam)
    if name == "option":
        return Span(none, *option_chances(value, setup.n_states))
    return Span(np.asarray(value) if name == "weights" else np.eye(value)[-1], none, none)


def _usual_discount(span: Span, discount: float) -> float:
    """What a softmax takes for the discount to pairs never observed: the mean γⁿ, as if all states stopped alike."""
    if span.stop.size:
        mean = span.stop.mean()
        return float(discount * mean / (1.0 - discount * (1.0 - mean)))
    return float(span.weights @ discount ** np.arange(1, len(span.weights) + 1))


def _target_policy(setup: Setup, agent: Agent) -> Vector:
    """The policy that steps are weighted towards: an option's, the greedy one, or nobody's."""
    option = agent.get("option")
    policy = None if option is None else option.policy
    if setup.is_prediction and policy is not None:
        raise InputError("option.policy: in a prediction world the policy is that of the world; leave it out")
    if setup.is_prediction and agent.get("importance"):
        raise InputError("importance: in a prediction world there is one policy, and steps are taken by it")
    if policy is None:
        return GREEDY if agent.get("importance") else NOBODY
    probabilities = np.asarray(policy, dtype=np.float64)
    if probabilities.shape != (setup.n_states, setup.n_actions):
        raise InputError(
            f"option.policy: shape {probabilities.shape} given, expected ({setup.n_states}, {setup.n_actions})"
        )
    return probabilities.ravel()
