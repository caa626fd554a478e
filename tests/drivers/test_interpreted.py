"""NUMBA_DISABLE_JIT=1: everything runs as plain Python, with the same bits as compiled."""

import hashlib
import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.core.compiling import INTERPRETED

OWN = [name for name, kind in KINDS.items() if kind.is_builtin]


def outcome(kind):
    """A hash of all that seeded runs of a kind leave behind, but for errors: they are summed in any order."""
    found = hashlib.sha256()
    for world in (bc.worlds.chain((6, 4, 3), seed=0), bc.worlds.maze("..G\n.X.\nS..", 0.3, 0.5)):
        if KINDS[kind].only not in (None, "prediction" if world.is_prediction else "control"):
            continue
        runs = bc.run(world, bc.agent(kind, alpha=0.5, alpha_model=0.7, alpha_plan=0.3), 10, 2, max_steps=50, workers=1)
        for array in (runs.values, runs.steps, runs.reward, np.asarray(runs.updates)):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


@cache
def interpreted():
    """The same of all kinds, by a process that compiles nothing."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(INTERPRETED, reason="there is nothing to compare with")
@pytest.mark.parametrize("kind", OWN)
def test_every_kind_has_the_same_bits_interpreted_and_compiled(kind):
    assert outcome(kind) == interpreted()[kind]


if __name__ == "__main__":
    assert INTERPRETED
    print(json.dumps({kind: outcome(kind) for kind in OWN}))
