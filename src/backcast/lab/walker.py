"""One agent of a scene: it runs step by step where it is watched, and compiled elsewhere.

It computes exactly what `backcast.run` computes with the same seed, by the same kernels and random numbers.
"""

import copy
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from backcast.agents import Agent
from backcast.agents.parts import Parts
from backcast.core.arrays import Vector
from backcast.core.compiling import is_part
from backcast.core.interaction import ALPHA_PLAN, Step
from backcast.core.randomness import Stream, streams, uniform
from backcast.core.waiting import compiling_for
from backcast.drivers.loop import PLANNING, EpisodeState, arrive, finish, learn_from, next_step, walk
from backcast.lab.credit import Credit, How, ValueChange, counted, credit_of
from backcast.lab.scene import Era, Scene
from backcast.planners.contract import AnyPlanner, CompleteStatePlanner, turns
from backcast.planners.witness import Witness, way, witnessed
from backcast.worlds.stepping import Table

TRAIL = 200  # states of an episode that are shown


@dataclass
class Position:
    """Everything that changes during a run.

    Attributes:
        parts: the agent; its planner has a witness.
        world_stream: random numbers of the world.
        agent_stream: random numbers of the agent.
        episode: the number of the episode, from 0; −1 before the first.
        place: the state of the episode.
        before: real steps of the episodes before this one.
    """

    parts: Parts
    world_stream: Stream
    agent_stream: Stream
    episode: int
    place: EpisodeState
    before: int = 0

    @property
    def taken(self) -> int:
        """Real steps so far."""
        return self.before + self.place.steps

    @property
    def n_bytes(self) -> int:
        """The memory that a copy takes."""
        return sum(array.nbytes for array in _arrays(self.parts, constant=False))


Changes = Generator[ValueChange, None, Vector]  # returns the values after the last


class Walker:
    """An agent in a scene; raising `stop` permanently ends its compiled steps."""

    def __init__(self, scene: Scene, agent: Agent, stop: NDArray[np.uint8]) -> None:
        self.scene, self.agent, self.stop = scene, agent, stop
        self.side, self.schedule = (0 if agent is scene.agents[0] else 1), agent.rates(scene.episodes)
        parts = scene.parts_of(agent)
        largest = float(np.abs(scene.world.truth).max()) if scene.world.is_prediction else 0.0
        nowhere = EpisodeState(0, 0, 0.0, largest, True, False)
        self.now = Position(
            parts._replace(planner=cast(AnyPlanner, witnessed(parts.planner, TRAIL))),
            *streams(scene.config.seed),
            -1,
            nowhere,
        )

    @property
    def over(self) -> bool:
        """Whether its episode is over, or none has begun."""
        return self.now.place.ends or self.now.place.steps >= self.scene.limit

    @property
    def lost(self) -> bool:
        """Whether its values diverged; it then stays where it is."""
        return self.now.place.lost

    @property
    def era(self) -> Era:
        """The era of the next step."""
        return self.scene.eras[self.era_number]

    @property
    def era_number(self) -> int:
        """The number of that era."""
        return self.scene.era(self.side, self.now.taken)

    def table_at(self, taken: int) -> Table:
        """The world in force after a number of real steps, for compiled loops."""
        return self.scene.eras[self.scene.era(self.side, taken)].world.steps_table

    @property
    def rates(self) -> Vector:
        """α, α of the model, α of planning and ε of this episode."""
        return self.schedule[max(0, self.now.episode)]

    @property
    def action_values(self) -> Vector:
        """A copy of q, (S, A)."""
        return np.array(self.now.parts.values.as_array())

    @property
    def way(self) -> list[int]:
        """The last states of this episode, oldest first."""
        return [] if self.now.episode < 0 else way(self._witness)

    @property
    def _witness(self) -> Witness:
        return cast(Witness, self.now.parts.planner)

    def save(self) -> Position:
        """Return a copy of the position."""
        return _copied(self.now)

    def restore(self, position: Position) -> None:
        """Return to a saved position."""
        self.now = _copied(position)

    def begin_episode(self) -> None:
        """Draw a start, and begin an episode there."""
        for *_, plan in self._begin():
            self.now.parts.updates[PLANNING] += plan()

    def _begin(self) -> "Iterator[Plan]":
        """As `begin_episode`, but planning before the first step is left to the caller."""
        now = self.now
        now.episode += 1
        now.before = now.taken
        if self.lost:
            now.place = now.place._replace(steps=0)
            return
        table = self.table_at(now.before)
        s = int(table.draw_start(uniform(now.world_stream)))
        now.place = EpisodeState(s, 0, 0.0, now.place.largest, bool(table.terminal[s]), False)
        self._witness.seen[0] = 0
        self._witness.note(s)
        if not now.place.ends:
            now.parts.model.restart(s, self.rates)
            yield from _first_plans(now.parts, self.rates, s)

    def walk_to(self, steps: int) -> None:
        """Continue, compiled, until the episode has `most` steps or is over."""
        if self.over:
            return
        now = self.now
        most = min(steps, self.scene.limit)
        while not self.over and now.place.steps < most and not self.stop[0]:  # twice if the world changes in between
            holds = self.scene.holds_until(self.side, now.taken, now.before + most) - now.before
            arguments = self.table_at(now.taken), now.parts, self.rates, now.world_stream, now.agent_stream
            with compiling_for(self.agent.name):
                now.place = _plain(walk(*arguments, now.place, holds, self.stop))
        self._conclude()

    def tick(self, begins: bool) -> Credit:
        """Take one step, after beginning an episode if it `begins`; return what it changed."""
        with compiling_for(self.agent.name):
            changes = list(self._watched(begins))
        if not changes:
            over = f"Its episode ended after {counted(self.now.place.steps, 'step')}. It waits for the other agent."
            return Credit(words="Its values diverged; it stays where it is." if self.lost else over)
        return credit_of(changes, self.scene.name_of)

    def _watched(self, begins: bool) -> Iterator[ValueChange]:
        before = self.action_values
        if begins:
            before = yield from self._planned(self._begin(), before)
        if self.over:
            return
        step = self._next_step()
        learn_from(self.now.parts, self.rates, step)
        before = yield from self._change("learning", None, before)
        before = yield from self._planned(_plans(self.now.parts, self.rates, step), before, explained=True)
        self.now.place = _plain(arrive(self.now.parts, self.now.place, step))
        planned = self.now.parts.updates[PLANNING]
        self._conclude()
        if self.over:
            how = "elsewhere" if self.now.parts.updates[PLANNING] > planned else "learning"
            yield from self._change(how, None, before)

    def _planned(self, plans: "Iterator[Plan]", before: Vector, explained: bool = False) -> Changes:
        """Plan, and yield the changes by each plan, `explained` by the planner after a step; return the values."""
        for how, origin, parts, plan in plans:
            parts.updates[PLANNING] += plan()
            why = parts.planner.explain(self.scene.name_of) if explained else ""
            before = yield from self._change(how, origin, before, parts, why)
        return before

    def _change(
        self, how: How, origin: int | None, before: Vector, planned: Parts | None = None, why: str = ""
    ) -> Changes:
        """Yield the changes made by planning or learning; return the values after them."""
        after, parts = self.action_values, planned or self.now.parts
        rate = partial(parts.planner.step_taken, alpha=float(self.rates[ALPHA_PLAN]))
        yield ValueChange(how, origin, before, after, parts.model, rate, parts.discount, why)
        return after

    def _next_step(self) -> Step:
        """Act, step the world, and tell the witness."""
        now, table = self.now, self.table_at(self.now.taken)
        s, a, r, s2, ends, first = next_step(
            table, now.parts, self.rates, now.world_stream, now.agent_stream, now.place
        )
        self._witness.note(s2)
        return Step(int(s), int(a), float(r), int(s2), bool(ends), bool(first))

    def _conclude(self) -> None:
        """If the episode is over, tell the learner and the planner."""
        place = self.now.place
        if self.over and not self.lost and place.steps > 0:
            finish(self.now.parts, self.rates, place.s, place.ends)


