"""What the arrows of the lab show: hand-worked changes of a small table."""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.lab.credit import ARROWS, ValueChange, arrows_of, credit_of, signed, successors
from backcast.models import NoModel
from backcast.planners.replay import empty_memory

MODEL = NoModel()


def named(s):
    return f"cell {s}"


def change(how, origin, before, after, model=MODEL):
    return ValueChange(how, origin, np.array(before, dtype=float), np.array(after, dtype=float), model)


def test_backward_planning_spreads_from_one_state_to_many():
    corrected = change("backward", 3, [[0, 0], [1, 0], [0, 0], [5, 5]], [[0, 0.5], [1, 0], [0, -2], [5, 5]])
    assert arrows_of(corrected) == [(3, 2, -2.0), (3, 0, 0.5)]
    credit = credit_of([corrected], named)
    assert credit.arrows == [(3, 2, -2.0), (3, 0, 0.5)]
    assert (credit.more, credit.origins, credit.learned) == (0, [3], [])
    assert credit.words == "Planned backward from cell 3: corrected 2 states, most of all cell 2 by −2."


def test_of_a_state_the_action_that_changed_most_counts():
    corrected = change("backward", 1, [[0, 0], [0, 0]], [[0.25, -0.5], [0, 0]])
    assert arrows_of(corrected) == [(1, 0, -0.5)]
    assert credit_of([corrected], named).words == "Planned backward from cell 1: corrected cell 0 by −0.5."


def test_small_corrections_are_counted_but_not_named():
    corrected = change("backward", 0, [[0]] * 4, [[0], [1], [0.001], [0.002]])
    words = credit_of([corrected], named).words
    assert words == "Planned backward from cell 0: corrected cell 1 by +1. The other 2 changed a little, too."


def test_rounding_is_no_change():
    still = change("backward", 1, [[1e6], [0]], [[1e6 + 1e-9], [0]])
    assert arrows_of(still) == []
    assert credit_of([still], named).words == "Planned backward from cell 1: nothing to correct."


def test_forward_planning_gathers_many_states_into_one():
    world = bc.worlds.chain((1, 3), seed=0)
    (model,) = bc.run(world, bc.agent("forward", model="counts"), episodes=200, seeds=1).models
    known = {s2: (p, float(model.reward[0, 0, s2])) for s2, _, p in model.predict(0)}
    assert set(known) == {1, 2, 3}
    before = 7.0
    pulls = {s2: 0.5 * p * (reward - before) for s2, (p, reward) in known.items()}
    assert min(pulls.values()) < 0 < max(pulls.values())  # one successor raises what another one lowers
    after = before + sum(pulls.values())
    revalued = ValueChange(
        "forward",
        0,
        np.array([[before], [0], [0], [0]]),
        np.array([[after], [0], [0], [0]]),
        model.model,
        lambda pair: 0.5,
    )
    assert {arrow[:2]: arrow[2] for arrow in arrows_of(revalued)} == {
        (s2, 0): pytest.approx(by) for s2, by in pulls.items()
    }
    words = credit_of([revalued], named).words
    assert (
        words == f"Planned forward for cell 0: it changed by {signed(after - before)}, from 3 states that may follow."
    )


def test_a_state_that_nothing_is_known_to_follow_informs_itself_unless_a_softmax_knows_better():
    untried = change("elsewhere", None, [[0], [0]], [[0.5], [0]])
    assert arrows_of(untried) == [(0, 0, 0.5)]
    model = bc.agent("forward").build(Setup(2, 1, 0.9)).model
    unseen = ValueChange("forward", 0, np.zeros((2, 1)), np.array([[0.5], [0]]), model)
    assert arrows_of(unseen) == []
    words = "Planned forward for cell 0: it changed by +0.5, from states never seen to follow it."
    assert credit_of([unseen], named).words == words


def test_sampled_updates_are_spread_over_what_may_follow():
    memory = remembering((0, 0, 1, 1.0), (0, 0, 2, -1.0))
    sampled = change("elsewhere", None, [[0.5], [0], [0]], [[-0.9], [0], [0]], memory)
    assert {(a, b): by for a, b, by in arrows_of(sampled)} == {(1, 0): -0.7, (2, 0): -0.7}
    expected = change("elsewhere", None, [[0.5], [0], [0]], [[0.25], [0], [0]], memory)
    assert {(a, b): by for a, b, by in arrows_of(expected)} == {(1, 0): 0.125, (2, 0): -0.375}


def remembering(*transitions):
    memory = empty_memory(4)
    for place, (s, a, s2, r) in enumerate(transitions):
        memory.s[place], memory.a[place], memory.s2[place], memory.r[place] = s, a, s2, r
    memory.stored[0] = len(transitions)
    return memory


def test_replay_knows_what_followed_from_its_memory():
    memory = remembering((0, 1, 2, 0), (0, 1, 3, 0), (0, 1, 2, 0), (0, 0, 1, 0))
    assert successors(memory, 0, 1) == [(2, pytest.approx(2 / 3)), (3, pytest.approx(1 / 3))]
    assert successors(memory, 1, 0) == []


def test_learning_is_marked_and_not_drawn_as_arrows():
    learned = change("learning", None, [[0], [0]], [[0.5], [0]])
    credit = credit_of([learned, change("elsewhere", None, [[0.5], [0]], [[0.5], [0]])], named)
    assert (credit.arrows, credit.learned) == ([], [(0, 0.5)])
    assert credit.words == "Learned: cell 0 by +0.5."
    assert credit_of([change("learning", None, [[0]], [[0]])], named).words == "Nothing changed."


def test_only_the_largest_arrows_are_sent():
    n = ARROWS + 10
    after = np.r_[0.0, 10.0 + np.arange(n)][:, None]
    credit = credit_of([ValueChange("backward", 0, np.zeros((n + 1, 1)), after, MODEL)], named)
    assert len(credit.arrows) == ARROWS
    assert credit.more == 10
    assert credit.arrows[0] == (0, n, 9.0 + n)


def test_states_that_follow_their_successors_are_informed_by_what_those_have_just_become():
    """0 leads to 1 and 2 alike, 1 to 3: first 1 follows 3, which pays 2, then 0 follows 1. γ is ½."""
    steps = [(0, 0, 1, 0.0), (0, 0, 2, 0.0), (1, 0, 3, 2.0)]
    before, after = [[0], [0], [0], [0]], [[0.5], [2], [0], [0]]
    blended = ValueChange(
        "values", None, np.array(before, float), np.array(after, float), remembering(*steps), discount=0.5, why="So."
    )
    credit = credit_of([blended], named)
    assert credit.arrows == [(3, 1, 2.0), (1, 0, 0.5)]
    assert (credit.more, credit.words) == (0, "So.")


def test_of_a_state_with_a_new_value_the_best_action_counts_and_what_it_is_expected_to_lead_to():
    """Action 1 of state 0 took the place of action 0, which was worth 1: of 3 from state 1 that is 2 more."""
    blended = ValueChange(
        "values", None, np.array([[1.0, 0], [0, 0]]), np.array([[1.0, 3], [0, 0]]), remembering((0, 1, 1, 3.0))
    )
    assert arrows_of(blended) == [(1, 0, 2.0)]
    shrunk = ValueChange("values", None, np.zeros((2, 1)), np.array([[1.5], [0]]), remembering((0, 0, 1, 3.0)))
    assert arrows_of(shrunk) == [(1, 0, 1.5)]
    unknown = ValueChange("values", None, np.zeros((2, 1)), np.array([[0], [1.5]]), remembering((0, 0, 1, 3.0)))
    assert arrows_of(unknown) == [(1, 1, 1.5)]
