"""Changes of at most 10⁻⁹ of the largest value that was observed are not worth a place on a queue."""

import pytest

from backcast.planners.queue import NEGLIGIBLE, dequeue, empty_queue, enqueue, note_observed, promote, settle


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize(("change", "first"), [(NEGLIGIBLE, -1), (2 * NEGLIGIBLE, 3)])
def test_only_larger_changes_wait(change, first, unit):
    queue = empty_queue(5)
    note_observed(queue, -unit)
    note_observed(queue, unit / 2)
    settle(queue, 3, change * unit, 1.0)
    assert dequeue(queue) == first
    promote(queue, 3, change * unit)
    assert dequeue(queue) == first


def test_before_anything_but_0_was_observed_any_change_waits_and_no_change_does_not():
    queue = empty_queue(5)
    settle(queue, 3, 0.0, 0.0)
    promote(queue, 3, 0.0)
    assert dequeue(queue) == -1
    promote(queue, 3, 1e-300)
    assert dequeue(queue) == 3


def test_what_has_become_negligible_waits_no_longer_but_a_promotion_lowers_nothing():
    queue = empty_queue(5)
    note_observed(queue, 1.0)
    enqueue(queue, 3, 0.5)
    promote(queue, 3, 0.25)
    promote(queue, 3, NEGLIGIBLE)
    assert queue.priority[3] == 0.5
    settle(queue, 3, NEGLIGIBLE, 1e-9)
    assert dequeue(queue) == -1
