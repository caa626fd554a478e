"""Tests in forked processes: what they reach, and whether they notice a mutant.

A server process has imported what Backcast needs, but not Backcast, and forks for each trial: so a trial begins in a
fraction of a second. Trials run interpreted, each in a copy of the tree: the tree itself is never changed.
"""

import hashlib
import json
import math
import os
import resource
import shutil
import signal
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest

from mutants.sample import Mutant
from mutants.watching import FewExamples, Watch

COPIED = ("src", "tests", "docs")
PRELOADED = [
    "pytest",
    "hypothesis.strategies",
    "numba",
    "scipy.sparse.linalg",
    "gymnasium",
    "matplotlib.figure",
    "pyarrow",
]
OPTIONS = [
    *("--quiet", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "--hypothesis-seed=0"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what the server has imported already
]
LONGEST = 6.0  # seconds of tests that a mutant is tried with, as long as they took while they were watched
WATCHED = 900  # seconds that the tests of one file may take
MEMORY = 8 * 2**30  # bytes that a trial may take

FORKS = get_context("forkserver")


class Reach(NamedTuple):
    """A test, how long it takes, and which functions it reaches."""

    test: str
    seconds: float
    functions: frozenset[str]


class Tree:
    """A copy of the tree in which trials take place, one at a time."""

    def __init__(self, original: Path, at: Path) -> None:
        self.at = at
        for name in COPIED:
            shutil.copytree(original / name, at / name, ignore=shutil.ignore_patterns("node_modules"))
        shutil.copy2(original / "pyproject.toml", at)

    def prepare(self, tests: Sequence[str]) -> None:
        """Write the bytecode of all that is tested and of the tests, so that trials begin sooner."""
        if _fork(WATCHED, self.at, ["--collect-only", *tests], writes=True) != 0:
            raise RuntimeError(f"the tests cannot be collected:\n{self.said}")

    def reach_of(self, path: str, kept: Path) -> list[Reach]:
        """What the tests in a file or a folder reach; kept until the code or these tests change."""
        results = kept / f"{self._digest(path)}.json"
        if not results.exists():
            fresh = self.at / "reach.json"
            if _fork(WATCHED, self.at, [path], watched=fresh) is None:
                raise RuntimeError(f"the tests in {path} take too long:\n{self.said}")
            kept.mkdir(parents=True, exist_ok=True)
            shutil.move(fresh, results)
        found = json.loads(results.read_text(encoding="utf-8"))
        return [Reach(test, seconds, frozenset(functions)) for test, (seconds, functions) in found.items()]

    def outcome(self, mutant: Mutant, asked: Sequence[Reach]) -> str:
        """Whether a mutant is `killed` by the tests asked, has `survived` or has `timed out`."""
        if not asked:
            return "survived"
        path = self.at / "src" / "backcast" / mutant.file
        unchanged = shutil.copy2(path, self.at)  # with its time, which its bytecode goes by
        path.write_text(mutant.text, encoding="utf-8")
        seconds = 5 + 2 * math.ceil(sum(reach.seconds for reach in asked))
        code = _fork(seconds, self.at, ["-x", *(reach.test for reach in asked)])
        shutil.move(unchanged, path)
        return "timed out" if code is None else "killed" if code else "survived"

    @property
    def said(self) -> str:
        """What the last trial printed."""
        return (self.at / "said.txt").read_text(encoding="utf-8")

    def _digest(self, path: str) -> str:
        """Of the code, of what tests share, and of the tests in a path."""
        parts = (
            *self.at.glob("src/**/*.py"),
            *self.at.glob("tests/*.py"),
            *self.at.glob(f"{path}/*.py"),
            self.at / path,
        )
        contents = [part.read_bytes() for part in sorted(parts) if part.is_file()]
        return hashlib.sha256(b"\0".join([path.encode(), sys.version.encode(), *contents])).hexdigest()[:16]


def asked_about(mutant: Mutant, reaches: Sequence[Reach]) -> list[Reach]:
    """The tests that reach the function of a mutant (the file, if it is in none), the quickest first."""
    file, entry = f"{mutant.file}:", mutant.change.entry
    found: list[Reach] = []
    for reach in sorted(reaches, key=lambda reach: reach.seconds):
        reaches_it = f"{file}{entry}" in reach.functions if entry else any(f.startswith(file) for f in reach.functions)
        if reaches_it and sum(other.seconds for other in found) < LONGEST:
            found.append(reach)
    return found


def _fork(
    seconds: int, tree: Path, arguments: Sequence[str], watched: Path | None = None, writes: bool = False
) -> int | None:
    """The exit code of pytest with these arguments in a tree; None if it takes too long.

    Seconds are those of a processor, for the machine may be busy; what only waits is ended after ten times as long.
    """
    trial = FORKS.Process(target=_trial, args=(seconds, tree, arguments, watched, writes))
    trial.start()
    trial.join(10 * seconds)
    if trial.exitcode is None and trial.pid is not None:
        os.killpg(trial.pid, signal.SIGKILL)
        trial.join()
    return None if trial.exitcode in (-signal.SIGXCPU, -signal.SIGKILL) else trial.exitcode


def _trial(seconds: int, tree: Path, arguments: Sequence[str], watched: Path | None, writes: bool) -> None:
    os.setpgrp()
    os.chdir(tree)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    source = str(tree / "src")
    sys.path.insert(0, source)
    os.environ["PYTHONPATH"] = source
    sys.dont_write_bytecode = not writes  # a mutant's must not be found by the next one
    with (tree / "said.txt").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    watch = [] if watched is None else [Watch(tree / "src" / "backcast", watched)]
    sys.exit(pytest.main([*OPTIONS, *arguments], plugins=[FewExamples(), *watch]))
