"""Agents with a network, step by step, in Gymnasium environments with Box or Discrete observations."""

import functools
import math
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.agents.neural import Learned, Spec
from backcast.agents.parts import Parts
from backcast.agents.setup import Setup
from backcast.core.arrays import Vector
from backcast.core.errors import InputError
from backcast.core.interaction import EPSILON
from backcast.core.randomness import imagination, streams
from backcast.drivers.loop import Record, bound, judge
from backcast.drivers.neural_experience import Circumstances, Experience, without_rates
from backcast.drivers.neural_memory import Block, Packed
from backcast.drivers.neural_policy import in_a_row
from backcast.drivers.runs import PER_EPISODE, NoModels, RunRows
from backcast.drivers.steps import Length, new_clock, set_rates
from backcast.networks.backend import wide
from backcast.networks.packing import Packing, Vectors
from backcast.values.neural import Eyes
from backcast.values.policies import explore, greedy
from backcast.values.table import zeros
from backcast.worlds.stepping import FOREVER

State: TypeAlias = int | np.int32 | Vector  # the number of a state, or an observation
Seen: TypeAlias = jax.Array | None  # observations of numbered states, (S, …); None if states are observations
Told = tuple[Seen, jax.Array, jax.Array, Vector]  # observations, γ, the random key; the rates and number of the step
_NOT_KEPT = "models: for agents with a network only backcast.run keeps them, in finite worlds"


class _Steps:
    """The compiled functions of an agent: act, plan before the first step, and learn from steps.

    The learned state is passed packed (`backcast.networks.packing`).
    """

    def __init__(self, agent: Agent, spec: Spec) -> None:
        self.experience = Experience(agent, spec)
        begin = self.experience.agent.begin
        self.packing: Packing[Learned] = Packing(jax.eval_shape(begin, jax.random.key(0)))
        self.begin, self.nothing = jax.jit(lambda key: self.packing.pack(begin(key))), jax.jit(self.experience.nothing)
        self.q, self.plan_first = jax.jit(self._q), jax.jit(self._plan_first)
        self.learn = jax.jit(self._learn, donate_argnums=(0, 1))
        self.remember = jax.jit(self.experience.remember_block, donate_argnums=0)
        self.renew = jax.jit(self._renew, donate_argnums=0)
        self.values = jax.jit(self._values)

    def _values(self, packed: Vectors, seen: jax.Array) -> jax.Array:
        return self.experience.agent.values.all(self.packing.unpack(packed).values, seen)

    def _q(self, packed: Vectors, seen: Seen, s: jax.Array) -> jax.Array:
        """The values of s, (A,)."""
        return self._values(packed, _eyes(seen)(s[None]))[0]

    def _renew(self, packed: Vectors) -> Vectors:
        learned = self.packing.unpack(packed)
        return self.packing.pack(learned._replace(target=learned.values))

    def _plan_first(self, memory: Packed, packed: Vectors, s: jax.Array, told: Told) -> Vectors:
        taken, known = _understood(told)
        learned = self.packing.unpack(packed)
        return self.packing.pack(self.experience.plan_first(memory, learned, taken, s, jnp.ones((), bool), known))

    def _learn(
        self, memory: Packed, packed: Vectors, came: Packed, told: Told
    ) -> tuple[Packed, Vectors, jax.Array, jax.Array]:
        """Return the memory, the learned state, the largest |q| of the update, and the values of the last s' (A,)."""
        taken, known = _understood(told)
        memory, learned = self.experience.learn_block(memory, self.packing.unpack(packed), taken, came, known)
        q = self.experience.agent.values.all(learned.values, known.eyes(came.states[-1:, 1]))[0]
        return memory, self.packing.pack(learned), learned.largest, q


def _understood(told: Told) -> tuple[jax.Array, Circumstances]:
    """The number of the step, and what else an update needs to know."""
    seen, discount, key, now = told
    taken = now[-1].astype(jnp.int64)
    return taken, Circumstances(_eyes(seen), discount, now[:-1], jax.random.fold_in(key, taken))


def _eyes(seen: Seen) -> Eyes:
    """The function from stored states to observations; stored observations are unchanged."""
    return (lambda states: states) if seen is None else (lambda states: seen[states])


@functools.lru_cache(maxsize=16)
def _steps(agent: Agent, spec: Spec) -> _Steps:
    return _Steps(agent, spec)


