"""A state under the magnifying glass: what an agent believes leads to it and follows it, next to what is true."""

from typing import Any

import numpy as np

from backcast import exact
from backcast.arrays import Vector
from backcast.errors import InputError
from backcast.interaction import EPSILON
from backcast.lab.credit import successors
from backcast.lab.lockstep import Lockstep
from backcast.lab.scene import Scene
from backcast.lab.walker import Walker
from backcast.models.both import BothModels
from backcast.models.forward import ExtendedForward, ForwardModel
from backcast.models.learned import LearnedBackward, learned
from backcast.models.rows import predict
from backcast.models.two_way import TwoWayModel
from backcast.planners.replay import Memory, PrioritizedMemory

MOST = 40  # neighbours that are sent, the most probable ones


def answer(lockstep: Lockstep, s: int) -> dict[str, Any]:
    """All about a state, for the page."""
    scene = lockstep.scene
    if not 0 <= s < scene.world.n_states:
        raise InputError(f"state: {s} given, expected 0 to {scene.world.n_states - 1}")
    return {
        "is": "answer",
        "state": s,
        "at": lockstep.at,
        "name": scene.name_of(s),
        "value": _number(scene.truth[s]),
        "successors": [{"action": a, "to": _true_successors(scene, s, a)} for a in range(scene.world.n_actions)],
        "agents": [_beliefs(scene, walker, s) for walker in lockstep.walkers],
    }


def _true_successors(scene: Scene, s: int, a: int) -> list[tuple[int, float]]:
    """P(s' | s, a), the most probable first; nothing follows the end of an episode."""
    if scene.world.mdp.terminal[s]:
        return []
    rows = scene.world.rows
    places = slice(*rows.indptr[s * scene.world.n_actions + a :][:2])
    return _sorted(zip(rows.indices[places].tolist(), rows.data[places].tolist(), strict=True))


def _beliefs(scene: Scene, walker: Walker, s: int) -> dict[str, Any]:
    model, n_states, n_actions = walker.now.parts.model, scene.world.n_states, scene.world.n_actions
    follow = [{"action": a, "to": successors(model, s, a, n_states, n_actions)[:MOST]} for a in range(n_actions)]
    led, left = believed_predecessors(model, s, n_states, n_actions)
    truth, about = true_predecessors(scene, walker, s)
    return {
        "values": [_number(q) for q in walker.action_values[s]],
        "successors": follow if looks_ahead(model) else None,
        "predecessors": led,
        "other": left,
        "true_predecessors": truth,
        "about": about,
    }


def looks_ahead(model: Any) -> bool:
    """Whether an agent with this model knows what follows a state."""
    forward = ForwardModel | ExtendedForward | TwoWayModel | BothModels | Memory | PrioritizedMemory
    return isinstance(model, forward) or bool(getattr(model, "forward", False))


def believed_predecessors(
    model: Any, s: int, n_states: int, n_actions: int
) -> tuple[list[tuple[int, int, float]] | None, float]:
    """(s̃, ã, probability) of those that a backward model has seen lead to s, and what it leaves for each other one.

    None: the agent has no backward model.
    """
    if isinstance(model, BothModels):
        model = model.backward
    if isinstance(model, TwoWayModel):
        pairs, probability, _ = predict(model.led_here, s)
        found = zip(*np.divmod(pairs, n_actions), probability, strict=True)
        return _sorted((int(before), int(a), float(p)) for before, a, p in found), 0.0
    asked = learned(model, n_states, n_actions)
    if not isinstance(asked, LearnedBackward):
        return None, 0.0
    prediction = asked.predict(s)
    return list(prediction)[:MOST], prediction.each_other


def true_predecessors(scene: Scene, walker: Walker, s: int) -> tuple[list[tuple[int, int, float]] | None, str]:
    """(s̃, ã, P←(s̃, ã | s)) under the policy that is evaluated, or that the agent follows now; else why there are none.

    P←(s̃, ã | s) = d(s̃) π(ã | s̃) P(s | s̃, ã) / d(s), with the stationary distribution d of the recurrent chain. What
    is missing to 1 are new episodes, that begin in s.
    """
    mdp = scene.world.mdp
    policy = scene.world.policy if scene.world.is_prediction else _epsilon_greedy(walker)
    try:
        d = exact.stationary(mdp, policy)
    except InputError as error:
        return None, str(error)
    if d[s] <= 0:
        return None, "never visited under this policy: nothing leads here"
    choices = np.ones((scene.world.n_states, 1)) if scene.world.n_actions == 1 else policy
    lives = np.where(mdp.terminal, 0.0, d)[:, None] * choices
    into = scene.world.rows.tocsc()[:, [s]].toarray().ravel()
    joint = lives.ravel() * into / d[s]
    pairs = np.flatnonzero(joint > 0)
    found = zip(*np.divmod(pairs, scene.world.n_actions), joint[pairs], strict=True)
    about = "" if scene.world.is_prediction else "under the ε-greedy policy of this moment"
    return _sorted((int(before), int(a), float(p)) for before, a, p in found), about


def _epsilon_greedy(walker: Walker) -> Vector:
    """(S, A): the probabilities with which the agent acts now."""
    q, epsilon = walker.action_values, walker.rates[EPSILON]
    best = q == q.max(axis=1, keepdims=True)
    return epsilon / q.shape[1] + (1 - epsilon) * best / best.sum(axis=1, keepdims=True)


def _sorted(entries: Any) -> list[Any]:
    return sorted(entries, key=lambda entry: -entry[-1])[:MOST]


def _number(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
