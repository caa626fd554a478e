"""The metrics of a run: what they are called, and which way is better.

Agents are compared by the metric that the world names (`World.judged_by`). What compares them minimises a *cost*: the
metric where lower is better, its negative where higher is better. So a run that diverged costs ∞ in any metric.
"""

from dataclasses import replace

import numpy as np

from backcast.studies.statistics import Interval

METRICS = ("rmsve", "rmsve_inner", "steps", "reward")
METRIC_NAMES = {
    "rmsve": "RMSVE, all states",
    "rmsve_inner": "RMSVE, non-terminal states",
    "steps": "steps per episode",
    "reward": "reward per episode",
}
HIGHER_IS_BETTER = ("reward",)
PER_EPISODE = ("steps", "reward")  # measured in each episode, errors after it: a single one is mostly luck


def sign(metric: str) -> float:
    """The factor between a metric and its cost: 1 where lower is better, −1 where higher is better."""
    return -1.0 if metric in HIGHER_IS_BETTER else 1.0


def worst(metric: str) -> float:
    """What a run that diverged is said to measure: ∞ where lower is better, −∞ where higher is better."""
    return sign(metric) * np.inf


def better(metric: str) -> str:
    """Which way is better, in words."""
    return "higher is better" if metric in HIGHER_IS_BETTER else "lower is better"


def in_units(cost: Interval, metric: str) -> Interval:
    """The interval of a metric from that of its cost."""
    if sign(metric) > 0:
        return cost
    return replace(cost, estimate=-cost.estimate, low=-cost.high, high=-cost.low)
