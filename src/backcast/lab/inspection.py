"""Inspection of a state: an agent's model of its predecessors and successors, next to the truth."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from backcast import exact
from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError
from backcast.core.interaction import EPSILON
from backcast.lab.credit import successors
from backcast.lab.lockstep import Lockstep
from backcast.lab.walker import Walker
from backcast.models.readable import ReadableModel
from backcast.models.rows import known_of
from backcast.models.truth import extended_rows
from backcast.worlds.world import World

MOST = 40  # the most predecessors and successors that are sent, the most probable ones


def answer(lockstep: Lockstep, s: int) -> dict[str, Any]:
    """The page's data on a state."""
    scene = lockstep.scene
    if not 0 <= s < scene.world.n_states:
        raise InputError(f"state: {s} given, expected 0 to {scene.world.n_states - 1}")
    return {
        "is": "answer",
        "state": s,
        "at": lockstep.at,
        "name": scene.name_of(s),
        "agents": [_beliefs(walker, s) for walker in lockstep.walkers],
    }


def _true_successors(world: World, s: int, a: int) -> list[tuple[int, float]]:
    """P(s' | s, a), the most probable first; nothing follows the end of an episode."""
    if world.mdp.terminal[s]:
        return []
    rows = world.rows
    places = slice(*rows.indptr[s * world.n_actions + a :][:2])
    return _sorted(zip(rows.indices[places].tolist(), rows.data[places].tolist(), strict=True))


def _beliefs(walker: Walker, s: int) -> dict[str, Any]:
    """The agent's model, and the truth in its world at this moment."""
    model, world = walker.now.parts.model, walker.era.world
    n_states, n_actions = world.n_states, world.n_actions
    ends, far = bool(world.mdp.terminal[s]), walker.agent.looks_far
    led, left = believed_predecessors(model, s, n_actions)
    truth, about = true_predecessors(walker, s)
    return {
        "exact": _number(walker.era.truth[s]),
        "true_successors": [{"action": a, "to": _true_successors(world, s, a)} for a in range(n_actions)],
        "values": [_number(q) for q in walker.action_values[s]],
        "successors": None if far else _believed_successors(model, s, n_actions, ends),
        "predecessors": led,
        "other": left,
        "unseen": n_states * n_actions - len(led or ()),
        "true_predecessors": truth,
        "about": about,
    }


def _believed_successors(model: ReadableModel, s: int, n_actions: int, ends: bool) -> list[dict[str, Any]] | None:
    """The observed successors of s for each action; None if the model does not look ahead, or spans several steps.

    Over several steps they cannot be compared with the true one-step successors.
    """
    followed = [successors(model, s, a) for a in range(n_actions)]
    if followed[0] is None:
        return None
    return [{"action": a, "to": [] if ends else (to or [])[:MOST]} for a, to in enumerate(followed)]


def believed_predecessors(
    model: ReadableModel, s: int, n_actions: int
) -> tuple[list[tuple[int, int, float]] | None, float]:
    """(s̃, ã, probability) of the observed predecessors of s, and the probability of each unobserved one.

    None: the agent has no backward model.
    """
    known = model.predecessors(s)
    return (None, 0.0) if known is None else (_pairs(known.keys, known.probability, n_actions), known.each_other)


def true_predecessors(walker: Walker, s: int) -> tuple[list[tuple[int, int, float]] | None, str]:
    """(s̃, ã, P←(s̃, ã | s)) that the agent's model should learn, and the policy; or why there are none.

    P←(s̃, ã | s) = d(s̃) π(ã | s̃) P(s | s̃, ã) / d(s), with the stationary distribution d of the recurrent chain. If the
    rows of the agent's model contain restarts, what is missing to 1 is theirs; otherwise they are left out here, too.
    """
    world, agent = walker.era.world, walker.agent
    if agent.looks_far:
        return _true_over_steps(world, agent.span, s)
    policy, about = _followed(walker)
    try:
        d = walker.era.visits if world.is_prediction else exact.stationary(world.mdp, policy)
    except InputError as error:
        return None, str(error)
    if d[s] <= 0:
        return None, "never visited under this policy: nothing leads here"
    choices = np.ones((world.n_states, 1)) if world.n_actions == 1 else policy
    came_from = (np.where(world.mdp.terminal, 0.0, d)[:, None] * choices).ravel()
    joint = came_from * world.rows.tocsc()[:, [s]].toarray().ravel() / d[s]
    if joint.any() and not walker.now.parts.model.contains_restarts():
        joint /= joint.sum()
    pairs = np.flatnonzero(joint > 0)
    return _pairs(pairs, joint[pairs], world.n_actions), about


def _true_over_steps(world: World, span: tuple[str, Any], s: int) -> tuple[list[tuple[int, int, float]] | None, str]:
    if not world.is_prediction:
        return None, "over several steps it is not computed in control, where policies change"
    known = known_of(extended_rows(world, span, False), s)
    return _pairs(known.keys, known.probability, 1), "over the steps that the model looks back"


def _followed(walker: Walker) -> tuple[Any, str]:
    """The policy that the agent's model describes, and its name."""
    if walker.era.world.is_prediction:
        return walker.era.world.policy, ""
    if walker.agent.shared("importance"):
        return _epsilon_greedy(walker, 0.0), "under the greedy policy of this moment"
    return _epsilon_greedy(walker, walker.rates[EPSILON]), "under the ε-greedy policy of this moment"


def _epsilon_greedy(walker: Walker, epsilon: float) -> Vector:
    """(S, A): the agent's action probabilities, given ε."""
    q = walker.action_values
    best = q == q.max(axis=1, keepdims=True)
    return epsilon / q.shape[1] + (1 - epsilon) * best / best.sum(axis=1, keepdims=True)


def _pairs(pairs: Indices, probability: Vector, n_actions: int) -> list[tuple[int, int, float]]:
    states, actions = np.divmod(pairs, n_actions)
    return _sorted(zip(states.tolist(), actions.tolist(), probability.tolist(), strict=True))


def _sorted(entries: Iterable[Any]) -> list[Any]:
    return sorted(entries, key=lambda entry: -entry[-1])[:MOST]


def _number(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
