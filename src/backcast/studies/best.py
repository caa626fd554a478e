"""The best of the settings that a study tried, with how sure that is: `backcast best`.

A setting is judged by the mean over episodes and seeds. The best of many is there partly by luck, and its mean is too
good to be true: `fresh` is what the choice is worth on seeds that had no say in it. Settings that the seeds do not tell
from the best are counted, and a best at the edge of what was tried is warned of.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from backcast.arrays import Vector, as_whole
from backcast.errors import InputError, nearest
from backcast.settings import describe
from backcast.studies.cells import Cell
from backcast.studies.choice import not_distinguishable, on_fresh_seeds, over_worlds, winner
from backcast.studies.search import Point, Space, edge, is_number
from backcast.studies.spec import METRICS, Study
from backcast.studies.statistics import Interval, bootstrap

KEYS = ("study", "world", "agent")


class Results(Protocol):
    """What has to be known of a study."""

    @property
    def study(self) -> Study:
        """The study itself."""

    @property
    def worlds(self) -> Sequence[str]:
        """The names of its worlds."""

    def agents(self, world: str) -> Sequence[str]:
        """The labels of the agents that were run in a world."""

    def metrics(self, world: str, agent: str) -> Sequence[str]:
        """What was measured, the error first."""

    def curves(self, world: str, agent: str, metric: str) -> Vector:
        """What was measured in each episode, (seeds, episodes)."""

    def means(self, world: str, agent: str, metric: str) -> Vector:
        """The mean of each seed's curve, (seeds,)."""


