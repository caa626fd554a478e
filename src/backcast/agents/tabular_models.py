"""Models of states: estimators of the models of forward and backward planning, built from an agent's settings."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from backcast.agents import neural_makers
from backcast.agents.estimators import Estimated, register_estimator
from backcast.agents.kinds import Agent
from backcast.agents.room import room_for
from backcast.agents.row_planning import how_to_plan
from backcast.agents.setup import Setup
from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError
from backcast.core.locality import side_by_side
from backcast.models import BackwardModel, ExtendedForward, ExtendedModel, ForwardModel, LambdaModel
from backcast.models.contract import BackwardRows, HasRows, OutcomeRows
from backcast.models.counts import CountRows, empty_counts
from backcast.models.lambda_td import empty_mixtures
from backcast.models.options import option_chances, per_state
from backcast.models.rows import Rows, empty_rows
from backcast.models.trajectory import GREEDY, NOBODY, Stop, empty_trajectory
from backcast.models.truth import backward_rows, extended_rows, forward_rows, restart_rows
from backcast.values.step_sizes import step_sizes, step_sizes_at_first

_LONGEST = 2048  # most steps that a model looks back if states decide where it stops
MakeRows = Callable[[Indices, int], OutcomeRows]  # from places for each row, (rows,), and the number of outcomes


@register_estimator("softmax", leaves=True, called="a softmax", by_network=neural_makers.softmax)
def softmax(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """The paper's: logits of all outcomes, learned by cross-entropy steps; in control, rewards of states."""

    def rows(room: Indices, width: int) -> Rows:
        return empty_rows(room, width, agent.averages)

    if agent.looks_far:
        return model_of_rows(setup, agent, forward, rows)
    model: HasRows
    if forward:
        by_pair = setup.is_prediction
        model = one_step_forward(setup, agent, rows(setup.fan_out(), setup.n_states), by_pair=by_pair)
    else:
        model = _one_step_backward(setup, agent, rows(setup.fan_in(), setup.n_states * setup.n_actions), learns=True)
    return model, how_to_plan(setup, agent, forward, model)


