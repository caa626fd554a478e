"""The most outcomes a row may ever hold: memory is allocated before a run, because kernels allocate none."""

from functools import lru_cache

import numpy as np
from scipy import sparse

from backcast.agents.kinds import Agent
from backcast.agents.setup import Setup
from backcast.core.arrays import Indices
from backcast.core.errors import InputError
from backcast.worlds.world import World

_MOST_PLACES = 20_000_000  # 40 bytes each


def room_for(setup: Setup, agent: Agent, forward: bool) -> tuple[Indices, Indices]:
    """Room for each row of a model over several steps, and for the terminal states among its predecessors.

    A model of n steps gets room for what n steps can connect; other models for all pairs. Where the graph is unknown
    and one step is enough, rows grow (0).
    """
    n, pairs = setup.n_states, setup.n_states * setup.n_actions
    rows, width = (pairs, n) if forward else (n, pairs)
    longest = len(agent.shared("weights", ())) or agent.shared("horizon", 1)
    anything = agent.shared("lam") is not None or agent.shared("option") is not None
    if not anything and longest == 1 and setup.world is None:
        return np.zeros(rows, dtype=np.int64), np.zeros(n, dtype=np.int64)
    if anything or setup.world is None:
        room, restarts = np.full(rows, width), np.full(n, n if setup.world is None else _ends(setup))
    else:
        room, restarts = _within(setup.world, longest, agent.shared("weights") is not None, forward)
    if room.sum() + restarts.sum() > _MOST_PLACES:
        raise InputError(
            f"agent: {agent.name!r} would connect up to {int(room.sum()):,} pairs of states in this world, more than"
            f" {_MOST_PLACES:,}; use a smaller horizon (the model over one step costs what is observed)"
        )
    return room.astype(np.int64), restarts.astype(np.int64)


def _ends(setup: Setup) -> int:
    assert setup.world is not None
    return int(setup.world.mdp.terminal.sum())


@lru_cache(maxsize=8)  # the seeds of a run share a world, and the results are read-only
def _within(world: World, steps: int, mixed: bool, forward: bool) -> tuple[Indices, Indices]:
    """The number of pairs exactly (`mixed`: at most) `steps` steps before each state, restarts included."""
    terminal, n_actions = world.mdp.terminal, world.n_actions
    lives = sparse.diags_array(np.repeat(~terminal, n_actions).astype(np.float64))
    onward = _ones(lives @ world.ever)  # (S·A, S)
    restart = _ones(sparse.csr_array(terminal[:, None]) @ sparse.csr_array(world.starts[None, :]))
    some = sparse.csr_array(sparse.kron(sparse.eye_array(world.n_states), np.ones((1, n_actions)))) @ onward
    chain = _ones(some + restart)
    reached, origin = onward, restart
    pairs, ends = reached, origin
    for _ in range(steps - 1):
        reached, origin = _ones(reached @ chain), _ones(origin @ chain)
        pairs, ends = (_ones(pairs + reached), _ones(ends + origin)) if mixed else (reached, origin)
    counted = pairs.sum(axis=1) if forward else pairs.sum(axis=0)
    return np.asarray(counted).ravel(), np.asarray(ends.sum(axis=0)).ravel()


def _ones(matrix: sparse.csr_array) -> sparse.csr_array:
    matrix = sparse.csr_array(matrix, dtype=np.float64)
    matrix.eliminate_zeros()
    matrix.data[:] = 1.0
    return matrix
