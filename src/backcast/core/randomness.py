"""Random numbers that are the same in Python, in compiled loops and in Gymnasium environments.

A stream is the state of NumPy's PCG64 as four unsigned integers; `uniform` draws from it exactly what
`numpy.random.Generator.random` would. A run has two independent streams, one for the world and one for
the agent, so that agents with the same seed see the same world and, in prediction, the same trajectories.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backcast.core.compiling import kernel
from backcast.core.numerics import high_product
from backcast.core.seeding import generate_states

Stream = NDArray[np.uint64]
PURPOSES = 0, 1, 2  # purposes of an agent's own streams: planning, models, planning forward

_U = np.uint64
_LOWER = _U(2**32 - 1)
_LONG = 64  # outcomes of a row from which it is summed separately
_MULTIPLIER_HIGH, _MULTIPLIER_LOW = _U(2549297995355413924), _U(4865540595714422341)


def layout_generator(seed: int) -> np.random.Generator:
    """The generator of a random world; independent of the two streams of a run with the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))


def streams(seed: int) -> tuple[Stream, Stream]:
    """The streams of the world and of the agent, each (4,): state high and low, increment high and low.

    The world's is that of Gymnasium's `np_random` after `reset(seed=seed)`; the agent's continues the same seed
    sequence.
    """
    world, agent = many_streams([seed])
    return world[0], agent[0]


def many_streams(seeds: Sequence[Any]) -> tuple[Stream, Stream]:
    """The streams of the world and of the agent of each seed, each (seeds, 4)."""
    words = generate_states(seeds, (), 8)
    return _pcg64(words[:, :4]), _pcg64(words[:, 4:])


def imagination(seed: int, purpose: int) -> Stream:
    """The stream of an agent's planning; independent of the world, of its actions, and between purposes."""
    return many_imaginations([seed], purpose)[0]


def many_imaginations(seeds: Sequence[Any], purpose: int) -> Stream:
    """The same of each seed, (seeds, 4)."""
    return _pcg64(generate_states(seeds, (2, purpose), 4))


def _pcg64(words: NDArray[np.uint64]) -> Stream:
    """The states (n, 4) of NumPy's PCG64 when it is seeded with four words each, (n, 4): a state and a sequence.

    Of 128 bits: increment = 2 · sequence + 1, state ← (increment + state) · multiplier + increment.
    """
    high, low, sequence_high, sequence_low = words.T
    step_high, step_low = sequence_high << _U(1) | sequence_low >> _U(63), sequence_low << _U(1) | _U(1)
    high, low = _sum(high, low, step_high, step_low)
    high = high * _MULTIPLIER_LOW + low * _MULTIPLIER_HIGH + _high_products(low, _MULTIPLIER_LOW)
    high, low = _sum(high, low * _MULTIPLIER_LOW, step_high, step_low)
    return np.stack([high, low, step_high, step_low], axis=1)


def _sum(high: Stream, low: Stream, other_high: Stream, other_low: Stream) -> tuple[Stream, Stream]:
    """The sums of numbers of 128 bits, high and low."""
    total = low + other_low
    return high + other_high + (total < low), total


def _high_products(a: Stream, b: np.uint64) -> Stream:
    """The upper 64 bits of the products a · b, from those of their halves."""
    a_low, a_high, b_low, b_high = a & _LOWER, a >> _U(32), b & _LOWER, b >> _U(32)
    middle = a_high * b_low + (a_low * b_low >> _U(32))
    return a_high * b_high + (middle >> _U(32)) + (a_low * b_high + (middle & _LOWER) >> _U(32))


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
    begins, sizes = offset[:-1], np.diff(offset)
    for row in np.flatnonzero(sizes > _LONG):
        whole = cumulative[offset[row] : offset[row + 1]]
        np.cumsum(whole, out=whole)
    begins, sizes = begins[sizes <= _LONG], sizes[sizes <= _LONG]
    for place in range(1, sizes.max(initial=0)):  # in all rows that are this long
        begins, sizes = begins[sizes > place], sizes[sizes > place]
        cumulative[begins + place] += cumulative[begins + place - 1]
    return cumulative
