"""`backcast.train`: the same agents, step by step, in any Gymnasium environment with numbered actions."""

import dataclasses
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, TimeLimit
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.settings import MEMORY
from backcast.agents.setup import Setup
from backcast.core.arrays import Vector, as_fraction, as_whole
from backcast.core.copies import Copies
from backcast.core.errors import InputError
from backcast.core.interaction import EPSILON
from backcast.core.nesting import grows, rebuilt, with_all_inside
from backcast.core.randomness import streams
from backcast.drivers.loop import Record, Run, begin, exploded, finish, judge, observe
from backcast.drivers.progress import Advance, watching
from backcast.drivers.run import check_agent, check_seeds
from backcast.drivers.runs import RunRows, Runs, collect, rows_of
from backcast.drivers.seed_blocks import empty_record
from backcast.drivers.steps import Length, check_length, new_clock, set_rates
from backcast.networks.backend import require_jax
from backcast.values.observations import Observations
from backcast.values.policies import act
from backcast.worlds.from_tables import from_gymnasium, unusable
from backcast.worlds.stepping import FOREVER
from backcast.worlds.world import World

if TYPE_CHECKING:
    from backcast.drivers.neural_stepwise import NeuralStepwise


class Stepwise:
    """An agent that is driven one step at a time.

    `begin_episode(s)`, then `act(s)` and `observe(s, a, r, s', terminated)` in turn. It computes exactly what
    `backcast.run` computes.
    """

    def __init__(self, agent: Agent, setup: Setup, episodes: int | None, seed: int, steps: int | None = None) -> None:
        check_agent(agent)
        self.parts = agent.build(dataclasses.replace(setup, seed=seed))
        self.observations = setup.observations
        self._schedule = None if episodes is None else agent.rates(episodes)
        self._clock = None if steps is None else new_clock(agent, steps)
        self.taken = 0
        _, self.stream = streams(seed)
        self._knows_the_graph = setup.world is not None
        self.episode = -1
        self._first = True

    def state_of(self, observation: int | Vector) -> int:
        """Return the number of a state: its own, or the one assigned to an observation of a Box."""
        if self.observations is None:
            return int(observation)
        s = self.observations.number(observation)
        if self.observations.forgotten.size:
            for part in with_all_inside(self.parts):
                part.forget_states(self.observations.forgotten, self.parts.values.n_actions)
        return s

    def begin_episode(self, s: int) -> None:
        """Begin an episode in state s, with the step sizes and ε of the next episode."""
        self._refuse_unknown(state=s)
        self.episode += 1
        self._first = True
        self._make_room(s, 0, s)
        self._tell_time()
        begin(self.parts, self.rates, s)

    @property
    def rates(self) -> Vector:
        """α, α of the model, α of planning and ε of the current episode."""
        if self._clock is None:
            assert self._schedule is not None
            return self._schedule[min(self.episode, len(self._schedule) - 1)]
        return self._clock.rates

    def act(self, s: int) -> int:
        """Return an ε-greedy action in s."""
        self._tell_time()
        return int(act(self.parts.values, s, self.rates[EPSILON], self.stream))

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool) -> None:
        """Observe one step. A truncated episode is not terminated: its last step bootstraps like any other."""
        self._refuse_unknown(state=s, action=a, next_state=s2)
        self._make_room(s, a, s2)
        observe(self.parts, self.rates, s, a, float(r), s2, bool(terminated), self._first)
        self._first = False
        self.taken += 1

    def _tell_time(self) -> None:
        if self._clock is not None:
            set_rates(self._clock, self.taken)

    def end_episode(self, s: int, terminated: bool) -> None:
        """End the episode: it terminated in s, or was truncated there."""
        finish(self.parts, self.rates, s, bool(terminated))

    def exploded(self, s: int, a: int, largest: float) -> bool:
        """Whether q(s, a) is not finite, or far beyond possible values."""
        return bool(exploded(self.parts, s, a, largest))

    @property
    def updates(self) -> NDArray[np.int64]:
        """Value updates by learning and by planning, (2,)."""
        return self.parts.updates

    def judge(self, record: Record, episode: int, largest: float, max_steps: int) -> bool:
        """Measure the error after an episode; return whether the run may continue."""
        return bool(judge(self.parts, record, episode, self.taken, largest, max_steps, FOREVER))

    def rows(self, record: Record, seconds: Vector) -> RunRows:
        """The results of the run."""
        run = Run(self.parts, record, self.stream, self.stream)
        return rows_of(Copies(run, 1, 0), seconds, numbered=self.observations is None)

    def _make_room(self, s: int, a: int, s2: int) -> None:
        """Make room in rows: known graphs determine it in advance; otherwise rows grow."""
        if self._knows_the_graph:
            return
        n_actions = self.parts.values.n_actions
        rows = s, s2, s * n_actions + a, s2 * n_actions + a  # everything that rows may be conditioned on

        def with_room(part: object) -> Any | None:
            return part.with_room((s, s2), rows) if grows(part) else None

        self.parts = self.parts._replace(model=rebuilt(self.parts.model, with_room))

    def _refuse_unknown(self, **numbers: int) -> None:
        """Raise InputError on states or actions outside the tables, because kernels do not check indices."""
        n_actions = self.parts.values.n_actions
        sizes = {"action": n_actions, "state": self.parts.values.n_states}
        for name, number in numbers.items():
            size = sizes["action" if name == "action" else "state"]
            if not 0 <= number < size:
                raise InputError(f"{name}: {number} observed, but the environment's space has 0 to {size - 1}")


