"""Garnets: random sparse MDPs, for prediction and for control."""

from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError
from backcast.core.graph import reachable
from backcast.core.randomness import layout_generator
from backcast.core.setting_types import Bounds, Label
from backcast.mdp import FiniteMDP, from_rows
from backcast.worlds.chain import PerSeed
from backcast.worlds.kinds import Discount, Given, Probability, Seed, Sketch, Steps, register_world
from backcast.worlds.world import World, refuse_large

_STATES, _ACTIONS, _BRANCHING = 50, 1, 5
_END, _REWARD = 0.05, 0.2  # default with one action; default if episodes end by chance
_TRIES = 100
_PATIENCE = 100  # steps per state, the default limit of an episode with a goal
_DENSE_LIMIT = 1_000_000  # entries of P(s' | s, a), above which a world is sparse


class Garnet(NamedTuple):
    """The layout of a garnet: its sizes, the share of rewarded transitions, and how episodes end."""

    states: int
    actions: int
    branching: int
    reward: float
    end: float

    @property
    def has_goal(self) -> bool:
        """Whether the last state is a goal to reach, rather than an end that comes by chance."""
        return self.end == 0


class GarnetSketch(Sketch):
    """What is known of a garnet before it is drawn: its size."""

    def sizes(self, given: Given) -> dict[str, int]:
        """The numbers of states and transitions."""
        states = given.get("states", _STATES)
        each = given.get("actions", _ACTIONS) * (given.get("branching", _BRANCHING) + 1)
        return {"the number of states": states, "the number of transitions": states * each}


@register_world("garnet", label="Garnet, a random MDP", sketch=GarnetSketch())
def garnet(
    states: Annotated[int, Bounds(2, lab=1_000)] = _STATES,
    actions: Annotated[int, Bounds(1, lab=20)] = _ACTIONS,
    branching: Annotated[int, Bounds(1, lab=50), Label("successors")] = _BRANCHING,
    seed: Seed | None = 0,
    reward: Annotated[Probability, Label("share of rewards")] | None = None,
    end: Annotated[Probability, Label("ends with probability")] | None = None,
    discount: Discount = 0.95,
    max_steps: Steps | None = None,
) -> World:
    """A random sparse MDP: each action leads from each state to a few states, drawn at random.

    ## Description
    For each state and action, `branching` different successors are drawn uniformly. Their probabilities are the lengths
    of the pieces into which `branching` − 1 uniform cuts divide the unit interval. The last state ends the episode, in
    one of two ways. With `end` above 0 it comes by chance: each step leads there with that probability, and the
    successors share the rest. With `end` 0 it is a goal: it is drawn as a successor like any other state.

    ## Actions
    `actions` unordered actions. With one action there is nothing to choose: a prediction world.

    ## States
    0 … `states` − 1, unordered; the last is terminal.

    ## Start
    If the end comes by chance: any other state, all equally likely, so that all are visited. With a goal: state 0.
    Some states may then never be reached, but the goal can be reached from every state that is: otherwise the garnet is
    redrawn.

    ## Reward
    A share `reward` of the transitions is rewarded, each with a number drawn once from the standard normal
    distribution. All others earn nothing, as does an end by chance. Entering a goal earns 1.

    ## Episode end
    Terminated in the last state. With a goal, truncated after `max_steps`, by default 100 per state.

    ## Reference
    Bhatnagar, Sutton, Ghavamzadeh and Lee, "Natural actor–critic algorithms", Automatica 45 (2009); after Archibald,
    McKinnon and Thomas, "On the generation of Markov decision processes", Journal of the Operational Research Society
    46 (1995). There every transition is rewarded (`reward=1`) and episodes do not end.

    Args:
        states: number of states, the terminal one included.
        actions: number of actions in each state; 1 makes a prediction world.
        branching: number of states that an action may lead to, besides an end by chance.
        seed: seed of the garnet; None: every seed of a run draws its own.
        reward: share of rewarded transitions; by default 0.2, or 0 if there is a goal.
        end: the probability that a step ends the episode, 0 for a goal; by default 0.05 with one action, 0 with
            several.
        discount: γ, how much later rewards count.
        max_steps: number of steps after which episodes are truncated; by default 100 per state if there is a goal.

    Examples:
        >>> garnet(states=20, actions=3, branching=2).mdp
        FiniteMDP(20 states, 3 actions, 117 transitions, discount 0.95, 1 terminal, dense)
    """
    usual_end = _END if actions == 1 else 0.0
    end = usual_end if end is None else end
    usual_reward = _REWARD if end else 0.0
    layout = Garnet(states, actions, branching, usual_reward if reward is None else reward, end)
    _refuse_impossible(layout)
    name = f"garnet-{states}-{actions}-{branching}"
    name += f"-reward-{layout.reward:g}" if layout.reward != usual_reward else ""
    name += f"-end-{end:g}" if end != usual_end else ""
    limit = _PATIENCE * states if layout.has_goal and max_steps is None else max_steps
    draw = partial(_drawn_world, name, layout, discount, limit)
    if seed is None:
        return World(name, None, max_steps=limit, layout=layout, redraw=PerSeed(draw))
    return draw(seed)


