"""The tables of a report, as text: every world's agents, and their scores at equal numbers of value updates.

The page and the LaTeX tables have the same cells. An estimate is rounded by the width of its interval
(`backcast.studies.rounding`), so that a number reads the same in every table.
"""

from typing import Any

import numpy as np

from backcast.core.arrays import Vector
from backcast.drivers.metrics import METRICS, Metric
from backcast.report.scores import RECENT, budget, judged_by, score_at, seconds_per_update, updates_per_step
from backcast.studies.divergence import in_words
from backcast.studies.results import Results
from backcast.studies.statistics import Interval, bootstrap, iqm, probability_of_improvement
from backcast.studies.study_metrics import in_units

PARTS = (1 / 20, 1 / 4, 1)  # fractions of a study's budget at which agents are compared
MOST_AGENTS = 100  # most agents of a world that are listed and drawn one by one


def many_agents(result: Results) -> bool:
    """Whether there are too many agents to list and draw them one by one."""
    return max(len(result.agents(world)) for world in result.worlds) > MOST_AGENTS


def table(result: Results, world: str) -> dict[str, Any]:
    """The page's data on each agent in a world; the first agent is the one that others are compared with."""
    agents = result.agents(world)
    measured, judge_by = [set(result.metrics(world, agent)) for agent in agents], judged_by(result, world)
    metrics = [metric for metric in METRICS if all(metric in those for those in measured)]
    return {
        "world": world,
        "metrics": [METRICS[metric].label for metric in metrics],
        "judged_by": judge_by.label,
        "better": judge_by.better,
        "baseline": agents[0],
        "rows": [row(result, world, agent, metrics, judge_by) for agent in agents],
        "equal": at_equal_updates(result, world, limit) if (limit := budget(result, world)) else None,
    }


def row(result: Results, world: str, agent: str, metrics: list[str], judge_by: Metric) -> dict[str, Any]:
    """The mean of every metric; for the world's default metric, also the IQM and the share of wins.

    Diverged runs have no mean, but lose; the interquartile mean is finite unless more than a quarter diverged.
    """
    first = result.agents(world)[0]
    own, baseline = (judge_by.sign * result.means(world, name, judge_by.name) for name in (agent, first))
    middle = in_units(bootstrap(own, iqm, seed=0), judge_by)
    wins = probability_of_improvement(own, baseline, better="lower", seed=0)
    diverged = in_words(result.diverged(world, agent))
    return {
        "agent": agent,
        "diverged": diverged,
        "cells": [] if diverged else [score(result, world, agent, METRICS[metric]) for metric in metrics],
        "iqm": _in_short(middle),
        "wins": f"{wins.estimate:.0%}" if agent != first else "",
        "updates": f"{result.value_updates(world, agent):,.0f}",
        "edges": f"{edges:,.0f}" if (edges := result.edges(world, agent)) else "–",
    }


def at_equal_updates(result: Results, world: str, limit: int) -> dict[str, Any]:
    """The page's data on each agent after equal numbers of value updates."""
    places = np.array([part * limit for part in PARTS])
    metric = judged_by(result, world)
    return {
        "limit": f"{limit:,}",
        "metric": metric.label,
        "recent": RECENT if metric.per_episode else 1,
        "places": [f"{place:,.0f}" for place in places],
        "rows": [
            {
                "agent": agent,
                "cells": scores_at(result, world, agent, places),
                "per_step": _or_dash(updates_per_step(result, world, agent), ",.1f"),
                "nanoseconds": _or_dash(1e9 * seconds_per_update(result, world, agent), ",.0f"),
            }
            for agent in result.agents(world)
        ],
    }


def scores_at(result: Results, world: str, agent: str, places: Vector) -> list[str]:
    """The mean score over seeds after each number of updates; if unknown for some seeds, the reason and their number.

    A dash: they had not yet finished an episode. "over": they had finished all their episodes. "diverged": they had.
    """
    cells, metric = [], judged_by(result, world)
    starts = result.updates(world, agent)[:, 0].max()
    for place, errors in zip(places, score_at(result, world, agent, places).T, strict=True):
        known = int(np.isfinite(errors).sum())
        why = "diverged" if np.isinf(errors).any() else "–" if place < starts else "over"
        missing = why + (f" ({known} of {errors.size} seeds)" if known else "")
        cells.append(_in_short(_interval(errors, metric)) if known == errors.size else missing)
    return cells


def _or_dash(number: float, digits: str) -> str:
    return f"{number:{digits}}" if np.isfinite(number) else "–"


def score(result: Results, world: str, agent: str, metric: Metric) -> str:
    """The mean over episodes and seeds with its 95 % studentised bootstrap interval over seeds."""
    return _in_short(_interval(result.means(world, agent, metric.name), metric))


def _interval(values: Vector, metric: Metric) -> Interval:
    return in_units(bootstrap(metric.sign * values, seed=0), metric)


def _in_short(found: Interval) -> str:
    """An estimate with its interval; a dash if it is infinite."""
    return str(found) if np.isfinite(found.estimate) else "–"
