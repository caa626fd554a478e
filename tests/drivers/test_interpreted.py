"""NUMBA_DISABLE_JIT=1: everything runs as plain Python, with the same bits as compiled."""

import hashlib
import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.agents.setup import Setup
from backcast.core import compiling
from backcast.core.compiling import INTERPRETED
from backcast.planners.edges import Uncounted
from backcast.planners.witness import Witness
from backcast.worlds.envs import TableEnv

FEATURES = bc.features.random_binary(d=7, active=3)
# settings that put an agent together from other parts than the default, which are other code
OTHER_PARTS = {
    "forward": [{"model": "counts"}, {"model": "counts", "horizon": 3}, {"sample": 5}, {"model": "counts", "top": 3}],
    "backward": [
        {"model": "counts"},
        {"horizon": 3},
        {"lam": 0.5, "lam_by": "td"},
        {"conditioned": True},
        {"sample": 4},
        {"model": "counts", "sample": 5},
        {"model": "counts", "top": 2, "depth": 2},
        {"model": "counts", "forget": 0.05},
    ],
    "td": [{"horizon": 3}],
    "q": [{"horizon": 3}],
    "sweeping": [{"variant": "peng-williams"}, {"variant": "mcmahan-gordon"}],
    "blend": [{"prior": False}],
    "td-lambda": [{"traces": "replacing"}],
    "q-lambda": [{"traces": "replacing"}],
}
AVERAGES = [  # those whose updates have weights of different kinds
    bc.agent("forward", alpha=0.5, alpha_model=0.7, alpha_plan=0.3, schedule="average"),
    bc.agent("backward", model="counts", alpha=0.5, alpha_plan=0.3, schedule="average"),
    bc.agent("expected-trace", alpha=0.5, alpha_model=0.7, schedule="average"),
    bc.agent("prioritized-replay", alpha=0.5, alpha_plan=0.3, schedule="average"),
    bc.agent("replay", features="onehot", alpha=0.5, alpha_plan=0.3, schedule="average"),
]
OF_FEATURES = {
    "td": [{}],
    "forward": [
        *({}, {"learn_by": "rls"}, {"model": "likelihood"}, {"model": "likelihood", "sample": 2}),
        {"model": "abstract"},
    ],
    "backward": [{}, *({"model": model} for model in ("counts", "naive", "gaussian", "likelihood", "abstract"))],
}
# their parts are all in other agents
AGAIN = {
    "backward,model=counts,sample=5",
    "backward,features=random_binary-7,model=abstract",
    "forward,features=random_binary-7,model=likelihood",
    "expected-trace that averages",
}
# take seconds to compile: `make slow`
COSTLY = {
    "forward,sample=5",
    "backward,lam=0.5,lam_by=td",
    "blend,prior=false",
    "sweeping,variant=peng-williams",
    "sweeping,variant=mcmahan-gordon",
    "replay,features=onehot that averages",
    "prioritized-replay that averages",
    "forward,features=random_binary-7",
    "forward,features=random_binary-7,learn_by=rls",
    "forward,features=random_binary-7,model=abstract",
    "forward,features=random_binary-7,model=likelihood,sample=2",
    "backward,features=random_binary-7,model=likelihood",
    "backward,features=random_binary-7,model=gaussian",
    "backward,features=random_binary-7,model=naive",
    "backward,features=random_binary-7,model=counts",
    "backward,model=counts,top=2,depth=2",
    "backward,horizon=3",
    "forward,model=counts,horizon=3",
    "both",
    "backward,model=counts that averages",
    "forward that averages",
}
AGENTS = {
    agent.name: agent
    for name, kind in KINDS.items()
    if kind.is_builtin
    for settings in [
        *({"alpha": 0.5, "alpha_model": 0.7, "alpha_plan": 0.3} | more for more in [{}, *OTHER_PARTS.get(name, [])]),
        *({"alpha": 0.1, "alpha_model": 0.3, "features": FEATURES} | more for more in OF_FEATURES.get(name, [])),
    ]
    for agent in [bc.agent(name, **settings)]
} | {f"{agent.name} that averages": agent for agent in AVERAGES}


def worlds_of(agent):
    """A world for prediction and one for control, or the one in which the agent works."""
    worlds = bc.worlds.chain((6, 4, 3), seed=0), bc.worlds.maze("..G\n.X.\nS..", 0.3, 0.5)
    return [world for world in worlds if KINDS[agent.kind].only in (None, world.purpose)]


def outcome(agent):
    """A hash of all that seeded runs of an agent leave behind, but for errors: they are summed in any order."""
    found = hashlib.sha256()
    for world in worlds_of(agent):
        runs = bc.run(world, agent, 10, 2, max_steps=50, workers=1)
        for array in (runs.values, runs.steps, runs.reward, np.asarray(runs.updates)):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


@cache
def interpreted():
    """The same of all agents, by a process that compiles nothing."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(INTERPRETED, reason="there is nothing to compare with")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in AGAIN | COSTLY else []) for name in AGENTS]
)
def test_every_agent_has_the_same_bits_interpreted_and_compiled(name):
    assert outcome(AGENTS[name]) == interpreted()[name]


def classes_within(part):
    """The classes of a part and of all parts within it."""
    if not isinstance(part, tuple):
        return set()
    return {type(part)}.union(*map(classes_within, part))


def test_each_of_our_parts_is_in_one_of_these_agents():
    assert AGENTS.keys() >= AGAIN | COSTLY
    built = [
        agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
        for name, agent in AGENTS.items()
        if name not in AGAIN
        for world in worlds_of(agent)
    ]
    ours = {cls for cls in compiling._parts if cls.__module__.startswith("backcast.")}
    ours -= {Uncounted, Witness}  # of no agent of ours, and of those that the lab watches
    of_worlds = {cls for cls in ours if cls.__module__.startswith("backcast.worlds.")}
    assert ours - of_worlds - set().union(*map(classes_within, built)) == set()


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="`tests/conforming.py` has it")
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_is_the_same_stepwise_and_compiled(name):
    for world in worlds_of(AGENTS[name]):
        compiled = bc.run(world, AGENTS[name], 10, [1], max_steps=50)
        stepwise = bc.train(TableEnv(world), AGENTS[name], 10, 1, max_steps=50)
        np.testing.assert_array_equal(compiled.values, stepwise.values)
        np.testing.assert_array_equal(compiled.steps, stepwise.steps)
        np.testing.assert_array_equal(compiled.updates.total, stepwise.updates.total)


if __name__ == "__main__":
    assert INTERPRETED
    print(json.dumps({name: outcome(agent) for name, agent in AGENTS.items()}))
