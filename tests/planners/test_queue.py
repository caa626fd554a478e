"""The queue of planners that plan by priority."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backcast.planners.queue import NONE, dequeue, empty_queue, enqueue, note_observed, promote, settle, withdraw
from sweeping_by_hand import drained

pytestmark = pytest.mark.interpreted

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["enqueue", "promote", "settle", "withdraw", "dequeue"]),
        st.integers(0, 9),
        st.sampled_from([0.0, 1e-10, 0.5, 1.0, 1.5, 2.0, 7.0, np.inf]),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(OPERATIONS)
def test_the_queue_against_a_sorted_list(operations):
    queue, waiting = empty_queue(10), {}
    note_observed(queue, 1.0)
    order = lambda: sorted(waiting, key=lambda item: (-waiting[item], item))  # noqa: E731
    for operation, item, number in operations:
        if operation == "enqueue":
            enqueue(queue, item, number)
            waiting[item] = number
        elif operation == "promote":
            promote(queue, item, number)
            if number > 1e-9:
                waiting[item] = max(number, waiting.get(item, 0.0))
        elif operation == "settle":
            settle(queue, item, number, 4.0)
            waiting.pop(item, None)
            if number > 1e-9:
                waiting[item] = number / 4
        elif operation == "withdraw":
            withdraw(queue, item)
            waiting.pop(item, None)
        else:
            first = dequeue(queue)
            assert first == (order() or [-1])[0]
            waiting.pop(first, None)
        expected = [waiting.get(item, NONE) for item in range(10)]
        assert queue.priority.tolist() == [
            *expected,
            *[NONE] * 6,
            max(expected[:8]),
            max(expected[8:]),
            *[NONE] * 6,
            max(expected),
            *[NONE] * 7,
        ]
    expected = order()
    assert drained(queue) == expected


def test_a_thousand_items_come_out_in_order():
    rng = np.random.default_rng(0)
    queue, priority = empty_queue(1000), rng.integers(0, 300, 1000).astype(float)
    for item in rng.permutation(1000):
        enqueue(queue, item, rng.random())
    for item in rng.permutation(1000):
        enqueue(queue, item, priority[item])
    assert drained(queue) == sorted(range(1000), key=lambda item: (-priority[item], item))
