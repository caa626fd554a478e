"""Features, planners and a maze that the tests of linear models have in common."""

import numpy as np

import backcast as bc

MAZE = bc.worlds.maze("S..X\n.X..\n...G", slip=0.3)
PLANNERS = [
    ("forward", {}),
    ("backward", {}),
    ("backward", {"model": "naive"}),
    ("backward", {"model": "gaussian", "buffer": 5, "sample": 2}),
]


def kinds_of_features(n_states, seed=0):
    """One of each kind of features, by name."""
    dense = np.random.default_rng(seed).normal(size=(n_states, 4)) / 2
    dense[0] = 0  # a state without features
    return {
        "onehot": bc.features.onehot(),
        "aggregate": bc.features.aggregate(groups=3),
        "random": bc.features.random_binary(d=7, active=3, seed=seed),
        "tiles": bc.features.tiles(tilings=2, bins=3),
        "dense": bc.features.given(dense),
    }
