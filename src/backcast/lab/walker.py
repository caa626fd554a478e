"""One agent on its way: step by step where it is watched, compiled where it is not.

It computes exactly what `backcast.run` computes with the same seed, by the same kernels and random numbers.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from backcast.agents import Agent
from backcast.arrays import Vector
from backcast.interaction import EPSILON, Step
from backcast.lab.credit import Change, Credit, How, counted, credit_of
from backcast.lab.scene import Scene
from backcast.loop import PLANNING, Parts, Place, begin, exploded, finish, learn_from, plan_after, walk
from backcast.planners import BackwardPlanner, BothPlanners, ForwardPlanner, NoPlanner
from backcast.planners.witness import way, witnessed
from backcast.policies import act
from backcast.randomness import Stream, streams, uniform
from backcast.values import as_array

TRAIL = 200  # states of an episode that are shown
_NEVER = np.zeros(1, dtype=np.uint8)


@dataclass
class Position:
    """All that changes while an agent walks.

    Attributes:
        parts: the agent at work; its planner has a witness.
        world_stream: random numbers of the world.
        agent_stream: random numbers of the agent.
        episode: its number, from 0; −1 before the first.
        place: where the episode stands.
    """

    parts: Parts
    world_stream: Stream
    agent_stream: Stream
    episode: int
    place: Place

    @property
    def n_bytes(self) -> int:
        """The memory that it takes."""
        return sum(array.nbytes for array in _arrays(self.parts))


class Walker:
    """An agent in a scene."""

    def __init__(self, scene: Scene, agent: Agent) -> None:
        self.scene, self.agent = scene, agent
        self.table, self.schedule = scene.world.steps_table, agent.rates(scene.episodes)
        parts = scene.parts_of(agent)
        largest = float(np.abs(scene.truth).max()) if scene.world.is_prediction else 0.0
        nowhere = Place(0, 0, 0.0, largest, True, False)
        self.now = Position(
            parts._replace(planner=witnessed(parts.planner, TRAIL)), *streams(scene.config.seed), -1, nowhere
        )

    @property
    def over(self) -> bool:
        """Whether its episode is over, or none has begun."""
        return self.now.place.ends or self.now.place.steps >= self.scene.limit

    @property
    def lost(self) -> bool:
        """Whether its values exploded; it then stays where it is."""
        return self.now.place.lost

    @property
    def rates(self) -> Vector:
        """α, α of the model, α of planning and ε of this episode."""
        return self.schedule[max(0, self.now.episode)]

    @property
    def action_values(self) -> Vector:
        """q, (S, A), a copy."""
        return np.array(as_array(self.now.parts.values))

    @property
    def way(self) -> list[int]:
        """The last states of this episode, oldest first."""
        return [] if self.now.episode < 0 else way(self.now.parts.planner)

    def save(self) -> Position:
        """A copy of where it is."""
        return copy.deepcopy(self.now)

    def restore(self, position: Position) -> None:
        """Be where it was."""
        self.now = copy.deepcopy(position)

    def begin_episode(self) -> None:
        """Draw a start and begin there."""
        now = self.now
        now.episode += 1
        if self.lost:
            return
        s = int(self.table.draw_start(uniform(now.world_stream)))
        ends = bool(self.table.terminal[s])
        now.place = Place(s, 0, 0.0, now.place.largest, ends, False)
        if ends:
            now.parts.planner.seen[0] = 0
            now.parts.planner.note(s)
        else:
            begin(now.parts, self.rates, s)

    def walk_to(self, steps: int) -> None:
        """Go on, compiled, until the episode has so many steps or is over."""
        if self.over:
            return
        now = self.now
        most = min(steps, self.scene.limit)
        arguments = self.table, now.parts, self.rates, now.world_stream, now.agent_stream
        now.place = Place(*walk(*arguments, now.place, most, _NEVER))
        self._conclude()

    def tick(self, begins: bool) -> Credit:
        """Take one step, after the beginning of an episode if it `begins`, and look at what it changed."""
        changes = list(self._watched(begins))
        if not changes:
            arrived = f"Arrived after {counted(self.now.place.steps, 'step')}; it waits."
            return Credit(words="Its values exploded; it stands still." if self.lost else arrived)
        return credit_of(changes, self.scene.name_of)

    def _watched(self, begins: bool) -> Iterator[Change]:
        before = self.action_values
        if begins:
            self.begin_episode()
            planner = self.now.parts.planner.observed
            if isinstance(planner, BackwardPlanner) and planner.current and planner.far:
                before = yield from self._change("backward", (self.now.place.s,), before)
            elif isinstance(planner, ForwardPlanner) and planner.current and planner.pure:
                before = yield from self._change("forward", (self.now.place.s,), before)
        if self.over:
            return
        step = self._step()
        before = yield from self._change("learning", (step.s,), before)
        for parts in _one_by_one(self.now.parts):
            plan_after(parts, self.rates, step)
            how, origins = _aim(parts.planner, step)
            if how is not None:
                before = yield from self._change(how, origins, before, parts.model)
        if exploded(self.now.parts.values, step.s, step.a, self.now.place.largest):
            self.now.place = self.now.place._replace(ends=True, lost=True)
        planned = self.now.parts.updates[PLANNING]
        self._conclude()
        if self.over:
            how = "elsewhere" if self.now.parts.updates[PLANNING] > planned else "learning"
            yield from self._change(how, (), before)

    def _change(self, how: How, origins: tuple[int, ...], before: Vector, model: Any = None) -> Any:
        """Yield what has changed; the values after it."""
        after = self.action_values
        yield Change(how, origins, before, after, self.now.parts.model if model is None else model)
        return after

    def _step(self) -> Step:
        """Act, and learn from what follows; planning is left to the caller."""
        now, table = self.now, self.table
        s, steps, gained, largest, _, _ = now.place
        a = int(act(now.parts.values, s, self.rates[EPSILON], now.agent_stream))
        outcome = table.draw_outcome(s, a, uniform(now.world_stream))
        r, s2 = float(table.reward[outcome]), int(table.next_state[outcome])
        step = Step(s, a, r, s2, bool(table.terminal[s2]), steps == 0)
        learn_from(now.parts, self.rates, step)
        now.parts.planner.note(s2)
        now.place = Place(s2, steps + 1, gained + r, max(largest, abs(r)), step.ends, False)
        return step

    def _conclude(self) -> None:
        """If the episode is over, let learner and planner know."""
        place = self.now.place
        if self.over and not self.lost and place.steps > 0:
            finish(self.now.parts, self.rates, place.s, place.ends)


def _one_by_one(parts: Parts) -> Iterator[Parts]:
    """The same agent without its witness; one that plans in both directions as two, that plan one after the other."""
    planner = parts.planner.observed
    if not isinstance(planner, BothPlanners):
        yield parts._replace(planner=planner)
        return
    for model, direction in zip(parts.model, planner, strict=True):
        yield parts._replace(model=model, planner=direction)


def _aim(planner: Any, step: Step) -> tuple[How | None, tuple[int, ...]]:
    """How a planner plans after a step, and from which states; None if it does not."""
    if isinstance(planner, NoPlanner):
        return None, ()
    if isinstance(planner, ForwardPlanner):
        if planner.current and step.ends:
            return None, ()
        return "forward", (step.s2 if planner.current else step.s,)
    if isinstance(planner, BackwardPlanner):
        if planner.current:
            return "backward", (step.s2,)
        here = (step.s,) if planner.far or not step.first else ()
        origins = here + ((step.s2,) if step.ends and planner.pure else ())
        return ("backward" if origins else None), origins
    return "elsewhere", ()


def _arrays(part: Any) -> Iterator[Any]:
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _arrays(each)
