"""`backcast.compare`: compare agents on the same seeds, so that differences are paired."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from backcast.agents import Agent
from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError, nearest
from backcast.drivers.metrics import METRICS
from backcast.drivers.progress import watching
from backcast.drivers.run import Seed, check_agent, check_limit, check_seeds, check_world, run
from backcast.drivers.runs import Runs
from backcast.drivers.seed_blocks import setup_for
from backcast.studies.describing import describe_study
from backcast.studies.exported import Varied, checked_target, write_long
from backcast.studies.results import Measured, long_table
from backcast.studies.statistics import Interval, bootstrap, paired_difference
from backcast.studies.study_metrics import checked_metric, in_units
from backcast.worlds import World
from backcast.worlds.kinds import Picture, picture_of

T = TypeVar("T", World, Agent)


def compare(
    worlds: World | Iterable[World] | Mapping[str, World],
    agents: Agent | Iterable[Agent] | Mapping[str, Agent],
    episodes: int,
    seeds: int | Iterable[Seed],
    baseline: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
    metric: str | None = None,
) -> "Comparison":
    """Run every agent in every world on the same seeds, and compare them.

    The result does not depend on the number of workers.

    Args:
        worlds: a world, a sequence of worlds, or a mapping from names to worlds; by default each has its own name.
        agents: likewise.
        episodes: number of episodes of each run.
        seeds: as in `backcast.run`.
        baseline: the name of the agent that the others are compared with; by default the first.
        workers: as in `backcast.run`.
        progress: whether to show progress on stderr; None: only if stderr is a terminal.
        metric: name of the metric to compare by; None: the default metric of each world.

    Examples:
        >>> from backcast import agent, worlds
        >>> found = compare(worlds.maze(), [agent("q"), agent("backward")], episodes=20, seeds=5)
        >>> found.runs["maze", "backward"].steps.shape
        (5, 20)
    """
    places, players = _named("worlds", worlds, World, check_world), _named("agents", agents, Agent, check_agent)
    chosen = tuple(check_seeds(seeds))
    baseline = next(iter(players)) if baseline is None else baseline
    if baseline not in players:
        raise InputError(
            f"baseline: {baseline!r} given, expected one of {', '.join(players)}{nearest(baseline, players)}"
        )
    if metric is not None:
        _refuse_unmeasured(metric, places)
    pairs = [(world, agent) for world in places for agent in players]
    for world, agent in pairs:
        _refuse_unsuited(world, places[world], agent, players[agent], chosen[0])
    runs = {}
    with watching("comparing", len(pairs), progress) as advance:
        for world, agent in pairs:
            runs[world, agent] = run(places[world], players[agent], episodes, chosen, workers=workers)
            advance()
    return Comparison(places, players, runs, baseline, metric)


class Row(NamedTuple):
    """The result of a comparison for one agent in one world.

    Attributes:
        world: name of the world.
        agent: name of the agent.
        metric: the metric by which agents are compared in this world.
        mean: mean of the metric over episodes and seeds.
        difference: paired difference to the baseline; None for the baseline itself, and where runs diverged.
        seeds: number of seeds.
        updates: value updates per run, averaged over seeds.
    """

    world: str
    agent: str
    metric: str
    mean: Interval
    difference: Interval | None
    seeds: int
    updates: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results of a comparison. Printing it shows a table for each world.

    Intervals are 95 % studentised bootstrap intervals over seeds (docs/studies.md).

    Attributes:
        made_worlds: the worlds, by name.
        made_agents: the agents, by name.
        runs: the results by world and agent: `runs["maze", "q"]`.
        baseline: the name of the agent that the others are compared with.
        metric: the metric they are compared by; None: the default metric of each world.
    """

    made_worlds: dict[str, World]
    made_agents: dict[str, Agent]
    runs: dict[tuple[str, str], Runs] = field(repr=False)
    baseline: str
    metric: str | None = None

    @property
    def worlds(self) -> list[str]:
        """The names of the worlds."""
        return list(self.made_worlds)

    def agents(self, world: str) -> list[str]:
        """The names of the agents, which are the same in every world."""
        return list(self.made_agents)

    @property
    def seeds(self) -> int:
        """The number of seeds of each agent."""
        return len(self._any.seeds)

    @property
    def judged_by(self) -> dict[str, str]:
        """The metric by which agents are compared in each world."""
        return {name: self.metric or world.judged_by for name, world in self.made_worlds.items()}

    def picture(self, world: str) -> Picture:
        """The picture of a world in figures."""
        return picture_of(self.made_worlds[world], world)

    def curves(self, world: str, agent: str, metric: str) -> Vector:
        """Return a metric by seed and episode; from the episode in which a run diverged, the worst possible value."""
        return self.runs[world, agent].measured(metric)

    def diverged(self, world: str, agent: str) -> Indices:
        """The step, counted from 1, at which the values of each seed diverged, (seeds,); 0 where they did not."""
        return self.runs[world, agent].diverged

    def rows(self) -> list[Row]:
        """The results, a row for each agent in each world."""
        return [self._row(world, agent) for world in self.worlds for agent in self.made_agents]

    def _row(self, world: str, agent: str) -> Row:
        metric, runs = self.judged_by[world], self.runs[world, agent]
        mine, theirs = (self.curves(world, name, metric).mean(axis=1) for name in (agent, self.baseline))
        mean = in_units(bootstrap(METRICS[metric].sign * mine, seed=0), METRICS[metric])
        comparable = agent != self.baseline and np.isfinite([mine, theirs]).all()
        difference = paired_difference(mine, theirs, seed=0) if comparable else None
        return Row(world, agent, metric, mean, difference, len(mine), float(runs.updates.total.mean()))

    def __str__(self) -> str:
        rows = self.rows()
        return "\n\n".join(self._table([row for row in rows if row.world == world]) for world in self.worlds)

    __repr__ = __str__

    def _table(self, rows: Sequence[Row]) -> str:
        """Format the results in one world: a heading and a line for each agent."""
        episodes, metric = self._any.steps.shape[1], METRICS[rows[0].metric]
        heading = f"{rows[0].world}: {metric.label}, {metric.better}; {self.seeds} seeds × {episodes} episodes"
        cells = [("agent", "mean", f"difference to {self.baseline}", "value updates")]
        for row in rows:
            without = "baseline" if row.agent == self.baseline else "diverged"
            difference = without if row.difference is None else str(row.difference)
            cells.append((row.agent, str(row.mean), difference, f"{row.updates:,.0f}"))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in cells)
        return "\n".join([heading, *(line.rstrip() for line in lines)])

    def plot(self) -> Any:
        """Plot the metric of each world by episode; returns a matplotlib figure."""
        from backcast.report.figures import as_judged

        return as_judged(self, self.judged_by)

    def export(self, path: str | Path, study: str = "comparison") -> int:
        """Write the long table of all runs to a .csv or .parquet file, as `backcast export`; return the number of rows.

        Args:
            path: path of the file.
            study: value of the column "study".
        """
        target = checked_target("path", path)
        self._refuse_seeds(all(isinstance(seed, int) and seed < 2**63 for seed in self._any.seeds), "whole numbers")
        varied = Varied([self.made_agents.values()])
        tables = (
            long_table(study, [self._measured(*pair, metric) for metric in runs.metrics], varied)
            for pair, runs in self.runs.items()
        )
        return write_long(target, varied.schema, tables)

    def _measured(self, world: str, agent: str, metric: str) -> Measured:
        seeds = np.array(self._any.seeds, dtype=np.int64)
        return Measured(world, agent, self.made_agents[agent], metric, seeds, self.curves(world, agent, metric))

    def save(self, directory: str | Path, name: str = "comparison") -> None:
        """Save as a study that the command line can continue: `backcast report`, `export`, `sweep DIR --seeds 100`.

        Args:
            directory: directory of the results; created if it does not exist. Existing results are kept.
            name: name of the study.

        Raises:
            InputError: if a study cannot describe a world or an agent, or the seeds are not 0, 1, 2, …
        """
        from backcast.studies.batches import Performed
        from backcast.studies.store import Store, machine
        from backcast.studies.units import Unit, finished

        self._refuse_seeds(self._any.seeds == tuple(range(self.seeds)), "0, 1, 2, … as a study has them")
        store, episodes = Store(directory, create=True), self._any.steps.shape[1]
        study = describe_study(
            name, store.directory, self.made_worlds, self.made_agents, episodes, self.seeds, self.judged_by.values()
        )
        with store.writing():
            store.add_study(study, self.seeds)
            index = store.index()
            for cell in study.runs():
                if index.done(cell.group, self.seeds) < self.seeds:
                    runs = self.runs[cell.world.name, cell.label]
                    unit = Unit(cell, self._any.seeds)
                    outcome = finished(unit, runs, float(runs.seconds.sum()))
                    store.put(Performed((outcome,), "Python", machine()))

    @property
    def _any(self) -> Runs:
        """Any of the results; all have the same seeds and episodes."""
        return next(iter(self.runs.values()))

    def _refuse_seeds(self, good: bool, expected: str) -> None:
        if not good:
            raise InputError(f"seeds: {self._any.seeds[:5]} … were run, expected {expected}")