@register_estimator("counts")
def counts(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """Relative frequencies of observed outcomes: the maximum-likelihood estimate."""
    return model_of_rows(setup, agent, forward, lambda room, width: empty_counts(room))


@register_estimator("true", true=True, called="the true model")
def true(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """The probabilities and rewards of the world itself."""
    world = setup.world
    assert world is not None
    model: HasRows
    if agent.looks_far:
        ways = _along_the_way(setup, agent, forward, lambda room, width: extended_rows(world, agent.span, forward))
        ways = ways._replace(arrivals=np.ones(setup.n_states), learns=False)
        model = _looking_forward(ways) if forward else ways
    elif forward:
        goes_on = np.where(world.mdp.terminal, -1.0, 1.0)
        model = one_step_forward(setup, agent, forward_rows(world), goes_on, learns_ends=False, learns=False)
    else:
        model = _one_step_backward(setup, agent, backward_rows(world), learns=False)
    return model, how_to_plan(setup, agent, forward, model)


def model_of_rows(setup: Setup, agent: Agent, forward: bool, make: MakeRows) -> Estimated:
    """Return a model of your own rows, over the number of steps in the agent's settings, and how to plan with it.

    Args:
        setup: the setup of the agent.
        agent: the agent.
        forward: whether the model looks forward, with a row for each pair s·A + a over states. Otherwise it looks
            backward, with a row for each state over pairs.
        make: function from the room that each row needs at most, (rows,), and the number N of possible outcomes to
            empty rows (`backcast.models.contract.OutcomeRows`).
    """
    setup.refuse_observations(agent.name)
    model: HasRows
    if forward and not agent.looks_far:
        model = one_step_forward(setup, agent, _complete(make(setup.fan_out(), setup.n_states)))
    else:
        ways = _along_the_way(setup, agent, forward, make)
        model = _looking_forward(ways) if forward else ways
    return model, how_to_plan(setup, agent, forward, model)


def _complete(rows: OutcomeRows) -> OutcomeRows:
    """Return the rows; raise InputError if they lack attributes that models need."""
    missing = [name for name in ("observe", "forget", "with_room") if not hasattr(rows, name)]
    if missing:
        raise InputError(f"rows: {type(rows).__name__} has no {', '.join(missing)}; see docs/extending.md")
    return rows


def one_step_forward(
    setup: Setup, agent: Agent, rows: OutcomeRows, goes_on: Vector | None = None, **more: Any
) -> ForwardModel:
    """P(s' | s, a) with rewards beside its entries; `more` are other attributes of `ForwardModel`."""
    n, control = setup.n_states, not setup.is_prediction
    state_reward, kept, ahead = side_by_side(n, float, float, float)
    kept[:] = float(not control) if goes_on is None else goes_on
    usual = {
        "state_reward": state_reward,
        "goes_on": kept,
        "ahead": ahead,
        "sum_ahead": np.zeros(2),
        "n_actions": setup.n_actions,
        "by_pair": True,
        "learns_ends": control,
        "learns": True,
        "forgets": agent.shared("forget", 0.0),
        "step_size": step_sizes(agent.averages, n),
    }
    return ForwardModel(rows=rows, **{**usual, **more})


def _one_step_backward(setup: Setup, agent: Agent, rows: OutcomeRows, learns: bool) -> BackwardModel:
    """The paper's P←(s̃, ã | s)."""
    return BackwardModel(
        rows=rows,
        state_reward=np.zeros(setup.n_states),
        n_actions=setup.n_actions,
        by_pair=setup.is_prediction,
        learns=learns,
        forgets=agent.shared("forget", 0.0),
        target_policy=_target_policy(setup, agent),
        restarts=_restarts(setup, agent, np.zeros(setup.n_states, dtype=np.int64)),
        step_size=step_sizes(agent.averages, setup.n_states),
    )


def lambda_by_td(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """A λ-model whose rows bootstrap, and how to plan with it."""
    setup.refuse_observations(agent.name)
    if forward and not setup.is_prediction:
        raise InputError("lam_by: looking forward, 'td' needs a prediction world: rows of states, not of pairs")
    width = setup.n_states * (1 if forward else setup.n_actions)
    room_for(setup, agent, forward)  # raises if the world is too large
    rows = empty_mixtures(setup.n_states, width, step_sizes_at_first(agent.averages, setup.n_states))
    lam = per_state("lam", agent.shared("lam"), setup.n_states)
    told = np.zeros(1, dtype=np.bool_)
    ways = LambdaModel(rows, lam, np.full(1, -1), told, setup.n_actions, forward)
    model = ExtendedForward(cast(BackwardRows, ways), rows, NOBODY, NOBODY) if forward else ways
    return model, how_to_plan(setup, agent, forward, model)


def _looking_forward(ways: ExtendedModel) -> ExtendedForward:
    return ExtendedForward(cast(BackwardRows, ways), ways.rows, np.zeros(ways.arrivals.size), np.zeros(2))


def _along_the_way(setup: Setup, agent: Agent, forward: bool, make: MakeRows) -> ExtendedModel:
    """A model that is learned along the trajectory."""
    n, pairs = setup.n_states, setup.n_states * setup.n_actions
    span, option = _span(setup, agent), agent.shared("option")
    conditioned = bool(agent.shared("conditioned"))
    ends = None if option is None else option.termination
    if forward and option is not None and ends is None:
        raise InputError("option.termination: none given, but looking forward an option needs an end to look to")
    room, restarts = room_for(setup, agent, forward)
    room = _given_action(room, n, setup.n_actions) if conditioned else room
    return ExtendedModel(
        rows=_complete(make(room, n if forward or conditioned else pairs)),
        restarts=_restarts(setup, agent, restarts),
        led=np.zeros(pairs),
        arrivals=np.zeros(n),
        weight=np.ones(n) if ends is None else per_state("option.termination", ends, n),
        past=empty_trajectory(len(span.weights) or _LONGEST),
        stop=Stop(np.cumsum(span.weights), span.stop, span.go_on, setup.stream(1)),
        usual_discount=_usual_discount(span, setup.discount),
        target_policy=_target_policy(setup, agent),
        forgets=agent.shared("forget", 0.0),
        n_actions=setup.n_actions,
        conditioned=conditioned,
        forward=forward,
        terminates=forward and option is not None,
        learns=True,
    )


def _restarts(setup: Setup, agent: Agent, room: Indices) -> CountRows:
    """Rows of paths that began at a terminal state: counted, or true if sampled planning continues over them."""
    if not agent.knows_the_truth or agent.shared("depth", 1) == 1 or agent.shared("sample") is None:
        return empty_counts(room)
    assert setup.world is not None
    return restart_rows(setup.world, agent.span)


def _given_action(room: Indices, n_states: int, n_actions: int) -> Indices:
    """Room for rows (s, ã) over s̃, given the room for rows s over (s̃, ã)."""
    return np.repeat(np.minimum(room, n_states), n_actions)


class Span(NamedTuple):
    """How far a model looks: 1, 2, … steps with these weights, or back until a state at which it stops.

    Attributes:
        weights: (N,), empty if states decide.
        stop: (S,), the probability of stopping at s̃; empty if states do not decide.
        go_on: (S,), the probability of going on.
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
    """The discount that a softmax assumes for pairs never observed: the mean γⁿ, as if all states stopped alike."""
    if span.stop.size:
        mean = span.stop.mean()
        return float(discount * mean / (1.0 - discount * (1.0 - mean)))
    return float(span.weights @ discount ** np.arange(1, len(span.weights) + 1))


def _target_policy(setup: Setup, agent: Agent) -> Vector:
    """The policy that importance weights aim at: an option's, the greedy policy, or none."""
    option = agent.shared("option")
    policy = None if option is None else option.policy
    if setup.is_prediction and policy is not None:
        raise InputError("option.policy: in a prediction world the policy is that of the world; leave it out")
    if setup.is_prediction and agent.shared("importance"):
        raise InputError("importance: in a prediction world there is one policy, and steps are taken by it")
    if policy is None:
        return GREEDY if agent.shared("importance") else NOBODY
    probabilities = np.asarray(policy, dtype=np.float64)
    if probabilities.shape != (setup.n_states, setup.n_actions):
        raise InputError(
            f"option.policy: shape {probabilities.shape} given, expected ({setup.n_states}, {setup.n_actions})"
        )
    return probabilities.ravel()
