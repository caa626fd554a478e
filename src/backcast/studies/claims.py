"""The paper's claims, each as a sentence and the comparisons it rests on.

A comparison is a paired difference over seeds that the claim says is positive. A claim says that all of them are
positive; if a comparison has an alternative (`otherwise`), that one of the two is. So supporting a claim takes other
evidence than contradicting it:

- It is supported if every single comparison is: its 95 % interval lies above 0. No adjustment is needed: a claim that
  is false in one comparison is supported only if that one errs (an intersection-union test: Berger 1982). If one of
  two alternatives is enough, either may err, and the intervals are those of the next item.
- It is contradicted if one comparison, with its alternative, is. Among many, one is likely to look so by chance;
  therefore these intervals hold for all comparisons of the claim together (`simultaneous`).

Otherwise it is undecided; with fewer than `FEWEST_SEEDS`, always. An agent with a run that diverged has no mean, so its
comparison is undecided and says so. docs/studies.md shows how often a claim without substance is supported or
contradicted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.studies.divergence import in_words
from backcast.studies.results import Results
from backcast.studies.statistics import Interval, band, seeds_needed, simultaneous

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
FEWEST_SEEDS = 10  # with fewer, 95 % intervals of skewed data cover the truth in less than 90 % (docs/studies.md)
RATIOS = ("chain-500-5", "chain-50-5", "chain-5-5", "chain-5-50", "chain-5-500")
STATES = (("rmsve", "all states"), ("rmsve_inner", "non-terminal states"))

Term = tuple[float, str, str]  # a factor, and the world and agent whose mean it multiplies


class Contrast(NamedTuple):
    """A sum of means, seed by seed, that a claim says is positive.

    Attributes:
        name: description of the comparison.
        metric: the metric of the means.
        terms: the terms of the sum.
        otherwise: an alternative that may be positive instead.
    """

    name: str
    metric: str
    terms: tuple[Term, ...]
    otherwise: "Contrast | None" = None

    @property
    def unit(self) -> str:
        """The unit."""
        return "steps per episode" if self.metric == "steps" else "RMSVE"


@dataclass(frozen=True)
class Part:
    """The result of a comparison.

    Attributes:
        name: description of the comparison.
        effect: the mean difference that the claim says is positive, with its interval; None if runs diverged.
        together: the same with an interval that holds for all comparisons of the claim together.
        unit: the unit.
        needed: lower bound on the seeds needed to distinguish the effect from 0; None: no number suffices.
        diverged: which agents diverged, in words; empty if none did.
        otherwise: the result of the alternative.
    """

    name: str
    effect: Interval | None
    together: Interval | None
    unit: str
    needed: int | None = None
    diverged: str = ""
    otherwise: "Part | None" = None

    @property
    def verdict(self) -> str:
        """The verdict; with an alternative, supported if one of the two is, contradicted if both are."""
        if self.otherwise is None:
            return self._says(self.effect)
        found = {part._says(part.together) for part in (self, self.otherwise)}
        if SUPPORTED in found:
            return SUPPORTED
        return CONTRADICTED if found == {CONTRADICTED} else UNDECIDED

    def _says(self, supports: Interval | None) -> str:
        """Supported if the given interval lies above 0, contradicted if the simultaneous one lies below."""
        if supports is None or self.together is None or supports.n < FEWEST_SEEDS:
            return UNDECIDED
        if supports.low > 0:
            return SUPPORTED
        return CONTRADICTED if self.together.high < 0 else UNDECIDED

    @property
    def interval(self) -> Interval | None:
        """The interval that the verdict rests on."""
        return self.effect if self.otherwise is None and self.verdict == SUPPORTED else self.together

    @property
    def outcome(self) -> str:
        """The effect with the interval that its verdict rests on and its unit, or why there is none."""
        other, found = self.otherwise, self._found(self.interval)
        return found if other is None else f"{found}; or {other.name}: {other._found(other.together)}"

    def _found(self, interval: Interval | None) -> str:
        return self.diverged if interval is None else f"{interval} {self.unit}"

    @property
    def remark(self) -> str:
        """Why it is undecided; nothing if it is not, or if runs diverged."""
        if self.verdict != UNDECIDED or self.effect is None:
            return ""
        n = self.effect.n
        if n < FEWEST_SEEDS:
            return f"{n} seed{'s are' if n > 1 else ' is'} too few for a verdict, which takes {FEWEST_SEEDS}"
        if self.needed is None:
            return "no number of seeds would decide it: all differences are 0"
        if self.needed <= n:
            return "the effect is within its error: more seeds decide only if there is one"
        return f"the effect is within its error: at least {self.needed - n:,} more seeds decide, if there is one"


@dataclass(frozen=True)
class Verdict:
    """A judged claim."""

    number: int
    sentence: str
    parts: tuple[Part, ...]
    seeds: int

    @property
    def verdict(self) -> str:
        """Supported if all parts are; contradicted if one is."""
        found = {part.verdict for part in self.parts}
        if CONTRADICTED in found:
            return CONTRADICTED
        return SUPPORTED if found == {SUPPORTED} else UNDECIDED

    @property
    def decisive(self) -> Part:
        """The decisive part: the one least in favour of the claim."""
        order = {CONTRADICTED: 0, UNDECIDED: 1, SUPPORTED: 2}
        return min(self.parts, key=lambda part: (order[part.verdict], part.interval.low if part.interval else -np.inf))

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        parts = [{"verdict": part.verdict, **asdict(part)} for part in self.parts]
        return {
            "claim": self.number,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "seeds": self.seeds,
            "parts": parts,
        }

    def __str__(self) -> str:
        part = self.decisive
        remark = f"; {part.remark}" if part.remark else ""
        return (
            f"{self.number:>2} {self.verdict:<12} {self.sentence} "
            f"[{part.name}: {part.outcome}; {self.seeds} seeds{remark}]"
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its study, one sentence, and the comparisons it rests on."""

    number: int
    study: str
    sentence: str
    comparisons: tuple[Contrast, ...]

    def judge(self, results: Results, resamples: int | None = None) -> Verdict:
        """Judge the claim; results are reproducible."""
        every = list(dict.fromkeys(_with_alternatives(self.comparisons)))
        lost = {each: _divergences(results, each) for each in every}
        healthy = [each for each in every if not lost[each]]
        differences = np.array([_differences(results, each) for each in healthy]).reshape(len(healthy), results.seeds)
        found = dict(zip(healthy, _found(differences, resamples), strict=True))

        def part(comparison: Contrast) -> Part:
            effect, together, needed = found.get(comparison, (None, None, None))
            other = comparison.otherwise
            return Part(
                comparison.name,
                effect,
                together,
                comparison.unit,
                needed,
                lost[comparison],
                None if other is None else part(other),
            )

        return Verdict(self.number, self.sentence, tuple(map(part, self.comparisons)), results.seeds)


