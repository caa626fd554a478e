"""Algorithm 1, the one loop: act, step the world, learn the model, learn the values, plan.

`observe` is one interaction, `walk` some steps of an episode, `run_episodes` a whole run and `run_seeds` the runs of
several seeds; all are kernels. The compiled driver (`backcast.run`) calls `run_seeds`. The stepwise driver
(`backcast.train`) calls `observe`. The lab, which shows what planning changed, calls the parts of `walk`. All compute
the same numbers.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from backcast.agents.parts import Parts
from backcast.core.arrays import Vector
from backcast.core.compiling import intrinsic, kernel, types
from backcast.core.copies import shifted
from backcast.core.interaction import EPSILON, Step
from backcast.core.numerics import squares
from backcast.core.randomness import Stream, uniform
from backcast.values.contract import Values
from backcast.values.policies import act
from backcast.worlds.stepping import FOREVER, Table, Tables

LEARNING, PLANNING = 0, 1  # the two counters of value updates
MOST = 1.7e308  # nearly the largest float
_BEYOND = 1e6  # times the largest reward or true value: values beyond this have diverged …
_FAR = 100.0  # … if they are also this many times the largest possible return
_LONGEST = 1e12  # replaces 1 / (1 − γ) if γ is 1 or nearly
_HUGE, _SMALLER = 1e100, 2.0**-600  # errors above the first are scaled by the second before squaring


class EpisodeState(NamedTuple):
    """The state of an episode.

    Attributes:
        s: the state that the agent is in.
        steps: number of steps taken in this episode.
        gained: sum of their rewards.
        largest: the largest |reward| of the run so far, or the largest |true value| if that is larger.
        ends: whether the episode is over: it ended in s, or values diverged.
        lost: whether values diverged.
    """

    s: int
    steps: int
    gained: float
    largest: float
    ends: bool
    lost: bool


class Record(NamedTuple):
    """The record of a run, per episode; `made` counts the value updates up to the end of each episode.

    To measure errors in prediction, it holds v_π, which states do not end an episode (1 or 0), their number, and the
    last errors of all states; all are empty in control.
    `diverged` (1,) is the step at which values diverged, counted from 1 over all episodes; 0 if they did not.
    """

    steps: NDArray[np.int64]
    made: NDArray[np.int64]
    reward: Vector
    rmsve: Vector
    rmsve_inner: Vector
    truth: Vector
    inner: Vector
    n_inner: float
    errors: Vector
    diverged: NDArray[np.int64]


class Run(NamedTuple):
    """Everything that belongs to the run of one seed: the agent, the record and the two random streams."""

    agent: Parts
    record: Record
    world_stream: Stream
    agent_stream: Stream


@kernel
def begin(agent: Parts, rates: Vector, s: int) -> None:
    """Begin an episode in s: tell the model, then the planner."""
    agent.model.restart(s, rates)
    plan_first(agent, rates, s)


@kernel
def plan_first(agent: Parts, rates: Vector, s: int) -> None:
    """Plan before the first step of an episode."""
    agent.updates[PLANNING] += agent.planner.begin(agent.model, agent.values, s, agent.discount, rates)


@kernel
def observe(agent: Parts, rates: Vector, s: int, a: int, r: float, s2: int, ends: bool, first: bool) -> None:
    """Process one interaction s, a → r, s': learn the model, learn values, plan (lines 6 to 11 of the algorithms)."""
    step = Step(s, a, r, s2, ends, first)
    learn_from(agent, rates, step)
    plan_after(agent, rates, step)


@kernel
def learn_from(agent: Parts, rates: Vector, step: Step) -> None:
    """Update the model and the values from a step."""
    agent.model.learn(agent.values, step, agent.discount, rates)
    agent.updates[LEARNING] += agent.learner.update(agent.values, step, agent.discount, rates)


@kernel
def plan_after(agent: Parts, rates: Vector, step: Step) -> None:
    """Plan after a step."""
    agent.updates[PLANNING] += agent.planner.plan(agent.model, agent.values, step, agent.discount, rates)


@kernel
def finish(agent: Parts, rates: Vector, s: int, ends: bool) -> None:
    """End an episode: it terminated in s, or was truncated there."""
    agent.updates[LEARNING] += agent.learner.conclude(agent.values, s, ends, agent.discount, rates)
    agent.updates[PLANNING] += agent.planner.finish(agent.model, agent.values, s, ends, agent.discount, rates)


@kernel
def walk(
    table: Table,
    agent: Parts,
    rates: Vector,
    world_stream: Stream,
    agent_stream: Stream,
    place: EpisodeState,
    most_steps: int,
    stop: NDArray[np.uint8],
) -> EpisodeState:
    """Continue an episode until it ends, reaches the limit of steps, or `stop` is raised; return its state."""
    while not place.ends and place.steps < most_steps:
        if place.steps & 15 == 0 and raised(stop) != 0:
            break
        step = next_step(table, agent, rates, world_stream, agent_stream, place)
        table.ahead.prefetch_next(table, agent, step.s2, step.a)
        learn_from(agent, rates, step)
        plan_after(agent, rates, step)
        place = arrive(agent, place, step)
    return place


@kernel
def next_step(
    table: Table, agent: Parts, rates: Vector, world_stream: Stream, agent_stream: Stream, place: EpisodeState
) -> Step:
    """Act, and step the world; nothing is learned from the step yet."""
    a = act(agent.values, place.s, rates[EPSILON], agent_stream)
    outcome = table.draw_outcome(place.s, a, uniform(world_stream))
    s2 = table.next_of(outcome)
    return Step(place.s, a, table.reward[outcome], s2, table.terminal[s2], place.steps == 0)


