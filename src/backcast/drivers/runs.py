"""The results of runs: steps, rewards, errors, value updates, values and models."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from backcast.agents.kinds import Agent
from backcast.core.arrays import Vector, as_whole
from backcast.core.copies import Copies, picked
from backcast.core.errors import InputError, nearest
from backcast.drivers.metrics import METRICS, metrics_in
from backcast.drivers.saving import plain_agent, read_runs, write_runs
from backcast.features.places import read_place
from backcast.networks.backend import require_jax
from backcast.planners.edges import edges_touched
from backcast.worlds.world import Purpose

_NOT_SAVED = "models: they are not saved with runs; run the agent again to ask its models"
LEFT_OUT = "models: they were left out of these runs; run the agent again with models=True to ask its models"


@dataclass(frozen=True)
class Updates:
    """Value updates made in each run, (seeds,): by learning, by planning and in total.

    `np.asarray(updates)` is (seeds, 2): learning, planning. `by_episode` (seeds, episodes) counts all updates up to the
    end of each episode. `edges` (seeds,) counts the transitions of a model or a memory that planning read for them.
    """

    learning: NDArray[np.int64]
    planning: NDArray[np.int64]
    by_episode: NDArray[np.int64] = field(repr=False)
    edges: NDArray[np.int64]

    @property
    def total(self) -> NDArray[np.int64]:
        """Learning and planning together."""
        return self.learning + self.planning

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack([self.learning, self.planning], axis=1).astype(dtype or np.int64)


class NoModels(tuple[Any, ...]):
    """A placeholder for models that were not kept: accessing one raises InputError with the reason."""

    _why: str

    def __new__(cls, why: str) -> "NoModels":
        """Make a placeholder with the reason."""
        none = super().__new__(cls)
        none._why = why
        return none

    def __getnewargs__(self) -> tuple[str]:
        return (self._why,)

    def __getitem__(self, place: object) -> NoReturn:
        raise InputError(self._why)

    def __iter__(self) -> NoReturn:
        raise InputError(self._why)


class KeptRuns(Protocol):
    """What is kept of runs so that their models can be read."""

    @property
    def number(self) -> int:
        """The number of runs."""

    def model(self, place: int) -> object:
        """The model of one run, made readable."""


class KeptCopies(NamedTuple):
    """Runs of agents that are copies of one."""

    copies: Copies

    @property
    def number(self) -> int:
        """How many."""
        return self.copies.number

    def model(self, place: int) -> object:
        """The model of one run, made readable by its own method."""
        agent = picked(self.copies.stacked(self.copies.first.agent), place)
        return agent.model.readable(agent.values)


class KeptModel(NamedTuple):
    """The model of one run that is readable already."""

    readable: object

    @property
    def number(self) -> int:
        """One."""
        return 1

    def model(self, place: int) -> object:
        """It."""
        return self.readable


class Models(Sequence[Any]):
    """The final model of each seed, made readable on access."""

    def __init__(self, blocks: Sequence[KeptRuns]) -> None:
        self._places = [(block, place) for block in blocks for place in range(block.number)]
        self._made: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        number = range(len(self))[place]
        if number not in self._made:
            block, at = self._places[number]
            self._made[number] = block.model(at)
        return self._made[number]

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)


@dataclass(frozen=True)
class Runs:
    """The results of a number of seeds; arrays are (seeds, episodes) unless noted otherwise.

    Runs of a given number of steps may differ in their number of episodes. Rows of shorter runs are padded with NaN,
    or with −1 in integer arrays.

    Attributes:
        world: name of the world.
        agent: the agent.
        seeds: the seeds, in the order of the rows.
        steps: steps of each episode.
        reward: undiscounted reward of each episode.
        rmsve: in prediction, root mean squared value error after each episode over all states; else None.
        rmsve_inner: the same over states that do not end an episode.
        updates: value updates, counted separately for learning and planning.
        values: final values, (seeds, S) in prediction, (seeds, S, A) in control; empty if states are not numbered.
        weights: weights of linear values, (seeds, d) in prediction, (seeds, A, d) in control; all parameters of a
            network, (seeds, P); otherwise None.
        diverged: (seeds,), the step at which values diverged, counted from 1; 0 where they did not. From that episode
            on, errors are infinite, and later episodes take as many steps as they may.
        models: the final model of each seed, such as `models[0].predict(s)`. Models are not saved.
        seconds: processor time of each run, (seeds,), without making the world and the agent. Short runs are made
            several at a time; each is then assigned the mean of its group.
    """

    world: str
    agent: Agent
    seeds: tuple[Any, ...]
    steps: NDArray[np.int64] = field(repr=False)
    reward: Vector = field(repr=False)
    rmsve: Vector | None = field(repr=False)
    rmsve_inner: Vector | None = field(repr=False)
    updates: Updates = field(repr=False)
    values: Vector = field(repr=False)
    weights: Vector | None = field(repr=False)
    models: Sequence[Any] = field(repr=False)
    seconds: Vector = field(repr=False)
    diverged: NDArray[np.int64] = field(repr=False)

    def __repr__(self) -> str:
        n, episodes = self.steps.shape
        what = (
            f"mean RMSVE {np.nanmean(self.rmsve):.4g}"
            if self.rmsve is not None
            else f"mean steps per episode {self.steps[self.steps >= 0].mean():.1f}, mean reward"
            f" {np.nanmean(self.reward):.3g}"
        )
        lost = self.diverged > 0
        if lost.any():
            what = f"{lost.sum()} of {n} seeds diverged, the first at step {self.diverged[lost].min():,}"
        return f"Runs({self.agent.name} in {self.world}: {n} seeds × {episodes} episodes, {what})"

    @property
    def purpose(self) -> Purpose:
        """The purpose of the agent; errors are measured in prediction."""
        return "control" if self.rmsve is None else "prediction"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, as in exported tables; `measured` returns each of them.

        Errors in prediction, steps and reward in control, and registered metrics.
        """
        return tuple(metric.name for metric in metrics_in(self.purpose))

    def measured(self, metric: str) -> Vector:
        """Return a metric, (seeds, episodes); from where a run diverged, the worst possible value."""
        if metric not in self.metrics:
            known = ", ".join(self.metrics)
            raise InputError(f"metric: {metric!r} given, expected one of {known}{nearest(metric, self.metrics)}")
        return METRICS[metric].before_divergence(self)

    def policy(self, seed_index: int = 0, observation: object = None) -> Vector:
        """Return the greedy policy (S, A) of a run; equally good actions share the probability equally.

        Args:
            seed_index: which run, counted from 0 in the order of `seeds`.
            observation: for an agent with a network, an observation; the policy is then (A,), for this observation.
        """
        if self.rmsve is not None or self.values.ndim < 3:
            raise InputError(f"policy: {self.world} is a prediction world, in which there is nothing to choose")
        place = as_whole("seed_index", seed_index, 0, len(self.seeds) - 1)
        if observation is not None:
            return _greedy(self._seen(place, observation)[None])[0]
        if not self.values.shape[1] and self.agent.has_network:
            raise InputError(f"policy: states of {self.world} have no numbers; give observation=")
        if not self.values.shape[1]:
            raise InputError(f"policy: states of {self.world} have no numbers; features and `weights` give its values")
        values = self.values[place]
        if np.isnan(values).any():
            raise InputError(f"policy: the run of seed {self.seeds[place]} diverged, and its values are not numbers")
        return _greedy(values)

    def _seen(self, place: int, observation: object) -> Vector:
        """The values of all actions, (A,), of a run's network at an observation."""
        if not self.agent.has_network or self.weights is None:
            raise InputError(f"observation: given, but {self.agent.name!r} has no network; leave it out")
        require_jax()
        from backcast.drivers.neural_policy import values_of

        return values_of(self.agent, self.weights[place], self.values.shape[2], observation)

    def values_by_state(self, world: object = None) -> dict[Any, float]:
        """Return the value of each state, averaged over seeds; in control, the value of the best action.

        Args:
            world: if given, states are named by their coordinates, (row, column) in a maze and (level, place) in a
                chain; otherwise by their numbers.
        """
        of_states = self.values if self.values.ndim == 2 else self.values.max(axis=2)
        means = of_states.mean(axis=0)
        points = None if world is None else read_place(world, 0).points
        if points is None or points.shape[1] == 1:
            return dict(enumerate(means.tolist()))
        if len(points) != len(means):
            raise InputError(f"world: it has {len(points)} states, but these runs have values of {len(means)}")
        return dict(zip(map(tuple, points.tolist()), means.tolist(), strict=True))

    def to_pandas(self) -> Any:
        """Return a long pandas table: world, agent, seed, episode, metric, value; a row per metric and episode."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError as error:
            raise InputError("pandas: it is not installed; pip install pandas, or use to_arrow()") from error

    def to_arrow(self) -> Any:
        """Return the long table as a pyarrow Table. Seeds of more than 64 bits, or of several numbers, are text.

        Episodes that a run of a given number of steps does not have are omitted.
        """
        import pyarrow as pa

        (seeds, episodes), metrics = self.steps.shape, self.metrics
        small = all(isinstance(seed, int) and seed < 2**63 for seed in self.seeds)
        names = pa.array(self.seeds if small else [str(seed) for seed in self.seeds])
        rows = seeds * episodes * len(metrics)
        columns = {
            "world": pa.array([self.world] * rows),
            "agent": pa.array([self.agent.name] * rows),
            "seed": names.take(np.tile(np.repeat(np.arange(seeds), episodes), len(metrics))),
            "episode": np.tile(np.arange(episodes), seeds * len(metrics)),
            "metric": np.repeat(metrics, seeds * episodes),
            "value": np.concatenate([METRICS[metric].of(self).ravel() for metric in metrics]),
        }
        made = np.tile((self.steps >= 0).ravel(), len(metrics))
        return pa.table(columns) if made.all() else pa.table(columns).filter(made)

    def save(self, path: str | Path) -> None:
        """Save to a plain .npz file (no pickle), without models. The write is atomic."""
        arrays = {name: getattr(self, name) for name in _ARRAYS} | vars(self.updates)
        text = {"world": self.world, "agent": plain_agent(self.agent), "seeds": self.seeds}
        write_runs(Path(path), text, arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Runs":
        """Load a file written by `save`; damaged or other files are refused.

        Raises:
            InputError: if the file was not written by `save`, is damaged, or needs more memory than this machine has.
            OSError: if the file is missing or cannot be read.
        """
        text, arrays = read_runs(Path(path))
        arrays.setdefault("edges", np.zeros_like(arrays["learning"]))  # older files do not have them
        updates = Updates(*(arrays.pop(name) for name in ("learning", "planning", "by_episode", "edges")))
        return cls(**text, **arrays, updates=updates, models=NoModels(_NOT_SAVED))


PER_EPISODE = ("steps", "made", "reward", "rmsve", "rmsve_inner")  # fields of `RunRows`
_ARRAYS = ("steps", "reward", "rmsve", "rmsve_inner", "values", "weights", "seconds", "diverged")


class RunRows(NamedTuple):
    """The results of some seeds, a row for each; as in `Runs`.

    Attributes:
        updates: (n, 2), by learning and by planning.
        edges: (n,), transitions that planning read.
        made: (n, episodes), value updates up to the end of each episode.
        runs: what is kept of the runs so that their models can be read, or why nothing is.
    """

    steps: NDArray[np.int64]
    made: NDArray[np.int64]
    reward: Vector
    rmsve: Vector
    rmsve_inner: Vector
    updates: NDArray[np.int64]
    edges: NDArray[np.int64]
    values: Vector
    weights: Vector | None
    diverged: NDArray[np.int64]
    seconds: Vector
    runs: KeptRuns | NoModels

    def with_episodes(self, number: int) -> "RunRows":
        """The same, truncated after `number` episodes."""
        return self._replace(**{name: getattr(self, name)[:, :number] for name in PER_EPISODE})


def rows_of(runs: Copies, seconds: Vector, keep: bool = True, numbered: bool = True) -> RunRows:
    """The results of runs.

    Args:
        runs: copies of a `Run`.
        seconds: processor seconds of each, (n,).
        keep: whether their models are kept.
        numbered: whether states are numbered, and so have values.
    """
    agent, record = runs.first.agent, runs.first.record
    values = runs.stacked(agent.values)
    weights = values.as_weights()
    return RunRows(
        steps=np.array(runs.stacked(record.steps)),
        made=np.array(runs.stacked(record.made)),
        reward=np.array(runs.stacked(record.reward)),
        rmsve=np.array(runs.stacked(record.rmsve)),
        rmsve_inner=np.array(runs.stacked(record.rmsve_inner)),
        updates=np.array(runs.stacked(agent.updates)),
        edges=np.zeros(runs.number, dtype=np.int64) + edges_touched(runs.stacked(agent.planner)),
        values=_without_one_action(values.as_array()[:, : None if numbered else 0], -1),
        weights=None if weights is None else np.array(_without_one_action(weights, 1)),
        diverged=np.array(runs.stacked(record.diverged))[:, 0],
        seconds=seconds,
        runs=KeptCopies(runs) if keep else NoModels(LEFT_OUT),
    )


def collect(world: str, agent: Agent, seeds: Sequence[int], rows: Sequence[RunRows]) -> Runs:
    """Combine the results of all seeds, in their order."""
    *columns, runs = zip(*_equally_wide(rows), strict=True)
    whole = RunRows._make([*(None if column[0] is None else np.concatenate(column) for column in columns), None])
    predicts = whole.rmsve.size > 0
    return Runs(
        world,
        agent,
        tuple(seeds),
        whole.steps,
        whole.reward,
        whole.rmsve if predicts else None,
        whole.rmsve_inner if predicts else None,
        Updates(whole.updates[:, 0].copy(), whole.updates[:, 1].copy(), whole.made, whole.edges),
        whole.values,
        whole.weights,
        runs[0] if isinstance(runs[0], NoModels) else Models(runs),
        whole.seconds,
        whole.diverged,
    )


def _greedy(values: Vector) -> Vector:
    """The greedy policy (n, A) for values (n, A); equally good actions share the probability equally."""
    best = values == values.max(axis=1, keepdims=True)
    return best / best.sum(axis=1, keepdims=True)


def _equally_wide(rows: Sequence[RunRows]) -> list[RunRows]:
    """The same rows, padded to the longest run: with NaN, or −1 in integer arrays."""
    most = max(each.steps.shape[1] for each in rows)
    if all(each.steps.shape[1] == most for each in rows):
        return list(rows)

    def widened(array: NDArray[Any]) -> Any:
        filler = np.nan if array.dtype.kind == "f" else -1
        return np.pad(array, ((0, 0), (0, most - array.shape[1] if array.size else 0)), constant_values=filler)

    return [each._replace(**{name: widened(getattr(each, name)) for name in PER_EPISODE}) for each in rows]


def _without_one_action(values: Vector, axis: int) -> Vector:
    """The same array without the axis of actions if there is only one action."""
    return np.squeeze(values, axis) if values.shape[axis] == 1 else values
