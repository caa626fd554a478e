"""Draw the figures of docs/textbook.md and print its tables. Run: make textbook."""

import sys
from collections.abc import Callable, Iterator

import numpy as np
from reproduction import draw

import backcast as bc
from backcast.report.solving import updates_until_solved
from backcast.studies import results
from backcast.studies.results import Results
from backcast.studies.statistics import bootstrap, iqm

NEAR = 1.2  # times the steps of the best ε-greedy policy is near it


def maze(result: Results) -> Iterator[str]:
    """Figure 8.2: the first episode, when steps are near those of the ε-greedy optimal policy, and the last ones."""
    (world,) = result.worlds
    mdp = result.study.worlds[0].build().mdp
    best = steps_of(mdp, 0.9 * bc.exact.optimal(mdp).policy + 0.1 / 4)
    yield f"exact: uniform policy {steps_of(mdp, np.full((54, 4), 0.25)):.0f} steps, ε-greedy optimal {best:.1f} steps"
    yield "| agent | first episode | second | near the optimum after | last 20 |\n|---|---|---|---|---|"
    for agent in result.agents(world):
        steps = result.curves(world, agent, "steps")
        first, second, last = (bootstrap(each, seed=0) for each in (steps[:, 0], steps[:, 1], steps[:, -20:].mean(1)))
        yield f"| {agent} | {first} | {second} | {resampled(steps, lambda c: near(c, NEAR * best))} | {last} |"


def steps_of(mdp: bc.FiniteMDP, policy: np.ndarray) -> float:
    """Mean steps of an episode under a policy."""
    one = bc.FiniteMDP(mdp.transition, np.ones((mdp.n_states, mdp.n_actions)), 1.0, mdp.start, mdp.terminal)
    return float(bc.exact.value(one, policy)[np.argmax(mdp.start)])  # mazes have one start


def near(steps: np.ndarray, level: float) -> int:
    """The first episode whose mean over runs, (seeds, episodes), is at most so many steps."""
    return int(np.argmax(steps.mean(axis=0) <= level)) + 1


def resampled(curves: np.ndarray, number: Callable[[np.ndarray], float]) -> str:
    """A number of curves, and the middle 95 % of it over resampled seeds."""
    rng = np.random.default_rng(0)
    found = [number(curves[rng.integers(0, len(curves), len(curves))]) for _ in range(2000)]
    return "{} [{:.0f}, {:.0f}]".format(number(curves), *np.quantile(found, [0.025, 0.975]))


def changes(result: Results) -> Iterator[str]:
    """Figures 8.4 and 8.5: reward when the maze changes and at the end, and who ever went through the new gap."""
    for world, places, shortest in zip(result.worlds, ([1000, 3000], [3000, 6000]), (10, 16), strict=True):
        yield f"| {world} | {places[0]:,} steps | {places[1]:,} steps | runs through the new gap |\n|---|---|---|---|"
        for agent in result.agents(world):
            steps, reward = (result.curves(world, agent, metric) for metric in ("steps", "reward"))
            taken = steps.cumsum(axis=1)
            at = [bootstrap((reward * (taken <= place)).sum(axis=1), seed=0) for place in places]
            within = (taken > places[0] + 400) & (taken <= places[1])
            passed = (reward > 0) & within & ((steps < shortest) if world.startswith("shortcut") else True)
            yield f"| {agent} | {at[0]} | {at[1]} | {passed.any(axis=1).sum()} of {len(steps)} |"


def sweeping(result: Results) -> Iterator[str]:
    """Example 8.4: value updates until a maze is solved, and how many times as many Dyna-Q needs."""
    yield "| maze | " + " | ".join(result.agents(result.worlds[0])) + " | times as many |\n|---|---|---|---|"
    for world in result.worlds:
        found = [updates_until_solved(result, world, agent) for agent in result.agents(world)]
        cells = [_in_full(each) for each in found]
        yield f"| {world} | {' | '.join(cells)} | {iqm(found[0]) / iqm(found[1]):.1f} |"


def _in_full(updates: np.ndarray) -> str:
    found, never = bootstrap(updates, iqm, seed=0), np.isinf(updates).sum()
    words = f"{found.estimate:,.0f} [{found.low:,.0f}, {found.high:,.0f}]"
    return words + (f", {never} of {len(updates)} never" if never else "")


def walk(result: Results) -> Iterator[str]:
    """Figures 7.2, 12.6 and 9.2: the best step size of each agent, and the error over non-terminal states with it."""
    (world,) = result.worlds
    yield "| agent | best α | RMS error |\n|---|---|---|"
    errors: dict[str, list[tuple[float, float, np.ndarray]]] = {}
    for cell in result.cells(world):
        found = result.means(world, cell.label, "rmsve_inner")
        errors.setdefault(cell.base, []).append((float(found.mean()), dict(cell.point)["alpha"], found))
    for agent, tried in errors.items():
        _, alpha, found = min(tried, key=lambda each: each[0])
        yield f"| {agent} | {alpha:g} | {bootstrap(found, seed=0)} |"


def groups(result: Results) -> Iterator[str]:
    """Figures 9.1 and 9.2: errors at the end, those of the exact limits, and how often states are visited."""
    (world,), study = result.worlds, result.study
    mdp = study.worlds[0].build().mdp
    inner, v = ~mdp.terminal, bc.exact.value(mdp)
    d = bc.exact.stationary(mdp) * inner
    d /= d.sum()
    yield f"visits: start {d[500]:.4%}, one step away {d[499]:.4%}, {d[400]:.4%}, ends {d[1]:.4%}, {d[1000]:.4%}"
    X = bc.features.aggregate(mdp, groups=10).matrix * inner[:, None]
    root = np.sqrt(d)
    least = X @ np.linalg.lstsq(root[:, None] * X, root * v, rcond=None)[0]
    limits = {"monte-carlo": least, "td": X @ bc.exact.lstd(mdp, None, X)}
    yield "| agent | RMS error over states, last 1,000 episodes | in the limit |\n|---|---|---|"
    for agent in result.agents(world):
        found = bootstrap(result.curves(world, agent, "rmsve_inner")[:, -1000:].mean(axis=1), seed=0)
        yield f"| {agent} | {found} | {np.sqrt(((limits[agent] - v)[inner] ** 2).mean()):.4f} |"


TABLES = {
    "textbook-maze": maze,
    "textbook-changes": changes,
    "textbook-sweeping": sweeping,
    "textbook-walk": walk,
    "textbook-lambda": walk,
    "textbook-steps": walk,
    "textbook-groups": groups,
}


def main(directory: str) -> None:
    """Tables to the terminal, figures to docs/images."""
    draw(directory)
    for result in results(directory):
        print(f"\n## {result.name}, {result.seeds} seeds", *TABLES[result.name](result), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "textbook")
