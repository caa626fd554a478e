"""Ways of several steps through a memory: over the end of an episode, as in the exact theory."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX


@pytest.fixture(autouse=True)
def _with_64_bits():
    from backcast.networks.backend import require_jax, wide

    require_jax()
    with wide():
        yield


GAMMA = 0.5
S, A, R, S2 = [0, 1, 0], [0, 1, 1], [1.0, 2.0, 3.0], [1, 2, 1]  # 0 → 1 → 2, which ends; then 0 → 1


def memory(ends=(False, True, False), first=(True, False, True)):
    import jax.numpy as jnp

    from backcast.drivers.neural_memory import packed
    from backcast.values.neural import Transitions

    roll = [np.roll(each, 2) for each in (S, A, R, S2, ends, first)]  # the ring begins at place 2 of 3
    return packed(Transitions(*map(jnp.asarray, roll)))


def way(age, to_start, steps, **more):
    """One way: s̃, ã, the reward, s, and what is carried; None if it does not count."""
    import jax.numpy as jnp

    from backcast.drivers.neural_ways import look_back

    back = jax.jit(look_back, static_argnames="steps")
    found = back(memory(**more), 1, 3, jnp.array([age]), jnp.array([to_start]), steps, GAMMA)
    *entries, weight = (each[0].item() for each in found)
    return tuple(entries) if weight else None


@pytest.mark.parametrize(
    ("age", "to_start", "steps", "expected"),
    [
        (0, False, 1, (0, 1, 3.0, 1, 1.0)),
        (1, False, 1, (1, 1, 2.0, 2, 0.0)),
        (1, False, 2, (0, 0, 1 + GAMMA * 2, 2, 0.0)),
        (0, False, 2, None),  # it begins with the restart
        (0, False, 3, (1, 1, 2.0, 1, 0.0)),
        (0, False, 4, (0, 0, 1 + GAMMA * 2, 1, 0.0)),
        (0, True, 1, None),
        (0, True, 2, (1, 1, 2.0, 0, 0.0)),
        (0, False, 5, None),  # nobody remembers what was before
        (2, False, 2, None),
    ],
)
def test_a_way_is_looked_back_along(age, to_start, steps, expected):
    assert way(age, to_start, steps) == (None if expected is None else pytest.approx(expected))


def test_a_truncated_episode_ends_the_trajectory():
    cut = (False, False, False)
    assert way(0, False, 1, ends=cut) == (0, 1, 3.0, 1, 1.0)
    assert way(0, False, 3, ends=cut) is None
    assert way(1, False, 2, ends=cut) == (0, 0, 1 + GAMMA * 2, 2, 1.0)


def test_arrivals_by_steps_and_by_restarts_count_alike():
    import jax.numpy as jnp

    from backcast.drivers.neural_ways import draw_ways

    size, key = 6000, jax.random.key(0)
    ways = draw_ways(memory(), jnp.int64(1), jnp.int64(3), size, 2, GAMMA, key)
    weight, arrived = np.asarray(ways.weight), np.asarray(ways.s2)
    # of four arrivals (1, 2, 0 by the restart, 1) two are two steps from a pair, each as often as the other
    assert np.unique(arrived[weight > 0]).tolist() == [0, 2]
    for s in (0, 2):
        assert weight[arrived == s].sum() / size == pytest.approx(1 / 3, abs=0.03)
