"""Algorithm 1, the one loop: act, step the world, learn the model, learn the values, plan.

`observe` is one interaction and `run_episodes` a whole run; both are kernels. The compiled driver (`backcast.run`)
calls the second, the stepwise driver (`backcast.train`) the first, so that both compute the same numbers.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from backcast.arrays import Indices, Mask, Vector
from backcast.compiling import kernel, part, types
from backcast.learners.td import td_update
from backcast.randomness import Stream, pick, uniform
from backcast.values import Values

ALPHA, ALPHA_MODEL, ALPHA_PLAN, EPSILON = 0, 1, 2, 3  # the columns of a schedule
LEARNING, PLANNING = 0, 1  # the two counters of value updates


@part
class Table(NamedTuple):
    """A world that can be stepped: for each state and action its outcomes, with cumulative probabilities.

    Attributes:
        start_state: the states that may begin an episode.
        start_cumulative: their cumulative probabilities.
        offset: (S·A + 1,) where the outcomes of row s·A + a begin.
        cumulative: cumulative probability of each outcome within its row.
        next_state: s' of each outcome.
        reward: r of each outcome.
        terminal: (S,) whether an episode ends there.
        n_actions: A.
    """

    start_state: Indices
    start_cumulative: Vector
    offset: Indices
    cumulative: Vector
    next_state: Indices
    reward: Vector
    terminal: Mask
    n_actions: int

    def draw_start(self, u: float) -> int:
        """The state that begins an episode, for a uniform u."""
        return self.start_state[pick(self.start_cumulative, 0, self.start_state.size, u)]

    def draw_outcome(self, s: int, a: int, u: float) -> int:
        """The index of an outcome of (s, a), for a uniform u."""
        row = s * self.n_actions + a
        return pick(self.cumulative, self.offset[row], self.offset[row + 1], u)


class Parts(NamedTuple):
    """An agent at work: its model, its planner, its values, and what it counts."""

    model: Any
    planner: Any
    values: Values
    learns: bool
    discount: float
    updates: NDArray[np.int64]  # (2,): value updates by learning and by planning


class Record(NamedTuple):
    """What a run leaves behind, per episode.

    To measure errors it holds, in prediction, v_π and which states do not end an episode (1 or 0); empty in control.
    """

    steps: NDArray[np.int64]
    reward: Vector
    rmsve: Vector
    rmsve_inner: Vector
    truth: Vector
    inner: Vector


@kernel
def act(values: Values, s: int, epsilon: float, stream: Stream) -> int:
    """An ε-greedy action; ties are broken uniformly at random."""
    n_actions = values.n_actions
    if n_actions == 1:
        return 0
    if uniform(stream) < epsilon:
        return int(uniform(stream) * n_actions)
    first = s * n_actions
    best, ties, action = values.u[first], 1, 0
    for a in range(1, n_actions):
        u = values.u[first + a]
        if u > best:
            best, ties, action = u, 1, a
        elif u == best:
            ties += 1
    if ties == 1:
        return action
    left = int(uniform(stream) * ties)
    for a in range(n_actions):
        if values.u[first + a] == best:
            if left == 0:
                return a
            left -= 1
    return action


@kernel
def begin(agent: Parts, rates: Vector, s: int) -> None:
    """The first state of an episode."""
    agent.updates[PLANNING] += agent.planner.begin(agent.model, agent.values, s, agent.discount, rates[ALPHA_PLAN])


@kernel
def observe(agent: Parts, rates: Vector, s: int, a: int, r: float, s2: int, ends: bool, first: bool) -> None:
    """One interaction s, a → r, s': model learning, value learning, planning (lines 6 to 11 of the algorithms)."""
    agent.model.learn(s, a, r, s2, ends, rates[ALPHA_MODEL])
    if agent.learns:
        td_update(agent.values, s, a, r, s2, ends, agent.discount, rates[ALPHA])
        agent.updates[LEARNING] += 1
    agent.updates[PLANNING] += agent.planner.plan(
        agent.model, agent.values, s, s2, ends, first, agent.discount, rates[ALPHA_PLAN]
    )


@kernel
def run_episodes(
    table: Table,
    agent: Parts,
    schedule: Vector,
    world_stream: Stream,
    agent_stream: Stream,
    max_steps: int,
    record: Record,
    stop: NDArray[np.uint8],
) -> int:
    """All episodes of one run; schedule (episodes, 4). The number of episodes finished before `stop` was raised."""
    for episode in range(schedule.shape[0]):
        rates = schedule[episode]
        s = table.draw_start(uniform(world_stream))
        steps, gained = 0, 0.0
        ends = table.terminal[s]
        if not ends:
            begin(agent, rates, s)
        while not ends and steps < max_steps:
            if steps & 1023 == 0 and raised(stop) != 0:
                return episode
            a = act(agent.values, s, rates[EPSILON], agent_stream)
            outcome = table.draw_outcome(s, a, uniform(world_stream))
            r, s2 = table.reward[outcome], table.next_state[outcome]
            ends = table.terminal[s2]
            observe(agent, rates, s, a, r, s2, ends, steps == 0)
            s = s2
            steps += 1
            gained += r
        record.steps[episode] = steps
        record.reward[episode] = gained
        if record.truth.size > 0:
            measure(agent.values, record, episode)
    return schedule.shape[0]


@partial(kernel, fastmath={"reassoc"})  # sums in any order: only what is reported is computed here
def measure(values: Values, record: Record, episode: int) -> None:
    """The root mean squared value error over all states, and over those that do not end an episode."""
    scale, shift = values.affine[0], values.affine[1]
    everywhere, inner, states = 0.0, 0.0, 0.0
    for s in range(record.truth.size):
        error = scale * values.u[s] + shift - record.truth[s]
        everywhere += error * error
        inner += record.inner[s] * (error * error)
        states += record.inner[s]
    record.rmsve[episode] = np.sqrt(everywhere / record.truth.size)
    record.rmsve_inner[episode] = np.sqrt(inner / max(1.0, states))


@intrinsic  # type: ignore[untyped-decorator]
def raised(typing_context: Any, flag: Any) -> Any:
    """flag[0] of a uint8 array as another thread last wrote it: a plain read may be moved out of the loop."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(data, "acquire", 1)

    if isinstance(flag, types.Array) and flag.dtype == types.uint8:
        return types.uint8(flag), generate
    return None