@kernel
def arrive(agent: Parts, place: EpisodeState, step: Step) -> EpisodeState:
    """Return the state of the episode after learning and planning, and check whether values have diverged."""
    largest = max(place.largest, abs(step.r))
    lost = exploded(agent, step.s, step.a, largest)
    return EpisodeState(step.s2, place.steps + 1, place.gained + step.r, largest, step.ends or lost, lost)


@kernel
def run_seeds(
    tables: Tables,
    run: Run,
    schedule: Vector,
    max_steps: int,
    budget: int,
    stop: NDArray[np.uint8],
    first: int,
    last: int,
    distance: int,
) -> None:
    """Make runs first … last − 1 of copies that lie `apart` bytes apart in memory, given the first."""
    for number in range(first, last):
        agent, record, world_stream, agent_stream = shifted(run, number * distance)
        run_episodes(tables, agent, schedule, world_stream, agent_stream, max_steps, budget, record, stop)


@kernel
def run_episodes(
    tables: Tables,
    agent: Parts,
    schedule: Vector,
    world_stream: Stream,
    agent_stream: Stream,
    max_steps: int,
    budget: int,
    record: Record,
    stop: NDArray[np.uint8],
) -> int:
    """Make all episodes of one run; schedule (episodes, 4). Return the episodes finished before `stop` was raised.

    After the episode in which the agent has made `budget` value updates the run is over: the rest of the record
    repeats that episode. The run is also over at the step at which values diverge; errors are infinite from then on.
    """
    taken, largest = 0, 0.0
    for s in range(record.truth.size):
        largest = max(largest, abs(record.truth[s]))
    for episode in range(schedule.shape[0]):
        rates = schedule[episode]
        table = tables.at(taken)
        s = table.draw_start(uniform(world_stream))
        ends = table.terminal[s]
        if not ends:
            begin(agent, rates, s)
        place = EpisodeState(s, 0, 0.0, largest, ends, False)
        going = True
        while going:  # twice if the world changes during the episode
            table = tables.at(taken + place.steps)
            most = tables.holds_until(taken + place.steps, taken + max_steps) - taken
            place = walk(table, agent, rates, world_stream, agent_stream, place, most, stop)
            going = place.steps == most < max_steps and not place.ends
        if not place.ends and place.steps < max_steps:
            return episode
        taken += place.steps
        largest = place.largest
        if place.lost:
            record.diverged[0] = taken
        elif place.steps > 0:
            finish(agent, rates, place.s, place.ends)
        record.steps[episode] = place.steps
        record.reward[episode] = place.gained
        record.made[episode] = agent.updates[LEARNING] + agent.updates[PLANNING]
        if not judge(agent, record, episode, taken, largest, max_steps, budget):
            return episode + 1
    return schedule.shape[0]


@kernel
def exploded(agent: Parts, s: int, a: int, largest: float) -> bool:
    """Whether q(s, a), or one of its weights, is not finite or beyond `bound`.

    In prediction `largest` includes the true values, which are returns.
    """
    discount = agent.discount if agent.values.n_actions > 1 else 0.0
    return not abs(agent.values.probe(s, a)) <= bound(largest, discount)


@kernel
def bound(largest: float, discount: float) -> float:
    """The bound beyond which values have diverged, far above rewards so far, true values and possible returns."""
    returned = largest / max(1.0 - discount, 1.0 / _LONGEST)
    return min(max(_BEYOND * (1.0 + largest), _FAR * returned), MOST)


@kernel
def judge(agent: Parts, record: Record, episode: int, taken: int, largest: float, max_steps: int, budget: int) -> bool:
    """Measure the error after an episode, after `taken` steps in all; return whether the run may continue.

    If not, this episode is written into all later ones. If values have diverged, errors are infinite, and later
    episodes take as many steps as they may, because the agent would no longer arrive.
    """
    measured = record.truth.size > 0
    if measured:
        measure(agent.values, record, episode, _SMALLER if largest > _HUGE else 1.0)
        if record.diverged[0] == 0 and not record.rmsve[episode] <= bound(largest, 0.0):
            record.diverged[0] = taken
    lost = record.diverged[0] > 0
    if not lost and record.made[episode] < budget:
        return True
    if measured and lost:
        record.rmsve[episode] = record.rmsve_inner[episode] = np.inf
    for later in range(episode + 1, record.steps.size):
        record.steps[later] = max_steps if lost and max_steps < FOREVER else record.steps[episode]
        record.made[later] = record.made[episode]
        record.reward[later] = record.reward[episode]
        if measured:
            record.rmsve[later] = record.rmsve[episode]
            record.rmsve_inner[later] = record.rmsve_inner[episode]
    return False


@kernel
def measure(values: Values, record: Record, episode: int, unit: float) -> None:
    """Record the root mean squared value error over all states, and over those that do not end an episode.

    Errors are multiplied by `unit`, a power of two, before they are squared, to avoid overflow.
    """
    values.compare(record.truth, unit, record.errors)
    everywhere, inner = squares(record.errors, record.inner)
    record.rmsve[episode] = np.sqrt(everywhere / record.truth.size) / unit
    record.rmsve_inner[episode] = np.sqrt(inner / max(1.0, record.n_inner)) / unit


def _raised(flag: NDArray[np.uint8]) -> int:
    return int(flag[0])


@intrinsic(interpreted=_raised)
def raised(typing_context: Any, flag: Any) -> Any:
    """flag[0] of a uint8 array as another thread last wrote it: a plain read may be hoisted out of the loop."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(data, "acquire", 1)

    if isinstance(flag, types.Array) and flag.dtype == types.uint8:
        return types.uint8(flag), generate
    return None
