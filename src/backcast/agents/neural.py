"""Agents with a network: a value network, planners and, for most kinds, models with networks.

A `NeuralAgent` is immutable. Its state is a pytree of arrays, so that drivers can compile a whole run. `update` is one
step of Algorithm 1 on a batch of transitions: update the model, update the values, plan. With memory=0 the batch is the
last transition, and there is no target network.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS, Agent
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN
from backcast.models.neural.contract import (
    Lesson,
    ModelNet,
    NeuralBackwardModel,
    NeuralForwardModel,
    NeuralModel,
    Objective,
    Remembered,
    Ways,
)
from backcast.models.neural.objectives import OBJECTIVES
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

_MODELS = 1_000_000  # models use other random keys than planners
DTYPES = {"float32": jnp.float32, "float64": jnp.float64}


class Spec(NamedTuple):
    """The sizes of the environment for which the programs of an agent with a network are compiled.

    Attributes:
        shape: shape of an observation.
        n_states: S; 0 if states are not numbered.
        n_actions: A, 1 in prediction.
    """

    shape: tuple[int, ...]
    n_states: int
    n_actions: int


class Told(NamedTuple):
    """The sizes that a model is built for: those of the environment, and the number of parameters of the values."""

    spec: Spec
    n_parameters: int


class Learned(NamedTuple):
    """The state of an agent with a network.

    Attributes:
        values: parameters of the values.
        target: parameters of the target network; the initial `values` if it is not used.
        optimiser: state of the values' optimiser.
        models: parameters of each model.
        model_optimisers: state of the optimiser of each model.
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
    """A model, its network, direction and objective. Its parameters are at the same index of `Learned.models`."""

    model: NeuralModel
    function: Function
    forward: bool
    objective: Objective


Plan = Callable[[Agent, NeuralValues, ModelAtWork], NeuralPlanner]
Planned = tuple[NeuralModel, Plan]  # a model, and the function that makes its planner


class NeuralAgent(NamedTuple):
    """An agent with a network, without its learned state.

    Attributes:
        values: the value network.
        models: the models.
        planners: each planner, with the index of its model.
        optimiser: the optimiser of values and models.
        learns: False for pure planning.
        shared: whether models share the body of the value network.
        online: whether it learns from each transition at once, without memory and target network.
        steps: number of steps that its models span.
        init: function from a random key to the initial parameters of the values and of the models.
    """

    values: NeuralValues
    models: tuple[ModelAtWork, ...]
    planners: tuple[tuple[NeuralPlanner, int], ...]
    optimiser: Optimiser
    learns: bool
    shared: bool
    online: bool
    steps: int
    init: Callable[[jax.Array], tuple[Params, tuple[Params, ...]]]

    def begin(self, key: jax.Array) -> Learned:
        """Return the initial state."""
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
        ways: Ways | None,
        pairs: Remembered,
        again: Transitions,
        discount: jax.Array,
        rates: jax.Array,
        key: jax.Array,
    ) -> Learned:
        """Learn from a batch, and plan.

        Args:
            state: the learned state.
            eyes: maps stored states to observations.
            batch: transitions.
            ways: paths of as many steps as the models span; None for one step.
            pairs: remembered pairs, the candidates of contrastive models.
            again: transitions for replay.
            discount: γ.
            rates: (4,), α, α of the model, α of planning and ε.
            key: random key of JAX.
        """
        for place in range(len(self.models)):
            values, target, learning_key = state.values, self._target(state), jax.random.fold_in(key, _MODELS + place)
            lesson = Lesson(batch, ways, pairs, self.values, values, target, discount, learning_key)
            state = self._learn_model(state, place, eyes, lesson, rates)
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
        """Plan from the first state (1, …) of an episode, with the planners that do so."""
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

    def _learn_model(self, state: Learned, place: int, eyes: Eyes, lesson: Lesson, rates: jax.Array) -> Learned:
        """Update one model; if the encoder is shared, this also updates the body of the values."""
        at_work, params = self.models[place], state.models[place]
        if self.shared:
            params = {**params, "body": state.values["body"]}

        def loss(params: Params) -> jax.Array:
            return at_work.objective(at_work.model, ModelNet(at_work.function, params, eyes), lesson)

        gradient = jax.grad(loss)(params)
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
        """Make the updates of one planner from some states."""
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
        """Make a gradient step of the values."""
        values, optimiser = self.optimiser.step(state.values, gradient, state.optimiser, rate)
        updates = state.updates + made.astype(jnp.int64)
        return state._replace(values=values, optimiser=optimiser, updates=updates, largest=largest)


