"""A world: a finite MDP with everything needed to step through it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Mask, Matrix, Vector, ratio
from backcast.core.errors import InputError
from backcast.core.limits import refuse_many
from backcast.exact import value
from backcast.exact.chains import as_policy, mix
from backcast.mdp import FiniteMDP
from backcast.worlds.views import check_view, observations_of

if TYPE_CHECKING:
    from backcast.worlds.motion import Motion
    from backcast.worlds.stepping import Table, Tables

Purpose = Literal["prediction", "control"]  # what an agent does in a world: predict values, or improve them
Judge = Literal["rmsve", "steps", "reward"]  # metrics by which agents are compared

_DENSE_LIMIT = 1_000_000
_ROUNDING = 1e-9  # relative difference up to which expected rewards count as equal


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of each row s·A + a: one entry per outcome, sorted by row.

    Two outcomes may share their next state and differ in reward: this is how rewards can be random.
    """

    row: Indices
    next_state: Indices
    probability: Vector
    reward: Vector

    def mdp(self, n_states: int, n_actions: int, discount: float, start: Vector, terminal: Mask) -> FiniteMDP:
        """The finite MDP with the expected reward of each transition."""
        shape = (n_states * n_actions, n_states)
        place = (self.row, self.next_state)
        transition = sparse.csr_array((self.probability, place), shape=shape)
        reward = ratio(sparse.csr_array((self.probability * self.reward, place), shape=shape), transition)
        if transition.shape[0] * transition.shape[1] <= _DENSE_LIMIT:
            dense = (n_states, n_actions, n_states)
            return FiniteMDP(
                transition.toarray().reshape(dense), reward.toarray().reshape(dense), discount, start, terminal
            )
        return FiniteMDP(transition, reward, discount, start, terminal)


