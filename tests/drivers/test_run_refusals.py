"""What `backcast.agent` and `backcast.run` refuse at the door."""

import gymnasium
import numpy as np
import pytest

import backcast as bc

MAZE = bc.worlds.maze()


AGENT_REFUSALS = [
    (("backwards",), {}, r"kind: 'backwards' given, expected one of td, q, forward.*did you mean 'backward'\?"),
    (("td",), {"frame": "current"}, r"frame: 'current' given, but 'td' does not plan"),
    (("backward",), {"frame": "next"}, r"frame: 'next' given, expected 'previous' \(plan from s\) or 'current'"),
    (("q",), {"learn": False}, r"learn: False given, but 'q' does nothing else"),
    (("backward",), {"learn": "False"}, r"learn: 'False' given, expected True or False"),
    (("td",), {"alpha": 0}, r"alpha: 0 given, expected a step size in \(0, 1\]"),
    (("td",), {"alpha": 1.5}, r"alpha: 1\.5 given"),
    (("td",), {"alpha": float("nan")}, r"alpha: nan given"),
    (("td",), {"alpha": "big"}, r"alpha: 'big' given"),
    (("backward",), {"alpha_model": -1}, r"alpha_model: -1 given"),
    (("backward",), {"alpha_plan": 2.0}, r"alpha_plan: 2\.0 given"),
    (("q",), {"epsilon": 1.2}, r"epsilon: 1\.2 given, expected a probability in \[0, 1\]"),
    (("q",), {"schedule": "cosine"}, r"schedule: 'cosine' given, expected 'linear', 'constant' or 'average'"),
    (("q",), {"alpha": []}, r"alpha: \[\] given"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), AGENT_REFUSALS)
def test_agent_refuses_with_what_is_allowed(arguments, options, message):
    with pytest.raises(bc.InputError, match=message):
        bc.agent(*arguments, **options)


CHAIN = bc.worlds.chain((3, 2))
ENDLESS = bc.worlds.from_mdp(bc.FiniteMDP(np.eye(2)[:, None, :], np.zeros((2, 1)), 0.9, [1, 0]))
TRAP = bc.worlds.from_mdp(
    bc.FiniteMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], np.zeros((3, 1)), 0.9, [1, 0, 0], [False, False, True])
)
RUN_REFUSALS = [
    (lambda: bc.run("maze", bc.agent("q"), 1, 1), r"world: str given, expected a World, made by backcast\.worlds"),
    (lambda: bc.run(MAZE, "q", 1, 1), r"agent: 'q' given, expected one made by backcast\.agent"),
    (lambda: bc.run(MAZE, bc.agent("q"), 0, 1), r"episodes: 0 given, expected a whole number, 1 or more"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 0), r"seeds: 0 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, []), r"seeds: an empty list given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [-1]), r"seeds: -1 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, "12"), r"seeds: '12' given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [[1, -1]]), r"seeds: -1 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [[]]), r"seeds: an empty list given as one of them"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 2.5), r"seeds: 2\.5 given, expected a whole number, 1 or more"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, None), r"seeds: None given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 1, max_steps=2**70), r"max_steps: \d+ given, expected a whole number"),
    (lambda: bc.run(TRAP, bc.agent("td"), 1, 1), r"no episode that comes to state 1 ever ends; give a number"),
    (lambda: bc.train("FrozenLake-v1", bc.agent("q"), 1, 0), r"env: str given, .* as gymnasium\.make makes it"),
    (lambda: bc.train(MAZE, bc.agent("q"), 1, 0), r"env: World given, .*; backcast\.run runs agents in a World"),
    (lambda: bc.train(gymnasium.make("FrozenLake-v1"), bc.agent("q"), 1, -1), r"seed: -1 given"),
    (lambda: bc.worlds.maze(5), r"text: int given, expected the maze as text"),
    (lambda: bc.worlds.maze(slip="0.5"), r"slip: '0\.5' given, expected a probability in \[0, 1\]"),
    (lambda: bc.worlds.maze(max_steps="400"), r"max_steps: '400' given"),
    (lambda: bc.worlds.chain(seed=1.5), r"seed: 1\.5 given, expected a whole number, 0 or more"),
    (lambda: bc.agent(["q"]), r"kind: \['q'\] given"),
    (lambda: bc.agent("q", epsilon=None), r"epsilon: None given"),
    (lambda: bc.run(MAZE, bc.agent("backward"), 1, 1).models[0].predict(48), r"s: 48 given, expected 0 to 47"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [1, 1]), r"seeds: a seed is given twice"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [1, (1, 0)]), r"seeds: a seed is given twice"),  # NumPy pads with 0
    (lambda: bc.run(MAZE, bc.agent("q"), 1, [(0, 1), 2**32]), r"seeds: a seed is given twice"),
    (lambda: bc.agent("q", alpha="0.5"), r"alpha: '0.5' given, expected a step size in \(0, 1\] or a list of them"),
    (lambda: bc.agent("q", epsilon=["0.5", 0.1]), r"epsilon: \['0.5', 0.1\] given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 1, max_steps=0), r"max_steps: 0 given"),
    (lambda: bc.run(MAZE, bc.agent("q"), 1, 1, workers=0), r"workers: 0 given"),
    (lambda: bc.run(MAZE, bc.agent("td"), 1, 1), r"'td' works in prediction worlds, .* control; in control use 'q'"),
    (lambda: bc.run(CHAIN, bc.agent("q"), 1, 1), r"'q' works in control worlds, .* prediction; in prediction use 'td'"),
    (
        lambda: bc.run(MAZE, bc.agent("true-backward"), 1, 1),
        r"the model is tied to a policy.*from_mdp\(mdp, pol",
    ),
    (lambda: bc.run(MAZE, bc.agent("q", alpha=[1.0]), 2, 1), r"alpha: a list of 1 given for 2 episodes"),
    (
        lambda: bc.run(ENDLESS, bc.agent("td"), 1, 1),
        r"max_steps: none given, but in mdp no episode that comes to state 0 ever ends",
    ),
]


@pytest.mark.parametrize(("call", "message"), RUN_REFUSALS)
def test_run_refuses_with_what_is_allowed(call, message):
    with pytest.raises(bc.InputError, match=message):
        call()
