"""Draw the figures of docs/findings.md and print its tables. Run: make findings."""

import sys
from collections.abc import Iterator

import numpy as np
from reproduction import draw

from backcast.report.scores import budget, judged_by, mean_score, score_at, seconds_per_update
from backcast.studies import results
from backcast.studies.divergence import in_words
from backcast.studies.results import Results
from backcast.studies.statistics import bootstrap, paired_difference


def over_episodes(result: Results, world: str) -> Iterator[str]:
    """Mean over episodes of every agent, with its interval and the paired difference to the first."""
    metric, agents = judged_by(result, world).name, result.agents(world)
    yield f"\n| {world} | {metric} | less than {agents[0]} by | value updates |\n|---|---|---|---|"
    for agent in agents:
        if result.diverged(world, agent).any():
            yield f"| {agent} | {in_words(result.diverged(world, agent))} | | |"
            continue
        gain = paired_difference(*(result.means(world, each, metric) for each in (agents[0], agent)), seed=0)
        updates = result.value_updates(world, agent)
        yield f"| {agent} | {mean_score(result, world, agent)} | {gain} | {updates:,.0f} |"


def at_equal_updates(result: Results, world: str, limit: int) -> Iterator[str]:
    """Error after a twentieth, a quarter and all of the value updates that a run may make."""
    places = np.array([limit / 20, limit / 4, limit])
    yield (
        f"\n| {world} | " + " | ".join(f"{place:,.0f}" for place in places) + " | ns per update |\n" + "|---" * 5 + "|"
    )
    for agent in result.agents(world):
        errors = score_at(result, world, agent, places)
        cells = [str(bootstrap(each, seed=0)) if np.isfinite(each).all() else "–" for each in errors.T]
        yield f"| {agent} | {' | '.join(cells)} | {1e9 * seconds_per_update(result, world, agent):.0f} |"


def main(directory: str) -> None:
    """Tables to the terminal, figures to docs/images."""
    draw(directory)
    for result in results(directory):
        print(f"\n## {result.name}, {result.seeds} seeds")
        for world in result.worlds:
            limit = budget(result, world)
            print(*(at_equal_updates(result, world, limit) if limit else over_episodes(result, world)), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "findings")