class Change(NamedTuple):
    """A change of a world: after the first `step` real steps of a run, over all episodes, it is `world`."""

    step: int
    world: "World"


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A world that `backcast.run` can walk through.

    Attributes:
        name: name in exported tables.
        mdp: the finite MDP; for a world that changes, the MDP before the change. A world made with seed=None has none:
            every seed of a run draws its own. Chains and walks make it on first access (`make`).
        policy: the policy that is evaluated, (S, A), in a prediction world of several actions; otherwise None.
        max_steps: number of steps after which episodes are truncated, unless a run overrides it; None for no limit.
        layout: the levels of a chain, the characters of a maze, or another layout (`worlds.layouts`).
        later: the world after the change, with the same states, actions, discount and terminal states; None
            for a world that does not change.
        same_graph: for a world that every seed draws anew, whether only probabilities and rewards differ, not the
            possible transitions, the starts, the ends or the layout.
        direct: makes `steps_table` and `truth` faster than from the MDP, and bitwise equal; None if this is not
            possible.
        seen_as: the observations of agents with a network: the name of a view, or an array (S, …); see `view`.
        motion: how states that are vectors move (`worlds.vectors`); None for a world with a table.
    """

    name: str
    given_mdp: FiniteMDP | None
    outcomes: Outcomes | None = None
    policy: Vector | None = None
    max_steps: int | None = None
    layout: Any = None
    redraw: Callable[[int], "World"] | None = None
    later: Change | None = None
    make: Callable[[], FiniteMDP] | None = None
    same_graph: bool = False
    direct: "Callable[[], tuple[Table, Vector] | None] | None" = None
    seen_as: str | Vector = "onehot"
    motion: "Motion | None" = None

    def __repr__(self) -> str:
        shown = [repr(self.name), "drawn by each seed" if self.redraw is not None else repr(self.mdp)]
        shown += [] if self.max_steps is None else [f"max_steps={self.max_steps}"]
        return f"World({', '.join(shown)})"

    @cached_property
    def mdp(self) -> FiniteMDP:
        """The finite MDP of this world."""
        if self.given_mdp is not None:
            return self.given_mdp
        if self.make is None:
            raise InputError(f"{self.name}: every seed draws its own world; world.draw(seed).mdp is that of a seed")
        return self.make()

    def draw(self, seed: int) -> "World":
        """The world of a run with this seed: this one, unless every seed draws its own."""
        return self if self.redraw is None else self.redraw(seed)

    def view(self, how: object) -> "World":
        """Return the same world with another view for agents with a network; other agents ignore it.

        Args:
            how: "onehot" (S, S), which is the default; "coordinates" (S, m), between 0 and 1; "pixels" (S, channels,
                rows, columns) of a maze or a grid: the agent, the walls of a maze, and where episodes end; "random-64",
                (S, 64) random numbers; or an array (S, …).
        """
        seen, redraw = check_view(how), self.redraw
        name = f"{self.name}:{seen if isinstance(seen, str) else 'given'}"
        if redraw is not None:
            return replace(self, name=name, seen_as=seen, redraw=lambda seed: redraw(seed).view(seen))
        seen_later = self.later and self.later._replace(world=self.later.world.view(seen))
        viewed = replace(self, name=name, given_mdp=self.mdp, seen_as=seen, later=seen_later)
        _ = viewed.observations  # refuses a view that does not fit the world
        return viewed

    @cached_property
    def observations(self) -> Vector:
        """What agents with a network observe in each state, (S, …)."""
        return observations_of(self, self.seen_as)

    def at(self, taken: int) -> "World":
        """The world in force after `taken` real steps of a run."""
        return self if self.later is None or taken < self.later.step else self.later.world

    @property
    def n_states(self) -> int:
        """S."""
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions to choose from: 1 in a prediction world."""
        return 1 if self.is_prediction else self.mdp.n_actions

    @property
    def is_prediction(self) -> bool:
        """Whether this is a prediction world: there is nothing to choose, and values are predicted, not improved."""
        return self.policy is not None or self.mdp.n_actions == 1

    @property
    def purpose(self) -> Purpose:
        """What an agent does here."""
        if self.redraw is not None:
            return self.draw(0).purpose
        return "prediction" if self.is_prediction else "control"

    @cached_property
    def judged_by(self) -> Judge:
        """The metric by which agents are compared here.

        In prediction it is the value error `rmsve` (lower is better). In control it is the `reward` of an episode
        (higher is better). But if every ending is a goal, agents differ in how soon they reach one: then it is `steps`
        (lower is better). Every ending is a goal if all transitions into terminal states earn the same expected reward,
        above 0, and all others earn nothing. Only transitions that can be reached from the start count.
        """
        if self.redraw is not None:
            return self.draw(0).judged_by
        if self.is_prediction:
            return "rmsve"
        return "steps" if _every_ending_is_a_goal(self.mdp) else "reward"

    @property
    def discount(self) -> float:
        """γ."""
        return self.mdp.discount

    @cached_property
    def truth(self) -> Vector:
        """v_π of a prediction world, (S,)."""
        return value(self.mdp, self.policy) if self._directly is None else self._directly[1]

    @cached_property
    def _directly(self) -> "tuple[Table, Vector] | None":
        return None if self.direct is None else self.direct()

    @cached_property
    def steps_table(self) -> "Table":
        """The world as a `Table` for compiled loops; for a world that changes, the one before the change."""
        if self._directly is not None:
            return self._directly[0]
        from backcast.core.randomness import cumulative_in_rows
        from backcast.worlds.stepping import Table, ahead, even, state_numbers

        outcomes = self.outcomes or outcomes_of(self.mdp)
        if self.policy is not None:
            outcomes = _under(outcomes, as_policy(self.mdp, self.policy))
        offset = np.searchsorted(outcomes.row, np.arange(self.n_states * self.n_actions + 1)).astype(np.int64)
        starts = np.flatnonzero(self.mdp.start)
        return Table(
            starts.astype(np.int64),
            np.cumsum(self.mdp.start[starts]),
            offset,
            cumulative_in_rows(outcomes.probability, offset),
            state_numbers(outcomes.next_state, self.n_states),
            np.array(outcomes.reward, dtype=np.float64),  # a copy: to Numba, a read-only array has another type
            np.array(self.mdp.terminal),
            self.n_actions,
            even(offset),
            ahead(offset),
        )

    @cached_property
    def tables(self) -> "Tables":
        """The world as `Tables` for compiled loops, with its change."""
        from backcast.worlds.stepping import FOREVER, Tables

        step, later = (FOREVER, self) if self.later is None else self.later
        return Tables(self.steps_table, later.steps_table, step)

    @cached_property
    def rows(self) -> Matrix:
        """P(s' | s, a) as csr (S·A, S), with a row for each choice of the agent; in prediction, the policy's chain."""
        return self.mdp.table if self.policy is None else mix(as_policy(self.mdp, self.policy), self.mdp.table)

    @cached_property
    def ever(self) -> Matrix:
        """The states that can follow each row s·A + a at any time of a run: the nonzeros of a csr (S·A, S)."""
        return self.rows if self.later is None else self.rows + self.later.world.ever

    @cached_property
    def starts(self) -> Mask:
        """Whether an episode may begin in each state at any time of a run, (S,)."""
        now = self.mdp.start > 0
        return now if self.later is None else now | self.later.world.starts

    @cached_property
    def fan_out(self) -> Indices:
        """The number of states that can follow each row s·A + a, (S·A,): the size of a forward row."""
        return np.diff(self.ever.indptr).astype(np.int64)

    @cached_property
    def fan_in(self) -> Indices:
        """The number of rows s·A + a that can lead to each state, (S,): the size of a backward row."""
        lives = np.repeat(~self.mdp.terminal, self.n_actions)
        return np.bincount(self.ever.indices[np.repeat(lives, self.fan_out)], minlength=self.n_states).astype(np.int64)


def refuse_large(field: str, states: int, transitions: int) -> None:
    """Raise InputError, before a world is made, if it is too large."""
    refuse_many(field, "states", states)
    refuse_many(field, "transitions", transitions)


def outcomes_of(mdp: FiniteMDP) -> Outcomes:
    """One outcome for each transition of an MDP, earning its expected reward."""
    table = mdp.table
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    return Outcomes(rows, table.indices.astype(np.int64), table.data, mdp.table_reward.data)


def _every_ending_is_a_goal(mdp: FiniteMDP) -> bool:
    """Whether only the ends of episodes are rewarded, and all of them equally."""
    lives = np.repeat(mdp.reachable & ~mdp.terminal, mdp.n_actions)
    made = np.repeat(lives, np.diff(mdp.table.indptr))
    ends, earned = mdp.terminal[mdp.table.indices[made]], mdp.table_reward.data[made]
    if not ends.any() or earned[~ends].any():
        return False
    goals = earned[ends]
    return bool(goals.min() > 0 and np.ptp(goals) <= _ROUNDING * goals.max())


def _under(outcomes: Outcomes, policy: Vector) -> Outcomes:
    """The outcomes of each state when the policy chooses the action: a world of one action."""
    probability = outcomes.probability * policy.ravel()[outcomes.row]
    kept = probability > 0
    states = outcomes.row // policy.shape[1]
    return Outcomes(states[kept], outcomes.next_state[kept], probability[kept], outcomes.reward[kept])