def train(
    env: object,
    agent: Agent,
    episodes: int | None = None,
    seed: int | None = None,
    max_steps: int | None = None,
    discount: float = 0.99,
    seeds: int | Iterable[int] | None = None,
    progress: bool | None = None,
    steps: int | None = None,
) -> Runs:
    """Run an agent in a Gymnasium environment, step by step.

    In Backcast's own environments this gives the same numbers as `backcast.run` with the same seed.

    Args:
        env: an environment with a Discrete action space; observations are Discrete, or a Box if the agent has features
            or a network.
        agent: an agent from `backcast.agent`; true models need an environment with a transition table.
        episodes: number of episodes.
        seed: of the agent, and of the environment's first reset.
        max_steps: number of steps after which an episode is truncated, unless the environment ends it before.
        discount: γ, for environments that do not define it.
        seeds: several seeds in place of `seed`, run one after the other: n for the seeds 0 … n − 1, or an iterable.
        progress: whether to show progress on stderr; None: only if stderr is a terminal.
        steps: number of real steps of each run, in place of `episodes`, as in `backcast.run`.

    Returns:
        Results as from `backcast.run`.
    """
    check_agent(agent)
    if not isinstance(env, gymnasium.Env):
        how = ", as gymnasium.make makes it" if isinstance(env, str) else ""
        how = "; backcast.run runs agents in a World" if isinstance(env, World) else how
        raise InputError(f"env: {type(env).__name__} given, expected a Gymnasium environment{how}")
    length = check_length(episodes, steps, _seeds(seed, seeds))
    limit = None if max_steps is None else as_whole("max_steps", max_steps, 1)
    with watching("training", (length.episodes or length.steps or 1) * len(length.seeds), progress) as advance:
        trained = [_train(env, agent, length, each, limit, discount, advance) for each in length.seeds]
    return collect(trained[0].world, agent, length.seeds, [each.rows for each in trained])


class _Trained(NamedTuple):
    """A run: the input of `collect`, and the name of its world."""

    rows: RunRows
    world: str


def _seeds(seed: int | None, seeds: int | Iterable[int] | None) -> list[int]:
    """Return the seeds, given by one of the two arguments; environments need whole numbers."""
    if (seed is None) == (seeds is None):
        raise InputError(f"seed: {seed!r} and seeds: {seeds!r} given, expected one of them")
    if seeds is None:
        return [as_whole("seed", seed, 0)]
    return [as_whole("seeds", each, 0) for each in check_seeds(seeds)]


def _train(
    env: "gymnasium.Env[Any, Any]",
    agent: Agent,
    length: Length,
    seed: int,
    limit: int | None,
    discount: float,
    advance: Advance,
) -> _Trained:
    """Run one seed."""
    observation, _ = env.reset(seed=seed)
    world = _world_of(env, agent, discount)
    walker = _walker(env, world, agent, discount, length, seed)
    record = empty_record(length.most_episodes, world)
    started = time.thread_time()
    episodes = _Episodes(env, world, walker, record, length, limit, advance)
    made = 0
    for episode in range(length.most_episodes):
        if episode:
            observation, _ = env.reset()
        episodes.walk(episode, observation)
        made = episode + 1
        if not walker.judge(record, episode, episodes.largest, limit or FOREVER) or walker.taken == length.steps:
            break
    name = world.name if world is not None else getattr(env.spec, "id", type(env.unwrapped).__name__)
    rows = walker.rows(record, np.array([time.thread_time() - started]))
    return _Trained(rows if length.steps is None else rows.with_episodes(made), name)


