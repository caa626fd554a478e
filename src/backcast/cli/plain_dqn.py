"""DQN as it is usually written: a Python loop around a Gymnasium environment, with compiled functions to act and learn.

`backcast bench --only neural` uses it as a baseline. It follows the steps of CleanRL's single-file implementation: a
vector environment of one copy, a memory of NumPy arrays, a network and an optimiser in JAX. The network is compiled;
the best action is taken from its output by a call of its own, and fetched. A *lean* loop takes it within the compiled
function, keeps the observation of the environment without copying it, and returns no losses.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.core.arrays import Vector
from backcast.core.interaction import ALPHA, EPSILON
from backcast.networks.modules import Params

Told = tuple[jax.Array, jax.Array] | None  # the loss, and the values that were learned


class _Memory:
    """A ring buffer of transitions."""

    def __init__(self, room: int, width: int) -> None:
        self.s, self.s2 = np.zeros((room, width), np.float32), np.zeros((room, width), np.float32)
        self.a, self.r, self.ends = np.zeros(room, np.int32), np.zeros(room, np.float32), np.zeros(room, np.float32)
        self.count = 0

    def add(self, s: Vector, a: int, r: float, s2: Vector, ends: bool) -> None:
        """Store a transition in place of the oldest."""
        at = self.count % len(self.a)
        self.s[at], self.a[at], self.r[at], self.s2[at], self.ends[at] = s, a, r, s2, ends
        self.count += 1

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Any, ...]:
        """Draw transitions uniformly."""
        at = rng.integers(min(self.count, len(self.a)), size=size)
        return self.s[at], self.a[at], self.r[at], self.s2[at], self.ends[at]


class _Compiled(NamedTuple):
    """The functions to act and to learn, and the optimiser."""

    act: Callable[[Params, Vector], NDArray[np.int32]]
    learn: Callable[..., tuple[Params, Params, Told]]
    optimiser: optax.GradientTransformation


def _compiled(alpha: float, discount: float, lean: bool) -> _Compiled:
    optimiser = optax.adam(alpha)

    def values(params: Params, seen: jax.Array) -> jax.Array:
        for w, b in params[:-1]:
            seen = jax.nn.relu(seen @ w + b)
        w, b = params[-1]
        return seen @ w + b

    def learn(
        params: Params, target: Params, state: Params, s: jax.Array, a: jax.Array, r: jax.Array, s2: jax.Array,
        ends: jax.Array,
    ) -> tuple[Params, Params, Told]:  # fmt: skip
        goal = r + (1 - ends) * discount * values(target, s2).max(axis=1)

        def loss(params: Params) -> tuple[jax.Array, jax.Array]:
            q = values(params, s)[jnp.arange(len(a)), a]
            return ((goal - q) ** 2).mean(), q

        told, gradient = jax.value_and_grad(loss, has_aux=True)(params)
        moves, state = optimiser.update(gradient, state)
        return optax.apply_updates(params, moves), state, None if lean else told

    network, best = jax.jit(values), jax.jit(lambda params, s: values(params, s).argmax(axis=1))

    def act(params: Params, s: Vector) -> NDArray[np.int32]:
        a: NDArray[np.int32] = (
            np.asarray(best(params, s)) if lean else jax.device_get(network(params, s).argmax(axis=-1))
        )
        return a

    return _Compiled(act, jax.jit(learn), optimiser)


def _layers(rng: np.random.Generator, sizes: list[int]) -> Params:
    return [
        (jnp.asarray(rng.normal(size=pair) * np.sqrt(2 / pair[0]), jnp.float32), jnp.zeros(pair[1], jnp.float32))
        for pair in itertools.pairwise(sizes)
    ]


class PlainDQN:
    """The loop, with the settings of one of Backcast's agents, in a vector environment with one copy.

    Args:
        name: id of the environment, whose observations are vectors.
        agent: the agent whose network, batch, memory, target network and initial rates are used.
        discount: γ.
        lean: whether it is the lean loop.
    """

    def __init__(self, name: str, agent: Agent, discount: float, lean: bool = False) -> None:
        self._env, self._agent = SyncVectorEnv([lambda: RecordEpisodeStatistics(gymnasium.make(name))]), agent
        self._lean = lean
        rates = agent.rates_at_first()[0]
        self._compiled, self._epsilon = _compiled(rates[ALPHA], discount, lean), rates[EPSILON]

    def run(self, steps: int, seed: int) -> list[float]:
        """Take real steps; return the returns of episodes. The step that resets the environment is stored, too."""
        env, agent, (act, learn, optimiser) = self._env, self._agent, self._compiled
        rng, returns = np.random.default_rng(seed), []
        seen, chosen = env.single_observation_space, env.single_action_space
        assert isinstance(seen, Box)
        assert isinstance(chosen, Discrete)
        params = _layers(rng, [seen.shape[0], *agent.get("network").get("widths"), int(chosen.n)])
        target, state = params, optimiser.init(params)
        memory, batch = _Memory(agent.get("memory"), seen.shape[0]), agent.get("batch")
        every, target_every = agent.get("every"), agent.get("target_every")
        s, _ = env.reset(seed=seed)
        for step in range(steps):
            explores = rng.random() < self._epsilon
            a = env.action_space.sample() if explores else act(params, s)
            s2, r, terminated, _, info = env.step(a)
            memory.add(s[0], a[0], r[0], (s2 if self._lean else s2.copy())[0], terminated[0])
            s = s2
            if "episode" in info:
                returns.append(float(info["episode"]["r"][0]))
            if memory.count >= batch and (step + 1) % every == 0:
                params, state, _ = learn(params, target, state, *memory.sample(rng, batch))
            if (step + 1) % target_every == 0:
                target = params
        return returns
