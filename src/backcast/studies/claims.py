"""The paper's claims, each as a sentence and the code that judges it.

A claim has parts, each a paired difference over seeds that the claim says is positive. A part is supported if its
95 % interval lies above 0 (or above its margin), contradicted if it lies below, else undecided. A claim is supported if
all its parts are, contradicted if one of them is, else undecided: a verdict can come out any way. Agents of which a run
diverged have no mean to be compared: the part says so, and is undecided.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from backcast.studies.divergence import in_words
from backcast.studies.results import Results
from backcast.studies.statistics import Interval, bootstrap, seeds_needed

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
FEWEST_SEEDS = 5
RATIOS = ("chain-500-5", "chain-50-5", "chain-5-5", "chain-5-50", "chain-5-500")


@dataclass(frozen=True)
class Part:
    """One comparison that a claim rests on.

    Attributes:
        name: what is compared.
        effect: the mean difference that the claim says is positive, with its interval; None if runs diverged.
        unit: what it is measured in.
        more_seeds: how many more would decide it, if effect and spread stay as they are; None if none would.
        diverged: which agents diverged, in words; empty if none did.
    """

    name: str
    effect: Interval | None
    unit: str
    more_seeds: int | None
    diverged: str = ""

    @property
    def verdict(self) -> str:
        """What the interval says; nothing with so few seeds that a bootstrap means little."""
        if self.effect is None or self.effect.n < FEWEST_SEEDS:
            return UNDECIDED
        if self.effect.low > 0:
            return SUPPORTED
        return CONTRADICTED if self.effect.high < 0 else UNDECIDED

    @property
    def outcome(self) -> str:
        """The effect with its interval and unit, or why there is none."""
        return self.diverged if self.effect is None else f"{self.effect} {self.unit}"


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
        """The part that the verdict hangs on: the one least in favour of the claim."""
        order = {CONTRADICTED: 0, UNDECIDED: 1, SUPPORTED: 2}
        return min(self.parts, key=lambda part: (order[part.verdict], part.effect.low if part.effect else -np.inf))

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
        more = ""
        if part.verdict == UNDECIDED and not part.diverged:
            more = (
                "; no number of seeds would decide it"
                if part.more_seeds is None
                else f"; about {part.more_seeds:,} more would decide"
            )
        return (
            f"{self.number:>2} {self.verdict:<12} {self.sentence} "
            f"[{part.name}: {part.outcome}; {self.seeds} seeds{more}]"
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its study, one sentence, and the parts it rests on."""

    number: int
    study: str
    sentence: str
    judge: Callable[[Results], Iterable[Part]]


def judge(results: Results) -> list[Verdict]:
    """The verdicts on all claims that a study bears on; none while there are agents without results."""
    if results.missing:
        return []
    return [
        Verdict(claim.number, claim.sentence, tuple(claim.judge(results)), results.seeds)
        for claim in CLAIMS
        if claim.study == results.name
    ]


Term = tuple[float, str, str]  # a factor, a world and an agent, whose mean it multiplies


def _part(results: Results, name: str, metric: str, *terms: Term) -> Part:
    """A part from the sum of some terms, seed by seed; its interval is a bootstrap over seeds, the same every time."""
    unit = "steps per episode" if metric == "steps" else "RMSVE"
    lost = {f"{agent} in {world}": in_words(results.diverged(world, agent)) for _, world, agent in terms}
    if any(lost.values()):
        return Part(name, None, unit, None, "; ".join(f"{who} {words}" for who, words in lost.items() if words))
    differences = np.sum([factor * results.means(world, agent, metric) for factor, world, agent in terms], axis=0)
    n = len(differences)
    needed = FEWEST_SEEDS if n < FEWEST_SEEDS else seeds_needed(differences)
    return Part(name, bootstrap(differences, seed=0), unit, None if needed is None else max(0, needed - n))


def _lower(results: Results, name: str, metric: str, world: str, better: str, worse: str) -> Part:
    """A part for which one agent's mean has to be lower than another's."""
    return _part(results, name, metric, (1, world, worse), (-1, world, better))


def _planner(direction: str, model: str) -> str:
    """The agent that plans in a direction with a model."""
    prefix = {"learned model": "", "learned model, pure planning": "pure:", "true model": "pure:true-"}[model]
    return prefix + direction


def _levels(world: str, worse: str, better: str) -> Callable[[Results], Iterator[Part]]:
    """One direction has lower error than the other: learned and true models, both measures."""

    def parts(results: Results) -> Iterator[Part]:
        for model in ("learned model", "true model"):
            for metric, states in (("rmsve", "all states"), ("rmsve_inner", "non-terminal states")):
                name = f"{model}, {states}: {worse} − {better}"
                yield _lower(results, name, metric, world, _planner(better, model), _planner(worse, model))

    return parts


