"""Rows of traces are lists: what is dropped leaves a gap, which the last one fills."""

import numpy as np
import pytest

from backcast.learners.traces import SMALLEST, no_traces


def listed(traces, row):
    """The traces of a row by pair, read in two ways that must agree."""
    places = range(row * traces.width, row * traces.width + traces.used[row])
    found = {int(traces.key[k]): float(traces.weight[k]) for k in places}
    for key in range(traces.width):
        where = traces.where[row * traces.width + key]
        assert (where > 0) == (key in found)
        if where:
            assert traces.key[row * traces.width + where - 1] == key
    return found


def filled(row):
    """Rows of five pairs; in one of them 4, 1, 3 and 0 have traces, and the rows beside it have that of 1."""
    traces = no_traces(3, 5)
    for key, weight in [(4, 1.0), (1, 1e-7), (3, 0.5), (0, 1e-6)]:
        traces.weight[traces.place_of(row, key)] = weight
    for other in {0, 1, 2} - {row}:
        traces.weight[traces.place_of(other, 1)] = 0.125
    return traces


@pytest.mark.parametrize("row", [0, 1, 2])
def test_small_traces_are_dropped_and_the_others_fade(row):
    traces = filled(row)
    traces.fade(row, 0.01)
    assert listed(traces, row) == pytest.approx({4: 0.01, 3: 0.005, 0: 1e-8})  # 10⁻⁹ is too small, 10⁻⁸ just not
    traces.weight[traces.place_of(row, 0)] += 1.0  # where the last one was moved to
    traces.weight[traces.place_of(row, 1)] = 2.0
    assert listed(traces, row) == pytest.approx({4: 0.01, 3: 0.005, 0: 1.0 + 1e-8, 1: 2.0})
    for other in {0, 1, 2} - {row}:
        assert listed(traces, other) == {1: 0.125}


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_row_is_wiped_alone(row):
    traces = filled(row)
    traces.wipe(row)
    assert [listed(traces, k) for k in range(3)] == [{} if k == row else {1: 0.125} for k in range(3)]


@pytest.mark.parametrize("row", [0, 1, 2])
def test_states_are_forgotten_in_all_rows(row):
    """With two actions pairs 0 and 1 belong to state 0, pair 4 to state 2."""
    traces = filled(row)
    traces.forget_states(np.array([0, 2]), 2)
    assert [listed(traces, k) for k in range(3)] == [{3: 0.5} if k == row else {} for k in range(3)]


@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_last_of_a_row_stays_if_its_state_does(row):
    """With two actions pair 3 belongs to state 1, and pair 0, the last of the row, to state 0."""
    traces = filled(row)
    traces.forget_states(np.array([1, 2]), 2)
    assert listed(traces, row) == {1: 1e-7, 0: 1e-6}


def test_nothing_is_left_of_traces_that_all_fade():
    traces = filled(1)
    traces.fade(1, SMALLEST / 2)
    assert listed(traces, 1) == {}
