"""The best settings that a study tried, and how certain the choice is: `backcast best`.

A setting is scored by the mean over episodes and seeds. The best of many is partly lucky, so its mean is optimistic:
`fresh` estimates the choice on seeds that were not used to choose. Settings that the seeds cannot distinguish from the
best are counted. Warns of unfinished runs, of worlds that are left out, and if the best setting lies on the edge of
those tried.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from backcast.agents.settings import describe
from backcast.core.arrays import Mask, Vector
from backcast.core.errors import InputError, nearest
from backcast.drivers.metrics import METRICS
from backcast.studies.choice import alike, on_fresh_seeds, over_worlds, winner
from backcast.studies.search import Point, edge, is_number
from backcast.studies.statistics import Interval, bootstrap
from backcast.studies.study_metrics import checked_metric, in_units
from backcast.studies.trials import (
    Candidate,
    Trial,
    TrialResults,
    Unfinished,
    group_of,
    names_of_worlds,
    not_done,
    tried,
)

KEYS = ("study", "world", "agent")
NAMED = 5  # worlds in a warning


@dataclass(frozen=True)
class Best:
    """The best settings of a group.

    Attributes:
        group: what the group has in common: the given keys and their values.
        settings: the best values of everything else.
        metric: the metric of the scores.
        worlds: the worlds that were used.
        left_out: worlds that were not used, because not all of the group are run there or nothing is done there yet.
        relative: whether the score is the mean over worlds of its mean divided by the best mean there.
        score: its mean, with the 95 % bootstrap interval over seeds; infinite if all settings diverged.
        fresh: the score of the choice on seeds that were not used to choose; None with one seed.
        tried: number of settings tried.
        alike: number of others that cannot be distinguished: the 95 % interval of the paired difference includes 0.
        diverged: number of settings with runs that diverged.
        warnings: warnings, in words.
    """

    group: Point
    settings: Point
    metric: str
    worlds: tuple[str, ...]
    left_out: tuple[str, ...]
    relative: bool
    score: Interval
    fresh: Interval | None
    tried: int
    alike: int
    diverged: int
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with None for infinite or unknown numbers."""
        return {
            "group": {name: _plain(name, value) for name, value in self.group},
            "settings": {name: _plain(name, value) for name, value in self.settings},
            "metric": self.metric,
            "worlds": list(self.worlds),
            "left_out": list(self.left_out),
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
        """Return the cells of a table row."""
        return {
            **{name: _word(name, value) for name, value in self.group},
            "best settings": ", ".join(f"{name} = {_word(name, value)}" for name, value in self.settings),
            "metric": self.metric + self._over_worlds(),
            "mean": _in_words(self.score),
            "on fresh seeds": "–" if self.fresh is None else _in_words(self.fresh),
            "seeds": str(self.score.n),
            "tried": f"{self.tried:,}",
            "alike": f"{self.alike:,}",
        }

    def _over_worlds(self) -> str:
        """The number of worlds in the mean, if there were several to use."""
        used = len(self.worlds)
        total = used + len(self.left_out)
        if total == 1:
            return ""
        mean = " ÷ best," if self.relative else ", mean of" if used > 1 else ","
        return f"{mean} {f'{used} of {total}' if self.left_out else total} worlds"


R = TypeVar("R", bound=TrialResults)


def best(
    results: TrialResults | Sequence[TrialResults],
    by: Sequence[str] = KEYS,
    metric: str | None = None,
    last: int | None = None,
) -> list[Best]:
    """Find the best settings of each group of runs that agree in the keys `by`; everything else is chosen.

    If the world is not among the keys, settings are scored over all worlds that all settings of the group were run in:
    by the mean over worlds of their mean divided by the best mean of the group in that world; for rewards, by the mean
    over worlds. If one of its runs diverged, the score of a setting is infinitely bad.

    For `fresh`, settings are chosen on every other seed and scored on the others, and vice versa; its interval treats
    the two choices as given. `alike` uses a joint bootstrap of the differences of all settings
    (`backcast.studies.choice`).

    Args:
        results: the results of one or several studies.
        by: some of study, world, agent, and the searched settings.
        metric: name of a metric, for the worlds that have it; None: the default metric of each world.
        last: score only this many last episodes, or all if there are fewer; None: all.

    Raises:
        InputError: if an argument is invalid; the message says what was given and what is allowed.
    """
    found = list(results) if isinstance(results, Sequence) else [results]
    if metric is not None:
        checked_metric(metric)
    _check_keys(by, found)
    names = names_of_worlds(found, "study" not in by)
    groups: dict[Point, dict[Candidate, dict[str, Trial]]] = {}
    for result in found:
        for world in result.worlds:
            name = names[result.study.name, world]
            for trial in tried(result, world, metric, last):
                group = groups.setdefault(group_of(result.study, name, trial.cell, by), {})
                group.setdefault(trial.candidate, {})[name] = trial
    if not groups:
        raise InputError(f"metric: {metric!r} given, but it is measured in none of the worlds")
    undone = not_done(found, names, by, metric)
    unfinished = {result.study.name for result in found if not result.complete}
    lives = {(study, name) for (study, _), name in names.items()}
    return [
        _best(group, list(candidates.values()), by, lives, Unfinished(unfinished, undone.get(group, {})))
        for group, candidates in groups.items()
    ]


def _check_keys(by: Sequence[str], found: Sequence[TrialResults]) -> None:
    searched = dict.fromkeys(name for result in found for space in result.study.spaces for name in space.sources)
    known = [*KEYS, *searched]
    for key in by:
        if key not in known:
            raise InputError(f"by: {key!r} given, expected some of {', '.join(known)}{nearest(key, known)}")
    if not by:
        raise InputError(f"by: nothing given, expected some of {', '.join(known)}")


def _best(
    group: Point,
    everything: list[dict[str, Trial]],
    by: Sequence[str],
    lives: set[tuple[str, str]],
    progress: Unfinished,
) -> Best:
    """The best candidate of a group; each candidate has a trial in every world."""
    worlds, foreign = _shared_worlds(everything, lives)
    begun = {world for trials in everything for world in trials}
    waiting = [world for world in progress.worlds() if world not in begun]
    candidates = [trials for trials in everything if all(world in trials for world in worlds)]
    if not candidates:
        raise InputError("by: no settings are done in all of the worlds yet, to be compared over them; add world")
    metrics = _comparable({world: candidates[0][world].metric for world in worlds})
    first = METRICS[metrics[0]]
    relative = len(worlds) > 1 and first.positive
    costs = [_stack(trials[world].costs for trials in candidates) for world in worlds]
    judged = over_worlds(costs, relative)
    chosen = winner(judged)
    trials = [trials[worlds[0]] for trials in candidates]
    lost, near = np.isinf(judged).any(axis=1), alike(judged, chosen)
    return Best(
        group=group,
        settings=_settings(trials[chosen], by, trials),
        metric=", ".join(metrics),
        worlds=tuple(worlds),
        left_out=(*foreign, *waiting),
        relative=relative,
        score=in_units(bootstrap(judged[chosen], seed=0), first),
        fresh=None if judged.shape[1] < 2 else in_units(bootstrap(on_fresh_seeds(judged), seed=0), first),
        tried=len(candidates),
        alike=int(near.sum()) - 1,
        diverged=int(lost.sum()),
        warnings=(
            *progress.warnings(everything, judged.shape[1]),
            *_left_out("not all of these are run there", foreign),
            *_left_out("nothing is done there yet", waiting),
            *(_all_diverged(len(candidates)) if lost.all() else _edges(trials, chosen, near)),
        ),
    )


def _shared_worlds(candidates: list[dict[str, Trial]], lives: set[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """The worlds in which all candidates are to be run, and the others."""
    purposes = {world: trial.cell.world.purpose for trials in candidates for world, trial in trials.items()}
    trials = (next(iter(trials.values())) for trials in candidates)
    who = {(trial.study.name, trial.study.agents[trial.cell.place].only) for trial in trials}
    for_all = {
        world: all((study, world) in lives and only in (None, purpose) for study, only in who)
        for world, purpose in purposes.items()
    }
    shared = [world for world in for_all if for_all[world]]
    if not shared:
        also = " or study" if len({study for study, _ in who}) > 1 else ""
        raise InputError(
            f"by: not all agents run in the same worlds, so they cannot be compared over worlds; add world{also}"
        )
    return shared, [world for world in for_all if not for_all[world]]


def _comparable(metrics: dict[str, str]) -> list[str]:
    """The distinct metrics of some worlds; raise InputError if higher is better in one and lower in another."""
    if len({METRICS[metric].higher_is_better for metric in metrics.values()}) > 1:
        given = ", ".join(f"{metric} in {world}" for world, metric in metrics.items())
        raise InputError(
            f"by: worlds are judged by different metrics, of which there is no mean ({given}); add world,"
            " or give one metric"
        )
    return list(dict.fromkeys(metrics.values()))


def _stack(scores: Iterable[Vector]) -> Vector:
    """(candidates, seeds), for as many seeds as all have."""
    rows = list(scores)
    n = min(map(len, rows))
    return np.array([row[:n] for row in rows])


def _settings(chosen: Trial, by: Sequence[str], trials: Sequence[Trial]) -> Point:
    """The choice: the study and the agent if there were several, and the settings that are not keys."""
    several = len({trial.study.name for trial in trials}) > 1
    study = [("study", chosen.study.name)] if "study" not in by and several else []
    agent = [("agent", chosen.cell.base)] if "agent" not in by else []
    return (*study, *agent, *(pair for pair in chosen.cell.point if pair[0] not in by))


def _left_out(reason: str, worlds: Sequence[str]) -> tuple[str, ...]:
    if not worlds:
        return ()
    more = f" and {len(worlds) - NAMED:,} more" if len(worlds) > NAMED else ""
    return (f"left out, as {reason}: {', '.join(worlds[:NAMED])}{more}",)


def _all_diverged(candidates: int) -> tuple[str, ...]:
    return (f"all {candidates:,} settings diverged" if candidates > 1 else "it diverged",)


def _edges(trials: Sequence[Trial], chosen: int, near: Mask) -> Iterator[str]:
    """Warn of each setting whose best value lies on the edge of those tried, if the setting matters."""
    best = trials[chosen]
    mine = [
        (trial.cell.point, is_near)
        for trial, is_near in zip(trials, near.tolist(), strict=True)
        if trial.study is best.study and trial.cell.place == best.cell.place
    ]
    space = best.study.spaces[best.cell.place]
    for i, (name, value) in enumerate(best.cell.point):
        words = edge(space.table[name], value, space.sources[name]) if is_number(value) else ""
        if words and _matters(value, [(point[i][1], is_near) for point, is_near in mine]):
            yield words


def _matters(value: float, others: Sequence[tuple[Any, bool]]) -> bool:
    """Whether distant values, in the other half of those done, were tried and all distinguished from the best."""
    order = sorted({number for number, _ in others if is_number(number)})
    place = {number: i for i, number in enumerate(order)}
    far = [is_near for other, is_near in others if 2 * abs(place.get(other, place[value]) - place[value]) >= len(order)]
    return bool(far) and not any(far)


def _numbers(interval: Interval) -> dict[str, float | None]:
    ends = {"mean": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if np.isfinite(value) else None for name, value in ends.items()}


def _in_words(interval: Interval) -> str:
    return str(interval) if np.isfinite(interval.estimate) else "diverged"


def _plain(name: str, value: object) -> Any:
    """A JSON value, or its name."""
    return value if value is None or isinstance(value, (str, int, float)) else _word(name, value)


def _word(name: str, value: object) -> str:
    """A value as written in labels; a dash for a setting that the agent does not have."""
    return "–" if value is None else describe(((name, value),)).partition("=")[2]


def explained(found: Sequence[Best]) -> list[str]:
    """Explain the columns of a table."""
    metrics = dict.fromkeys(metric for each in found for metric in each.metric.split(", "))
    lines = [
        "metric: what is compared; " + ", ".join(f"{metric}: {METRICS[metric].better}" for metric in metrics),
        "mean: over episodes and seeds, with its 95 % bootstrap interval over seeds",
        "on fresh seeds: chosen on every other seed and judged on the others, and the other way round",
        "alike: how many of the others tried these seeds do not tell from the best",
    ]
    if any(each.relative for each in found):
        lines.insert(2, "÷ best: the mean over worlds of the mean divided by the best mean in that world")
    return lines


def of_study(found: Sequence[R], name: str | None) -> list[R]:
    """Return the results of a study by name, or all if `name` is None; raise InputError if there are none."""
    names = [each.study.name for each in found]
    if not names:
        raise InputError("directory: there are no finished results yet")
    if name is not None and name not in names:
        raise InputError(f"study: {name!r} given, expected one of {', '.join(names)}{nearest(name, names)}")
    return [each for each in found if name in (None, each.study.name)]
