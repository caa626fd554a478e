"""`backcast report`: one self-contained HTML page about everything in a directory of results."""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from backcast import __version__
from backcast.core.arrays import Vector
from backcast.core.errors import InputError
from backcast.core.files import atomic_path, remove_remains
from backcast.drivers.metrics import METRICS, Metric
from backcast.report.figures import draw, plots_of, save
from backcast.report.scores import (
    RECENT,
    budget,
    judged_by,
    score_at,
    seconds_per_update,
    updates_per_step,
)
from backcast.studies import STUDIES
from backcast.studies import results as results_of
from backcast.studies.best import best, explained
from backcast.studies.claims import judge
from backcast.studies.divergence import in_words
from backcast.studies.results import Results
from backcast.studies.statistics import Interval, bootstrap, iqm, mean_and_error, probability_of_improvement
from backcast.studies.store import machine
from backcast.studies.study_metrics import in_units

PARTS = (1 / 20, 1 / 4, 1)  # of a study's budget, after which agents are compared
MOST_AGENTS = 100  # of a world that are listed and drawn one by one
MOST_SETTINGS = 20_000  # characters of a study that are shown


def write_report(directory: str | Path, found: Sequence[Results] | None = None) -> Path:
    """Write DIR/report.html and the figures it shows (DIR/figures/*.svg and .png); the page's path."""
    directory = Path(directory)
    found = results_of(directory) if found is None else found
    if not found:
        raise InputError(f"{directory}: no finished results to report on; run: backcast reproduce --out {directory}")
    figures = directory / "figures"
    figures.mkdir(exist_ok=True)
    remove_remains(directory)
    remove_remains(figures)
    environment = Environment(
        loader=PackageLoader("backcast.report"), autoescape=select_autoescape(), undefined=StrictUndefined
    )
    page = environment.get_template("page.html.j2").render(
        version=__version__,
        machine=machine(),
        studies=[_study(result, figures) for result in found],
        verdicts=sorted((verdict for result in found for verdict in judge(result)), key=lambda v: v.number),
    )
    target = directory / "report.html"
    with atomic_path(target) as part:
        part.write_text(page, encoding="utf-8")
    return target


def _study(result: Results, figures: Path) -> dict[str, Any]:
    """What the page says about one study; where it tried many settings, about the best of them only."""
    many = max(len(result.agents(world)) for world in result.worlds) > MOST_AGENTS
    plots = [plot for plot in plots_of(result.study) if plot == "sensitivity" or not many]
    settings = json.dumps(result.study.model_dump(exclude_defaults=True), indent=1)
    return {
        "name": result.name,
        "title": result.study.title or result.name,
        "seeds": result.seeds,
        "gap": result.gap,
        "missing": [f"{agent} in {world}" for world, agent in result.missing[:MOST_AGENTS]],
        "figures": [
            _inline(save(figure, figures, f"{result.name}-{plot}")[0])
            for plot in plots
            if (figure := draw(plot, result)) is not None
        ],
        "best": _best(result),
        "many": many,
        "tables": [] if many else [_table(result, world) for world in result.worlds],
        "settings": settings if len(settings) <= MOST_SETTINGS else settings[:MOST_SETTINGS] + "\n…",
        "command": command(result),
    }


def _best(result: Results) -> dict[str, Any] | None:
    """What the page says about the best settings of each agent in each world; nothing if none were searched."""
    if not any(space.sources for space in result.study.spaces):
        return None
    found = best(result, ("world", "agent"))
    rows = [each.as_row() for each in found]
    warnings = [f"{each.where}: {warning}" for each in found for warning in each.warnings]
    return {"columns": list(rows[0]), "rows": rows, "warnings": warnings, "notes": explained(found)}


def command(result: Results) -> str:
    """The command that makes these results again."""
    if result.name in STUDIES:
        return f"backcast reproduce {result.name} --seeds {result.seeds}"
    return f"backcast sweep {result.name}.toml --seeds {result.seeds}"


