"""What a number of runs have left behind: steps, rewards, errors, value updates, values and models."""

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
    """Value updates made in each run, (seeds,): by learning, by planning and in all.

    `np.asarray(updates)` is (seeds, 2): learning, planning. `by_episode` (seeds, episodes) counts all of them up to the
    end of each episode. `edges` (seeds,) are the transitions of a model or of a memory that planning touched for them.
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
    """In place of models that were not kept: looking at one says why it is not there."""

    _why: str

    def __new__(cls, why: str) -> "NoModels":
        """Nothing, and the reason."""
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
    """What is kept of the runs of some seeds, so that their models can be asked."""

    @property
    def number(self) -> int:
        """How many runs."""

    def model(self, place: int) -> Any:
        """The model of one of them, made readable."""


class KeptCopies(NamedTuple):
    """Agents that are copies of one."""

    copies: Copies

    @property
    def number(self) -> int:
        """How many."""
        return self.copies.number

    def model(self, place: int) -> Any:
        """The model of one of them, as it says that it looks."""
        agent = picked(self.copies.stacked(self.copies.first.agent), place)
        return agent.model.readable(agent.values)


class KeptModel(NamedTuple):
    """The model of one run, which is readable as it is."""

    readable: Any

    @property
    def number(self) -> int:
        """One."""
        return 1

    def model(self, place: int) -> Any:
        """It."""
        return self.readable


class Models(Sequence[Any]):
    """The final model of each seed, made readable when it is asked for."""

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
    """The results of a number of seeds, each (seeds, episodes) unless said otherwise.

    Runs of a given number of steps may differ in their number of episodes. Where a run has fewer than the longest,
    arrays are NaN, and −1 if they are of whole numbers.

    Attributes:
        world: the world's name.
        agent: the agent.
        seeds: the seeds, in the order of the rows.
        steps: steps of each episode.
        reward: undiscounted reward of each episode.
        rmsve: in prediction, root mean squared value error after each episode over all states; else None.
        rmsve_inner: the same over states that do not end an episode.
        updates: value updates, learning and planning apart.
        values: final values, (seeds, S) in prediction, (seeds, S, A) in control; empty where states have no
            numbers.
        weights: of linear values, (seeds, d) in prediction, (seeds, A, d) in control; of a network all its parameters,
            (seeds, P); else None.
        diverged: (seeds,) the step at which values exploded, counted from 1; 0 where they did not. From that episode on
            errors are infinite, and later episodes take as many steps as they may.
        models: the final model of each seed, which can be asked (`models[0].predict(s)`). They are not saved.
        seconds: processor time of each run, (seeds,), without making the world and the agent; short runs are made
            several at a time, and each is said to have taken the mean of them.
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
            f"mean RMSVE {np.nanmean(self.rmsve):.3f}"
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
        """What the agent did: errors are measured where it predicts values."""
        return "control" if self.rmsve is None else "prediction"

    @property
    def metrics(self) -> tuple[str, ...]:
        """What was measured, as in exported tables; `measured` gives each of them.

        Errors in prediction, steps and reward in control, and what was registered besides.
        """
        return tuple(metric.name for metric in metrics_in(self.purpose))

    def measured(self, metric: str) -> Vector:
        """A metric of each seed and episode, (seeds, episodes); as bad as can be from where a run diverged."""
        if metric not in self.metrics:
            known = ", ".join(self.metrics)
            raise InputError(f"metric: {metric!r} given, expected one of {known}{nearest(metric, self.metrics)}")
        return METRICS[metric].before_divergence(self)

    def policy(self, seed_index: int = 0, observation: object = None) -> Vector:
        """The greedy policy (S, A) of a run; actions that are equally good share the probability equally.

        Args:
            seed_index: which run, counted from 0 in the order of `seeds`.
            observation: of an agent with a network, what is observed; the policy is then (A,), that of the observation.
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
        """The values of all actions, (A,), that the network of a run has for an observation."""
        if not self.agent.has_network or self.weights is None:
            raise InputError(f"observation: given, but {self.agent.name!r} has no network; leave it out")
        require_jax()
        from backcast.drivers.neural_policy import values_of

        return values_of(self.agent, self.weights[place], self.values.shape[2], observation)

    def values_by_state(self, world: object = None) -> dict[Any, float]:
        """The value of each state, the mean over seeds; in control that of the best action.

        Args:
            world: if it is given, states are named by their coordinates, (row, column) in a maze and (level, place) in
                a chain; without it by their numbers.
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
        """A long pandas table: world, agent, seed, episode, metric, value; a row for each metric of each episode."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError as error:
            raise InputError("pandas: it is not installed; pip install pandas, or use to_arrow()") from error

    def to_arrow(self) -> Any:
        """The same as a pyarrow Table. Seeds of more than 64 bits, or of several numbers, are text.

        Episodes that a run of a given number of steps does not have are left out.
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
        """Write to one plain .npz file (no pickle), whole or not at all. Models are left out."""
        arrays = {name: getattr(self, name) for name in _ARRAYS} | vars(self.updates)
        text = {"world": self.world, "agent": plain_agent(self.agent), "seeds": self.seeds}
        write_runs(Path(path), text, arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Runs":
        """Read what `save` wrote; a file that is damaged, or is another one, is refused.

        Raises:
            InputError: if it is no file that `save` wrote, or needs more memory than this machine has.
            OSError: if it is missing or cannot be read.
        """
        text, arrays = read_runs(Path(path))
        arrays.setdefault("edges", np.zeros_like(arrays["learning"]))  # older files do not have them
        updates = Updates(*(arrays.pop(name) for name in ("learning", "planning", "by_episode", "edges")))
        return cls(**text, **arrays, updates=updates, models=NoModels(_NOT_SAVED))


PER_EPISODE = ("steps", "made", "reward", "rmsve", "rmsve_inner")  # of `RunRows`
_ARRAYS = ("steps", "reward", "rmsve", "rmsve_inner", "values", "weights", "seconds", "diverged")


class RunRows(NamedTuple):
    """What the runs of some seeds left behind, a row for each; as in `Runs`.

    Attributes:
        updates: (n, 2) by learning and by planning.
        edges: (n,) those touched by planning.
        made: (n, episodes) value updates up to the end of each episode.
        runs: what is kept of them, to be asked; or why nothing is.
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
        """The same without what follows so many episodes."""
        return self._replace(**{name: getattr(self, name)[:, :number] for name in PER_EPISODE})


def rows_of(runs: Copies, seconds: Vector, keep: bool = True, numbered: bool = True) -> RunRows:
    """What runs left behind.

    Args:
        runs: a `Run` each.
        seconds: that each took, (n,).
        keep: whether their models may be asked for.
        numbered: whether states are, and so have values of their own.
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
    """Put together what the runs of all seeds left behind, in their order."""
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
    """The greedy policy (n, A) for values (n, A); actions that are equally good share the probability equally."""
    best = values == values.max(axis=1, keepdims=True)
    return best / best.sum(axis=1, keepdims=True)


def _equally_wide(rows: Sequence[RunRows]) -> list[RunRows]:
    """The same rows, with as many episodes as the longest run: NaN where a run has fewer, −1 in whole numbers."""
    most = max(each.steps.shape[1] for each in rows)

    def widened(array: NDArray[Any]) -> Any:
        filler = np.nan if array.dtype.kind == "f" else -1
        return np.pad(array, ((0, 0), (0, most - array.shape[1] if array.size else 0)), constant_values=filler)

    return [each._replace(**{name: widened(getattr(each, name)) for name in PER_EPISODE}) for each in rows]


def _without_one_action(values: Vector, axis: int) -> Vector:
    """The same array without the axis of actions, if there is one action."""
    return np.squeeze(values, axis) if values.shape[axis] == 1 else values
