"""The tables and verdicts of docs/blend.md, from the study `blend`.

    backcast reproduce blend --out blend
    python docs/measurements/blend_study.py blend

Every kind is judged at the step sizes that suit it: of its settings the best is chosen on every other seed and judged
on the others, and the other way round. Costs are the lower the better:

- equal experience: the mean over all episodes;
- equal value updates: the error when the budget is used up, or the mean over the episodes of its second half, each
  counted as long as it was the last one finished;
- equal processor time: the same in half of the time that TD or Q-learning takes for the budget. Time is computed
  (`backcast.studies.costs`). Who has used up all updates before is judged by the last.

Prediction is judged by RMSVE, mazes and garnets by steps per episode, FrozenLake by the share of episodes that fail,
and Taxi by 20 less the reward: 1 for each step before the last, 10 for each thing done in the wrong place.

"Best" is the lowest mean. "surely" means that intervals of the paired differences to all other kinds, which hold
together with probability 0.95, say so.
"""

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Vector
from backcast.report.scores import budget, judged_by
from backcast.studies import results
from backcast.studies.choice import on_fresh_seeds
from backcast.studies.results import Results
from backcast.studies.statistics import simultaneous

WITH, WITHOUT = "blend", "blend,prior=false"
OURS = (WITH, WITHOUT)
MOST = {"FrozenLake8x8-v1": 1.0, "Taxi-v4": 20.0}  # of the reward of an episode
POINTS = 200  # at which the second half of a budget is looked at
SHARE = 0.5  # of the time of TD or Q-learning


class Judged(NamedTuple):
    """What the kinds of a world cost, (seeds,) each; and of which kinds all runs were over before."""

    world: str
    costs: dict[str, Vector]
    over: set[str]


def candidates(result: Results, world: str) -> dict[str, list[str]]:
    """The labels of each kind's settings, by its name."""
    found: dict[str, list[str]] = {}
    for cell in result.cells(world):
        found.setdefault(cell.base, []).append(cell.label)
    return found


def curve(result: Results, world: str, label: str) -> Vector:
    """The cost of each episode, (seeds, episodes)."""
    metric = judged_by(result, world)
    values = result.curves(world, label, metric.name)
    return MOST[world] - values if metric.higher_is_better else values


def experience(result: Results, world: str) -> Judged:
    """The mean over all episodes."""
    costs = {}
    for kind, labels in candidates(result, world).items():
        costs[kind] = on_fresh_seeds(np.array([curve(result, world, label).mean(axis=1) for label in labels]))
    return Judged(world, costs, set())


def within(result: Results, world: str, limit: Callable[[str], float]) -> Judged:
    """After so many value updates, or in the second half of them."""
    costs, over = {}, set()
    for kind, labels in candidates(result, world).items():
        rows = []
        for label in labels:
            made, cost, last = result.updates(world, label), curve(result, world, label), limit(label)
            if judged_by(result, world).per_episode:
                when = np.linspace(last / 2, last, POINTS)
                places = [np.minimum(np.searchsorted(each, when), made.shape[1] - 1) for each in made]
                rows.append([each[at].mean() for each, at in zip(cost, places, strict=True)])
            else:
                rows.append([np.interp(last, *each) for each in zip(made, cost, strict=True)])
            if (made[:, -1] < last).mean() > 0.5:
                over.add(kind)
        costs[kind] = on_fresh_seeds(np.array(rows))
    return Judged(world, costs, over)


def updates(result: Results, world: str) -> Judged:
    """At equal numbers of value updates."""
    most = float(budget(result, world) or 0)
    return within(result, world, lambda label: most)


def seconds(result: Results, world: str) -> Judged:
    """At equal processor time."""
    first = next(label for kind, labels in candidates(result, world).items() if kind in ("td", "q") for label in labels)
    time = SHARE * _per_update(result, world, first) * float(budget(result, world) or 0)
    return within(result, world, lambda label: time / _per_update(result, world, label))


