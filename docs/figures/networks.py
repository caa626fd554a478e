"""Print the tables of the studies of networks and draw their figures, for docs/neural.md.

    backcast reproduce neural --out networks
    python docs/figures/networks.py networks

Steps per episode, reward or error are means over all episodes. Errors are those over states that do not end an episode:
nothing teaches a network the values of the others, which no agent uses. Each agent is compared with replay of as many
value updates per step, on the same seeds; the intervals of a world's differences hold together with probability 0.95.
The middle half is the interquartile mean over seeds, and midway the median seed's mean of episodes 21 to 30. Time is
that of a run in seconds of one core, measured. A run is stuck if its last ten episodes take more than 100 steps on
average.
"""

import sys
from collections.abc import Iterator

import numpy as np
from reproduction import draw

from backcast.drivers.metrics import METRICS
from backcast.report.scores import judged_by
from backcast.studies import results
from backcast.studies.results import Results
from backcast.studies.statistics import bootstrap, iqm, paired_difference, simultaneous

CONTROL = "replay, equal updates"
PAIRS = (("forward", "backward"), ("backward, separate", "backward, shared"), ("contrastive", "generative"))


def table(result: Results, world: str) -> Iterator[str]:
    """A line for each agent: its mean, how much better it is than the control, value updates and time."""
    metric = judged_by(result, world)
    metric = METRICS["rmsve_inner"] if metric.name == "rmsve" else metric
    means = {agent: metric.sign * result.means(world, agent, metric.name) for agent in result.agents(world)}
    others = [agent for agent in means if agent != CONTROL]
    gains = simultaneous(np.array([means[CONTROL] - means[agent] for agent in others]).T, seed=0)
    gained = dict(zip(others, gains, strict=True))
    columns = (metric.name, "middle half", "better than replay by", "value updates", "time", "midway", "stuck")
    yield f"\n{world}\n\n| | {' | '.join(columns)} |"
    yield "|---" * (1 + len(columns)) + "|"
    for agent in means:
        own = metric.sign * means[agent]
        cells = bootstrap(own, seed=0), bootstrap(own, iqm, seed=0), gained.get(agent, "")
        counted = f"{result.value_updates(world, agent):,.0f}", f"{result.seconds(world, agent):.1f}"
        yield f"| {' | '.join(map(str, (agent, *cells, *counted, *in_a_maze(result, world, agent))))} |"
    for a, b in PAIRS:
        if {a, b} <= means.keys():
            yield f"\n{b} is better than {a} by {paired_difference(means[a], means[b], seed=0)}"


def in_a_maze(result: Results, world: str, agent: str) -> tuple[str, str]:
    """The median seed's steps in episodes 21 to 30, and the number of seeds that are stuck; nothing in other worlds."""
    if judged_by(result, world).name != "steps":
        return "", ""
    steps = result.curves(world, agent, "steps")
    midway, at_the_end = np.median(steps[:, 20:30].mean(axis=1)), steps[:, -10:].mean(axis=1)
    return f"{midway:.0f}", str((at_the_end > 100).sum())


def main(directory: str) -> None:
    """Tables to the terminal, figures to docs/images."""
    for result in results(directory):
        print(f"\n## {result.name}, {result.seeds} seeds")
        for world in result.worlds:
            print(*table(result, world), sep="\n")
    draw(directory)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "networks")