def _drawn_world(name: str, layout: Garnet, discount: float, max_steps: int | None, seed: int) -> World:
    return World(name, None, max_steps=max_steps, layout=layout, make=partial(_draw, layout, seed, discount))


def _refuse_impossible(layout: Garnet) -> None:
    most, which = layout.states - 1, "the number of states that do not end an episode"
    if layout.has_goal:
        most, which = layout.states, "the number of states"
    if layout.branching > most:
        raise InputError(f"branching: {layout.branching} given, expected at most {most}, {which}")
    rows = layout.states * layout.actions
    refuse_large("states × actions × branching", layout.states, rows * (layout.branching + 1))


def _draw(layout: Garnet, seed: int, discount: float) -> FiniteMDP:
    n, rows = layout.states, layout.states * layout.actions
    rng = layout_generator(seed)
    states = np.arange(n)
    start = np.where(states == 0, 1.0, 0.0) if layout.has_goal else np.where(states < n - 1, 1 / (n - 1), 0.0)
    successors = _draw_graph(layout, rng)
    probability = _draw_pieces(rows, layout.branching, rng)
    earned = rng.normal(size=successors.shape) * (rng.random(successors.shape) < layout.reward)
    if layout.has_goal:
        earned[successors == n - 1] = 1.0
    else:
        ends = np.ones((rows, 1))
        successors = np.hstack([successors, (n - 1) * ends.astype(np.int64)])
        probability = np.hstack([(1 - layout.end) * probability, layout.end * ends])
        earned = np.hstack([earned, 0 * ends])
    offset = successors.shape[1] * np.arange(rows + 1)
    table, reward = (
        sparse.csr_array((entries.ravel(), successors.ravel(), offset), shape=(rows, n))
        for entries in (probability, earned)
    )
    return from_rows(table, reward, discount, start, states == n - 1, rows * n > _DENSE_LIMIT)


def _draw_graph(layout: Garnet, rng: np.random.Generator) -> Indices:
    """The successors of each row s·A + a in ascending order, (S·A, branching); a goal can be reached."""
    n, rows = layout.states, layout.states * layout.actions
    if not layout.has_goal:
        return _draw_subsets(rows, n - 1, layout.branching, rng)
    for _ in range(_TRIES):
        successors = _draw_subsets(rows, n, layout.branching, rng)
        if _leads_to_the_goal(successors, layout):
            return successors
    raise InputError(
        f"branching: {layout.branching} given, actions {layout.actions} and states {n:,}, but in {_TRIES} draws the"
        " goal could not be reached from every state that can be reached; give a larger branching, more actions, or an"
        " end above 0"
    )


def _leads_to_the_goal(successors: Indices, layout: Garnet) -> bool:
    """Whether the last state can be reached from every state that is reachable from the first."""
    n, each = layout.states, layout.actions * layout.branching
    onward = successors[: -layout.actions].ravel()  # nothing is reached by way of the goal
    offset = np.append(each * np.arange(n), onward.size)
    graph = sparse.csr_array((np.ones(onward.size), onward, offset), shape=(n, n))
    found = reachable(graph, np.arange(n) == 0)
    return not (found & ~reachable(graph.T.tocsr(), np.arange(n) == n - 1)).any()


def _draw_subsets(rows: int, n: int, size: int, rng: np.random.Generator) -> Indices:
    """In each row draw `size` different numbers below n, in ascending order, each set equally likely, (rows, size).

    Floyd's algorithm, in all rows at once: for j = n − size … n − 1 a number up to j joins the set or, if it is
    already there, j itself does. The time does not depend on n.
    """
    chosen = np.empty((rows, size), dtype=np.int64)
    for k, j in enumerate(range(n - size, n)):
        drawn = rng.integers(0, j + 1, size=rows)
        taken = (chosen[:, :k] == drawn[:, None]).any(axis=1)
        chosen[:, k] = np.where(taken, j, drawn)
    chosen.sort(axis=1)
    return chosen


def _draw_pieces(rows: int, size: int, rng: np.random.Generator) -> Vector:
    """In each row, the lengths of the pieces into which uniform cuts divide the unit interval, (rows, size)."""
    cuts = np.sort(rng.random((rows, size - 1)), axis=1)
    return np.diff(cuts, axis=1, prepend=0.0, append=1.0)
