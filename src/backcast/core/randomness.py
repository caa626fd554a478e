"""Random numbers that are the same in Python, in compiled loops and in Gymnasium environments.

A stream is the state of NumPy's PCG64 as four unsigned integers; `uniform` draws from it exactly what
`numpy.random.Generator.random` would. A run has two independent streams, one for what happens in the world and one for
what the agent decides, so that agents with the same seed see the same world and, in prediction, the same trajectories.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from backcast.core.compiling import kernel
from backcast.core.numerics import high_product

Stream = NDArray[np.uint64]

_U = np.uint64
_64, _128 = 2**64 - 1, 2**128 - 1
_MULTIPLIER = 2549297995355413924 << 64 | 4865540595714422341
_MULTIPLIER_HIGH, _MULTIPLIER_LOW = _U(_MULTIPLIER >> 64), _U(_MULTIPLIER & _64)


def layout_generator(seed: int) -> np.random.Generator:
    """What a random world looks like; independent of the two streams of a run with the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))


def streams(seed: int) -> tuple[Stream, Stream]:
    """The streams of the world and of the agent, each (4,): state high and low, increment high and low.

    The world's is that of Gymnasium's `np_random` after `reset(seed=seed)`; the agent's continues the same seed
    sequence.
    """
    words = np.random.SeedSequence(seed).generate_state(8, np.uint64).tolist()
    return _pcg64(*words[:4]), _pcg64(*words[4:])


def imagination(seed: int, purpose: int) -> Stream:
    """What an agent imagines; independent of what happens to it, of what it does, and between purposes."""
    return _pcg64(*np.random.SeedSequence(seed, spawn_key=(2, purpose)).generate_state(4, np.uint64).tolist())


def _pcg64(first: int, second: int, third: int, fourth: int) -> Stream:
    """The state of NumPy's PCG64 when it is seeded with four words."""
    increment = ((third << 64 | fourth) << 1 | 1) & _128
    state = (increment + (first << 64 | second)) * _MULTIPLIER + increment & _128
    return np.array([state >> 64, state & _64, increment >> 64, increment & _64], dtype=np.uint64)


@partial(kernel, overflows=True)
def uniform(stream: Stream) -> float:
    """The next number in [0, 1) of the stream (4,), which advances."""
    high, low = stream[0], stream[1]
    # 128-bit state ← state · multiplier + increment
    next_low = low * _MULTIPLIER_LOW
    next_high = high * _MULTIPLIER_LOW + low * _MULTIPLIER_HIGH + high_product(low, _MULTIPLIER_LOW)
    low = next_low + stream[3]
    high = next_high + stream[2] + (_U(1) if low < next_low else _U(0))
    stream[0], stream[1] = high, low
    mixed, rotation = high ^ low, high >> _U(58)
    mixed = (mixed >> rotation) | (mixed << ((_U(64) - rotation) & _U(63)))
    return (mixed >> _U(11)) * (1.0 / 9007199254740992.0)


@kernel
def pick(cumulative: NDArray[np.float64], first: int, last: int, u: float) -> int:
    """The first index in [first, last) whose cumulative probability exceeds u; the last one if none does."""
    low, high = first, last - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


def cumulative_in_rows(probability: NDArray[np.float64], offset: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cumulative probabilities within each row; row i is offset[i] … offset[i + 1] − 1."""
    cumulative = np.array(probability, dtype=np.float64)
    _accumulate(cumulative, offset)
    return cumulative


@kernel
def _accumulate(values: NDArray[np.float64], offset: NDArray[np.int64]) -> None:
    for row in range(offset.size - 1):
        for k in range(offset[row] + 1, offset[row + 1]):
            values[k] += values[k - 1]
