"""Runs of agents with a network: the loop of `backcast.drivers.loop` as one JAX program.

A run uses the same two streams of random numbers as for all other agents (`backcast.drivers.neural_places` has the
worlds). So an agent whose network represents a table takes the same steps as the tabular agent. A program is compiled
for an agent and the shapes of a world, and advances the run of one seed by a number of steps. Threads run different
seeds, so that the results of a seed do not depend on the other seeds.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from backcast.agents import Agent
from backcast.agents.neural import Learned, Spec
from backcast.core.interaction import EPSILON
from backcast.drivers.neural_experience import Circumstances, Experience, without_rates
from backcast.drivers.neural_memory import Packed
from backcast.drivers.neural_places import Walkable, WalkableTable
from backcast.models.neural.contract import ModelNet
from backcast.networks.streams import act
from backcast.values.neural import Transitions
from backcast.worlds.stepping import FOREVER

ROOM = 256  # episodes that are recorded by one call of a program
_BEYOND, _FAR, _LONGEST, _MOST = 1e6, 100.0, 1e12, 1.7e308  # as in `backcast.drivers.loop.bound`


class RunOrders(NamedTuple):
    """The arguments of a call of a program.

    Attributes:
        until: number of real steps of the run after which the call returns.
        steps: number of steps of the whole run; FOREVER if its length is given in episodes.
        room: the most episodes recorded by this call.
        limit: number of steps after which episodes are truncated.
        budget: value updates after which a run is over.
        first: (4,), the rates of the first step.
        falls: (4,), whether each rate falls to 0 over the steps of the run.
        schedule: (room, 4), the rates of the next episodes, if the length is given in episodes.
    """

    until: jax.Array
    steps: jax.Array
    room: jax.Array
    limit: jax.Array
    budget: jax.Array
    first: jax.Array
    falls: jax.Array
    schedule: jax.Array


class EpisodeArrays(NamedTuple):
    """The record of a call, (room,) each; as in `backcast.drivers.loop.Record`."""

    steps: jax.Array
    made: jax.Array
    reward: jax.Array
    rmsve: jax.Array
    rmsve_inner: jax.Array


class NeuralRun(NamedTuple):
    """The state of a run.

    Attributes:
        s: the state that the agent is in.
        in_episode: number of steps of this episode so far.
        gained: the sum of their rewards.
        taken: number of real steps of the run so far.
        recorded: number of episodes recorded by this call.
        largest: the largest |reward| so far, or the largest |true value| if that is larger.
        lost: whether values diverged.
        world_stream: random numbers of the world.
        agent_stream: random numbers of the agent's actions.
        key: random key of JAX, for learning and planning.
        learned: the learned state of the agent.
        memory: the last transitions, in a ring buffer.
        record: the record, by episode.
    """

    s: jax.Array
    in_episode: jax.Array
    gained: jax.Array
    taken: jax.Array
    recorded: jax.Array
    largest: jax.Array
    lost: jax.Array
    world_stream: jax.Array
    agent_stream: jax.Array
    key: jax.Array
    learned: Learned
    memory: Packed
    record: EpisodeArrays


class Program:
    """The compiled run of an agent in worlds of the same shapes.

    Args:
        agent: the agent; its step sizes are not used.
        spec: the sizes of the world.
    """

    def __init__(self, agent: Agent, spec: Spec) -> None:
        self.experience = Experience(agent, spec)
        self.agent, self._dtype, self._spec = self.experience.agent, self.experience.dtype, spec
        self.advance = jax.jit(self._advance, donate_argnums=0)
        self.begin = jax.jit(self._begin)
        self.values = jax.jit(lambda params, seen: self.agent.values.all(params, seen))
        self.tables = jax.jit(self._tables)

    def _begin(
        self, place: Walkable, key: jax.Array, world_stream: jax.Array, agent_stream: jax.Array, largest: jax.Array
    ) -> NeuralRun:
        """The state of a run before its first step."""
        memory = self.experience.nothing()
        s, world_stream = place.begin(world_stream)
        counts, empty = jnp.zeros(ROOM, jnp.int64), jnp.zeros(ROOM)
        learned = self.agent.begin(key)
        zero = jnp.zeros((), jnp.int64)
        return NeuralRun(
            s, zero, jnp.zeros(()), zero, zero, largest, jnp.zeros((), bool), world_stream, agent_stream, key, learned,
            memory, EpisodeArrays(counts, counts, empty, empty, empty),
        )  # fmt: skip

    def _advance(self, walk: NeuralRun, place: Walkable, orders: RunOrders) -> NeuralRun:
        """Take steps until a limit of the orders is reached."""

        def goes_on(walk: NeuralRun) -> jax.Array:
            made = walk.learned.updates.sum()
            spent = (made >= orders.budget) & (walk.in_episode == 0)
            return (walk.taken < orders.until) & (walk.recorded < orders.room) & ~walk.lost & ~spent

        walk = walk._replace(recorded=jnp.zeros_like(walk.recorded))
        return jax.lax.while_loop(goes_on, lambda walk: self._step(walk, place, orders), walk)

    def _step(self, walk: NeuralRun, place: Walkable, orders: RunOrders) -> NeuralRun:
        """Act, step the world, store the transition, learn and plan; begin a new episode if this one is over."""
        rates, key = _rates(walk, orders), jax.random.fold_in(walk.key, walk.taken)
        first, learned = walk.in_episode == 0, walk.learned
        discount = place.discount.astype(self._dtype)
        known, here = Circumstances(place.eyes, discount, rates, key), place.remembered(walk.s)
        learned = self.experience.plan_first(walk.memory, learned, walk.taken, here, first, known)
        a, agent_stream = jnp.zeros((), jnp.int32), walk.agent_stream
        if self._spec.n_actions > 1:
            q = self.agent.values.all(learned.values, place.eyes(here[None]))[0]
            a, agent_stream = act(q, rates[EPSILON], agent_stream)
        (s2, r, ends), world_stream = place.step(walk.s, a, walk.world_stream)
        now = Transitions(here, a, r.astype(self._dtype), place.remembered(s2), ends, first)
        memory, learned = self.experience.learn(walk.memory, learned, walk.taken, now, known)
        largest = jnp.maximum(walk.largest, jnp.abs(r))
        bound = _bound(largest, jnp.where(self._spec.n_actions > 1, place.discount, 0.0))
        lost = ~(jnp.abs(learned.largest) <= bound)
        taken, in_episode, gained = walk.taken + 1, walk.in_episode + 1, walk.gained + r
        over = ends | lost | (in_episode >= orders.limit) | (taken >= orders.steps)
        walk = walk._replace(
            s=s2, in_episode=in_episode, gained=gained, taken=taken, largest=largest, lost=lost,
            world_stream=world_stream, agent_stream=agent_stream, learned=learned, memory=memory,
        )  # fmt: skip
        return jax.lax.cond(over, lambda walk: self._finish(walk, place), lambda walk: walk, walk)

    def _finish(self, walk: NeuralRun, place: Walkable) -> NeuralRun:
        """Record an episode that is over, and begin the next."""
        at, made = walk.recorded, walk.learned.updates.sum()
        everywhere, inner = self._errors(walk.learned, place)
        entries = (walk.in_episode, made, walk.gained, everywhere, inner)
        record = EpisodeArrays(*(column.at[at].set(entry) for column, entry in zip(walk.record, entries, strict=True)))
        s, world_stream = place.begin(walk.world_stream)
        lost = walk.lost | ~(everywhere <= _bound(walk.largest, 0.0))
        return walk._replace(
            s=s, in_episode=jnp.zeros_like(walk.in_episode), gained=jnp.zeros(()), recorded=at + 1, lost=lost,
            world_stream=world_stream, record=record,
        )  # fmt: skip

    def _tables(
        self, learned: Learned, place: WalkableTable, pairs: jax.Array, states: jax.Array
    ) -> list[tuple[jax.Array, ...]]:
        """Tables of each model; `pairs` (S·A,) and `states` (S,) count the remembered pairs and next states."""
        found = []
        for (model, function, forward, _), params in zip(self.agent.models, learned.models, strict=True):
            own = {**params, "body": learned.values["body"]} if self.agent.shared else params
            network = ModelNet(function, own, place.eyes)
            goes_on = jnp.where(place.terminal, 0.0, place.discount)
            found.append(model.table(network, states if forward else pairs, goes_on))
        return found

    def _errors(self, learned: Learned, place: Walkable) -> tuple[jax.Array, jax.Array]:
        """The root mean squared value error over all states and over those that do not end an episode."""
        if self._spec.n_actions > 1:
            return jnp.zeros(()), jnp.zeros(())
        error = self.agent.values.all(learned.values, place.seen)[:, 0].astype(jnp.float64) - place.truth
        inner = (place.inner * error**2).sum() / jnp.maximum(1.0, place.inner.sum())
        return jnp.sqrt((error**2).mean()), jnp.sqrt(inner)


def _rates(walk: NeuralRun, orders: RunOrders) -> jax.Array:
    """The rates of a step: those of its episode or, in a run of a number of steps, of this step."""
    steps = orders.steps.astype(jnp.float64)
    falling = orders.first * jnp.where(orders.falls, (steps - walk.taken) / steps, 1.0)
    return jnp.where(orders.steps < FOREVER, falling, orders.schedule[jnp.minimum(walk.recorded, ROOM - 1)])


def _bound(largest: jax.Array, discount: jax.Array | float) -> jax.Array:
    """The bound beyond which values have diverged, see `backcast.drivers.loop.bound`."""
    returned = largest / jnp.maximum(1.0 - discount, 1.0 / _LONGEST)
    return jnp.minimum(jnp.maximum(_BEYOND * (1.0 + largest), _FAR * returned), _MOST)


@functools.lru_cache(maxsize=64)
def _program(agent: Agent, spec: Spec) -> Program:
    return Program(agent, spec)


def program_for(agent: Agent, spec: Spec) -> Program:
    """The program of an agent, shared by all its step sizes."""
    return _program(without_rates(agent), spec)
