"""A linear network on one-hot observations, with plain gradient steps and no memory, is the tabular agent.

Both take the same steps, for they draw from the same streams, and every value agrees to rounding.
"""

import numpy as np
import pytest

import backcast as bc

pytest.importorskip("jax")

TABLE = {"network": bc.networks.linear(), "optimiser": "sgd", "memory": 0, "precision": "float64"}
RATES = {"alpha": 0.5, "alpha_model": 0.7, "alpha_plan": 0.3}
CHAIN, MAZE = bc.worlds.chain((20, 5, 3), seed=0), bc.worlds.maze(slip=0.2)
EPISODES = {CHAIN.name: 1500, MAZE.name: 120}  # at least 3,000 transitions
USUAL = {"forward": "previous", "backward": "current"}
PLANNING = [
    pytest.param(
        kind,
        world,
        frame,
        learn,
        marks=[] if (world, frame, learn) == (MAZE, USUAL[kind], True) else [pytest.mark.slow],
    )
    for kind in ("forward", "backward")
    for world in (CHAIN, MAZE)
    for frame in ("previous", "current")
    for learn in (True, False)
]


@pytest.mark.parametrize(
    ("kind", "world", "frame", "learn"),
    [("td", CHAIN, None, True), ("q", MAZE, None, True), *PLANNING],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_a_network_that_is_a_table_learns_what_a_table_learns(kind, world, frame, learn):
    rates = RATES if kind in ("forward", "backward") else {"alpha": 0.5}
    ours = bc.run(world, bc.agent(kind, frame, learn, **rates, **TABLE), EPISODES[world.name], [3])
    theirs = bc.run(world, bc.agent(kind, frame, learn, **rates), EPISODES[world.name], [3])
    assert theirs.steps.sum() >= 3000
    assert np.array_equal(ours.steps, theirs.steps)
    assert np.array_equal(ours.reward, theirs.reward)
    assert np.array_equal(ours.updates.by_episode, theirs.updates.by_episode)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-12)
    if ours.rmsve is not None:
        np.testing.assert_allclose(ours.rmsve, theirs.rmsve, rtol=0, atol=1e-12)
        np.testing.assert_allclose(ours.rmsve_inner, theirs.rmsve_inner, rtol=0, atol=1e-12)
    if kind == "backward":
        np.testing.assert_allclose(ours.models[0].joint, theirs.models[0].joint, rtol=0, atol=1e-12)
    if kind == "forward":
        np.testing.assert_allclose(ours.models[0].transition, theirs.models[0].transition, rtol=0, atol=1e-12)
