"""The replay memory of an agent with a network, and when it learns from it."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.agents.neural import DTYPES, Learned, NeuralAgent, Spec, neural_agent
from backcast.drivers.neural_memory import Packed, empty, packed
from backcast.drivers.neural_ways import draw_ways
from backcast.models.neural.contract import Remembered, Ways
from backcast.values.neural import Eyes, Transitions
from backcast.worlds.stepping import FOREVER


class Circumstances(NamedTuple):
    """The arguments of an update besides transitions.

    Attributes:
        eyes: maps stored states to observations.
        discount: γ.
        rates: (4,), α, α of the model, α of planning and ε.
        key: random key of this step.
    """

    eyes: Eyes
    discount: jax.Array
    rates: jax.Array
    key: jax.Array


class Experience:
    """Stores transitions and updates an agent. The memory and the learned state are arguments and return values.

    Args:
        agent: the agent; its step sizes are not used.
        spec: the sizes of the environment.
    """

    def __init__(self, agent: Agent, spec: Spec) -> None:
        self.agent: NeuralAgent = neural_agent(agent, spec)
        self.dtype = DTYPES[agent.get("precision")]
        self._spec = spec
        self._memory, self._batch = agent.get("memory"), agent.get("batch")
        self._every, self._target_every = agent.get("every"), agent.get("target_every")
        self._candidates = agent.get("candidates") or 1
        self._again = agent.get("sample") if KINDS[agent.kind].replays else 1

    def nothing(self) -> Packed:
        """An empty memory of state numbers or, if states are not numbered, of observations."""
        shape, dtype = ((), jnp.int32) if self._spec.n_states else (self._spec.shape, self.dtype)
        return empty(max(self._memory, 1), shape, dtype, self.dtype)

    def plan_first(
        self,
        memory: Packed,
        learned: Learned,
        taken: jax.Array,
        s: jax.Array,
        first: jax.Array,
        known: Circumstances,
    ) -> Learned:
        """Plan from the first state of an episode, if a planner does so and the memory is not empty."""
        if not self.agent.plans_first:
            return learned
        filled = jnp.minimum(taken, self._memory)
        pairs = self._pairs(memory, jnp.maximum(filled, 1), known.key)

        def plan(learned: Learned) -> Learned:
            eyes, discount, rates, key = known
            return self.agent.plan_first(learned, eyes, s[None], pairs, discount, rates, key)

        ready = first & (filled > 0) if self._memory else first
        return jax.lax.cond(ready, plan, lambda learned: learned, learned)

    def remember(self, memory: Packed, taken: jax.Array, now: Transitions) -> Packed:
        """The memory with a transition, (1, …), in place of the oldest."""
        return memory.put_in_a_row(taken % self._memory, packed(now))

    @property
    def block(self) -> int:
        """All updates happen after a number of steps that is a multiple of this."""
        return 1 if self.agent.online or self.agent.plans_first else math.gcd(self._every, self._target_every)

    def due(self, taken: Any) -> Any:
        """Whether the agent learns after the step with this number, counted from 0."""
        if self.agent.online:
            return True
        enough = self._batch if self._batch <= self._memory else FOREVER
        return (taken + 1 >= enough) & ((taken + 1) % self._every == 0)

    def renewed(self, taken: Any) -> Any:
        """Whether the target network is updated after that step."""
        return False if self.agent.online else (taken + 1) % self._target_every == 0

    def learn(
        self, memory: Packed, learned: Learned, taken: jax.Array, now: Transitions, known: Circumstances
    ) -> tuple[Packed, Learned]:
        """Store a transition, and learn from a batch of the memory or, online, from this transition alone."""
        now = Transitions(*(each[None] for each in now))
        if self.agent.online:
            return memory, self._at_once(learned, now, known)
        memory = self.remember(memory, taken, now)

        def update(learned: Learned) -> Learned:
            return self._from_memory(memory, learned, taken, known)

        learned = jax.lax.cond(self.due(taken), update, lambda learned: learned, learned)
        renewed = self.renewed(taken)
        target = jax.tree.map(lambda new, old: jnp.where(renewed, new, old), learned.values, learned.target)
        return memory, learned._replace(target=target)

    def remember_block(self, memory: Packed, taken: jax.Array, came: Packed) -> Packed:
        """The memory with `block` more transitions, the last of which is that of this step."""
        if self._memory % self.block == 0:
            return memory.put_in_a_row((taken + 1 - self.block) % self._memory, came)
        fit = min(self.block, self._memory)
        at = (taken - jnp.arange(fit - 1, -1, -1)) % self._memory
        return memory.put(at, Packed(*(each[-fit:] for each in came)))

    def learn_block(
        self, memory: Packed, learned: Learned, taken: jax.Array, came: Packed, known: Circumstances
    ) -> tuple[Packed, Learned]:
        """Store `block` transitions, then learn."""
        if self.agent.online:
            return memory, self._at_once(learned, came.at(jnp.arange(1)), known)
        memory = self.remember_block(memory, taken, came)
        return memory, self._from_memory(memory, learned, taken, known)

    def _at_once(self, learned: Learned, batch: Transitions, known: Circumstances) -> Learned:
        """Learn online from one transition, (1, …)."""
        pairs = Remembered(batch.s, batch.a, batch.s2)
        eyes, discount, rates, key = known
        return self.agent.update(learned, eyes, batch, None, pairs, batch, discount, rates, key)

    def _from_memory(self, memory: Packed, learned: Learned, taken: jax.Array, known: Circumstances) -> Learned:
        """Learn from a batch of the memory."""
        eyes, discount, rates, key = known
        filled, keys = jnp.minimum(taken + 1, self._memory), jax.random.split(key, 4)
        batch = self._drawn(memory, filled, self._batch, keys[0])
        again = self._drawn(memory, filled, self._again, keys[1])
        pairs, own = self._pairs(memory, filled, keys[2]), Remembered(batch.s, batch.a, batch.s2)
        pairs = Remembered(*(jnp.concatenate(both) for both in zip(pairs, own, strict=True)))
        ways = self._ways(memory, taken % self._memory, filled, discount, keys[3])
        return self.agent.update(learned, eyes, batch, ways, pairs, again, discount, rates, keys[3])

    def _ways(
        self, memory: Packed, newest: jax.Array, filled: jax.Array, discount: jax.Array, key: jax.Array
    ) -> Ways | None:
        """A batch of paths, for a model over several steps; None for one step."""
        steps = self.agent.steps
        if steps == 1:
            return None
        return draw_ways(memory, newest, filled, self._batch, steps, discount, jax.random.fold_in(key, steps))

    def _drawn(self, memory: Packed, filled: jax.Array, size: int, key: jax.Array) -> Transitions:
        """Transitions drawn uniformly with replacement."""
        places = jax.random.randint(key, (size,), 0, filled.astype(jnp.int32), dtype=jnp.int32)
        return memory.at(places)

    def _pairs(self, memory: Packed, filled: jax.Array, key: jax.Array) -> Remembered:
        """Pairs drawn from the memory, with the states that followed."""
        drawn = self._drawn(memory, filled, self._candidates, key)
        return Remembered(drawn.s, drawn.a, drawn.s2)


def without_rates(agent: Agent) -> Agent:
    """The agent with its step sizes replaced by constants, because programs do not depend on them."""
    unit = agent.alpha if not isinstance(agent.get("optimiser"), str) else 1.0
    constant: dict[str, Any] = {"alpha_plan": None, "epsilon": 0.5, "schedule": "constant", "epsilon_schedule": None}
    return replace(agent, alpha=unit, alpha_model=1.0, **constant)
