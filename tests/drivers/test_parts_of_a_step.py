"""One step, taken apart: acting, arriving, and whose turn it is to be planned from. By hand."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.core.interaction import Step
from backcast.core.randomness import streams
from backcast.drivers.loop import EpisodeState, arrive, next_step
from backcast.extending import Origins, part
from backcast.planners.contract import plan_from_origins, turns

pytestmark = pytest.mark.interpreted
CORRIDOR = bc.worlds.maze("S.G")
RIGHT = 1


def parts():
    """Q-learning in the corridor, that goes right."""
    made = bc.agent("q", epsilon=0.0).build(Setup(3, 4, 0.9, CORRIDOR))
    for s in (0, 1):
        made.values.put(s, RIGHT, 0.5)
    return made


def test_the_agent_acts_and_the_world_answers():
    world_stream, agent_stream = streams(0)
    arguments = CORRIDOR.tables.at(0), parts(), np.array([1.0, 1.0, 1.0, 0.0]), world_stream, agent_stream
    assert tuple(next_step(*arguments, EpisodeState(0, 0, 0.0, 0.0, False, False))) == (0, RIGHT, 0.0, 1, False, True)
    assert tuple(next_step(*arguments, EpisodeState(1, 7, 0.0, 0.0, False, False))) == (1, RIGHT, 1.0, 2, True, False)


def test_where_an_episode_stands_after_a_step():
    here = EpisodeState(1, 7, -2.0, 3.0, False, False)
    assert tuple(arrive(parts(), here, Step(1, RIGHT, -4.0, 0, False, False))) == (0, 8, -6.0, 4.0, False, False)
    assert tuple(arrive(parts(), here, Step(1, RIGHT, 1.0, 2, True, False))) == (2, 8, -1.0, 3.0, True, False)
    lost = parts()
    lost.values.put(1, RIGHT, np.inf)
    assert tuple(arrive(lost, here, Step(1, RIGHT, 0.0, 0, False, False))) == (0, 8, -2.0, 3.0, True, True)


TOLD, ASKED, FROM, ENDS = 1, 2, 10, 100


@part
class Noting(NamedTuple):
    """Notes what is asked of it; plans from the states that it was made for."""

    previous: bool
    current: bool
    notes: Any  # how many there are, then each

    def note(self, what):
        """One more."""
        self.notes[0] += 1
        self.notes[self.notes[0]] = what

    def note_step(self, model, values, step, discount):
        """Be told of a step."""
        self.note(TOLD)

    def origins(self, model, step):
        """As it was made."""
        self.note(ASKED)
        return Origins(self.previous, self.current)

    def plan_from(self, model, values, s, ends, discount, rates):
        """Note from where."""
        self.note(FROM + s + (ENDS if ends else 0))
        return 10 + s


@pytest.mark.parametrize(
    ("previous", "current", "planned", "updates"),
    [
        (True, False, [(3, False)], 13),
        (False, True, [(5, True)], 15),
        (True, True, [(3, False), (5, True)], 28),
        (False, False, [], 0),
    ],
)
def test_a_planner_is_told_of_a_step_then_plans_from_s_then_from_what_follows(previous, current, planned, updates):
    planner, step = Noting(previous, current, np.zeros(9, dtype=np.int64)), Step(3, 0, 0.0, 5, True, False)
    assert plan_from_origins(planner, 0, 0, step, 0.9, np.ones(4)) == updates
    notes = planner.notes[1 : planner.notes[0] + 1].tolist()
    assert notes == [TOLD, ASKED, *(FROM + s + ENDS * ends for s, ends in planned)]
    assert [(s, ends) for s, ends, wanted in turns(planner, 0, 0, step, 0.9) if wanted] == planned
