"""NumPy's `SeedSequence` for many seeds at once.

The hash of M. E. O'Neill (Developing a seed_seq alternative, 2015), as in NumPy: entropy is mixed into a pool of four
32-bit words, from which the required words are hashed. The factors do not depend on the entropy, so that one operation
serves all seeds. Tests compare it with NumPy's.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Words = NDArray[np.uint32]
_POOL, _HALF, _32 = 4, np.uint32(16), 2**32 - 1
_MIXING, _GENERATING = (0x43B0D7E5, 0x931E8875), (0x8B51F9DD, 0x58F38DED)  # the first factor, and its multiplier
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_FEW = 6  # number of seeds up to which NumPy is faster


def generate_states(seeds: Sequence[Any], key: tuple[int, ...], words: int) -> NDArray[np.uint64]:
    """`SeedSequence(seed, spawn_key=key).generate_state(words, np.uint64)` of each seed, (seeds, words)."""
    if len(seeds) < _FEW or not all(isinstance(seed, int) and seed < 2**64 for seed in seeds):
        each = (np.random.SeedSequence(seed, spawn_key=key).generate_state(words, np.uint64) for seed in seeds)
        return np.stack(list(each))
    given = np.array(seeds, dtype=np.uint64)
    entropy = np.zeros((_POOL, len(seeds)), dtype=np.uint32)
    entropy[0], entropy[1] = given & np.uint64(_32), given >> np.uint64(32)
    pool = _mixed(entropy, key)
    hashed = _hashed(pool[np.arange(2 * words) % _POOL], _factors(*_GENERATING, 2 * words)).astype(np.uint64)
    return (hashed[::2] | hashed[1::2] << np.uint64(32)).T


def _mixed(entropy: _Words, key: tuple[int, ...]) -> _Words:
    """The pool, (4, n), after entropy (4, n) and then each number of the key were mixed into it."""
    factors = _factors(*_MIXING, _POOL * (_POOL + len(key)))
    pool = _hashed(entropy, factors[: _POOL + 1])
    used = _POOL
    for source in range(_POOL):
        others = [place for place in range(_POOL) if place != source]
        pool[others] = _combined(pool[others], _hashed(pool[source], factors[used : used + _POOL]))
        used += _POOL - 1
    for number in key:
        pool = _combined(pool, _hashed(np.uint32(number), factors[used : used + _POOL + 1]))
        used += _POOL
    return pool


@cache
def _factors(first: int, multiplier: int, number: int) -> _Words:
    """The factors of `number` words that are hashed in sequence, and one more; (number + 1, 1)."""
    found = [first]
    for _ in range(number):
        found.append(found[-1] * multiplier & _32)
    return np.array(found, dtype=np.uint32)[:, None]


def _combined(pool: _Words, hashed: _Words) -> _Words:
    """Words of the pool after others were mixed into them, (k, n)."""
    words = _LEFT * pool - _RIGHT * hashed
    return words ^ words >> _HALF


def _hashed(words: Any, factors: _Words) -> _Words:
    """Words (k, n), or one (n,) for all, hashed with factors (k + 1, 1); (k, n)."""
    words = (words ^ factors[:-1]) * factors[1:]
    return words ^ words >> _HALF