@dataclass(frozen=True)
class Best:
    """The best settings of a group.

    Attributes:
        group: what the group has in common: the keys asked for and their values.
        settings: what is best about everything else.
        metric: what it was judged by.
        worlds: the worlds that it was judged in.
        relative: whether it was judged by the mean over worlds of its mean divided by the best mean there.
        score: its mean, with the 95 % bootstrap interval over seeds; infinite if all settings diverged.
        fresh: what a choice is worth on seeds that had no say in it; None with one seed.
        tried: how many settings were.
        alike: how many others these seeds do not tell from it: the 95 % interval of the paired difference includes 0.
        diverged: of how many runs diverged.
        warnings: what else is to be said.
    """

    group: Point
    settings: Point
    metric: str
    worlds: tuple[str, ...]
    relative: bool
    score: Interval
    fresh: Interval | None
    tried: int
    alike: int
    diverged: int
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As plain data, with None for what is infinite or not known."""
        return {
            "group": {name: _plain(name, value) for name, value in self.group},
            "settings": {name: _plain(name, value) for name, value in self.settings},
            "metric": self.metric,
            "worlds": list(self.worlds),
            "relative": self.relative,
            **_numbers(self.score),
            "fresh": None if self.fresh is None else _numbers(self.fresh),
            "seeds": self.score.n,
            "tried": self.tried,
            "alike": self.alike,
            "diverged": self.diverged,
            "warnings": list(self.warnings),
        }

    @property
    def where(self) -> str:
        """The group in words."""
        return ", ".join(("" if name in KEYS else f"{name} = ") + _word(name, value) for name, value in self.group)

    def as_row(self) -> dict[str, str]:
        """As the words of a line of a table."""
        return {
            **{name: _word(name, value) for name, value in self.group},
            "best settings": ", ".join(f"{name} = {_word(name, value)}" for name, value in self.settings),
            "metric": self.metric + (f" ÷ best, {len(self.worlds)} worlds" if self.relative else ""),
            "mean": _in_words(self.score),
            "on fresh seeds": "–" if self.fresh is None else _in_words(self.fresh),
            "seeds": str(self.score.n),
            "tried": f"{self.tried:,}",
            "alike": f"{self.alike:,}",
        }


class Trial(NamedTuple):
    """What one agent with certain settings scored in one world, (seeds,)."""

    study: str
    world: str
    cell: Cell
    space: Space
    metric: str
    scores: Vector


R = TypeVar("R", bound=Results)


def best(
    results: Results | Sequence[Results],
    by: Sequence[str] = KEYS,
    metric: str | None = None,
    last: int | None = None,
) -> list[Best]:
    """The best settings of each group of runs that agree in the keys `by`; everything else is chosen.

    Where the world is not among the keys, settings are judged over all worlds that all settings of the group lived in:
    by the mean over worlds of their mean divided by the best mean of the group in that world; rewards, by the mean over
    worlds. A setting of which one run diverged is infinitely bad.

    For `fresh`, settings are chosen on every other seed and judged on the others, and the other way round; its interval
    takes the two choices as they are. `alike` is a bootstrap of the differences of all settings at once
    (`backcast.studies.choice`).

    Args:
        results: of one or several studies.
        by: some of study, world, agent, and any setting that was searched.
        metric: rmsve, rmsve_inner, steps or reward, for the worlds that have it; None: the first of each world.
        last: judge by so many episodes at the end, or by all if there are fewer; None: by all.

    Raises:
        InputError: with a sentence that says what was given and what is allowed.
    """
    found = list(results) if isinstance(results, Sequence) else [results]
    if metric is not None and metric not in METRICS:
        raise InputError(f"metric: {metric!r} given, expected one of {', '.join(METRICS)}{nearest(metric, METRICS)}")
    trials = [trial for result in found for world in result.worlds for trial in tried(result, world, metric, last)]
    if not trials:
        raise InputError(f"metric: {metric!r} given, but it is measured in none of the worlds")
    _check_keys(by, trials)
    groups: dict[Point, dict[tuple[str, str, Point], dict[str, Trial]]] = {}
    for trial in trials:
        candidate = trial.study, trial.cell.base, trial.cell.point
        groups.setdefault(_group(trial, by), {}).setdefault(candidate, {})[trial.world] = trial
    return [_best(group, list(candidates.values()), by) for group, candidates in groups.items()]


def tried(result: Results, world: str, metric: str | None = None, last: int | None = None) -> list[Trial]:
    """What every agent of a world scored; nothing if the metric is not measured there."""
    agents = result.agents(world)
    measured = result.metrics(world, agents[0])
    chosen = metric or measured[0]
    if chosen not in measured:
        return []
    there, spaces = set(agents), result.study.spaces
    return [
        Trial(
            result.study.name, world, cell, spaces[cell.place], chosen, _mean(result, world, cell.label, chosen, last)
        )
        for cell in result.study.runs()
        if cell.world.name == world and cell.label in there
    ]


def _mean(result: Results, world: str, label: str, metric: str, last: int | None) -> Vector:
    if last is None:
        return result.means(world, label, metric)
    return result.curves(world, label, metric)[:, -as_whole("last", last, 1) :].mean(axis=1)


def _check_keys(by: Sequence[str], trials: list[Trial]) -> None:
    searched = dict.fromkeys(name for trial in trials for name, _ in trial.cell.point)
    known = [*KEYS, *searched]
    for key in by:
        if key not in known:
            raise InputError(f"by: {key!r} given, expected some of {', '.join(known)}{nearest(key, known)}")
    if not by:
        raise InputError(f"by: nothing given, expected some of {', '.join(known)}")


def _group(trial: Trial, by: Sequence[str]) -> Point:
    """The keys and their values; None for a setting that the agent does not have."""
    given = {"study": trial.study, "world": trial.world, "agent": trial.cell.base, **dict(trial.cell.point)}
    return tuple((key, given.get(key)) for key in by)


def _best(group: Point, candidates: list[dict[str, Trial]], by: Sequence[str]) -> Best:
    """The best of a group's candidates, each of them with its trial in every world."""
    worlds = [world for world in candidates[0] if all(world in trials for trials in candidates)]
    if not worlds:
        raise InputError("by: not all agents live in the same worlds, and cannot be compared over them; add world")
    metrics = list(dict.fromkeys(candidates[0][world].metric for world in worlds))
    sign = -1.0 if metrics == ["reward"] else 1.0
    relative = len(worlds) > 1 and sign > 0
    costs = [sign * _stack(trials[world].scores for trials in candidates) for world in worlds]
    judged = over_worlds(costs, relative)
    chosen = winner(judged)
    trial = candidates[chosen][worlds[0]]
    lost = np.isinf(judged).any(axis=1)
    others = (trials[worlds[0]] for trials in candidates)
    return Best(
        group=group,
        settings=_settings(trial, by, candidates, worlds[0]),
        metric=", ".join(metrics),
        worlds=tuple(worlds),
        relative=relative,
        score=_turned(bootstrap(judged[chosen], seed=0), sign),
        fresh=None if judged.shape[1] < 2 else _turned(bootstrap(on_fresh_seeds(judged), seed=0), sign),
        tried=len(candidates),
        alike=not_distinguishable(judged, chosen),
        diverged=int(lost.sum()),
        warnings=_all_diverged(len(candidates)) if lost.all() else _edges(trial, others),
    )


