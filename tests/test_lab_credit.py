"""What the arrows of the lab show: hand-worked changes of a small table."""

import numpy as np
import pytest

import backcast as bc
from backcast.lab.credit import ARROWS, Change, arrows_of, credit_of, successors
from backcast.models import NoModel
from backcast.planners.replay import empty_memory

MODEL = NoModel()


def named(s):
    return f"cell {s}"


def change(how, origins, before, after, model=MODEL):
    return Change(how, origins, np.array(before, dtype=float), np.array(after, dtype=float), model)


def test_backward_planning_spreads_from_one_state_to_many():
    corrected = change("backward", (3,), [[0, 0], [1, 0], [0, 0], [5, 5]], [[0, 0.5], [1, 0], [0, -2], [5, 5]])
    assert arrows_of(corrected) == [(3, 2, -2.0), (3, 0, 0.5)]
    credit = credit_of([corrected], named)
    assert credit.arrows == [(3, 2, -2.0), (3, 0, 0.5)]
    assert (credit.more, credit.origins, credit.learned) == (0, [3], [])
    assert credit.words == "Planned backward from cell 3: corrected 2 states, most of all cell 2 by −2."


def test_of_a_state_the_action_that_changed_most_counts():
    corrected = change("backward", (1,), [[0, 0], [0, 0]], [[0.25, -0.5], [0, 0]])
    assert arrows_of(corrected) == [(1, 0, -0.5)]
    assert credit_of([corrected], named).words == "Planned backward from cell 1: corrected cell 0 by −0.5."


def test_small_corrections_are_counted_but_not_named():
    corrected = change("backward", (0,), [[0]] * 4, [[0], [1], [0.001], [0.002]])
    words = credit_of([corrected], named).words
    assert words == "Planned backward from cell 0: corrected cell 1 by +1. The other 2 moved a little, too."


def test_rounding_is_no_change():
    still = change("backward", (1,), [[1e6], [0]], [[1e6 + 1e-9], [0]])
    assert arrows_of(still) == []
    assert credit_of([still], named).words == "Planned backward from cell 1: nothing to correct."


def test_forward_planning_gathers_many_states_into_one():
    world = bc.worlds.chain((1, 3), seed=0)
    (model,) = bc.run(world, bc.agent("forward", model="counts"), episodes=200, seeds=1).models
    chances = {s2: p for s2, _, p in model.predict(0)}
    assert set(chances) == {1, 2, 3}
    revalued = change("forward", (0,), [[0]] * 4, [[8], [0], [0], [0]], model.model)
    assert {(origin, s): by for origin, s, by in arrows_of(revalued)} == {
        (s2, 0): pytest.approx(8 * p) for s2, p in chances.items()
    }
    expected = "Planned forward for cell 0: it changed by +8, from 3 states that may follow."
    assert credit_of([revalued], named).words == expected


def test_where_two_states_were_planned_from_each_correction_comes_from_the_one_it_leads_to():
    agent = bc.agent("backward", frame="previous", learn=False, model="counts")
    (model,) = bc.run(bc.worlds.chain((2, 2, 2), seed=3), agent, episodes=50, seeds=1).models
    assert 1 in model.predict(2).states
    assert 2 in model.predict(4).states
    after = np.zeros((6, 1))
    after[[1, 2]] = [[1.0], [2.0]]
    assert set(arrows_of(Change("backward", (2, 4), np.zeros((6, 1)), after, model.model))) == {
        (2, 1, 1.0),
        (4, 2, 2.0),
    }


def test_replay_knows_what_followed_from_its_memory():
    memory = empty_memory(4)
    for place, (s, a, s2) in enumerate([(0, 1, 2), (0, 1, 3), (0, 1, 2), (0, 0, 1)]):
        memory.s[place], memory.a[place], memory.s2[place] = s, a, s2
    memory.stored[0] = 4
    assert successors(memory, 0, 1, 4, 2) == [(2, pytest.approx(2 / 3)), (3, pytest.approx(1 / 3))]
    assert successors(memory, 1, 0, 4, 2) == []


def test_learning_is_marked_and_not_drawn_as_arrows():
    learned = change("learning", (0,), [[0], [0]], [[0.5], [0]])
    credit = credit_of([learned, change("elsewhere", (), [[0.5], [0]], [[0.5], [0]])], named)
    assert (credit.arrows, credit.learned) == ([], [(0, 0.5)])
    assert credit.words == "Learned: cell 0 by +0.5."
    assert credit_of([change("learning", (0,), [[0]], [[0]])], named).words == "Nothing changed."


def test_only_the_largest_arrows_are_sent():
    n = ARROWS + 10
    after = np.arange(n + 1, dtype=float)[:, None]
    credit = credit_of([Change("backward", (0,), np.zeros((n + 1, 1)), after, MODEL)], named)
    assert len(credit.arrows) == ARROWS
    assert credit.more == 10
    assert credit.arrows[0] == (0, n, float(n))
