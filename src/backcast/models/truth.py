"""The true model of a world, as rows that agents can plan with."""

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from backcast.core.arrays import Matrix, ratio
from backcast.exact import lambda_model, multi_time, n_step
from backcast.exact.chains import as_policy, mix, restarting, scale
from backcast.exact.reversal import by_bayes
from backcast.exact.stationary import visits
from backcast.exact.time_extended import TimeExtended, ending_model, stopping_model
from backcast.mdp import FiniteMDP
from backcast.models.counts import CountRows
from backcast.models.options import option_chances
from backcast.models.rows import Rows, true_rows
from backcast.worlds.world import World


@lru_cache(maxsize=4)  # the seeds of a run share a world, and true rows are read-only
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

    Terminal states are omitted as predecessors (a restart is not a step whose value could be corrected), and a state
    that is never visited has an empty row.
    """
    mdp = _of_steps(world.mdp)
    pi = as_policy(mdp, world.policy)
    d = visits(mdp, world.policy)
    lives = np.where(mdp.terminal, 0.0, 1.0)
    back = scale(None, by_bayes(mix(pi, restarting(mdp)), d, d), lives)
    back.eliminate_zeros()
    reward = ratio(mix(pi, mdp.table * mdp.table_reward), mix(pi, mdp.table)).T.tocsr()
    states, predecessors = back.nonzero()
    return true_rows(back.indptr, back.indices, back.data, np.asarray(reward[states, predecessors]).ravel())


@lru_cache(maxsize=4)
def extended_rows(world: World, span: tuple[str, Any], forward: bool) -> Rows:
    """P←(s̃ | s), a row for each s, or P(s | s̃), a row for each s̃, over several steps.

    As in `backward_rows`, no path begins at a terminal state.
    """
    true = _true_model(world, span, "forward" if forward else "backward")
    probability, earned, discounted = map(_defined, (true.states, true.earned, true.discounted))
    lives = np.where(world.mdp.terminal, 0.0, 1.0)
    probability = scale(lives, probability, None) if forward else scale(None, probability, lives)
    probability.eliminate_zeros()
    places = probability.nonzero()
    reward, carried = (np.asarray(part[places]).ravel() / probability.data for part in (earned, discounted))
    return true_rows(probability.indptr, probability.indices, probability.data, reward, carried)


@lru_cache(maxsize=4)
def restart_rows(world: World, span: tuple[str, Any]) -> CountRows:
    """The paths that `extended_rows` omits: P←(s̃ | s) of the terminal states s̃, a row for each s."""
    back = scale(None, _defined(_true_model(world, span, "backward").states), world.mdp.terminal.astype(np.float64))
    back.eliminate_zeros()
    rows = true_rows(back.indptr, back.indices, back.data, np.zeros(back.nnz))
    columns = {name: getattr(rows, name) for name in CountRows._fields if name != "total"}
    return CountRows(**columns, total=np.ones(world.n_states)).laid_out()


def _true_model(world: World, span: tuple[str, Any], looking: str) -> TimeExtended:
    mdp, (name, value) = _of_steps(world.mdp), span
    if name == "option" and looking == "forward":
        return ending_model(mdp, world.policy, value.termination)
    if name == "option":
        stop, go_on = option_chances(value, world.n_states)
        return stopping_model(mdp, world.policy, stop, go_on, looking)
    models: dict[str, Any] = {"horizon": n_step, "weights": multi_time, "lam": lambda_model}
    result: TimeExtended = models[name](mdp, world.policy, value, looking)
    return result


def _of_steps(mdp: FiniteMDP) -> FiniteMDP:
    """The same world without episodes that end where they begin: no step leads there, and none are planned from."""
    starts = mdp.start * ~mdp.terminal
    if not starts.any() or not (mdp.start[mdp.terminal] > 0).any():
        return mdp
    return FiniteMDP(mdp.table, mdp.table_reward, mdp.discount, starts / starts.sum(), mdp.terminal)


def _defined(matrix: Matrix) -> sparse.csr_array:
    """Convert to csr, with 0 in rows of states that are never visited."""
    defined = sparse.csr_array(matrix, copy=True)
    defined.data = np.nan_to_num(defined.data)
    return defined