Plan = tuple[How, int | None, Parts, Callable[[], int]]


def _plans(parts: Parts, rates: Vector, step: Step) -> Iterator[Plan]:
    """The plans of an agent's planners after a step, one for each state that is planned from.

    Each has the way of planning, the state, the agent (with one of its planners) and the function to call.
    """
    for alone in _one_by_one(parts):
        planner, model, values, discount = alone.planner, alone.model, alone.values, alone.discount
        if not _plans_from_states(planner):
            how: How = "values" if planner.direction() == "values" else "elsewhere"
            yield how, None, alone, partial(planner.plan, model, values, step, discount, rates)
            continue
        for s, ends, planned in turns(planner, model, values, step, discount):
            if planned:
                plan = partial(planner.plan_from, model, values, int(s), bool(ends), discount, rates)
                yield planner.direction(), int(s), alone, plan


def _first_plans(parts: Parts, rates: Vector, s: int) -> Iterator[Plan]:
    """The same when an episode begins in s."""
    for alone in _one_by_one(parts):
        planner = alone.planner
        begin = partial(planner.begin, alone.model, alone.values, s, alone.discount, rates)
        if not _plans_from_states(planner):
            yield "elsewhere", None, alone, begin
        elif planner.plans_first(alone.model):
            yield planner.direction(), s, alone, begin


def _plans_from_states(planner: AnyPlanner) -> TypeGuard[CompleteStatePlanner[Any, Any]]:
    """Whether a planner says from which states it plans."""
    return hasattr(planner, "origins")


def _one_by_one(parts: Parts) -> Iterator[Parts]:
    """Split an agent into one for each of its planners, with the model of that planner."""
    for planner, model in parts.planner.stages(parts.model):
        yield parts._replace(model=model, planner=planner)


def _plain(place: EpisodeState) -> EpisodeState:
    """The same with Python numbers, for JSON."""
    s, steps, gained, largest, ends, lost = place
    return EpisodeState(int(s), int(steps), float(gained), float(largest), bool(ends), bool(lost))


def _copied(position: Position) -> Position:
    """A copy that shares arrays that never change."""
    return copy.deepcopy(position, {id(array): array for array in _arrays(position.parts, constant=True)})


def _arrays(part: Any, constant: bool) -> Iterator[Any]:
    """The arrays of a part that never change, such as those of true rows, or all others."""
    if isinstance(part, np.ndarray):
        if not constant:
            yield part
    elif is_part(part) and part.is_constant():
        yield from part[:-1] if constant else ()
    elif isinstance(part, tuple):
        for each in part:
            yield from _arrays(each, constant)
