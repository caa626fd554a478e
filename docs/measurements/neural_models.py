"""Backward models by networks against the exact one: python docs/measurements/neural_models.py [SEEDS [MODEL …]].

The maze with slip 0.2, a uniform policy, 20,000 transitions, all of them remembered. Scores are means over seeds, in
brackets the largest or, of valid mass, the smallest. Corrections are those of the same random values for all models:
values that were learned are corrected by almost nothing, and what is relative to that says little.
"""

import sys

import numpy as np

import backcast as bc
from backcast.models.scoring import ModelScore

STEPS = 20_000
MODELS = ("contrastive", "softmax", "generative", "counts")
VIEWS = ("onehot", "pixels")


def agent_of(model: str) -> bc.Agent:
    """An agent that acts at random; what it learns of values does not matter here."""
    random = {"epsilon": 1.0, "epsilon_schedule": "constant", "model": model}
    if model == "counts":
        return bc.agent("backward", **random)
    network = {"network": bc.networks.mlp(64, 64), "memory": STEPS, "candidates": 1, "alpha_model": 0.003}
    return bc.agent("backward", **network, **random)


def scores_of(model: str, view: str, seeds: int, steps: int = STEPS) -> ModelScore:
    """The scores of each seed, (seeds,) each."""
    world = bc.worlds.maze(slip=0.2)
    n_states, n_actions = world.n_states, world.n_actions
    exact = bc.exact.backward(world.mdp, np.full((n_states, n_actions), 1 / n_actions))
    values = np.random.default_rng(5).normal(size=(n_states, n_actions))
    runs = bc.run(world.view(view), agent_of(model), steps=steps, seeds=seeds, workers=1)
    return ModelScore(*np.array([runs.models[seed].score(exact, values) for seed in range(seeds)]).T)


def main(seeds: int = 10, *models: str) -> None:
    """Print a line for each model and view."""
    for model in models or MODELS:
        for view in VIEWS[: 1 if model == "counts" else 2]:
            tv, kl, correction, valid = scores_of(model, view, seeds)
            print(
                f"{model:11} {view:6} tv {tv.mean():.3f} ({tv.max():.3f})  kl {kl.mean():.3f} ({kl.max():.3f})"
                f"  correction {correction.mean():.3f} ({correction.max():.3f})  valid {valid.mean():.3f}"
                f" ({valid.min():.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main(*(int(word) if word.isdigit() else word for word in sys.argv[1:]))
