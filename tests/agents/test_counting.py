"""Every kind counts its value updates by one rule: an update is an entry of a table that is written.

Tables are the agent's values and what a planner expects of each pair, if it keeps that beside them. The two entries of
a real step's own pair, q(s, a) and E(s, a), count once. Here arrays notice what is written into them.
"""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, finish, observe
from backcast.planners.edges import edges_touched
from backcast.values.table import TableValues
from random_worlds import random_steps
from sweeping_by_hand import walk

pytestmark = pytest.mark.interpreted

RATES = np.full(4, 0.5)
WORLDS = {
    "prediction": bc.worlds.chain((6, 5, 4), seed=1),
    "control": bc.worlds.maze("..G.\n.X..\nS..X", slip=0.5, reward_probability=0.5),
}
VARIANTS = {
    "td": [{"horizon": 3}],
    "q": [{"horizon": 3}],
    "sarsa": [{"horizon": 3}],
    "forward": [{"model": "counts"}, {"model": "counts", "top": 2}, {"sample": 3}, {"learn": False, "model": "counts"}],
    "backward": [
        {"model": "counts"},
        {"model": "counts", "top": 2},
        {"model": "counts", "sample": 3},
        {"model": "counts", "depth": 2},
        {"conditioned": True},
        {"frame": "previous", "learn": False},
    ],
    "sweeping": [
        {"variant": variant, "learn": learn}
        for variant in ("moore-atkeson", "peng-williams", "mcmahan-gordon")
        for learn in (True, False)
    ],
    "small-backups": [{"sample": 1}],
    "certainty-equivalence": [{"learn": False}],
    "td-lambda": [{"traces": "replacing"}],
    "q-lambda": [{"traces": "replacing"}],
    "blend": [{"prior": False}, {"gate": 0.0}, {"sample": 0}],
}
OWN = [kind for kind, entry in KINDS.items() if entry.is_builtin]
CASES = [(kind, settings) for kind in OWN for settings in [{}, *VARIANTS.get(kind, [])]]


class Watched(np.ndarray):
    """An array that notes the places that are written one at a time."""

    def __setitem__(self, place, value):
        self.written.append(int(place))
        super().__setitem__(place, value)


def watched(array):
    array = array.view(Watched)
    array.written = []
    return array


class Tables:
    """An agent whose tables are watched: its values, and what its planner expects of pairs."""

    def __init__(self, agent, setup):
        parts, self.learns = agent.build(setup), agent.learn
        self.shown, self.maps = watched(parts.values.u), watched(parts.values.affine)
        self.beside = watched(np.zeros(0))
        planner, expected = parts.planner, getattr(parts.planner, "expected", None)
        if isinstance(expected, TableValues):
            self.beside = watched(expected.u)
            planner = planner._replace(expected=expected._replace(u=self.beside))
        elif expected is not None:
            self.beside = watched(expected)
            planner = planner._replace(expected=self.beside)
        self.parts = parts._replace(values=parts.values._replace(u=self.shown, affine=self.maps), planner=planner)

    def written(self, own):
        """How many entries were written since the last call; `own` is the pair of a real step, if there was one.

        A map of the whole table writes all entries, and those that are put right afterwards are among them.
        """
        maps = self.maps.written.count(1)
        shown = self.shown.size * maps + (0 if maps else len(self.shown.written))
        if maps and own is not None:
            shown += self.learns
        beside = len(self.beside.written)
        if own in self.shown.written and own in self.beside.written:
            beside -= 1
        for array in (self.shown, self.maps, self.beside):
            array.written.clear()
        return shown + beside


@pytest.mark.parametrize(("kind", "settings"), CASES, ids=lambda given: given if isinstance(given, str) else str(given))
@pytest.mark.parametrize("purpose", WORLDS)
def test_an_update_is_an_entry_that_is_written(purpose, kind, settings):
    if KINDS[kind].only not in (None, purpose):
        pytest.skip(f"{kind} is for {KINDS[kind].only}")
    world = WORLDS[purpose]
    tables = Tables(bc.agent(kind, **settings), Setup(world.n_states, world.n_actions, world.discount, world))
    parts, counted, total = tables.parts, 0, 0
    for step in random_steps(world, np.random.default_rng(0), 300, cut=0.0):
        own = step[0] * world.n_actions + step[1]
        if step[5]:
            begin(parts, RATES, step[0])
            total += tables.written(None)
        observe(parts, RATES, *step)
        total += tables.written(own)
        if step[4]:
            finish(parts, RATES, step[3], True)
            total += tables.written(None)
        assert parts.updates.sum() - counted == total, f"{kind}: after {step}"
        counted, total = parts.updates.sum(), 0
    assert counted > 0


STEPS = [(0, 0, 0, 1, False), (0, 0, 1, 2, True), (1, 0, 4, 2, True), (0, 0, 0, 1, False)]
EDGES = {
    "td": ({}, 0),  # nothing is planned
    "forward-sampled": ({"kind": "forward", "model": "counts", "sample": 3}, 12),  # three outcomes after each step
    "dyna": ({"sample": 2}, 8),  # two outcomes after each of four steps
    "replay": ({"sample": 2}, 8),
    "forward": ({"model": "counts"}, 1 + 2 + 1 + 2),  # all that is known to follow s
    "backward": ({"model": "counts"}, 1 + 1 + 2 + 1),  # all that is known to lead to s'
    "backward-features": ({"kind": "backward", "model": "counts", "features": np.eye(3)}, 1 + 1 + 2 + 1),
    "small-backups": ({"sample": 1}, 1),  # v(1) = 4 is news for 0; nothing leads to 0
    "sweeping": ({"sample": 1}, 1),
    "certainty-equivalence": ({"learn": False}, 2 * 2 + 2 * 3),  # two sweeps after each end
    "blend": ({"prior": False, "gate": 0.0, "sample": 1}, 1 + 2 + 1 + 2 + 1),  # what follows s, and news for 0
}


@pytest.mark.parametrize("kind", EDGES)
def test_edges_are_the_transitions_that_planning_looks_at(kind):
    """0 leads to 1 or to the end 2, and 1 to the end."""
    settings, touched = EDGES[kind]
    parts, _ = walk(bc.agent(**{"kind": kind} | settings), 3, 1, 0.5, STEPS)
    assert edges_touched(parts.planner) == touched


def test_runs_report_edges_beside_updates(tmp_path):
    world = bc.worlds.chain((4, 3), seed=0)
    runs = bc.run(world, bc.agent("dyna", sample=3), 5, 2)
    assert runs.updates.edges.tolist() == (3 * runs.steps.sum(axis=1)).tolist()
    assert bc.run(world, bc.agent("td"), 5, 2).updates.edges.tolist() == [0, 0]
    both = bc.run(world, bc.agent("both", model="counts"), 5, 2).updates.edges
    apart = [bc.run(world, bc.agent(kind, model="counts"), 5, 2).updates.edges for kind in ("forward", "backward")]
    assert both.tolist() == sum(apart).tolist()
    runs.save(tmp_path / "runs.npz")
    assert type(runs).load(tmp_path / "runs.npz").updates.edges.tolist() == runs.updates.edges.tolist()
    older = {name: array for name, array in np.load(tmp_path / "runs.npz").items() if name != "edges"}
    np.savez(tmp_path / "older.npz", **older)
    assert type(runs).load(tmp_path / "older.npz").updates.edges.tolist() == [0, 0]