def _table(result: Results, world: str) -> dict[str, Any]:
    """What the page says about each agent in a world; the first agent is the one that others are compared with."""
    agents = result.agents(world)
    measured, judge_by = [set(result.metrics(world, agent)) for agent in agents], judged_by(result, world)
    metrics = [metric for metric in METRICS if all(metric in those for those in measured)]
    return {
        "world": world,
        "metrics": [METRICS[metric].label for metric in metrics],
        "judged_by": judge_by.label,
        "better": judge_by.better,
        "baseline": agents[0],
        "rows": [_row(result, world, agent, metrics, judge_by) for agent in agents],
        "equal": _at_equal_updates(result, world, limit) if (limit := budget(result, world)) else None,
    }


def _row(result: Results, world: str, agent: str, metrics: list[str], judge_by: Metric) -> dict[str, Any]:
    """Mean ± standard error of every metric; of the one that the world is judged by, the IQM and who wins how often.

    Runs that diverged have no mean, but lose; the interquartile mean is finite unless more than a quarter diverged.
    """
    first = result.agents(world)[0]
    own, baseline = (judge_by.sign * result.means(world, name, judge_by.name) for name in (agent, first))
    middle = in_units(bootstrap(own, iqm, seed=0), judge_by)
    wins = probability_of_improvement(own, baseline, better="lower", seed=0)
    diverged = in_words(result.diverged(world, agent))
    return {
        "agent": agent,
        "diverged": diverged,
        "cells": [] if diverged else [_mean_and_error(result.means(world, agent, metric)) for metric in metrics],
        "iqm": _in_short(middle),
        "wins": f"{wins.estimate:.0%}" if agent != first else "",
        "updates": f"{result.value_updates(world, agent):,.0f}",
    }


def _at_equal_updates(result: Results, world: str, limit: int) -> dict[str, Any]:
    """What the page says about each agent after the same numbers of value updates."""
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
                "cells": _scores_at(result, world, agent, places),
                "per_step": _or_dash(updates_per_step(result, world, agent), ",.1f"),
                "nanoseconds": _or_dash(1e9 * seconds_per_update(result, world, agent), ",.0f"),
            }
            for agent in result.agents(world)
        ],
    }


def _scores_at(result: Results, world: str, agent: str, places: Vector) -> list[str]:
    """The mean error over seeds after each number of updates; if that of some seeds is not known, why, and of how many.

    A dash: they had not yet finished an episode. "over": they had finished all their episodes. "diverged": they had.
    """
    cells = []
    starts = result.updates(world, agent)[:, 0].max()
    for place, errors in zip(places, score_at(result, world, agent, places).T, strict=True):
        known = int(np.isfinite(errors).sum())
        why = "diverged" if np.isinf(errors).any() else "–" if place < starts else "over"
        missing = why + (f" ({known} of {errors.size} seeds)" if known else "")
        cells.append(_mean_and_error(errors) if known == errors.size else missing)
    return cells


def _or_dash(number: float, digits: str) -> str:
    return f"{number:{digits}}" if np.isfinite(number) else "–"


def _in_short(found: Interval) -> str:
    """An estimate with its interval if that is known; a dash if it is infinite."""
    if not np.isfinite(found.estimate):
        return "–"
    return f"{found.estimate:.3f}" if np.isnan(found.low) else str(found)


def _mean_and_error(values: Vector) -> str:
    mean, error = mean_and_error(values)
    return f"{float(mean):.3f} ± {float(error):.3f}" if np.isfinite(error) else f"{float(mean):.3f}"


def _inline(svg: Path) -> dict[str, Any]:
    """An SVG file as an element of the page, without the XML declaration in front of it."""
    text = svg.read_text(encoding="utf-8")
    label = svg.stem.replace("-", " ")
    element = text[text.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)
    return {"svg": Markup(element), "name": svg.name, "label": label}
