"""`backcast bench --only costs`: cost of episodes, steps, value updates and edges, fitted to runs in several worlds.

    backcast bench --only costs --json > src/backcast/studies/costs.json

updates the table from which processor time is computed (`backcast.studies.costs`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import nnls

from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.core.arrays import Vector
from backcast.core.copies import Copies
from backcast.drivers.seed_blocks import Job, empty_record
from backcast.planners.edges import edges_touched
from backcast.studies import BEYOND, BLEND, named_study
from backcast.studies.costs import Cost
from backcast.worlds import World, chain, garnet, maze

WORLDS = (
    (chain((500, 50, 5)), 300),
    (chain((5, 50, 500)), 300),
    (chain((20, 20, 20, 20, 20)), 300),
    (garnet(100, 1, 5, seed=0), 60),
    (garnet(100, 1, 20, seed=0), 60),
    (maze(), 50),
    (maze(slip=0.5), 30),
    (garnet(100, 4, 3, seed=0, max_steps=300), 20),
    (garnet(100, 2, 10, seed=0, max_steps=300), 20),
)
_SECONDS = 0.03  # least processor time of a measurement


def costs(repeats: int) -> Iterator[dict[str, Any]]:
    """Nanoseconds per episode, real step, value update and edge of every agent of the studies that compare kinds.

    `error` is the largest relative difference between the fitted and the measured time of a world.
    """
    for name, chosen in compared_agents().items():
        here = ("prediction", "control") if KINDS[chosen.kind].only is None else (KINDS[chosen.kind].only,)
        rows = np.array(
            [
                measured(world, chosen, episodes, repeats)
                for world, episodes in WORLDS
                if ("prediction" if world.is_prediction else "control") in here
            ]
        )
        fitted, error = fit(rows)
        yield {
            "section": "costs",
            "agent": name,
            **{f"ns_per_{each}": cost for each, cost in zip(Cost._fields, fitted.tolist(), strict=True)},
            "error": error,
        }


def compared_agents() -> dict[str, Agent]:
    """The agents of `blend` and of the baselines, by their names without searched settings."""
    studies = (*BLEND, *(name for name in BEYOND if name.startswith(("neighbours", "experience"))))
    cells = [cell for name in studies for cell in named_study(name).runs()]
    return {cell.base: cell.agent for cell in reversed(cells)}


def measured(world: World, chosen: Agent, episodes: int, repeats: int) -> Vector:
    """Episodes, real steps, value updates, edges and nanoseconds of a run, the best of several measurements."""
    job = Job(world, chosen, chosen.rates(episodes), world.max_steps or 2**62)
    job.prepare(0)
    found: list[Vector] = []
    for _ in range(repeats):
        total, seed = np.zeros(len(Cost._fields) + 1), 0
        while total[-1] < 1e9 * _SECONDS:
            drawn = world.draw(seed)
            run = job.begin(drawn, seed)._replace(record=empty_record(episodes, None))
            seconds = job.call(drawn, Copies(run, 1, 0), 0, 1)
            edges = float(edges_touched(run.agent.planner))
            total += episodes, run.record.steps.sum(), run.agent.updates.sum(), edges, 1e9 * seconds
            seed += 1
        found.append(total / seed)
    return min(found, key=lambda each: each[-1] / each[1])


def fit(rows: Vector) -> tuple[Vector, float]:
    """Fit nonnegative costs by least squared relative error over worlds (n, 5); return them and the largest error."""
    relative = rows[:, :-1] / rows[:, -1:]
    found, _ = nnls(relative, np.ones(len(rows)))
    return found, float(np.abs(relative @ found - 1.0).max())