def _switches_once(results: Results) -> Iterator[Part]:
    """Backward planning has the advantage at one end and forward planning at the other, with one switch between."""
    for model in ("learned model", "learned model, pure planning", "true model"):
        forward, backward = (_planner(direction, model) for direction in ("forward", "backward"))
        for metric, states in (("rmsve", "all states"), ("rmsve_inner", "non-terminal states")):
            where = f"{model}, {states}"
            yield _lower(results, f"{where}: backward ahead at 100:1", metric, RATIOS[0], backward, forward)
            yield _lower(results, f"{where}: forward ahead at 1:100", metric, RATIOS[-1], forward, backward)
            for early, late in _switches_back(results, metric, forward, backward)[:1]:
                names = early.removeprefix("chain-"), late.removeprefix("chain-")
                name = f"{where}: backward not ahead again at {names[1]}, after {names[0]}"
                yield _lower(results, name, metric, late, forward, backward)


def _switches_back(results: Results, metric: str, forward: str, backward: str) -> list[tuple[str, str]]:
    """Every ratio at which forward is ahead, with each later one at which backward is ahead again."""

    def wins(better: str, worse: str) -> set[str]:
        return {ratio for ratio in RATIOS if _lower(results, "", metric, ratio, better, worse).verdict == SUPPORTED}

    forwards, backwards = wins(forward, backward), wins(backward, forward)
    return [(early, late) for early, late in combinations(RATIOS, 2) if early in forwards and late in backwards]


def _frame(prefix: str, direction: str, better: str, worse: str) -> Callable[[Results], Iterator[Part]]:
    def parts(results: Results) -> Iterator[Part]:
        agent = prefix + direction
        name = f"{agent}: from {worse} − from {better}"
        yield _lower(results, name, "steps", "maze", f"{agent}@{better}", f"{agent}@{worse}")

    return parts


def _hurt_less(results: Results) -> Iterator[Part]:
    slippery, forward, backward = "maze-slip-0.5", "forward@current", "backward@previous"
    added: tuple[Term, ...] = (1, slippery, forward), (-1, "maze", forward)
    added_to_backward: tuple[Term, ...] = (-1, slippery, backward), (1, "maze", backward)
    yield _part(results, "added by slipping: forward − backward", "steps", *added, *added_to_backward)
    yield _lower(results, "in the slippery maze: forward − backward", "steps", slippery, backward, forward)


def _faster_with_random_rewards(results: Results) -> Iterator[Part]:
    for other in ("q", "forward@current"):
        yield _lower(results, f"{other} − backward", "steps", "maze-reward-0.5", "backward@previous", other)


def _no_help(results: Results) -> Iterator[Part]:
    """To fail to help is judged with a margin: it saves less than a tenth of Q-learning's steps."""
    world, name = "maze-reward-0.1", "a tenth of q's steps − what backward saves"
    yield _part(results, name, "steps", (0.1, world, "q"), (-1, world, "q"), (1, world, "backward@previous"))


def _misspecification(results: Results) -> Iterator[Part]:
    for world in ("maze", "maze-slip-0.5", "maze-reward-0.5"):
        name = f"{world}: learned − true forward model"
        yield _lower(results, name, "steps", world, "true-forward@current", "forward@current")


CLAIMS = (
    Claim(1, "fan-levels", "Channelling (500, 50, 5): backward planning has lower error than forward.",
          _levels("chain-500-50-5", "forward", "backward")),
    Claim(2, "fan-levels", "Broadcasting (5, 50, 500): forward planning has lower error than backward.",
          _levels("chain-5-50-500", "backward", "forward")),
    Claim(3, "fan-ratios", "From 100:1 to 1:100 the advantage switches from backward to forward, once.",
          _switches_once),
    Claim(4, "frames", "Learning and planning: backward gains more from s than from s'.",
          _frame("", "backward", "previous", "current")),
    Claim(5, "frames", "Learning and planning: forward gains more from s' than from s.",
          _frame("", "forward", "current", "previous")),
    Claim(6, "frames", "Pure planning: backward gains more from s' than from s.",
          _frame("pure:", "backward", "current", "previous")),
    Claim(7, "frames", "Pure planning: forward gains more from s than from s'.",
          _frame("pure:", "forward", "previous", "current")),
    Claim(8, "stochasticity", "Stochastic transitions hurt a learned backward model less than a forward one.",
          _hurt_less),
    Claim(9, "stochasticity", "Stochastic rewards (0.5): backward planning is faster than Q-learning and forward.",
          _faster_with_random_rewards),
    Claim(10, "stochasticity", "Rewards with probability 0.1: even backward planning fails to help.", _no_help),
    Claim(11, "stochasticity", "A misspecified (learned) model hurts forward planning.", _misspecification),
)  # fmt: skip
