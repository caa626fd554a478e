"""Time to the first result of each kind of agent: a section of `backcast bench`.

Measures processor seconds of a whole process, from starting Python to the first result: with an empty cache, where
everything is compiled, and with a warm one.
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
    """Processor seconds to the first result of each kind, the least of several interleaved measurements.

    Args:
        kinds: the kinds of agents.
        repeats: number of measurements of each.
        against: a checkout of another version, measured alternately.
    """
    here = Path(__file__).parents[2]
    other = None if against is None else _source(against)
    for kind in kinds:
        code = _CODE.format(world=_WORLDS[KINDS[kind].only or "control"], kind=kind)
        measured = [[_cold_and_warm(source, code) for source in (here, other) if source] for _ in range(repeats)]
        (cold, warm), *others = (tuple(map(min, zip(*turns, strict=True))) for turns in zip(*measured, strict=True))
        row = {"section": "start-up", "agent": kind, "cold_seconds": cold, "warm_seconds": warm}
        for before, _ in others:
            if before == float("inf"):  # the other version has no such kind
                continue
            row |= {"cold_seconds_of_the_other": before, "ratio": cold / before}
        yield row


def _source(checkout: Path) -> Path:
    if not (checkout / "src" / "backcast").is_dir():
        raise InputError(f"--against: {checkout} given, expected a checkout of Backcast, a directory with src/backcast")
    return checkout / "src"


def _cold_and_warm(source: Path, code: str) -> tuple[float, float]:
    """Processor seconds with an empty and with a warm cache; infinite if the code fails."""
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "PYTHONPATH": str(source), "BACKCAST_CACHE_DIR": directory}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users have the bytecode of libraries
        return seconds_of(code, environment), seconds_of(code, environment)


def seconds_of(code: str, environment: dict[str, str]) -> float:
    """Processor seconds of a process that runs some code; infinite if it fails."""
    before = _spent_by_children()
    done = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL, check=False)
    return _spent_by_children() - before if done.returncode == 0 else float("inf")


def _spent_by_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