def _per_update(result: Results, world: str, label: str) -> float:
    """Nanoseconds of a value update, with all that a run does besides."""
    computed = result.computed_nanoseconds(world, label)
    if computed is None:
        raise SystemExit(f"{label}: not in costs.json; renew it with backcast bench --only costs --json")
    return computed / result.value_updates(world, label)


def table(words: str, judged: list[Judged]) -> None:
    """What the best three of the other kinds and `blend` cost, and how they compare."""
    print(
        f"\n| {words} | the best of the others | `blend` | × best | without prior | × best |\n|---|---|---|---|---|---|"
    )
    for each in judged:
        others = sorted((cost.mean(), kind) for kind, cost in each.costs.items() if kind not in OURS)
        best = ", ".join(f"{kind}{' (over)' if kind in each.over else ''} {mean:.3g}" for mean, kind in others[:3])
        cells = []
        for ours in OURS:
            cells += [f"{each.costs[ours].mean():.3g}", f"{ratio(each, ours):.2f}{_sign(each, ours)}"]
        print(f"| {each.world} | {best} | {' | '.join(cells)} |")


def ratio(judged: Judged, ours: str) -> float:
    """Our mean cost over the lowest mean of the others."""
    return float(judged.costs[ours].mean() / min(c.mean() for kind, c in judged.costs.items() if kind not in OURS))


def _sign(judged: Judged, ours: str) -> str:
    """Surely better than all others, or surely worse than one of them."""
    others = [cost for kind, cost in judged.costs.items() if kind not in OURS and np.isfinite(cost).all()]
    intervals = simultaneous(np.array([cost - judged.costs[ours] for cost in others]).T, seed=0)
    if all(each.low > 0 for each in intervals):
        return " surely better"
    return " surely worse" if any(each.high < 0 for each in intervals) else ""


def bar(words: str, judged: list[Judged], ours: str, most: float, but: int, better: int | None) -> None:
    """Whether a bar of the issue is met: within a factor of the best in all but some worlds, best in some."""
    ratios = {each.world: ratio(each, ours) for each in judged}
    beyond = {world: found for world, found in ratios.items() if found > most}
    met = len(beyond) <= but
    said = ", ".join(f"{world} ({found:.2f})" for world, found in beyond.items()) or "none"
    print(f"- {words}: within {most:.2f} in all but {but}: {'met' if met else 'missed'}; beyond it: {said}")
    if better is not None:
        best = [world for world, found in ratios.items() if found < 1]
        sure = [each.world for each in judged if "better" in _sign(each, ours)]
        verdict = "met" if len(best) >= better else "missed"
        print(
            f"- {words}: better than all in at least {better}: {verdict};"
            f" {len(best)} of {len(judged)}, {len(sure)} surely"
        )


def main(*directories: str) -> None:
    """All tables, then the bars."""
    found = {each.name: each for directory in directories for each in results(directory)}
    for which in ("development", "held-out"):
        by_experience, by_updates = (found[f"blend-{which}-{equal}"] for equal in ("experience", "updates"))
        print(f"\n## {which}: {by_experience.seeds} seeds at equal experience, {by_updates.seeds} otherwise")
        equal = {
            "equal experience": [experience(by_experience, world) for world in by_experience.worlds],
            "equal value updates": [updates(by_updates, world) for world in by_updates.worlds],
            "equal processor time": [seconds(by_updates, world) for world in by_updates.worlds],
        }
        for words, judged in equal.items():
            table(words, judged)
        print()
        for words, better in (("equal experience", 5), ("equal value updates", 8)):
            if which == "development":
                bar(f"without prior, {words}", equal[words], WITHOUT, 1.10, 2, None)
                bar(f"with prior, {words}", equal[words], WITH, 1.12, 1, better)
            else:
                bar(f"with prior, {words}", equal[words], WITH, 1.15, 1, 3)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["blend"]))
