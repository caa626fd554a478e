"""What an agent with a network remembers: the last transitions, in a ring."""

import numpy as np
import pytest

import backcast as bc

pytest.importorskip("jax")
pytestmark = pytest.mark.interpreted  # of other agents: networks are compiled by JAX


@pytest.mark.parametrize(("memory", "every"), [(6, 4), (4, 4), (3, 4), (6, 1)])
def test_a_block_of_transitions_is_remembered_as_one_after_another(memory, every):
    from backcast.agents.neural import Spec
    from backcast.drivers.neural_experience import Experience
    from backcast.drivers.neural_memory import Block
    from backcast.values.neural import Transitions

    agent = bc.agent("q", network=bc.networks.linear(), memory=memory, every=every, target_every=8, batch=2)
    experience = Experience(agent, Spec((2,), 5, 3))
    assert experience.block == every
    at_once = in_turn = experience.nothing()
    for begin in (0, every):
        steps = np.arange(begin, begin + every)
        numbers = steps.astype(np.int32)
        came = Transitions(
            numbers % 5, numbers % 3, np.float32(steps / 2), (numbers + 1) % 5, steps % 4 == 3, steps % 4 == 0
        )
        block = Block(at_once, every)
        for place in range(every):
            s, a, r, s2, ends, first = (each[place] for each in came)
            block.note(place, s, a, r, s2, ends, first)
        at_once = experience.remember_block(at_once, steps[-1], block.transitions)
        for place, step in enumerate(steps):
            in_turn = experience.remember(in_turn, step, Transitions(*(each[place : place + 1] for each in came)))
    for ours, theirs in zip(at_once, in_turn, strict=True):
        np.testing.assert_array_equal(ours, theirs)