_NOTHING = Transitions(None, None, None, None, None, None)


def _put(items: tuple[Params, ...], place: int, item: Params) -> tuple[Params, ...]:
    return (*items[:place], item, *items[place + 1 :])


def neural_agent(agent: Agent, spec: Spec) -> NeuralAgent:
    """Build an agent with a network for an environment of these sizes."""
    network, dtype, with_no_key = agent.get("network"), DTYPES[agent.get("precision")], jax.random.key(0)
    looks = [forward for forward in (True, False) if looks_there(agent, forward)]
    of_values: dict[str, Head] = {"q": Head(spec.n_actions)}
    function, params = make(network, with_no_key, spec.shape, of_values, dtype)
    told = Told(spec, sum(leaf.size for leaf in jax.tree.leaves(params)))
    made: list[Planned] = [_by_network(agent)(told, agent, forward) for forward in looks]
    heads = [of_values, *(model.heads() for model, _ in made)]

    def init(key: jax.Array) -> tuple[Params, tuple[Params, ...]]:
        keys = jax.random.split(key, len(heads))
        values, *others = (
            make(network, each, spec.shape, head, dtype)[1] for each, head in zip(keys, heads, strict=True)
        )
        return values, tuple(others)

    loss, online = agent.get("loss"), agent.get("memory") == 0
    values = NeuralValues(function, LOSSES.get(loss, loss), agent.get("double"))
    objectives = OBJECTIVES[agent.get("objective", "likelihood")]
    at_work = tuple(
        ModelAtWork(model, make(network, with_no_key, spec.shape, head, dtype)[0], forward, objectives[forward])
        for (model, _), head, forward in zip(made, heads[1:], looks, strict=True)
    )
    planners: list[tuple[NeuralPlanner, int]] = []
    if KINDS[agent.kind].replays:
        planners.append((NeuralReplay(values, agent.get("sample")), 0))
    for place, ((_, plan), each) in enumerate(zip(made, at_work, strict=True)):
        planners.append((plan(agent, values, each), place))
    return NeuralAgent(
        values,
        at_work,
        tuple(planners),
        _optimiser(agent),
        agent.learn,
        agent.get("encoder") == "shared",
        online,
        agent.shared("horizon", 1),
        init,
    )


def _by_network(agent: Agent) -> Callable[[Told, Agent, bool], Planned]:
    """The function that makes the model of an agent with a network."""
    found = ESTIMATORS[agent.get("model")].by_network
    assert found is not None
    return found


def looks_there(agent: Agent, forward: bool) -> bool:
    """Whether the agent has a model in this direction."""
    return KINDS[agent.kind].direction in ("forward" if forward else "backward", "both")


def plan_with_outcomes(agent: Agent, values: NeuralValues, at_work: ModelAtWork, samples: int = 0) -> NeuralPlanner:
    """A planner for a forward or a backward model, in expectation or with samples."""
    model, function, forward, _ = at_work
    current = (agent.frame or ("previous" if forward else "current")) == "current"
    if forward:
        in_turn = agent.get("memory") == 0
        return NeuralForwardPlanner(
            values, function, cast(NeuralForwardModel, model), current, not agent.learn, in_turn
        )
    return NeuralBackwardPlanner(values, function, cast(NeuralBackwardModel, model), current, not agent.learn, samples)


def _optimiser(agent: Agent) -> Optimiser:
    given = agent.get("optimiser")
    if isinstance(given, str):
        return Optimiser(OPTIMISERS[given](), None)
    return Optimiser(given, float(np.max(agent.alpha)) or 1.0)