@lru_cache(maxsize=8)  # the page and the command line use the same verdicts
def judge(results: Results) -> tuple[Verdict, ...]:
    """The verdicts on all claims about a study; none while agents have no results."""
    if results.missing:
        return ()
    return tuple(claim.judge(results) for claim in CLAIMS if claim.study == results.name)


def _with_alternatives(comparisons: Sequence[Contrast]) -> Iterator[Contrast]:
    for comparison in comparisons:
        yield comparison
        if comparison.otherwise is not None:
            yield from _with_alternatives((comparison.otherwise,))


def _divergences(results: Results, comparison: Contrast) -> str:
    """Which agents diverged, in words; empty if none did."""
    found = {f"{agent} in {world}": in_words(results.diverged(world, agent)) for _, world, agent in comparison.terms}
    return "; ".join(f"{who} {words}" for who, words in found.items() if words)


def _differences(results: Results, comparison: Contrast) -> Vector:
    """The contrast of each seed, (seeds,)."""
    terms = [factor * results.means(world, agent, comparison.metric) for factor, world, agent in comparison.terms]
    return np.asarray(np.sum(terms, axis=0))


def _found(differences: Vector, resamples: int | None) -> list[tuple[Interval, Interval, int | None]]:
    """For each row of differences (m, n): its own interval, the simultaneous interval, and the seeds needed."""
    if not len(differences):
        return []
    n = differences.shape[1]
    columns = zip(*band(differences.T, seed=0, resamples=resamples), strict=True)
    alone = [Interval(float(mean), float(low), float(high), n) for mean, low, high in columns]
    together = simultaneous(differences.T, seed=0, resamples=resamples)
    needed = [
        seeds_needed(row, each) if n >= FEWEST_SEEDS and not each.excludes_zero else None
        for row, each in zip(differences, together, strict=True)
    ]
    return list(zip(alone, together, needed, strict=True))


def _lower(name: str, metric: str, world: str, better: str, worse: str) -> Contrast:
    """The contrast that one agent's mean is lower than another's."""
    return Contrast(name, metric, ((1, world, worse), (-1, world, better)))


def _planner(direction: str, model: str) -> str:
    """The agent that plans in a direction with a model."""
    prefix = {"learned model": "", "learned model, pure planning": "pure:", "true model": "pure:true-"}[model]
    return prefix + direction


def _ratio(world: str) -> str:
    return world.removeprefix("chain-")


def _levels(world: str, worse: str, better: str) -> Iterator[Contrast]:
    """One direction has lower error than the other: learned and true models, both measures."""
    for model in ("learned model", "true model"):
        for metric, states in STATES:
            name = f"{model}, {states}: {worse} − {better}"
            yield _lower(name, metric, world, _planner(better, model), _planner(worse, model))


