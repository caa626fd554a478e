"""Results of studies that are made up."""

import numpy as np

from backcast.report import scores
from backcast.studies import check_study
from backcast.worlds.kinds import WORLDS, Picture

MAZE, CHAIN = {"kind": "maze", "text": "S.G"}, {"kind": "chain", "levels": [3, 2]}
ALPHAS = {"alpha": [1.0, 0.5, 0.1]}
LUCKY = {"q,alpha=1": [10, 20, 10, 20], "q,alpha=0.5": [12, 12, 12, 12], "q,alpha=0.1": [11, 14, 11, 14]}


class Scores:
    """Results of a study that are made up: what each label scored in each seed, everywhere or in each world."""

    def __init__(self, scores, **given):
        whole = {"name": "made-up", "episodes": 3, "seeds": 4, "worlds": [MAZE], "agents": [{"kind": "q"}], **given}
        self.study = check_study(whole, "made-up")
        self.scores = scores
        self.seeds = 4

    def _of(self, world):
        return self.scores.get(world, self.scores)

    def cells(self, world):
        return [cell for cell in self.study.runs() if cell.world.name == world and cell.label in self._of(world)]

    @property
    def worlds(self):
        return [world.name for world in self.study.worlds if self.cells(world.name)]

    @property
    def missing(self):
        pairs = [(cell.world.name, cell.label) for cell in self.study.runs()]
        return [(world, label) for world, label in pairs if label not in self._of(world)]

    @property
    def complete(self):
        return not self.missing and self.seeds >= self.study.seeds

    def picture(self, world):
        return next(each.picture for each in self.study.worlds if each.name == world)

    def metrics(self, world, agent):
        return ["rmsve", "rmsve_inner"] if world.startswith("chain") else ["steps", "reward"]

    def means(self, world, agent, metric):
        return np.array(self._of(world)[agent], dtype=np.float64)

    def curves(self, world, agent, metric):
        """The last episode alone is what was scored; the others are worth 100."""
        scored = self.means(world, agent, metric)
        return np.stack([np.full_like(scored, 100.0), np.full_like(scored, 100.0), scored], axis=1)


def picture_by_name(name):
    """What figures show of one of the paper's worlds, by its name; results that are made up have no others."""
    kind, *rest = name.split("-")
    if kind == "chain":
        return WORLDS["chain"].picture({"levels": tuple(map(int, rest))})
    keys = {"slip": "slip", "reward": "reward_probability"}
    given = {keys[key]: float(value) for key, value in zip(rest[::2], rest[1::2], strict=True)}
    return WORLDS["maze"].picture(given) if kind == "maze" else Picture(name)


class FallingCurves:
    """Results whose curves fall, each agent's by another rate, with a little noise."""

    def __init__(self, worlds, agents, seeds=3, episodes=12):
        self.worlds, self._agents, self.seeds, self.episodes = worlds, agents, seeds, episodes

    def agents(self, world):
        return self._agents

    def picture(self, world):
        return picture_by_name(world)

    def curves(self, world, agent, metric):
        rng = np.random.default_rng([self.worlds.index(world), self._agents.index(agent), len(metric)])
        if metric == "reward":
            return np.ones((self.seeds, self.episodes))
        falling = 400 / (1 + (1 + self._agents.index(agent)) * np.arange(self.episodes))
        noisy = falling * rng.uniform(0.8, 1.2, size=(self.seeds, self.episodes))
        return np.ceil(noisy) if metric == "steps" else noisy

    def diverged(self, world, agent):
        return np.zeros(self.seeds, dtype=np.int64)


class WholeStudy(FallingCurves):
    """Results of a study, which also know their updates.

    In turn agents use up the budget in the first episode, in the 5th, and not at all.
    """

    def __init__(self, study, **size):
        self.study = study
        self._by_world = {}
        for cell in study.runs():
            self._by_world.setdefault(cell.world.build().name, []).append(cell.label)
        everyone = list(dict.fromkeys(agent for agents in self._by_world.values() for agent in agents))
        super().__init__(list(self._by_world), everyone, **size)

    def agents(self, world):
        return self._by_world[world]

    def picture(self, world):
        return next(each.picture for each in self.study.worlds if each.name == world)

    def metrics(self, world, agent):
        return ["rmsve", "rmsve_inner"] if world.startswith("chain") else ["steps", "reward"]

    def means(self, world, agent, metric):
        return self.curves(world, agent, metric).mean(axis=1)

    def updates(self, world, agent):
        limit = scores.budget(self, world) or 1000
        share = (0.05, 0.2, 1.5)[self._agents.index(agent) % 3]
        made = limit * share * np.arange(1, self.episodes + 1) + np.arange(self.seeds)[:, None]
        end = np.where(made >= limit, made, np.inf).min(axis=1, keepdims=True)
        return np.minimum(made, end)

    def seconds(self, world, agent):
        return 1e-3 * (1 + self._agents.index(agent))

    def computed_nanoseconds(self, world, agent):
        return None
