"""The tables of docs/findings.md at searched step sizes: every kind at the step size and schedule that suit it.

    backcast reproduce neighbours-searched experience-searched --seeds 100 --out searched
    python docs/measurements/searched.py searched

Of the settings of a kind the best is chosen on every other seed and judged on the others, and the other way round, as
in `blend_study.py`: at equal value updates by the error when the budget is used up, or the mean steps per episode in
its second half; at equal experience by the mean over all episodes. Brackets are 95 % intervals over seeds.
"""

import sys

from blend_study import Judged, experience, updates

from backcast.studies import results
from backcast.studies.statistics import bootstrap


def table(words: str, judged: list[Judged]) -> None:
    """The cost of each kind in each world, the lowest mean in bold; "over": its updates were used up before."""
    print(f"\n| {words} | " + " | ".join(each.world for each in judged) + " |\n" + "|---" * (1 + len(judged)) + "|")
    lowest = {each.world: min(cost.mean() for cost in each.costs.values()) for each in judged}
    for kind in dict.fromkeys(kind for each in judged for kind in each.costs):
        cells = []
        for each in judged:
            if kind not in each.costs:
                cells.append("–")
                continue
            cost = each.costs[kind]
            mean, _, interval = str(bootstrap(cost, seed=0)).partition(" ")
            best = cost.mean() == lowest[each.world]
            cells.append(f"{f'**{mean}**' if best else mean} {interval}{' (over)' if kind in each.over else ''}")
        print(f"| {kind} | {' | '.join(cells)} |")


def main(directory: str) -> None:
    """Both tables."""
    for result in results(directory):
        if result.name == "neighbours-searched":
            table(f"at equal updates, {result.seeds} seeds", [updates(result, world) for world in result.worlds])
        elif result.name == "experience-searched":
            table(f"at equal experience, {result.seeds} seeds", [experience(result, world) for world in result.worlds])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "searched")
