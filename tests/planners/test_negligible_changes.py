"""Changes of at most 10⁻⁹ are not worth a place on a queue."""

import pytest

from backcast.planners.queue import NEGLIGIBLE, dequeue, empty_queue, enqueue, promote, settle


@pytest.mark.parametrize(("change", "first"), [(NEGLIGIBLE, -1), (2 * NEGLIGIBLE, 3)])
def test_only_larger_changes_wait(change, first):
    queue = empty_queue(5)
    settle(queue, 3, change, 1.0)
    assert dequeue(queue) == first
    promote(queue, 3, change)
    assert dequeue(queue) == first


def test_what_has_become_negligible_waits_no_longer_but_a_promotion_lowers_nothing():
    queue = empty_queue(5)
    enqueue(queue, 3, 0.5)
    promote(queue, 3, 0.25)
    promote(queue, 3, NEGLIGIBLE)
    assert queue.priority[3] == 0.5
    settle(queue, 3, NEGLIGIBLE, 1e-9)
    assert dequeue(queue) == -1
