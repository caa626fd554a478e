"""Agents with a network, at work: a value network, perhaps models with networks of their own, and planners.

A `NeuralAgent` does not change; its state is a tree of arrays, so that drivers can compile a whole run. `update` is one
step of Algorithm 1 from a batch of transitions: the model learns, the values learn, the planners plan. With memory = 0
the batch is the transition that was just experienced, and values bootstrap from themselves.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from backcast.agents.kinds import KINDS, Agent
from backcast.core.errors import InputError
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN
from backcast.models.neural.contract import ModelNet, NeuralBackwardModel, NeuralForwardModel, Remembered
from backcast.models.neural.contrastive import ContrastiveBackward, ContrastiveForward
from backcast.models.neural.softmax import SoftmaxBackward, SoftmaxForward
from backcast.networks.modules import Function, Head, Params, make
from backcast.planners.neural import (
    Imagined,
    NeuralBackwardPlanner,
    NeuralForwardPlanner,
    NeuralPlanner,
    NeuralReplay,
    NeuralTurn,
)
from backcast.values.neural import LOSSES, OPTIMISERS, Eyes, NeuralValues, Optimiser, Transitions

DTYPES = {"float32": jnp.float32, "float64": jnp.float64}


class Spec(NamedTuple):
    """What an agent with a network is told about where it lives: all that its programs are compiled for.

    Attributes:
        shape: of an observation.
        n_states: S; 0 where states have no numbers.
        n_actions: A, 1 in prediction.
    """

    shape: tuple[int, ...]
    n_states: int
    n_actions: int


class Learned(NamedTuple):
    """The state of an agent with a network.

    Attributes:
        values: parameters of the values.
        target: of the target network; the same as values where there is none.
        optimiser: state of the values' optimiser.
        models: parameters of each model.
        model_optimisers: states of their optimisers.
        updates: (2,) value updates by learning and by planning.
        largest: the largest |q| of the last update.
    """

    values: Params
    target: Params
    optimiser: Params
    models: tuple[Params, ...]
    model_optimisers: tuple[Params, ...]
    updates: jax.Array
    largest: jax.Array


class ModelAtWork(NamedTuple):
    """A model and its network without parameters, which are at this place among those of all models."""

    model: NeuralBackwardModel | NeuralForwardModel
    function: Function
    forward: bool


class NeuralAgent(NamedTuple):
    """An agent with a network, without what it has learned.

    Attributes:
        values: the value network.
        models: what it learns of the world.
        planners: each with the place of its model.
        optimiser: of values and models alike.
        learns: False for pure planning.
        shared: whether models and values have one body.
        online: whether it learns from each transition as it comes, without memory and target network.
        init: from a key to the first parameters of values and of models.
    """

    values: NeuralValues
    models: tuple[ModelAtWork, ...]
    planners: tuple[tuple[NeuralPlanner, int], ...]
    optimiser: Optimiser
    learns: bool
    shared: bool
    online: bool
    init: Callable[[jax.Array], tuple[Params, tuple[Params, ...]]]

    def begin(self, key: jax.Array) -> Learned:
        """Before anything was experienced."""
        values, models = self.init(key)
        states = tuple(self.optimiser.begin(model) for model in models)
        zero = jax.tree.leaves(values)[0].dtype.type(0)
        return Learned(
            values, values, self.optimiser.begin(values), models, states, jnp.zeros(2, jnp.int64), jnp.asarray(zero)
        )

    def update(
        self,
        state: Learned,
        eyes: Eyes,
        batch: Transitions,
        pairs: Remembered,
        again: Transitions,
        discount: jax.Array,
        rates: jax.Array,
        key: jax.Array,
    ) -> Learned:
        """Learn from a batch, and plan.

        Args:
            state: what was learned so far.
            eyes: from what memories hold to observations.
            batch: transitions.
            pairs: remembered ones, as candidates of models.
            again: transitions for those who replay.
            discount: γ.
            rates: (4,) as of all agents.
            key: of JAX.
        """
        for place in range(len(self.models)):
            state = self._learn_model(state, place, eyes, batch, rates)
        if self.learns:
            (_, largest), gradient = jax.value_and_grad(self.values.learning_loss, has_aux=True)(
                state.values, self._target(state), eyes, batch, discount
            )
            state = self._step(state, gradient, rates[ALPHA], largest, jnp.array([batch.a.shape[0], 0]))
        for number, (planner, place) in enumerate(self.planners):
            for turn_number, turn in enumerate(planner.turns(batch)):
                here = jax.random.fold_in(key, 2 * number + turn_number)
                state = self._plan(state, planner, place, turn, eyes, pairs, again, discount, rates, here)
        return state

    def plan_first(
        self,
        state: Learned,
        eyes: Eyes,
        s: jax.Array,
        pairs: Remembered,
        discount: jax.Array,
        rates: jax.Array,
        key: jax.Array,
    ) -> Learned:
        """Plan from the first states (1, …) of an episode, those planners that do."""
        turn = NeuralTurn(s, jnp.ones(1, bool), jnp.zeros(1, bool))
        for number, (planner, place) in enumerate(self.planners):
            if planner.plans_first():
                here = jax.random.fold_in(key, 2 * len(self.planners) + number)
                state = self._plan(state, planner, place, turn, eyes, pairs, _NOTHING, discount, rates, here)
        return state

    @property
    def plans_first(self) -> bool:
        """Whether any planner plans when an episode begins."""
        return any(planner.plans_first() for planner, _ in self.planners)

    def _target(self, state: Learned) -> Params:
        return state.values if self.online else state.target

    def _learn_model(self, state: Learned, place: int, eyes: Eyes, batch: Transitions, rates: jax.Array) -> Learned:
        """A step of one model; of a shared encoder, it moves the body of the values."""
        at_work, params = self.models[place], state.models[place]
        if self.shared:
            params = {**params, "body": state.values["body"]}
        gradient = jax.grad(lambda params: at_work.model.loss(ModelNet(at_work.function, params, eyes), batch))(params)
        params, optimiser = self.optimiser.step(params, gradient, state.model_optimisers[place], rates[ALPHA_MODEL])
        values = {**state.values, "body": params["body"]} if self.shared else state.values
        return state._replace(
            values=values,
            models=_put(state.models, place, params),
            model_optimisers=_put(state.model_optimisers, place, optimiser),
        )

    def _plan(
        self, state: Learned, planner: NeuralPlanner, place: int, turn: NeuralTurn, eyes: Eyes, pairs: Remembered,
        again: Transitions, discount: jax.Array, rates: jax.Array, key: jax.Array,
    ) -> Learned:  # fmt: skip
        """The steps of one planner from some states."""
        model = state.models[place] if place < len(state.models) else None
        if self.shared and model is not None:
            model = {**model, "body": state.values["body"]}

        def stage(state: Learned, number: jax.Array) -> tuple[Learned, None]:
            known = Imagined(self._target(state), model, eyes, pairs, again, discount, key)
            (_, (made, largest)), gradient = jax.value_and_grad(planner.loss, has_aux=True)(
                state.values, turn, number, known
            )
            return self._step(state, gradient, rates[ALPHA_PLAN], largest, jnp.stack([0 * made, made])), None

        if planner.stages() == 1:
            return stage(state, 0)[0]
        return jax.lax.scan(stage, state, jnp.arange(planner.stages()))[0]

    def _step(self, state: Learned, gradient: Params, rate: jax.Array, largest: jax.Array, made: jax.Array) -> Learned:
        """Move the values against a gradient."""
        values, optimiser = self.optimiser.step(state.values, gradient, state.optimiser, rate)
        updates = state.updates + made.astype(jnp.int64)
        return state._replace(values=values, optimiser=optimiser, updates=updates, largest=largest)


_NOTHING = Transitions(None, None, None, None, None, None)


def _put(items: tuple[Params, ...], place: int, item: Params) -> tuple[Params, ...]:
    return (*items[:place], item, *items[place + 1 :])


def neural_agent(agent: Agent, spec: Spec) -> NeuralAgent:
    """The parts of an agent with a network, where it is told to live."""
    network, dtype = agent.get("network"), DTYPES[agent.get("precision")]
    online = agent.get("memory") == 0
    looks = [
        forward
        for forward in (True, False)
        if KINDS[agent.kind].direction in ("forward" if forward else "backward", "both")
    ]
    models = [_model(agent, spec, forward) for forward in looks]
    heads: list[dict[str, Head]] = [{"q": Head(spec.n_actions)}, *(model.heads() for model in models)]
    with_no_key = jax.random.key(0)
    functions = [make(network, with_no_key, spec.shape, head, dtype)[0] for head in heads]

    def init(key: jax.Array) -> tuple[Params, tuple[Params, ...]]:
        keys = jax.random.split(key, len(heads))
        values, *others = (
            make(network, each, spec.shape, head, dtype)[1] for each, head in zip(keys, heads, strict=True)
        )
        return values, tuple(others)

    loss = agent.get("loss")
    values = NeuralValues(functions[0], LOSSES.get(loss, loss), agent.get("double"))
    at_work = tuple(
        ModelAtWork(model, function, forward)
        for model, function, forward in zip(models, functions[1:], looks, strict=True)
    )
    return NeuralAgent(
        values,
        at_work,
        tuple(_planners(agent, values, at_work, online)),
        _optimiser(agent),
        agent.learn,
        agent.get("encoder") == "shared",
        online,
        init,
    )


def _planners(
    agent: Agent, values: NeuralValues, models: tuple[ModelAtWork, ...], online: bool
) -> Iterator[tuple[NeuralPlanner, int]]:
    """Each planner, with the place of its model."""
    if KINDS[agent.kind].replays:
        yield NeuralReplay(values, agent.get("sample")), 0
    for place, (model, function, forward) in enumerate(models):
        usual = "previous" if forward else "current"
        current = (agent.frame or usual) == "current"
        if forward:
            ahead = cast(NeuralForwardModel, model)
            yield NeuralForwardPlanner(values, function, ahead, current, not agent.learn, online), place
        else:
            behind, samples = cast(NeuralBackwardModel, model), agent.get("sample") or 0
            yield NeuralBackwardPlanner(values, function, behind, current, not agent.learn, samples), place


def _model(agent: Agent, spec: Spec, forward: bool) -> NeuralBackwardModel | NeuralForwardModel:
    name = agent.get("model")
    if name == "softmax":
        if not spec.n_states:
            raise InputError("model: 'softmax' is over numbered states, and here they have none; use 'contrastive'")
        return (SoftmaxForward if forward else SoftmaxBackward)(spec.n_states, spec.n_actions)
    return (ContrastiveForward if forward else ContrastiveBackward)(spec.n_actions)


def _optimiser(agent: Agent) -> Optimiser:
    given = agent.get("optimiser")
    if isinstance(given, str):
        return Optimiser(OPTIMISERS[given](), None)
    return Optimiser(given, float(np.max(agent.alpha)) or 1.0)
