"""Runs of agents with a network, one seed at a time, by the programs of `backcast.drivers.neural_program`."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.agents.neural import DTYPES, Spec
from backcast.core.arrays import Mask, Vector
from backcast.core.errors import InputError
from backcast.core.randomness import imagination, streams
from backcast.core.waiting import compiling_for
from backcast.drivers.neural_places import Walkable, place_of
from backcast.drivers.neural_policy import in_a_row
from backcast.drivers.neural_program import ROOM, NeuralRun, Program, RunOrders, program_for
from backcast.drivers.runs import LEFT_OUT, PER_EPISODE, KeptModel, NoModels, RunRows
from backcast.drivers.seed_blocks import setup_for
from backcast.models import NoModel
from backcast.models.neural.tables import learned_of
from backcast.networks.backend import wide
from backcast.worlds.stepping import FOREVER
from backcast.worlds.world import World

_FIRST, _SECONDS = 64, 0.5  # steps of the first call; approximate seconds of others, so that Ctrl-C works
_NO_NUMBERS = "models: not available, because states are vectors and have no numbers"


class NeuralJob:
    """The counterpart of `backcast.drivers.seed_blocks.Job` for agents with a network.

    Args:
        world: the world.
        agent: the agent.
        limit: number of steps after which episodes are truncated.
        episodes: number of episodes of each run, or None.
        steps: number of real steps of each run, in place of episodes.
        budget: value updates after which a run is over.
        models: whether models are kept.
    """

    most_seeds = 1

    def __init__(
        self,
        world: World,
        agent: Agent,
        limit: int,
        episodes: int | None = None,
        steps: int | None = None,
        budget: int = FOREVER,
        models: bool = True,
    ) -> None:
        self.world, self.agent, self.limit, self.budget = world, agent, limit, budget
        self._episodes, self._steps, self._keeps_models = episodes, steps, models
        self._first: Vector = np.zeros(4)
        self._falls: Mask = np.zeros(4, dtype=np.bool_)
        if steps is not None:
            self._first, self._falls = agent.rates_at_first()
        self._schedule = np.zeros((0, 4)) if episodes is None else agent.rates(episodes)
        self.stop: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)

    def prepare(self, seed: Any) -> None:
        """Compile, or load, the program, by a run of no steps."""
        with compiling_for(f"{self.agent.name} in {self.world.name}"), wide():
            program, place, walk = self._begin(seed)
            jax.block_until_ready(program.advance(walk, place, self._orders(0, 0)))

    def allow_blocks(self, seed: Any) -> None:
        """A block is one seed."""

    def perform(self, seeds: Sequence[Any]) -> RunRows:
        """Make the run of a block, which is one seed."""
        (seed,) = seeds
        with wide():
            return self._run(seed)

    def _run(self, seed: Any) -> RunRows:
        program, place, walk = self._begin(seed)
        started, parts = (time.process_time(), time.perf_counter()), []
        taken, finished, chunk, going = 0, 0, _FIRST, True
        while going:
            began = time.perf_counter()
            walk = jax.block_until_ready(program.advance(walk, place, self._orders(taken + chunk, finished)))
            recorded = int(walk.recorded)
            parts.append([np.asarray(column)[:recorded] for column in walk.record])
            taken, finished = int(walk.taken), finished + recorded
            chunk = max(_FIRST, min(2 * chunk, int(chunk * _SECONDS / max(time.perf_counter() - began, 1e-6))))
            spent = finished > 0 and int(walk.in_episode) == 0 and int(walk.learned.updates.sum()) >= self.budget
            done = finished == self._episodes or taken == self._steps
            going = not (done or spent or bool(walk.lost) or self.stop[0])
        seconds = min(time.process_time() - started[0], time.perf_counter() - started[1])
        return self._rows(
            program, place, walk, [np.concatenate(column) for column in zip(*parts, strict=True)], seconds
        )

    def _begin(self, seed: Any) -> tuple[Program, Walkable, NeuralRun]:
        world = self.world.draw(seed)
        KINDS[self.agent.kind].check(setup_for(world, seed, self.limit), self.agent)
        _refuse_worlds(world)
        dtype = DTYPES[self.agent.get("precision")]
        spec = Spec(world.observations.shape[1:], world.n_states, world.n_actions)
        program, place = program_for(self.agent, spec), place_of(world, dtype)
        key = jax.random.wrap_key_data(jnp.asarray(imagination(seed, 0)[:2] >> np.uint64(32), jnp.uint32))
        world_stream, agent_stream = (jnp.asarray(stream) for stream in streams(seed))
        largest = jnp.abs(place.truth).max(initial=0.0)
        return program, place, program.begin(place, key, world_stream, agent_stream, largest)

    def _orders(self, until: int, finished: int) -> RunOrders:
        room = ROOM if self._episodes is None else min(ROOM, self._episodes - finished)
        schedule = np.zeros((ROOM, 4))
        coming = self._schedule[finished : finished + ROOM]
        schedule[: len(coming)] = coming
        steps = FOREVER if self._steps is None else self._steps
        numbers = map(np.int64, (min(until, steps), steps, room, self.limit, self.budget))
        return RunOrders._make([*numbers, self._first, self._falls, schedule])

    def _rows(self, program: Program, place: Walkable, walk: NeuralRun, columns: list[Any], seconds: float) -> RunRows:
        """The results of a run."""
        found: dict[str, Any] = dict(zip(PER_EPISODE, columns, strict=True))
        lost, predicts = bool(walk.lost), program.agent.values is not None and place.truth.size > 0
        if lost and predicts:
            found["rmsve"][-1:] = found["rmsve_inner"][-1:] = np.inf
        if self._episodes is not None:
            more = self._episodes - len(found["steps"])
            found = {name: np.concatenate([column, np.repeat(column[-1:], more)]) for name, column in found.items()}
            if lost and self.limit < FOREVER:
                found["steps"][len(found["steps"]) - more :] = self.limit
        if not predicts:
            found["rmsve"] = found["rmsve_inner"] = np.zeros(0)
        values = np.asarray(program.values(walk.learned.values, place.seen), dtype=np.float64)
        return RunRows(
            **{name: column[None] for name, column in found.items()},
            updates=np.asarray(walk.learned.updates)[None],
            edges=np.zeros(1, dtype=np.int64),
            values=(values[:, 0] if values.shape[1] == 1 else values)[None],
            weights=in_a_row(walk.learned.values)[None],
            diverged=np.array([int(walk.taken) if lost else 0]),
            seconds=np.array([seconds]),
            runs=self._models(program, place, walk, values),
        )

    def _models(self, program: Program, place: Walkable, walk: NeuralRun, values: Vector) -> NoModels | KeptModel:
        """The readable models, if they are kept."""
        if not self._keeps_models or not len(values):
            return NoModels(_NO_NUMBERS if self._keeps_models else LEFT_OUT)
        return KeptModel(self._model(program, walk, place, values))

    def _model(self, program: Program, walk: NeuralRun, place: Walkable, values: Vector) -> Any:
        if not program.agent.models:
            return NoModel()
        n_states, n_actions = values.shape
        s, a, _, s2, *_ = map(np.asarray, walk.memory.at(np.arange(min(int(walk.taken), walk.memory.room))))
        pairs = np.bincount(s * n_actions + a, minlength=n_states * n_actions)
        tables = program.tables(walk.learned, place, pairs, np.bincount(s2, minlength=n_states))
        found = [
            at_work.model.tabled(*(np.asarray(each) for each in table))
            for at_work, table in zip(program.agent.models, tables, strict=True)
        ]
        return learned_of(found, values)


def _refuse_worlds(world: World) -> None:
    """Raise InputError if agents with a network cannot run in the world."""
    if world.later is not None:
        raise InputError(f"world: {world.name} changes; agents with a network need a world that does not")
    if world.motion is None and world.mdp.start[world.mdp.terminal].any():
        raise InputError(
            f"world: in {world.name} an episode may begin in a terminal state; agents with a network need a step"
        )
