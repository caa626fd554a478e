"""`make mutants`: how many of a sample of mutants do the tests notice, and which not?"""

import argparse
import os
import queue
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from mutants.sample import Mutant, equivalent, sample
from mutants.trials import FORKS, PRELOADED, Reach, Tree, asked_about

REPOSITORY = Path(__file__).parents[2]
KEPT = REPOSITORY / "build" / "mutants"
PACKAGES = ["models", "planners", "learners", "exact"]
MIRRORS = [f"{name}/test_*.py" for name in (*PACKAGES, "twins", "agents")]  # tests that are asked about them
MIRRORS.append("drivers/test_neural_*.py")  # networks at work
ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
OUTCOMES = ["killed", "timed out", "survived", "equivalent"]

T = TypeVar("T")
R = TypeVar("R")


class Workshop:
    """Trees in which trials take place side by side, one for each worker."""

    def __init__(self, at: Path, workers: int, tests: Sequence[str]) -> None:
        first = Tree(REPOSITORY, at / "0")
        first.prepare(tests)
        self._workers = workers
        self._trees: queue.SimpleQueue[Tree] = queue.SimpleQueue()
        for tree in (first, *(Tree(first.at, at / str(k)) for k in range(1, workers))):
            self._trees.put(tree)

    def each(self, what: str, items: Sequence[T], work: Callable[[Tree, T], R]) -> Iterator[tuple[T, R]]:
        """What comes of the work on each item, in the order in which it is done."""

        def do(item: T) -> R:
            tree = self._trees.get()
            try:
                return work(tree, item)
            finally:
                self._trees.put(tree)

        began = time.monotonic()
        pool = ThreadPoolExecutor(self._workers)
        try:
            begun = {pool.submit(do, item): item for item in items}
            for done, future in enumerate(as_completed(begun), start=1):
                yield begun[future], future.result()
                passed = f"{time.monotonic() - began:.0f} s"
                print(f"\r{done} of {len(items)} {what}, {passed}", end="", file=sys.stderr, flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
        print(file=sys.stderr)


def main() -> int:
    """Draw mutants, try them, and print what came of it; 1 if more than a tenth survived."""
    options = _options()
    os.environ.update(ENVIRONMENT)
    FORKS.set_forkserver_preload(PRELOADED)
    mutants = sample(REPOSITORY / "src" / "backcast", options.module, options.count, options.seed)
    mutants = [mutant for mutant in mutants if not options.only or mutant.key in options.only]
    outcomes = dict.fromkeys(equivalent(mutants), "equivalent")
    with tempfile.TemporaryDirectory(prefix="mutants-") as work:
        tests = _tests()
        workshop = Workshop(Path(work), options.workers, tests)
        reaches: list[Reach] = []
        for _, found in workshop.each("files of tests", tests, lambda tree, path: tree.reach_of(path, KEPT)):
            reaches += found

        def attempt(tree: Tree, mutant: Mutant) -> str:
            return tree.outcome(mutant, asked_about(mutant, reaches))

        tried = [mutant for mutant in mutants if mutant not in outcomes]
        for mutant, outcome in workshop.each("mutants", tried, attempt):
            outcomes[mutant] = outcome
            if outcome == "survived":
                print(f"\n{mutant}", flush=True)
    print(f"\n{_table(outcomes)}")
    return int(10 * Counter(outcomes.values())["survived"] > len(outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="how many mutants are drawn (400)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--module", nargs="+", default=PACKAGES, help="packages or modules: models, models/rows")
    parser.add_argument("--only", nargs="+", help="of the sample only these, by the keys that survivors have")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="trials at a time (one for each core)")
    return parser.parse_args()


def _tests() -> list[str]:
    """The files of tests that are asked, and the examples in the docstrings."""
    files = [path for mirror in MIRRORS for path in sorted((REPOSITORY / "tests").glob(mirror))]
    return [path.relative_to(REPOSITORY).as_posix() for path in files] + [f"src/backcast/{name}" for name in PACKAGES]


def _table(outcomes: dict[Mutant, str]) -> str:
    """One line for each package, and one for all."""
    lines = [f"{'':10}{'mutants':>10}" + "".join(f"{outcome:>12}" for outcome in OUTCOMES)]
    packages = sorted({mutant.package for mutant in outcomes})
    for name in (*packages, "all"):
        found = Counter(outcome for mutant, outcome in outcomes.items() if name in (mutant.package, "all"))
        lines.append(f"{name:10}{found.total():>10}" + "".join(f"{found[outcome]:>12}" for outcome in OUTCOMES))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
