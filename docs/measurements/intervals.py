"""Simulate how often intervals contain the truth, and how often claims without substance get a verdict.

Prints the tables of docs/studies.md, and between them what the floor of standard errors changes. Run:
python docs/measurements/intervals.py (about 20 minutes of one core).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

from backcast.studies import resampling
from backcast.studies.claims import CLAIMS, CONTRADICTED, FEWEST_SEEDS, SUPPORTED, Claim, Contrast

SIZES = (2, 3, 5, 7, 10, 20, 50)
SAMPLES, RESAMPLES, AT_ONCE = 10_000, 2_000, 500
STUDIES, FEWER = 1_000, 250  # in which a claim is judged, and one of more than ten comparisons
STRUCTURES = (4, 9, 8, 1, 11, 3)  # claims; the others are built like one of these
LEVEL = 0.95
EFFECT = 20.0  # in standard deviations: beyond doubt


class Case(NamedTuple):
    """What is estimated.

    Attributes:
        statistic: its name.
        data: their name.
        draw: numbers of a shape.
        truth: the statistic of the population.
        share: that is trimmed at each side.
    """

    statistic: str
    data: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    truth: float
    share: float


def cases() -> Iterator[Case]:
    """Mean and interquartile mean of normal, exponential and lognormal data, and of the difference of two of them.

    Both sides of a difference are drawn from the same population, as those of two agents of one kind are: their
    skewness cancels, their heavy tails do not.
    """
    for name, population in (("normal", stats.norm()), ("exponential", stats.expon()), ("lognormal", stats.lognorm(1))):

        def draw(rng, shape, population=population):
            return population.rvs(size=shape, random_state=rng)

        def difference(rng, shape, draw=draw):
            luck = rng.normal(0, 5, size=shape)
            return (luck + draw(rng, shape)) - (luck + draw(rng, shape))

        quartiles = population.ppf([0.25, 0.75])
        middle = population.expect(lambda x: x, lb=quartiles[0], ub=quartiles[1], conditional=True)
        yield Case("mean", name, draw, population.mean(), 0.0)
        yield Case("paired difference", name, difference, 0.0, 0.0)
        yield Case("interquartile mean", name, draw, middle, 0.25)
        yield Case("interquartile mean of differences", name, difference, 0.0, 0.25)


def resampled(case: Case, n: int, samples: int, seed: int) -> Iterator[resampling.Resampled]:
    """Samples of n numbers, some at a time, which share their resamples."""
    rng = np.random.default_rng((seed, n))
    for first in range(0, samples, AT_ONCE):
        x = case.draw(rng, (min(AT_ONCE, samples - first), n))
        yield resampling.resample(x, case.share, rng, RESAMPLES)


def coverage(case: Case, n: int, samples: int, seed: int) -> float:
    """How many of the intervals of samples of n numbers contain the truth."""
    contained = 0
    for found in resampled(case, n, samples, seed):
        low, high = resampling.ends(found, LEVEL)
        contained += int(((low <= case.truth) & (case.truth <= high)).sum())
    return contained / samples


def alternatives(case: Case, n: int) -> tuple[dict[str, tuple[float, float]], float]:
    """How often other intervals lie above and below the truth, and how much wider ours are than the bootstrap-t."""
    errors = {}
    ours = bootstrap_t = 0.0
    for found in resampled(case, n, SAMPLES, seed=0):
        t, error = found.studentised(), np.sqrt(found.variance)
        tails = resampling.tails(LEVEL)
        near, far = np.quantile(t, tails, axis=1)
        both, student = np.quantile(np.abs(t), LEVEL, axis=1), stats.t(found.freedom).ppf(tails[1])
        low, high = resampling.ends(found, LEVEL)
        intervals = {
            "ours": (low, high),
            "bootstrap-t": (found.estimate - far * error, found.estimate - near * error),
            "symmetric bootstrap-t": (found.estimate - both * error, found.estimate + both * error),
            "Student's t": (found.estimate - student * error, found.estimate + student * error),
        }
        for name, (begin, end) in intervals.items():
            above, below = errors.get(name, (0.0, 0.0))
            errors[name] = above + (begin > case.truth).sum() / SAMPLES, below + (end < case.truth).sum() / SAMPLES
        ours, bootstrap_t = ours + float((high - low).sum()), bootstrap_t + float(((far - near) * error).sum())
    return errors, ours / bootstrap_t - 1


def without_floor(case: Case, n: int) -> float:
    """How often intervals contain the truth if the standard error of a resample may be as small as it is."""
    floor, resampling.FLOOR = resampling.FLOOR, 0.0
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # all numbers of a resample may be equal
            return coverage(case, n, SAMPLES, seed=0)
    finally:
        resampling.FLOOR = floor


class Made:
    """Results made up: the mean of every agent is a level and noise of mean 0, independent of all others.

    Args:
        claim: the claim that they are for.
        effects: of its comparisons, without alternatives.
        draw: numbers of a shape.
        seeds: how many.
        rng: of the noise.
    """

    missing = ()

    def __init__(self, claim: Claim, effects: np.ndarray, draw, seeds: int, rng: np.random.Generator) -> None:
        self.name, self.seeds = claim.study, seeds
        self._draw, self._rng = draw, rng
        self._levels, self._means = levels(claim.comparisons, effects), {}

    def means(self, world: str, agent: str, metric: str) -> np.ndarray:
        """(seeds,)."""
        key = world, agent, metric
        if key not in self._means:
            self._means[key] = self._levels.get(key, 0.0) + self._draw(self._rng, (self.seeds,))
        return self._means[key]

    def diverged(self, world: str, agent: str) -> np.ndarray:
        """No run did."""
        return np.zeros(self.seeds, dtype=np.int64)


def levels(comparisons: tuple[Contrast, ...], effects: np.ndarray) -> dict[tuple[str, str, str], float]:
    """A mean of each agent with which the comparisons have these effects."""
    keys = list(dict.fromkeys((world, agent, each.metric) for each in comparisons for _, world, agent in each.terms))
    factors = np.zeros((len(comparisons), len(keys)))
    for row, each in zip(factors, comparisons, strict=True):
        for factor, world, agent in each.terms:
            row[keys.index((world, agent, each.metric))] += factor
    return dict(zip(keys, np.linalg.lstsq(factors, effects)[0], strict=True))


def wrong_verdicts(claim: Claim, draw, seeds: int, studies: int, seed: int) -> tuple[float, float]:
    """How often a claim is contradicted if all its effects are 0, and supported if one is and the others are large."""
    rng = np.random.default_rng((seed, claim.number, seeds))
    names = [(each.metric, each.terms) for each in claim.comparisons]
    contradicted = supported = 0
    for study in range(studies):
        without = Made(claim, np.zeros(len(names)), draw, seeds, rng)
        contradicted += claim.judge(without, RESAMPLES).verdict == CONTRADICTED
        one = names[study % len(names)]
        all_but_one = Made(claim, np.array([0 if name == one else EFFECT for name in names]), draw, seeds, rng)
        supported += claim.judge(all_but_one, RESAMPLES).verdict == SUPPORTED
    return contradicted / studies, supported / studies


NOISE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "lognormal": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
}


def print_alternatives(n: int) -> None:
    """The table of other intervals."""
    header = None
    for case in cases():
        errors, wider = alternatives(case, n)
        if header is None:
            header = ["statistic", "data", *errors, "wider"]
            print(f"\n| {' | '.join(header)} |\n" + "|---" * len(header) + "|")
        shares = [f"{1 - above - below:.3f} ({above:.3f}, {below:.3f})" for above, below in errors.values()]
        print(f"| {case.statistic} | {case.data} | {' | '.join(shares)} | {wider:.1%} |", flush=True)


def main() -> None:
    """All tables."""
    print("| statistic | data | " + " | ".join(f"n = {n}" for n in SIZES) + " |\n" + "|---" * (2 + len(SIZES)) + "|")
    for case in cases():
        found = [f"{coverage(case, n, SAMPLES, seed=0):.3f}" for n in SIZES]
        print(f"| {case.statistic} | {case.data} | {' | '.join(found)} |", flush=True)
    for n in (10, 20):
        change = max(abs(without_floor(case, n) - coverage(case, n, SAMPLES, seed=0)) for case in cases())
        print(f"\nWithout the floor of standard errors, {n} seeds: changed by at most {change:.4f}", flush=True)
    print_alternatives(20)
    sizes = (FEWEST_SEEDS, 20)
    header = [f"{verdict}, {n} seeds" for n in sizes for verdict in ("contradicted", "supported")]
    print("\n| claim | comparisons | noise | " + " | ".join(header) + " |\n" + "|---" * (3 + len(header)) + "|")
    for claim in sorted((each for each in CLAIMS if each.number in STRUCTURES), key=lambda each: len(each.comparisons)):
        studies = STUDIES if len(claim.comparisons) <= 10 else FEWER
        for name, draw in NOISE.items():
            found = [rate for n in sizes for rate in wrong_verdicts(claim, draw, n, studies, seed=0)]
            rates = " | ".join(f"{rate:.3f}" for rate in found)
            print(f"| {claim.number} | {len(claim.comparisons)} | {name} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
