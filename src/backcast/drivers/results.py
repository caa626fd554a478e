"""What a number of runs have left behind: steps, rewards, errors, value updates, values and models."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from backcast.agents.kinds import Agent
from backcast.core.arrays import Vector
from backcast.drivers.loop import Record


@dataclass(frozen=True)
class Updates:
    """Value updates made in each run, (seeds,): by learning, by planning and in all.

    `np.asarray(updates)` is (seeds, 2): learning, planning. `by_episode` (seeds, episodes) counts all of them up to the
    end of each episode.
    """

    learning: NDArray[np.int64]
    planning: NDArray[np.int64]
    by_episode: NDArray[np.int64] = field(repr=False)

    @property
    def total(self) -> NDArray[np.int64]:
        """Learning and planning together."""
        return self.learning + self.planning

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.stack([self.learning, self.planning], axis=1).astype(dtype or np.int64)


@dataclass(frozen=True)
class Runs:
    """The results of a number of seeds, each (seeds, episodes) unless said otherwise.

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
        weights: of linear values, (seeds, d) in prediction, (seeds, A, d) in control; else None.
        diverged: (seeds,) the step at which values exploded, counted from 1; 0 where they did not. From that episode on
            errors are infinite, and later episodes take as many steps as they may.
        models: the final model of each seed, which can be asked (`models[0].predict(s)`).
        seconds: processor time of each run, (seeds,), without making the world and the agent.
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
    models: tuple[Any, ...] = field(repr=False)
    seconds: Vector = field(repr=False)
    diverged: NDArray[np.int64] = field(repr=False)

    def __repr__(self) -> str:
        n, episodes = self.steps.shape
        what = (
            f"mean RMSVE {self.rmsve.mean():.3f}"
            if self.rmsve is not None
            else f"mean steps per episode {self.steps.mean():.1f}, mean reward {self.reward.mean():.3g}"
        )
        lost = self.diverged > 0
        if lost.any():
            what = f"{lost.sum()} of {n} seeds diverged, the first at step {self.diverged[lost].min():,}"
        return f"Runs({self.agent.name} in {self.world}: {n} seeds × {episodes} episodes, {what})"


def collect(
    world: str,
    agent: Agent,
    seeds: Sequence[int],
    results: Sequence[tuple[Record, Any, float]],
    numbered: bool = True,
) -> Runs:
    """Stack what the runs of each seed left behind; `numbered` if states are, and so have values of their own."""
    records, parts, seconds = zip(*results, strict=True)
    predicts = records[0].truth.size > 0
    stacked = {name: np.stack([getattr(r, name) for r in records]) for name in Record._fields[:5]}
    counted = np.stack([part.updates for part in parts], axis=1)
    last = None if numbered else 0
    return Runs(
        world,
        agent,
        tuple(seeds),
        stacked["steps"],
        stacked["reward"],
        stacked["rmsve"] if predicts else None,
        stacked["rmsve_inner"] if predicts else None,
        Updates(counted[0], counted[1], stacked["made"]),
        _without_one_action(np.stack([part.values.as_array()[:last] for part in parts]), -1),
        _weights([part.values for part in parts]),
        tuple(part.model.readable(part.values) for part in parts),
        np.array(seconds),
        np.concatenate([record.diverged for record in records]),
    )


def _weights(values: Sequence[Any]) -> Vector | None:
    """The weights of linear values, (seeds, A, d), or (seeds, d) in prediction."""
    if values[0].as_weights() is None:
        return None
    return _without_one_action(np.stack([each.as_weights() for each in values]), 1)


def _without_one_action(values: Vector, axis: int) -> Vector:
    """The same array without the axis of actions, if there is one action."""
    return np.squeeze(values, axis) if values.shape[axis] == 1 else values
