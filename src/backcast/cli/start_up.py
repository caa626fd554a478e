"""How long one waits for the first result of each kind of agent: a section of `backcast bench`.

What is measured are processor seconds of a whole process, from starting Python to the first result: with an empty
cache, where all is compiled, and with what that has left there.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from backcast.agents.kinds import KINDS
from backcast.core.errors import InputError

_WORLDS = {"prediction": "bc.worlds.chain((50, 5), seed=0)", "control": "bc.worlds.maze()"}
_CODE = "import backcast as bc; bc.run({world}, bc.agent({kind!r}), 1, 1)"


def start_up(kinds: Sequence[str], repeats: int, against: Path | None) -> Iterator[dict[str, Any]]:
    """Processor seconds to the first result of each kind, the least of some measurements that take turns.

    Args:
        kinds: of agents.
        repeats: how often each is measured.
        against: a checkout of another version, measured in turn.
    """
    here = Path(__file__).parents[2]
    other = None if against is None else _source(against)
    for kind in kinds:
        code = _CODE.format(world=_WORLDS[KINDS[kind].only or "control"], kind=kind)
        measured = [[_cold_and_warm(source, code) for source in (here, other) if source] for _ in range(repeats)]
        (cold, warm), *others = (tuple(map(min, zip(*turns, strict=True))) for turns in zip(*measured, strict=True))
        row = {"section": "start-up", "agent": kind, "cold_seconds": cold, "warm_seconds": warm}
        for before, _ in others:
            row |= {"cold_seconds_of_the_other": before, "ratio": cold / before}
        yield row


def _source(checkout: Path) -> Path:
    if not (checkout / "src" / "backcast").is_dir():
        raise InputError(f"--against: {checkout} given, expected a checkout of Backcast, a directory with src/backcast")
    return checkout / "src"


def _cold_and_warm(source: Path, code: str) -> tuple[float, float]:
    """Processor seconds with an empty cache, and with what that has left there; infinite if it cannot be done."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "PYTHONPATH": str(source), "BACKCAST_CACHE_DIR": directory}
        return _seconds(code, environment), _seconds(code, environment)


def _seconds(code: str, environment: dict[str, str]) -> float:
    before = _spent_by_children()
    done = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL, check=False)
    return _spent_by_children() - before if done.returncode == 0 else float("inf")


def _spent_by_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