def _named(field: str, given: object, kind: type[T], check: Callable[[Any], None]) -> dict[str, T]:
    """Return worlds or agents by name."""
    if isinstance(given, Mapping):
        pairs = [(str(name), each) for name, each in given.items()]
    else:
        several = list(given) if isinstance(given, Iterable) and not isinstance(given, kind) else [given]
        pairs = [(getattr(each, "name", ""), each) for each in several]
    if not pairs:
        raise InputError(f"{field}: none given, expected at least one")
    for _, each in pairs:
        check(each)
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f'{field}: {name!r} is there twice; give them names, {field}={{"first": …, "second": …}}')
    return dict(pairs)


def _refuse_unmeasured(metric: str, places: Mapping[str, World]) -> None:
    """Raise InputError if a metric is unknown, or not measured in one of the worlds."""
    its = checked_metric(metric)
    for name, world in places.items():
        if not its.is_measured_in(world.purpose):
            raise InputError(f"metric: {metric!r} is measured in {its.purpose} worlds, and {name} is none")


def _refuse_unsuited(world: str, place: World, agent: str, player: Agent, seed: int) -> None:
    """Raise InputError, before anything is run, if an agent does not suit a world."""
    try:
        drawn = place.draw(seed)
        player.build(setup_for(drawn, seed, check_limit(drawn, None)))
    except InputError as error:
        raise InputError(f"{agent} in {world}: {error}") from None
