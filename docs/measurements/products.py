"""How long do the products of matrices of one DQN update take? No program can learn in less.

An update evaluates the network for a batch of states and, with the target network, of next states, and multiplies twice
by each weight matrix to go back. Printed are microseconds of one core, in a compiled loop that does nothing else.

    taskset -c 0 python docs/measurements/products.py
"""

import time

import jax

UPDATES, REPEATS = 2_000, 5
SETTINGS = {"64-64, 32 transitions": (32, [4, 64, 64, 2]), "120-84, 128 transitions": (128, [4, 120, 84, 2])}


def microseconds(batch: int, sizes: list[int]) -> float:
    """The products of one update, for layers of these sizes."""
    keys = jax.random.split(jax.random.key(0), len(sizes))
    seen = jax.random.normal(keys[0], (batch, sizes[0]))
    weights = [jax.random.normal(key, (a, b)) / a for key, a, b in zip(keys[1:], sizes[:-1], sizes[1:], strict=True)]

    def update(_: int, weights: list[jax.Array]) -> list[jax.Array]:
        layers, ahead = [seen], 0.99 * seen
        for w in weights:
            layers, ahead = [*layers, layers[-1] @ w], ahead @ w
        back, moved = layers[-1] - ahead, []
        for w, layer in zip(reversed(weights), reversed(layers[:-1]), strict=True):
            moved, back = [w - 1e-6 * (layer.T @ back), *moved], back @ w.T
        return moved

    loop = jax.jit(lambda weights: jax.lax.fori_loop(0, UPDATES, update, weights))
    jax.block_until_ready(loop(weights))  # compiles
    return min(_seconds(loop, weights) for _ in range(REPEATS)) / UPDATES * 1e6


def _seconds(loop, weights) -> float:
    start = time.process_time()
    jax.block_until_ready(loop(weights))
    return time.process_time() - start


if __name__ == "__main__":
    for name, setting in SETTINGS.items():
        print(f"{name}: {microseconds(*setting):.1f} µs")
