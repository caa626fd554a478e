"""Choosing the best of many from what each cost in several runs, and how much such a choice is to be trusted.

Costs are (candidates, seeds), the lower the better, infinite where a run diverged. What the candidates cost in the same
seed belongs together.
"""

from math import inf

import numpy as np
from scipy.special import stdtrit

from backcast.core.arrays import Mask, Vector
from backcast.studies.statistics import band, mean_and_error

MANY = 1000  # seeds


def over_worlds(costs: list[Vector], relative: bool) -> Vector:
    """The mean over worlds, (candidates, seeds), of costs divided, if they are relative, by the lowest mean of each."""
    n = min(cost.shape[1] for cost in costs)
    parts = []
    for cost in costs:
        lowest = cost.mean(axis=1).min() if relative else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            part = cost[:, :n] / lowest if np.isfinite(lowest) else np.full_like(cost[:, :n], inf)
        parts.append(np.where(np.isnan(part), 1.0, part))  # 0 / 0: as good as the best
    return np.mean(parts, axis=0)


def winner(costs: Vector) -> int:
    """The row (of seeds) with the lowest mean, the first of several; if all diverged, that of which fewest runs did."""
    means = costs.mean(axis=1)
    return int(np.argmin(means if np.isfinite(means).any() else np.isinf(costs).sum(axis=1)))


def on_fresh_seeds(costs: Vector) -> Vector:
    """What each seed says of the row that the other half of the seeds, every other one, would choose, (seeds,)."""
    judged = np.empty(costs.shape[1])
    judged[::2] = costs[winner(costs[:, 1::2]), ::2]
    judged[1::2] = costs[winner(costs[:, ::2]), 1::2]
    return judged


def alike(costs: Vector, chosen: int) -> Mask:
    """Which rows the seeds do not tell from the chosen one, which has the lowest mean and is among them, (candidates,).

    Those of which the 95 % interval of the mean paired difference begins at or below 0; all rows meet the same
    resampled seeds. Rows that diverged are told from one that did not; with one seed, no others are. Of many seeds the
    mean is as good as normal, and its interval is taken to be.
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