def _switches_once() -> Iterator[Contrast]:
    """Backward planning leads at one end, forward planning at the other, and the lead never switches back.

    Of two ratios between the ends, backward leads at the earlier or forward at the later one. A ratio at which neither
    is known to lead is no objection: whichever leads there, the advantage switches once.
    """
    for model in ("learned model", "learned model, pure planning", "true model"):
        forward, backward = (_planner(direction, model) for direction in ("forward", "backward"))
        for metric, states in STATES:
            where = f"{model}, {states}"
            yield _lower(f"{where}: backward ahead at 100:1", metric, RATIOS[0], backward, forward)
            yield _lower(f"{where}: forward ahead at 1:100", metric, RATIOS[-1], forward, backward)
            for early, late in combinations(RATIOS[1:-1], 2):
                instead = _lower(f"forward ahead at {_ratio(late)}", metric, late, forward, backward)
                first = _lower(f"{where}: backward ahead at {_ratio(early)}", metric, early, backward, forward)
                yield first._replace(otherwise=instead)


def _frame(agent: str, better: str, worse: str) -> Contrast:
    return _lower(f"{agent}: from {worse} − from {better}", "steps", "maze", f"{agent}@{better}", f"{agent}@{worse}")


def _hurt_less() -> Iterator[Contrast]:
    slippery, forward, backward = "maze-slip-0.5", "forward@current", "backward@previous"
    added: tuple[Term, ...] = (1, slippery, forward), (-1, "maze", forward)
    added_to_backward: tuple[Term, ...] = (-1, slippery, backward), (1, "maze", backward)
    yield Contrast("added by slipping: forward − backward", "steps", added + added_to_backward)
    yield _lower("in the slippery maze: forward − backward", "steps", slippery, backward, forward)


def _faster_with_random_rewards() -> Iterator[Contrast]:
    for other in ("q", "forward@current"):
        yield _lower(f"{other} − backward", "steps", "maze-reward-0.5", "backward@previous", other)


def _no_help() -> Iterator[Contrast]:
    """Judge "fails to help" with a margin: it saves less than a tenth of Q-learning's steps."""
    world, name = "maze-reward-0.1", "a tenth of q's steps − what backward saves"
    yield Contrast(name, "steps", ((0.1, world, "q"), (-1, world, "q"), (1, world, "backward@previous")))


def _misspecification() -> Iterator[Contrast]:
    """The loss of forward planning from learning its model, minus that of backward planning, in pure planning.

    The maze has no true backward model, because it would be tied to a policy that changes all the time.
    """
    for world in RATIOS:
        for metric, states in STATES:
            forward = (1.0, world, "pure:forward"), (-1.0, world, "pure:true-forward")
            backward = (-1.0, world, "pure:backward"), (1.0, world, "pure:true-backward")
            name = f"{_ratio(world)}, {states}: lost by forward − lost by backward"
            yield Contrast(name, metric, (*forward, *backward))


CLAIMS = (
    Claim(1, "fan-levels", "Channelling (500, 50, 5): backward planning has lower error than forward.",
          tuple(_levels("chain-500-50-5", "forward", "backward"))),
    Claim(2, "fan-levels", "Broadcasting (5, 50, 500): forward planning has lower error than backward.",
          tuple(_levels("chain-5-50-500", "backward", "forward"))),
    Claim(3, "fan-ratios", "From 100:1 to 1:100 the advantage switches from backward to forward, once.",
          tuple(_switches_once())),
    Claim(4, "frames", "Learning and planning: backward gains more from s than from s'.",
          (_frame("backward", "previous", "current"),)),
    Claim(5, "frames", "Learning and planning: forward gains more from s' than from s.",
          (_frame("forward", "current", "previous"),)),
    Claim(6, "frames", "Pure planning: backward gains more from s' than from s.",
          (_frame("pure:backward", "current", "previous"),)),
    Claim(7, "frames", "Pure planning: forward gains more from s than from s'.",
          (_frame("pure:forward", "previous", "current"),)),
    Claim(8, "stochasticity", "Stochastic transitions hurt a learned backward model less than a forward one.",
          tuple(_hurt_less())),
    Claim(9, "stochasticity", "Stochastic rewards (0.5): backward planning is faster than Q-learning and forward.",
          tuple(_faster_with_random_rewards())),
    Claim(10, "stochasticity", "Rewards with probability 0.1: even backward planning fails to help.",
          tuple(_no_help())),
    Claim(11, "fan-ratios", "A misspecified (learned) model hurts forward planning more than backward planning.",
          tuple(_misspecification())),
)  # fmt: skip