class _Episodes:
    """Episodes of one run, which are recorded.

    Attributes:
        largest: the largest absolute reward so far, or of the true values.
        lost: whether values diverged.
    """

    def __init__(
        self,
        env: "gymnasium.Env[Any, Any]",
        world: World | None,
        walker: "Stepwise | NeuralStepwise",
        record: Record,
        length: Length,
        limit: int | None,
        advance: Advance,
    ) -> None:
        self.env, self.world, self.walker, self.record = env, world, walker, record
        self.length, self.limit, self.advance = length, limit, advance
        self.first_state, self.first_action = (
            int(getattr(space, "start", 0)) for space in (env.observation_space, env.action_space)
        )
        self.largest, self.lost = float(np.abs(record.truth).max(initial=0.0)), False

    def walk(self, episode: int, observation: int | Vector) -> None:
        """Walk an episode, from its first observation to its end or to the end of the run."""
        walker, record, terminated = self.walker, self.record, False
        s = self.state_of(observation)
        over = self.world is not None and bool(self.world.mdp.terminal[s])
        if over:
            walker.episode += 1
        else:
            walker.begin_episode(s)
        steps, gained = 0, 0.0
        while not over:
            s, r, terminated, over = self.step(s)
            steps, gained = steps + 1, gained + r
            over = over or steps == self.limit
        if self.lost:
            record.diverged[0] = walker.taken
        elif steps:
            walker.end_episode(s, terminated)
        record.steps[episode], record.reward[episode] = steps, gained
        record.made[episode] = walker.updates.sum()
        if self.length.steps is None:
            self.advance()

    def step(self, s: int) -> tuple[int, float, bool, bool]:
        """Make a step from s; return the next state, the reward, whether s' is terminal, and whether this was the last.

        It is the last if the episode ends or is cut off by the environment, if values diverge, or if the run is over.
        """
        walker = self.walker
        a = walker.act(s)
        observation, r, terminated, truncated, _ = self.env.step(a + self.first_action)
        s2, r = self.state_of(observation), float(r)
        walker.observe(s, a, r, s2, terminated)
        self.largest = max(self.largest, abs(r))
        self.lost = walker.exploded(s, a, self.largest)
        if self.length.steps is not None:
            self.advance()
        over = terminated or truncated or self.lost or walker.taken == self.length.steps
        return s2, r, terminated, bool(over)

    def state_of(self, observation: int | Vector) -> int:
        """The number of a state; those of the environment may not begin with 0. A network takes observations."""
        return cast(int, self.walker.state_of(observation - self.first_state if self.first_state else observation))


def _walker(
    env: "gymnasium.Env[Any, Any]", world: World | None, agent: Agent, discount: float, length: Length, seed: int
) -> "Stepwise | NeuralStepwise":
    """The stepwise agent."""
    setup = _setup(env, world, discount)
    if not agent.has_network:
        if setup.n_states == 0:
            setup = _remembering(setup, env.observation_space, agent, seed)
        return Stepwise(agent, setup, length.episodes, seed, length.steps)
    require_jax()
    from backcast.drivers.neural_stepwise import NeuralStepwise

    seen = world.observations if world is not None else np.eye(setup.n_states) if setup.n_states else None
    shape = (env.observation_space.shape or ()) if seen is None else seen.shape[1:]
    return NeuralStepwise(agent, setup, seen, shape, length, seed)


def _setup(env: "gymnasium.Env[Any, Any]", world: World | None, discount: float) -> Setup:
    """The setup of an agent; without states if observations are a Box."""
    if not isinstance(env.action_space, Discrete):
        raise InputError(f"env: its action space is {env.action_space}, expected Discrete; agents number their actions")
    if world is not None:
        return Setup(world.n_states, world.n_actions, world.discount, world)
    space, n_actions, discount = env.observation_space, int(env.action_space.n), as_fraction("discount", discount)
    if not isinstance(space, (Discrete, Box)):
        raise InputError(f"env: {unusable(space)}")
    return Setup(int(space.n) if isinstance(space, Discrete) else 0, n_actions, discount)


def _remembering(setup: Setup, space: object, agent: Agent, seed: int) -> Setup:
    """The setup of an agent whose states are the observations of a Box that it remembers."""
    if agent.shared("features") is None:
        raise InputError(
            f"agent: {agent.name!r} has a table, and needs numbered states; the observation space is {space}."
            " Give it features=backcast.features.tiles() or fourier()"
        )
    memory = agent.shared("memory", MEMORY)
    return dataclasses.replace(setup, n_states=memory, observations=Observations(space, memory, seed))


def _world_of(env: "gymnasium.Env[Any, Any]", agent: Agent, discount: float) -> World | None:
    """The world behind an environment: for Backcast's own, and for others if the agent plans with the true model.

    A wrapper may change the meaning of states and actions: a table is used only if their numbers match.
    """
    own = isinstance(getattr(env.unwrapped, "world", None), World) and _is_bare(env)
    has_table = hasattr(env.unwrapped, "P") or hasattr(env.unwrapped, "world")
    if not own and not (agent.knows_the_truth and has_table):
        return None
    world = from_gymnasium(env, discount)
    sizes = getattr(env.observation_space, "n", None), getattr(env.action_space, "n", None)
    return world if sizes == (world.n_states, world.n_actions) else None


def _is_bare(env: "gymnasium.Env[Any, Any]") -> bool:
    """Whether no wrapper can change what follows a step, so that rows may get their room from the world's graph."""
    while env is not env.unwrapped:
        if not isinstance(env, (OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, TimeLimit)):
            return False
        env = env.env
    return True
