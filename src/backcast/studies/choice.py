"""Choosing the best of many candidates from the costs of several runs, and how far to trust the choice.

Costs are (candidates, seeds), lower is better, infinite where a run diverged. The costs of all candidates on the same
seed are paired.
"""

from math import inf

import numpy as np
from scipy.special import stdtrit

from backcast.core.arrays import Mask, Vector
from backcast.studies.statistics import band, mean_and_error

MANY = 1000  # seeds


def over_worlds(costs: list[Vector], relative: bool) -> Vector:
    """The mean of costs over worlds, (candidates, seeds); if `relative`, each divided by the lowest mean there."""
    n = min(cost.shape[1] for cost in costs)
    parts = []
    for cost in costs:
        lowest = cost.mean(axis=1).min() if relative else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            part = cost[:, :n] / lowest if np.isfinite(lowest) else np.full_like(cost[:, :n], inf)
        parts.append(np.where(np.isnan(part), 1.0, part))  # 0 / 0: as good as the best
    return np.mean(parts, axis=0)


def winner(costs: Vector) -> int:
    """The first row with the lowest mean; if all diverged, the row with the fewest diverged runs."""
    means = costs.mean(axis=1)
    return int(np.argmin(means if np.isfinite(means).any() else np.isinf(costs).sum(axis=1)))


def on_fresh_seeds(costs: Vector) -> Vector:
    """The cost, on each seed, of the row that the other half of the seeds (every other one) chooses, (seeds,)."""
    judged = np.empty(costs.shape[1])
    judged[::2] = costs[winner(costs[:, 1::2]), ::2]
    judged[1::2] = costs[winner(costs[:, ::2]), 1::2]
    return judged


def alike(costs: Vector, chosen: int) -> Mask:
    """The rows that the seeds cannot distinguish from the chosen one, itself included, (candidates,).

    These are the rows whose 95 % interval of the mean paired difference begins at or below 0; all rows use the same
    resampled seeds. Rows that diverged are distinguished from one that did not; with one seed, no others are. With many
    seeds the mean is nearly normal, and a normal interval is used.
    """
    if not np.isfinite(costs[chosen]).all():
        return np.ones(len(costs), dtype=bool)
    found = np.asarray(np.isfinite(costs).all(axis=1))
    n = costs.shape[1]
    if n == 1:
        return found
    differences = (costs[found] - costs[chosen]).T
    if n > MANY:
        means, errors = mean_and_error(differences)
        found[found] = means <= stdtrit(n - 1, 0.975) * errors
    else:
        _, low, _ = band(differences, seed=0)
        found[found] = low <= 0
    return found