class NeuralStepwise:
    """An agent with a network that is driven one step at a time, as by `backcast.drivers.train.Stepwise`.

    Args:
        agent: the agent.
        setup: the setup; for a Box, `observations` is None and n_states is 0.
        seen: observations of numbered states, (S, …); None if states are observations.
        shape: shape of an observation.
        length: length of the run.
        seed: seed of the run.
    """

    def __init__(
        self, agent: Agent, setup: Setup, seen: Vector | None, shape: tuple[int, ...], length: Length, seed: int
    ) -> None:
        KINDS[agent.kind].check(setup, agent)
        self._agent, self._setup = agent, setup
        self._schedule: Vector = np.zeros((0, 4)) if length.episodes is None else agent.rates(length.episodes)
        self._clock = None if length.steps is None else new_clock(agent, length.steps)
        self.taken, self.episode, self._first = 0, -1, True
        with wide():
            self._compiled = _steps(without_rates(agent), Spec(shape, setup.n_states, setup.n_actions))
            dtype = self._compiled.experience.dtype
            self._seen = None if seen is None else jnp.asarray(seen, dtype)
            self._shape, self._dtype = shape, np.dtype(dtype)
            self._key = jax.random.wrap_key_data(jnp.asarray(imagination(seed, 0)[:2] >> np.uint64(32), jnp.uint32))
            self._learned = self._compiled.begin(self._key)
            self._memory = self._compiled.nothing()
            self._discount = jnp.asarray(setup.discount, dtype)
        self._stream, self._row = streams(seed)[1], zeros(1, setup.n_actions)
        self._block, self._largest = self._compiled.experience.block, 0.0
        self._bounded = -1.0, 0.0  # the largest |reward|, and the bound of values that follows from it
        self._came = Block(self._memory, self._block)
        self._now = np.zeros(5)  # the four rates, and the number of the step
        self._known: tuple[State, Vector] | None = None  # a state, and its values according to what is learned

    def state_of(self, observation: Any) -> State:
        """The stored form of an observation; raise InputError unless it has the right shape and is finite."""
        if self._seen is not None:
            return np.int32(observation)
        given = np.asarray(observation)
        if given.shape != self._shape:
            raise InputError(f"observation: shape {given.shape} observed, expected {self._shape}, that of the space")
        found = given.astype(self._dtype)
        if given.dtype == np.uint8:
            found /= 255
        if not math.isfinite(np.vdot(found, found)) and not np.isfinite(found).all():  # the first is quicker
            raise InputError("observation: not a finite number observed; expected numbers")
        return found

    @property
    def rates(self) -> Vector:
        """α, α of the model, α of planning and ε of the current step."""
        if self._clock is None:
            return self._schedule[min(self.episode, len(self._schedule) - 1)]
        set_rates(self._clock, self.taken)
        return self._clock.rates

    @property
    def _told(self) -> Told:
        self._now[:-1], self._now[-1] = self.rates, self.taken
        return self._seen, self._discount, self._key, self._now

    def begin_episode(self, s: State) -> None:
        """Begin an episode in s."""
        self.episode, self._first = self.episode + 1, True
        if self._compiled.experience.agent.plans_first:
            self._known = None
            with wide():
                self._learned = self._compiled.plan_first(self._memory, self._learned, s, self._told)

    def act(self, s: State) -> int:
        """Return an ε-greedy action in s."""
        a = int(explore(self._setup.n_actions, self.rates[EPSILON], self._stream))
        if a >= 0:
            return a
        self._row.u[:] = self._values_of(s)
        return int(greedy(self._row, 0, self._stream))

    def _values_of(self, s: State) -> Vector:
        """The values of a state, (A,)."""
        if self._known is not None and self._known[0] is s:
            return self._known[1]
        with wide():
            return np.asarray(self._compiled.q(self._learned, self._seen, s))

    def observe(self, s: State, a: int, r: float, s2: State, terminated: bool) -> None:
        """Observe one step. A truncated episode is not terminated: its last step bootstraps like any other."""
        place = self.taken % self._block
        self._came.note(place, s, a, r, s2, terminated, self._first)
        if place == self._block - 1:
            with wide():
                self._learn(s2)
        self.taken, self._first = self.taken + 1, False

    def _learn(self, s2: State) -> None:
        """Store the transitions of a block, the last of which leads to s2, and learn if an update is due."""
        compiled, taken, came = self._compiled, self.taken, self._came.transitions
        if not compiled.experience.due(taken):
            self._memory = compiled.remember(self._memory, taken, came)
        else:
            self._memory, self._learned, largest, q = compiled.learn(self._memory, self._learned, came, self._told)
            self._largest, self._known = float(np.abs(np.asarray(largest))), (s2, np.asarray(q))
        if compiled.experience.renewed(taken):
            self._learned = compiled.renew(self._learned)

    def end_episode(self, s: State, terminated: bool) -> None:
        """Do nothing: nothing is left to learn when an episode is over."""

    def exploded(self, s: State, a: int, largest: float) -> bool:
        """Whether values of the last update are not finite, or far beyond possible values."""
        if largest > self._bounded[0]:  # rewards have become larger
            discount = self._setup.discount if self._setup.n_actions > 1 else 0.0
            self._bounded = largest, bound(largest, discount)
        return not self._largest <= self._bounded[1]

    @property
    def updates(self) -> NDArray[np.int64]:
        """Value updates by learning and by planning, (2,)."""
        packing = self._compiled.packing
        return np.asarray(packing.one(self._vectors, packing.numbers.updates))

    @property
    def _vectors(self) -> list[Vector]:
        """The learned state, packed, in NumPy arrays."""
        return [np.asarray(vector) for vector in self._learned]

    def judge(self, record: Record, episode: int, largest: float, max_steps: int) -> bool:
        """Measure the error after an episode; return whether the run may continue."""
        table = zeros(self._setup.n_states or 1, self._setup.n_actions)
        if record.truth.size:
            table.fill(self._all_values())
        nobody: Any = None  # `judge` uses the values only
        parts = Parts(nobody, nobody, nobody, table, self._setup.discount, self.updates)
        return bool(judge(parts, record, episode, self.taken, largest, max_steps, FOREVER))

    def rows(self, record: Record, seconds: Vector) -> RunRows:
        """The results of the run."""
        values = self._all_values()
        learned = self._compiled.packing.unpack(self._vectors)
        columns: Any = {name: np.array(getattr(record, name))[None] for name in PER_EPISODE}
        return RunRows(
            **columns,
            updates=self.updates[None],
            edges=np.zeros(1, dtype=np.int64),
            values=(values[:, 0] if self._setup.n_actions == 1 else values)[None],
            weights=in_a_row(learned.values)[None],
            diverged=record.diverged.copy(),
            seconds=seconds,
            runs=NoModels(_NOT_KEPT),
        )

    def _all_values(self) -> Vector:
        """The values of all numbered states, (S, A); (0, A) if states are not numbered."""
        if self._seen is None:
            return np.zeros((0, self._setup.n_actions))
        with wide():
            return np.asarray(self._compiled.values(self._learned, self._seen), dtype=np.float64)
