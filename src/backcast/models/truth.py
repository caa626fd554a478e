"""The true model of a world, as rows that agents can plan with."""

from functools import lru_cache

import numpy as np

from backcast.arrays import ratio
from backcast.exact import stationary
from backcast.exact.chains import as_policy, mix, restarting, scale
from backcast.exact.reversal import reverse
from backcast.models.rows import Rows, true_rows
from backcast.worlds.world import World


@lru_cache(maxsize=4)  # the seeds of a run share a world, and nobody writes to true rows
def forward_rows(world: World) -> Rows:
    """P(s' | s, a) with r(s, a, s'), a row for each s·A + a; under the policy of a prediction world."""
    mdp, rows = world.mdp, world.rows
    if world.policy is None:
        return true_rows(rows.indptr, rows.indices, rows.data, mdp.table_reward.data)
    earned = mix(as_policy(mdp, world.policy), mdp.table * mdp.table_reward)
    reward = np.asarray(ratio(earned, rows)[rows.nonzero()]).ravel()
    return true_rows(rows.indptr, rows.indices, rows.data, reward)


@lru_cache(maxsize=4)
def backward_rows(world: World) -> Rows:
    """P←(s̃ | s) of the recurrent chain with r(s̃, s), a row for each s.

    Terminal states are left out as predecessors (a restart is no step whose value could be corrected), and a state
    that is never visited has an empty row.
    """
    mdp = world.mdp
    pi = as_policy(mdp, world.policy)
    d = stationary(mdp, world.policy)
    lives = np.where(mdp.terminal, 0.0, 1.0)
    back = scale(None, reverse(mix(pi, restarting(mdp)), d, d), lives)
    back.eliminate_zeros()
    reward = ratio(mix(pi, mdp.table * mdp.table_reward), mix(pi, mdp.table)).T.tocsr()
    states, predecessors = back.nonzero()
    return true_rows(back.indptr, back.indices, back.data, np.asarray(reward[states, predecessors]).ravel())
