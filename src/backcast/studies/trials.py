"""Trials of a study and their scores, and warnings about unfinished trials."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from backcast.core.arrays import Indices, Vector, as_whole
from backcast.drivers.metrics import METRICS
from backcast.studies.cells import Cell
from backcast.studies.search import Point
from backcast.studies.spec import Study


class Scores(Protocol):
    """The measurements of a study."""

    @property
    def study(self) -> Study:
        """The study itself."""

    def cells(self, world: str) -> Sequence[Cell]:
        """The agents that were run in a world."""

    def metrics(self, world: str, agent: str) -> Sequence[str]:
        """The metrics."""

    def curves(self, world: str, agent: str, metric: str) -> Vector:
        """The metric in each episode, (seeds, episodes)."""

    def means(self, world: str, agent: str, metric: str) -> Vector:
        """The mean of each seed's curve, (seeds,)."""

    def updates(self, world: str, agent: str) -> Vector:
        """Value updates made up to the end of each episode, (seeds, episodes)."""


class TrialResults(Scores, Protocol):
    """What this module needs of a study."""

    @property
    def worlds(self) -> Sequence[str]:
        """The names of the worlds in which something was run."""

    @property
    def complete(self) -> bool:
        """Whether every run of the study is there."""

    @property
    def missing(self) -> Collection[tuple[str, str]]:
        """Worlds and labels of which no run is."""


class Trial(NamedTuple):
    """The scores of one agent, with certain settings, in one world, (seeds,)."""

    study: Study
    cell: Cell
    metric: str
    scores: Vector

    @property
    def costs(self) -> Vector:
        """The scores as costs, negated if higher is better, (seeds,)."""
        return METRICS[self.metric].sign * self.scores

    @property
    def candidate(self) -> "Candidate":
        """The candidate of this trial."""
        return self.study.name, self.cell.base, self.cell.point


Candidate = tuple[str, str, Point]  # a study, an agent of it and its settings


def tried(result: Scores, world: str, metric: str | None = None, last: int | None = None) -> list[Trial]:
    """The trials of all agents of a world; empty if the metric was not measured for all of them.

    Args:
        result: the results of a study.
        world: the name of one of its worlds.
        metric: the metric of the scores; None: the default metric of the world.
        last: score only this many last episodes (the last before the budget was used up); None: all.
    """
    cells, study = result.cells(world), result.study
    chosen = metric or cells[0].world.judged_by
    if not all(chosen in result.metrics(world, cell.label) for cell in cells):
        return []
    return [Trial(study, cell, chosen, _mean(result, world, cell, chosen, last)) for cell in cells]


def _mean(result: Scores, world: str, cell: Cell, metric: str, last: int | None) -> Vector:
    if last is None:
        return result.means(world, cell.label, metric)
    curves, episodes = result.curves(world, cell.label, metric), as_whole("last", last, 1)
    if cell.updates is None:
        return curves[:, -episodes:].mean(axis=1)
    ends, place = episodes_run(result.updates(world, cell.label))[:, None], np.arange(curves.shape[1])
    found: Vector = curves.mean(axis=1, where=(place < ends) & (place >= ends - episodes))
    return found


def episodes_run(updates: Vector) -> Indices:
    """The number of episodes of each run, (seeds,), without those that repeat the last after the budget is used up."""
    found: Indices = (updates < updates[:, -1:]).sum(axis=1) + 1
    return found


def names_of_worlds(found: Sequence[TrialResults], together: bool) -> dict[tuple[str, str], str]:
    """The names of the worlds of each study; if studies come together, different worlds get different names.

    Worlds are the same if they are made alike and run for the same number of episodes.
    """
    same: dict[str, dict[tuple[str, int, int | None], list[str]]] = {}
    names = {}
    for study in (result.study for result in found):
        for world in study.worlds:
            made = json.dumps(world.identity, sort_keys=True)
            what = made, world.episodes or study.episodes, world.updates or study.updates
            same.setdefault(world.name, {}).setdefault(what, []).append(study.name)
            names[study.name, world.name] = world.name
    for name, several in same.items():
        if together and len(several) > 1:
            names |= {(owner, name): f"{name} ({', '.join(those)})" for those in several.values() for owner in those}
    return names


def group_of(study: Study, world: str, cell: Cell, by: Sequence[str]) -> Point:
    """The keys and their values; None for a setting that the agent does not have."""
    given = {"study": study.name, "world": world, "agent": cell.base, **dict(cell.point)}
    return tuple([(key, given.get(key)) for key in by])


def not_done(
    found: Sequence[TrialResults], names: dict[tuple[str, str], str], by: Sequence[str], metric: str | None
) -> dict[Point, dict[Candidate, list[str]]]:
    """For each group, what is not done, and in which worlds."""
    undone: dict[Point, dict[Candidate, list[str]]] = {}
    for result in found:
        missing, study = set(result.missing), result.study
        for cell in study.runs() if missing else ():
            world = cell.world.name
            measured = metric is None or METRICS[metric].is_measured_in(cell.world.purpose)
            if measured and (world, cell.label) in missing:
                name = names[study.name, world]
                group = undone.setdefault(group_of(study, name, cell, by), {})
                group.setdefault((study.name, cell.base, cell.point), []).append(name)
    return undone


class Unfinished(NamedTuple):
    """Incomplete studies, and what is not done of a group, with the worlds concerned."""

    unfinished: set[str]
    undone: dict[Candidate, list[str]]

    def worlds(self) -> list[str]:
        """The worlds in which something is not done."""
        return list(dict.fromkeys(world for worlds in self.undone.values() for world in worlds))

    def warnings(self, candidates: list[dict[str, Trial]], seeds: int) -> Iterator[str]:
        """Yield warnings about a group's studies."""
        trials = [next(iter(trials.values())) for trials in candidates]
        known = self.undone.keys() | {trial.candidate for trial in trials} if self.unfinished else set()
        for study in {trial.study.name: trial.study for trial in trials}.values():
            if study.name not in self.unfinished:
                continue
            undone, total = (sum(each[0] == study.name for each in those) for those in (self.undone, known))
            what = "other runs of it are not done"
            if undone:
                what = f"{undone:,} of {total:,} settings have runs that are not done"
            elif seeds < study.seeds:
                what = f"{seeds:,} of {study.seeds:,} seeds are done"
            yield f"{study.name} is not complete: {what}"
