"""A frame: what the page draws, as one binary message.

Little endian: the length of the header (uint32), the header (JSON), zeros up to a multiple of 4, V of the left and of
the right agent (float32 each), then for both the greedy actions of each state (uint8, one bit per action).
"""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backcast.core.arrays import Vector
from backcast.lab.lockstep import Lockstep
from backcast.lab.walker import Walker


def encode(lockstep: Lockstep, state: dict[str, Any], known_episodes: int) -> bytes:
    """The current frame; `state` comes from the session, and curves begin after the episodes already known."""
    tables = [walker.action_values for walker in lockstep.walkers]
    header = {
        "at": lockstep.at,
        "furthest": lockstep.furthest,
        "episode": lockstep.episode,
        "step": lockstep.step,
        "finished": lockstep.finished,
        **state,
        "agents": [
            {
                **_told(walker, q),
                "credit": vars(credit),
                "curves": curves.since(known_episodes),
            }
            for walker, q, credit, curves in zip(
                lockstep.walkers, tables, lockstep.watched, lockstep.curves, strict=True
            )
        ],
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    values = [np.nan_to_num(q.max(axis=1), posinf=3e38, neginf=-3e38).astype("<f4").tobytes() for q in tables]
    masks = [greedy_masks(q).tobytes() for q in tables]
    return b"".join([struct.pack("<I", len(text)), text, b"\0" * (-len(text) % 4), *values, *masks])


def _told(walker: Walker, q: Vector) -> dict[str, Any]:
    error = walker.era.error(q.max(axis=1))
    return {
        "era": walker.era_number,
        "taken": walker.now.taken,
        "state": walker.now.place.s if walker.now.episode >= 0 else None,
        "steps": walker.now.place.steps,
        "over": walker.over and walker.now.episode >= 0,
        "lost": walker.lost,
        "way": walker.way,
        "updates": walker.now.parts.updates.tolist(),
        "error": error if np.isfinite(error) else None,
    }


def greedy_masks(q: Vector) -> NDArray[np.uint8]:
    """(S,) uint8: bit a is set if a is greedy; 0 where there is nothing to prefer. At most eight actions."""
    best = q == q.max(axis=1, keepdims=True)
    best[best.all(axis=1)] = False
    return (best[:, :8] * (1 << np.arange(min(8, q.shape[1])))).sum(axis=1).astype(np.uint8)
