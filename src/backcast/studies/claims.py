"""The paper's claims, each as a sentence and the code that judges it.

A claim has parts, each a paired difference over seeds that the claim says is positive. A part is supported if its
95 % interval lies above 0 (or above its margin), contradicted if it lies below, else undecided. A claim is supported if
all its parts are, contradicted if one of them is, else undecided: a verdict can come out any way.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from backcast.arrays import Vector
from backcast.studies.statistics import Interval, bootstrap, seeds_needed
from backcast.studies.store import Results

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
FEWEST_SEEDS = 5
RATIOS = ("chain-500-5", "chain-50-5", "chain-5-5", "chain-5-50", "chain-5-500")


@dataclass(frozen=True)
class Part:
    """One comparison that a claim rests on.

    Attributes:
        name: what is compared.
        effect: the mean difference that the claim says is positive, with its interval.
        unit: what it is measured in.
        more_seeds: how many more would decide it, if effect and spread stay as they are; None if none would.
    """

    name: str
    effect: Interval
    unit: str
    more_seeds: int | None

    @property
    def verdict(self) -> str:
        """What the interval says; nothing with so few seeds that a bootstrap means little."""
        if self.effect.n < FEWEST_SEEDS:
            return UNDECIDED
        if self.effect.low > 0:
            return SUPPORTED
        return CONTRADICTED if self.effect.high < 0 else UNDECIDED


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
        return min(self.parts, key=lambda part: (order[part.verdict], part.effect.low))

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
        if part.verdict == UNDECIDED:
            more = (
                "; no number of seeds would decide it"
                if part.more_seeds is None
                else f"; about {part.more_seeds:,} more would decide"
            )
        return (
            f"{self.number:>2} {self.verdict:<12} {self.sentence} "
            f"[{part.name}: {part.effect} {part.unit}; {self.seeds} seeds{more}]"
        )


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its study, one sentence, and the parts it rests on."""

    number: int
    study: str
    sentence: str
    judge: Callable[[Results], Iterable[Part]]


def judge(results: Results) -> list[Verdict]:
    """The verdicts on all claims that a study bears on."""
    return [
        Verdict(claim.number, claim.sentence, tuple(claim.judge(results)), results.seeds)
        for claim in CLAIMS
        if claim.study == results.name
    ]


def _part(name: str, differences: Vector, unit: str) -> Part:
    """A part from one difference per seed; its interval is a bootstrap over seeds, and the same every time."""
    n = len(differences)
    needed = FEWEST_SEEDS if n < FEWEST_SEEDS else seeds_needed(differences)
    return Part(name, bootstrap(differences, seed=0), unit, None if needed is None else max(0, needed - n))


def _steps(results: Results, world: str, agent: str) -> Vector:
    return results.means(world, agent, "steps")


def _planner(direction: str, model: str) -> str:
    """The agent that plans in a direction with a model."""
    prefix = {"learned model": "", "learned model, pure planning": "pure:", "true model": "pure:true-"}[model]
    return prefix + direction


def _levels(world: str, worse: str, better: str) -> Callable[[Results], Iterator[Part]]:
    """One direction has lower error than the other: learned and true models, both measures."""

    def parts(results: Results) -> Iterator[Part]:
        for model in ("learned model", "true model"):
            for metric, states in (("rmsve", "all states"), ("rmsve_inner", "non-terminal states")):
                areas = [results.means(world, _planner(direction, model), metric) for direction in (worse, better)]
                yield _part(f"{model}, {states}: {worse} − {better}", areas[0] - areas[1], "RMSVE")

    return parts


def _switches_once(results: Results) -> Iterator[Part]:
    """Backward planning has the advantage at one end and forward planning at the other, with one switch between."""
    for model in ("learned model", "learned model, pure planning", "true model"):
        for metric, states in (("rmsve", "all states"), ("rmsve_inner", "non-terminal states")):
            gains = [
                results.means(world, _planner("forward", model), metric)
                - results.means(world, _planner("backward", model), metric)
                for world in RATIOS
            ]
            where = f"{model}, {states}"
            yield _part(f"{where}: backward ahead at 100:1", gains[0], "RMSVE")
            yield _part(f"{where}: forward ahead at 1:100", -gains[-1], "RMSVE")
            # a second switch would need forward ahead at some ratio and backward ahead again at a later one
            again = [
                (early, late)
                for early in range(len(gains))
                for late in range(early + 1, len(gains))
                if _part("", -gains[early], "").verdict == _part("", gains[late], "").verdict == SUPPORTED
            ]
            for early, late in again[:1]:
                names = RATIOS[early].removeprefix("chain-"), RATIOS[late].removeprefix("chain-")
                yield _part(f"{where}: backward not ahead again at {names[1]}, after {names[0]}", -gains[late], "RMSVE")


def _frame(prefix: str, direction: str, better: str, worse: str) -> Callable[[Results], Iterator[Part]]:
    def parts(results: Results) -> Iterator[Part]:
        steps = {frame: _steps(results, "maze", f"{prefix}{direction}@{frame}") for frame in (better, worse)}
        yield _part(
            f"{prefix}{direction}: from {worse} − from {better}", steps[worse] - steps[better], "steps per episode"
        )

    return parts


def _hurt_less(results: Results) -> Iterator[Part]:
    def hurt(agent: str) -> Vector:
        return _steps(results, "maze-slip-0.5", agent) - _steps(results, "maze", agent)

    forward, backward = "forward@current", "backward@previous"
    yield _part("added by slipping: forward − backward", hurt(forward) - hurt(backward), "steps per episode")
    slip = [_steps(results, "maze-slip-0.5", agent) for agent in (forward, backward)]
    yield _part("in the slippery maze: forward − backward", slip[0] - slip[1], "steps per episode")


def _faster_with_random_rewards(results: Results) -> Iterator[Part]:
    backward = _steps(results, "maze-reward-0.5", "backward@previous")
    for other in ("q", "forward@current"):
        yield _part(f"{other} − backward", _steps(results, "maze-reward-0.5", other) - backward, "steps per episode")


def _no_help(results: Results) -> Iterator[Part]:
    """To fail to help is judged with a margin: it saves less than a tenth of Q-learning's steps."""
    q, backward = (_steps(results, "maze-reward-0.1", agent) for agent in ("q", "backward@previous"))
    yield _part("a tenth of q's steps − what backward saves", 0.1 * q - (q - backward), "steps per episode")


def _misspecification(results: Results) -> Iterator[Part]:
    for world in ("maze", "maze-slip-0.5", "maze-reward-0.5"):
        learned, true = (_steps(results, world, f"{model}forward@current") for model in ("", "true-"))
        yield _part(f"{world}: learned − true forward model", learned - true, "steps per episode")


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
