"""The figure of the number of value updates until a world is solved."""

import numpy as np
from matplotlib.figure import Figure

from backcast.core.arrays import Vector
from backcast.report import drawing, style
from backcast.report.comparisons import MARKERS, draw_line
from backcast.report.scores import RECENT, StudyResults, judged_by, recent_costs
from backcast.studies.statistics import bootstrap, iqm

NEAR, LAST = 0.2, 0.1  # tolerance relative to the best, and the share of last episodes over which that is averaged


def updates_to_solve(results: StudyResults) -> Figure:
    """Value updates until an agent is nearly as good as the final best agent, by world.

    A point is the interquartile mean over seeds, so that up to a quarter of them may never get there.
    """
    worlds = results.study.solvable(results.worlds)
    agents = list(dict.fromkeys(agent for world in worlds for agent in results.agents(world)))
    figure, panels = style.sheet(1, 1, width=9.0, height=5.4)
    axes = panels[0, 0]
    for number, agent in enumerate(agents):
        here = [place for place, world in enumerate(worlds) if agent in results.agents(world)]
        found = [bootstrap(updates_until_solved(results, worlds[place], agent), iqm, seed=0) for place in here]
        looks = style.line_style(agent, agents) | {"marker": MARKERS[number % len(MARKERS)], "markersize": 6}
        beside = 0.03 * (number - (len(agents) - 1) / 2)
        draw_line(axes, np.array(here) + beside, found, looks)
    drawing.log_axis(axes)
    axes.set_xticks(range(len(worlds)), [style.stacked_title(results.picture(world), 20) for world in worlds])
    axes.set_xlim(-0.3, len(worlds) - 0.7)
    style.caption(axes, y="value updates")
    style.key(figure, "outside upper right", columns=3)
    seeds = f"{results.seeds} seeds, 95 % bootstrap interval" if results.seeds > 1 else "one seed"
    style.write_below(
        figure,
        f"until the mean of {RECENT} episodes is within {100 * NEAR:g} % of the best agent's at the end;\n"
        f"interquartile mean over {seeds}; ×: more than a quarter of them never",
    )
    return figure


def updates_until_solved(results: StudyResults, world: str, agent: str) -> Vector:
    """Value updates until a run first reached the threshold `solved`, (seeds,); infinite if it never did."""
    good = recent_costs(results, world, agent) <= solved(results, world)
    first = good.argmax(axis=1)
    updates = np.take_along_axis(results.updates(world, agent), first[:, None], axis=1)[:, 0]
    return np.where(good.any(axis=1), updates, np.inf)


def solved(results: StudyResults, world: str) -> float:
    """The steps or error at which a world counts as solved: within a fifth of the best agent's final value."""
    metric = judged_by(results, world).name
    curves = [results.curves(world, agent, metric) for agent in results.agents(world)]
    last = max(1, round(LAST * curves[0].shape[1]))
    return (1 + NEAR) * min(float(curve[:, -last:].mean()) for curve in curves)