def _stack(scores: Iterable[Vector]) -> Vector:
    """(candidates, seeds), for as many seeds as all have."""
    rows = list(scores)
    n = min(map(len, rows))
    return np.array([row[:n] for row in rows])


def _settings(trial: Trial, by: Sequence[str], candidates: list[dict[str, Trial]], world: str) -> Point:
    """What is chosen: the study and the agent where there was a choice, and the settings that are not keys."""
    studies = {trials[world].study for trials in candidates}
    study = [("study", trial.study)] if "study" not in by and len(studies) > 1 else []
    agent = [("agent", trial.cell.base)] if "agent" not in by else []
    return (*study, *agent, *(pair for pair in trial.cell.point if pair[0] not in by))


def _all_diverged(candidates: int) -> tuple[str, ...]:
    return (f"all {candidates:,} settings diverged" if candidates > 1 else "it diverged",)


def _edges(chosen: Trial, others: Iterable[Trial]) -> tuple[str, ...]:
    """A warning for each setting whose best value lies at the edge of those tried of the agent."""
    points = [
        other.cell.point for other in others if (other.study, other.cell.place) == (chosen.study, chosen.cell.place)
    ]
    values: dict[str, set[Any]] = {}
    for name, value in chain.from_iterable(points):
        values.setdefault(name, set()).add(value)
    words = (
        edge(name, value, values[name], chosen.space.drawn.get(name))
        for name, value in chosen.cell.point
        if is_number(value) and len(values[name]) > 1
    )
    return tuple(filter(None, words))


def _turned(interval: Interval, sign: float) -> Interval:
    """The interval of the negative, if the sign is."""
    if sign > 0:
        return interval
    return Interval(-interval.estimate, -interval.high, -interval.low, interval.n, interval.level)


def _numbers(interval: Interval) -> dict[str, float | None]:
    ends = {"mean": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if np.isfinite(value) else None for name, value in ends.items()}


def _in_words(interval: Interval) -> str:
    if not np.isfinite(interval.estimate):
        return "diverged"
    return f"{interval.estimate:.4g}" if np.isnan(interval.low) else str(interval)


def _plain(name: str, value: Any) -> Any:
    """A value that JSON has, or its name."""
    return value if value is None or isinstance(value, (str, int, float)) else _word(name, value)


def _word(name: str, value: Any) -> str:
    """A value as labels have it; a dash for a setting that an agent does not have."""
    return "–" if value is None else describe(((name, value),)).partition("=")[2]


def explained(found: Sequence[Best]) -> list[str]:
    """What the columns of a table of rows mean."""
    lines = [
        "mean: over episodes and seeds, with its 95 % bootstrap interval over seeds",
        "on fresh seeds: chosen on every other seed and judged on the others, and the other way round",
        "alike: how many of the others tried these seeds do not tell from the best",
    ]
    if any(each.relative for each in found):
        lines.insert(1, "÷ best: the mean over worlds of the mean divided by the best mean in that world")
    return lines


def of_study(found: Sequence[R], name: str | None) -> list[R]:
    """The results of the study of this name, or of all if none is given; refused if there are none."""
    names = [each.study.name for each in found]
    if not names:
        raise InputError("directory: there are no finished results yet")
    if name is not None and name not in names:
        raise InputError(f"study: {name!r} given, expected one of {', '.join(names)}{nearest(name, names)}")
    return [each for each in found if name in (None, each.study.name)]
