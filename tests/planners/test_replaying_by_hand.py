"""Dyna, Dyna-Q+, replay and prioritized replay on literal steps, worked out by hand."""

import numpy as np
import pytest

import backcast as bc
from by_hand import walk
from plain_replaying import TWINS

pytestmark = pytest.mark.interpreted

# Draws are followed by hand with these numbers, which NumPy promises to give, whatever stream an agent usually has.
DRAWS = [0.838, 0.084, 0.618, 0.703, 0.246, 0.487, 0.652, 0.948, 0.341, 0.286]


def numpys():
    return np.random.PCG64(np.random.SeedSequence(0, spawn_key=(2,)))


def test_the_numbers_that_are_followed_by_hand():
    np.testing.assert_allclose(np.random.Generator(numpys()).random(len(DRAWS)), DRAWS, atol=5e-4)


class Drawing:
    """An agent whose planner draws these numbers."""

    def __init__(self, *arguments, **options):
        self.agent = bc.agent(*arguments, **options)

    def build(self, setup):
        parts, words = self.agent.build(setup), numpys().state["state"]
        parts.planner.stream[:] = [half for word in (words["state"], words["inc"]) for half in divmod(word, 2**64)]
        return parts


def test_dyna_in_prediction():
    """Each planning update takes two numbers: for the pair, and for what follows it.

    0 → 1 with 2: v(0) = 1; the only pair, the only successor: v(0) = 1.5. 0 → 2 with 6, which ends: v(0) = 3.75; 0 and,
    by 0.703 ≥ 1/2, the second of two successors: v(0) += (6 − 3.75) / 2 makes 4.875. 1 → 2 with 4: v(1) = 2; by 0.246
    the first pair, by 0.487 the first successor: v(0) += (2 + 0.5 · 2 − 4.875) / 2.
    """
    steps = [(0, 0, 2.0, 1, False, True), (0, 0, 6.0, 2, True, True), (1, 0, 4.0, 2, True, True)]
    parts, v = walk(Drawing("dyna", sample=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [3.9375, 2, 0])
    assert parts.updates.tolist() == [3, 3]


def test_dyna_imagines_the_mean_reward_of_what_it_saw():
    steps = [(0, 1, 1.0, 1, False, True), (0, 1, 3.0, 1, False, True)]
    parts, q = walk(bc.agent("dyna", sample=1, learn=False), 3, 2, 0.5, steps, rates=(1.0, 0.1, 1.0, 0.0))
    np.testing.assert_allclose(q, [[0, 2], [0, 0], [0, 0]])
    assert parts.updates.tolist() == [0, 2]


def test_imagined_updates_are_averaged_with_those_before():
    """0 → end earns 2, then 6: the mean is 2, then 4. Imagined with α / n: 2, then 2 + (4 − 2) / 2."""
    steps = [(0, 0, 2.0, 2, True, True), (0, 0, 6.0, 2, True, True)]
    agent = bc.agent("dyna", sample=1, learn=False, schedule="average")
    _, v = walk(agent, 3, 1, 0.5, steps, rates=(1.0, 1.0, 1.0, 0.0))
    assert v[:, 0].tolist() == [3, 0, 0]


def test_dyna_plus():
    """One state with three actions, all of which end in state 1 and earn 0, 2 and what is never found out; κ = 1.

    1. a = 0; drawn: action 2, never tried: √1. 2. a = 0; drawn: 0, just tried: 0 (and a number for what follows it).
    3. a = 0; drawn: 2, back to the same state with value 1: 0.5 · 1 + √3. 4. a = 1; drawn: 0, tried 1 step ago: 0 + √1.
    5. a = 1; drawn: 1, just tried: 2. 6. a = 0; drawn: 1, tried 1 step ago: 2 + √1.
    """
    steps = [(0, a, 2.0 * a, 1, True, True) for a in (0, 0, 0, 1, 1, 0)]
    agent = Drawing("dyna-plus", sample=1, learn=False, bonus=1.0)
    parts, q = walk(agent, 2, 3, 0.5, steps, rates=(1.0, 1.0, 1.0, 0.0))
    np.testing.assert_allclose(q, [[1, 3, 0.5 + np.sqrt(3)], [0, 0, 0]])
    assert parts.updates.tolist() == [0, 6]


@pytest.mark.parametrize("kind", ["replay", "prioritized-replay"])
def test_a_memory_of_one_transition(kind):
    """One learning update and two of the same transition, each half of the way; then the next takes its place.

    0 → 1 with 2: 1, 1.5, 1.75. 1 → 2 with 4, which ends: 2, 3, 3.5. Again 0 → 1, towards 2 + 0.5 · 3.5 = 3.75.
    """
    steps = [(0, 0, 2.0, 1, False, True), (1, 0, 4.0, 2, True, False), (0, 0, 2.0, 1, False, True)]
    parts, v = walk(bc.agent(kind, sample=2, buffer=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [3.75 - 2 / 8, 3.5, 0])
    assert parts.updates.tolist() == [3, 6]


def test_replay_bootstraps_with_the_values_of_now():
    """0 → 1 was remembered when v(1) was 0. By 0.084 the first of two transitions is drawn when v(1) = 2."""
    steps = [(0, 0, 0.0, 1, False, True), (1, 0, 4.0, 2, True, False)]
    _, v = walk(Drawing("replay", sample=1), 3, 1, 0.5, steps)
    np.testing.assert_allclose(v[:, 0], [0.5 * 0.5 * 2, 2, 0])


@pytest.mark.parametrize("kind", TWINS)
def test_an_end_is_remembered_though_the_state_has_a_value(kind):
    """0 → 1 earns 2 and goes on, 1 → 0 earns 4 and ends: q(1, 0) = 4 whatever q(0, 0) is, and q(0, 0) = 2 + 0.5 · 4."""
    steps = [(0, 0, 2.0, 1, False, True), (1, 0, 4.0, 0, True, False)]
    options = {"dyna-plus": {"bonus": 0.0}, "prioritized-replay": {"exponent": 0.0}}.get(kind, {})
    agent = bc.agent(kind, sample=200, learn=False, **options)
    _, q = walk(agent, 3, 2, 0.5, steps, rates=(1.0, 1.0, 1.0, 0.0))
    np.testing.assert_allclose(q[:2, 0], [4, 4])


def test_prioritized_replay():
    """Two places, exponent 1; p = |δ| / ρ + 10⁻⁶ with ρ the largest reward; new transitions get the highest p so far.

    1. 0 → 1 with 2: p = 1; drawn with δ = ρ = 2: v(0) = 1. 2. 1 → 2 with 4, which ends: p = 1, 1; by 0.084 the first:
    δ = 1, v(0) = 1.5. 3. Place 0 anew: p = 1, 1; by 0.618 the second: δ = ρ = 4, v(1) = 2. 4. Place 1 anew: p = 1, 1;
    by 0.703 the second: δ = 2, v(1) = 3. 5. Place 0 anew: p = 1, 1/2; by 0.246 < 2/3 the first: δ = 2 + 0.5 · 3 − 1.5,
    weight w = √(1/2).
    """
    there, end = (0, 0, 2.0, 1, False, True), (1, 0, 4.0, 2, True, False)
    agent = Drawing("prioritized-replay", sample=1, buffer=2, exponent=1.0, learn=False)
    parts, v = walk(agent, 3, 1, 0.5, [there, end, there, end, there])
    w = np.sqrt(0.500001 / 1.000001)
    np.testing.assert_allclose(v[:, 0], [1.5 + 0.5 * w * 2, 3, 0])
    np.testing.assert_allclose(parts.model.sums[4:], [0.500001, 0.500001, 0, 0])
    assert parts.updates.tolist() == [0, 5]


def test_a_bonus_finds_a_shorter_way_that_opened():
    """Greedy agents that know the long way never try the action that has become the shortcut; with a bonus one does."""
    long_way = [(0, 0, 0.0, 1, False, True), (1, 0, 1.0, 2, True, False)]
    tried = {}
    for kind, options in {"dyna": {}, "dyna-plus": {"bonus": 0.05}}.items():
        agent = bc.agent(kind, alpha=0.5, schedule="constant", sample=20, **options)
        _, q = walk(agent, 3, 2, 0.9, long_way * 300)
        tried[kind] = q[0, 1] > q[0, 0]
    assert tried == {"dyna": False, "dyna-plus": True}
