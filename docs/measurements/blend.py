"""What docs/blend.md says of the planner that chooses: its gate, its direction and its prior.

    python docs/measurements/blend.py gate          # κ from 0 to 10
    python docs/measurements/blend.py directions    # which sequences come out
    python docs/measurements/blend.py prior         # with each piece of the prior alone

Each prints a table in Markdown. With `--seeds` there are more or fewer of them.
"""

import argparse
from typing import NamedTuple

import numpy as np

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.train import Stepwise
from backcast.worlds.envs import TableEnv
from backcast.worlds.world import World


class Case(NamedTuple):
    """A world, how many episodes are run at equal experience, and how many value updates at equal computation."""

    world: World
    episodes: int
    most_episodes: int
    updates: int


chain, maze = bc.worlds.chain, bc.worlds.maze
CASES = (
    Case(chain((500, 50, 5), seed=None), 1500, 12_000, 20_000),
    Case(chain((5, 50, 500), seed=None), 1500, 12_000, 20_000),
    Case(chain((5, 5), seed=None), 150, 2500, 2000),
    Case(chain((50, 5), seed=None), 500, 6000, 5000),
    Case(chain((500, 50, 6), seed=None, branches=2), 1500, 12_000, 20_000),
    Case(maze(), 50, 4000, 10_000),
    Case(maze(slip=0.5), 50, 4000, 50_000),
    Case(maze(reward_probability=0.5), 50, 4000, 50_000),
    Case(maze(reward_probability=0.1), 50, 4000, 50_000),
    Case(bc.worlds.random_maze(30, 0.25, seed=7, max_steps=3000), 50, 3000, 100_000),
    Case(bc.worlds.garnet(200, 1, 5, seed=None, end=0.03), 200, 4000, 20_000),
    Case(bc.worlds.garnet(200, 4, 3, seed=None, max_steps=1000), 50, 4000, 50_000),
)


def experience(case: Case, agent: bc.Agent, seeds: int) -> float:
    """The mean over all episodes: of the error in prediction, of the number of steps in control."""
    runs = bc.run(case.world, agent, case.episodes, seeds, models=False)
    return float((runs.steps if runs.rmsve is None else runs.rmsve).mean())


def computation(case: Case, agent: bc.Agent, seeds: int) -> float:
    """After so many value updates: the error, or the mean number of steps over the second half of them."""
    runs = bc.run(case.world, agent, case.most_episodes, seeds, updates=case.updates, models=False)
    made = runs.updates.by_episode
    if runs.rmsve is not None:
        return float(np.mean([np.interp(case.updates, *each) for each in zip(made, runs.rmsve, strict=True)]))
    when = np.linspace(case.updates / 2, case.updates, 200)
    places = [np.minimum(np.searchsorted(each, when), made.shape[1] - 1) for each in made]
    return float(np.mean([steps[at].mean() for steps, at in zip(runs.steps, places, strict=True)]))


def compare(variants: dict[str, bc.Agent], seeds: int) -> None:
    """A table for equal experience, and one for equal numbers of value updates."""
    for measure, words in ((experience, "equal experience"), (computation, "equal value updates")):
        print(f"\n| {words} | {' | '.join(variants)} |\n|---|{'---|' * len(variants)}")
        for case in CASES:
            found = [measure(case, agent, seeds) for agent in variants.values()]
            print(f"| {case.world.name} | {' | '.join(f'{each:.3g}' for each in found)} |", flush=True)


def directions(seeds: int, agent: bc.Agent) -> None:
    """Of the states planned after a real step, how many lead to one that was committed before, or follow one."""
    print("\n| world | planned for each step | leads to one before | follows one before | neither |")
    print("|---|---|---|---|---|")
    for case in CASES:
        backward = forward = planned = steps = 0
        for seed in range(seeds):
            for chosen, before in choices(case, seed, agent):
                steps += 1
                planned += len(chosen) - 1
                for number, s in enumerate(chosen[1:], start=1):
                    leads = any(s in before(earlier) for earlier in chosen[:number])
                    backward += leads
                    forward += not leads and any(earlier in before(s) for earlier in chosen[:number])
        shares = [each / max(planned, 1) for each in (backward, forward, planned - backward - forward)]
        of_planned = " | ".join(f"{share:.0%}" for share in shares)
        print(f"| {case.world.name} | {planned / steps:.2f} | {of_planned} |", flush=True)


def choices(case: Case, seed: int, agent: bc.Agent):
    """After each real step the states that were committed, and a function that gives those seen before a state."""
    world = case.world.draw(seed)
    setup = Setup(world.n_states, world.n_actions, world.discount, world)
    env, walker = TableEnv(world), Stepwise(agent, setup, 1, seed)

    def before(s: int) -> np.ndarray:
        return walker.parts.model.predecessors(s).keys // world.n_actions

    s, _ = env.reset(seed=seed)
    walker.begin_episode(int(s))
    for _ in range(3000):
        a = walker.act(int(s))
        s2, r, terminated, truncated, _ = env.step(a)
        walker.observe(int(s), a, float(r), int(s2), terminated)
        yield [x for x, _ in walker.parts.planner.chosen()] or [int(s)], before
        s = s2
        if terminated or truncated:
            walker.end_episode(int(s), terminated)
            s, _ = env.reset()
            walker.begin_episode(int(s))


def blend(**settings) -> bc.Agent:
    """The agent in all measurements: it explores a little, and has no step size."""
    return bc.agent("blend", epsilon=0.1, schedule="constant", **settings)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("gate", "directions", "prior"))
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    if given.what == "directions":
        directions(given.seeds or 5, blend(prior=False))
    elif given.what == "gate":
        factors = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
        compare({f"κ = {each:g}": blend(prior=False, gate=each) for each in factors}, given.seeds or 40)
    else:
        pieces = {"none": False, "shrinkage": ["shrinkage"], "unseen": ["unseen"], "untried": ["untried"], "all": True}
        compare({name: blend(prior=prior) for name, prior in pieces.items()}, given.seeds or 40)


if __name__ == "__main__":
    main()
