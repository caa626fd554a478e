"""A priority queue without allocation: a binary heap that knows where each item stands.

Items are the numbers 0 … n − 1 (states, or pairs of a state and an action), each at most once on the queue. The largest
priority comes first; among equal ones the smallest number, so that the order never depends on how the heap came about.
Every change costs O(log n).
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import kernel, part

NEGLIGIBLE = 1e-9  # changes that are not worth a place on a queue


@part
class Queue(NamedTuple):
    """The items that wait.

    Attributes:
        heap: (n,) the items; those at 2k + 1 and 2k + 2 come after the one at k.
        standing: (n,) where each item stands in the heap; −1 if it does not wait.
        priority: (n,) of each item that waits.
        length: (1,) how many wait.
    """

    heap: Indices
    standing: Indices
    priority: Vector
    length: Indices


def empty_queue(n: int) -> Queue:
    """A queue for the items 0 … n − 1, on which none waits."""
    return Queue(np.zeros(n, dtype=np.int64), np.full(n, -1), np.zeros(n), np.zeros(1, dtype=np.int64))


@kernel
def enqueue(queue: Queue, item: int, priority: float) -> None:
    """Let an item wait with this priority, whether or not it waited with another one."""
    at = queue.standing[item]
    if at < 0:
        at = queue.length[0]
        queue.length[0] = at + 1
    queue.priority[item] = priority
    _stand(queue, item, at)


@kernel
def promote(queue: Queue, item: int, priority: float) -> None:
    """Let an item wait with this priority, unless it is negligible or the item waits with a larger one."""
    if priority > NEGLIGIBLE and (queue.standing[item] < 0 or priority > queue.priority[item]):
        enqueue(queue, item, priority)


@kernel
def settle(queue: Queue, item: int, change: float, cost: float) -> None:
    """Let an item that would change by so much wait with priority change / cost; not at all if that is negligible."""
    if change > NEGLIGIBLE:
        enqueue(queue, item, change / cost)
    else:
        withdraw(queue, item)


@kernel
def dequeue(queue: Queue) -> int:
    """The first item, which waits no longer; −1 if none does."""
    if queue.length[0] == 0:
        return -1
    first = queue.heap[0]
    withdraw(queue, first)
    return first


@kernel
def withdraw(queue: Queue, item: int) -> None:
    """Take an item off, if it waits: the last one of the heap fills the gap."""
    at = queue.standing[item]
    if at < 0:
        return
    queue.standing[item] = -1
    queue.length[0] -= 1
    last = queue.heap[queue.length[0]]
    if last != item:
        _stand(queue, last, at)


@kernel
def _stand(queue: Queue, item: int, gap: int) -> None:
    """Put an item where it belongs, given a gap in a heap that is else in order: up from there, or down."""
    heap, standing, length = queue.heap, queue.standing, queue.length[0]
    while gap > 0:
        above = (gap - 1) >> 1
        if not _comes_before(queue, item, heap[above]):
            break
        heap[gap] = heap[above]
        standing[heap[gap]] = gap
        gap = above
    while 2 * gap + 1 < length:
        below = 2 * gap + 1
        if below + 1 < length and _comes_before(queue, heap[below + 1], heap[below]):
            below += 1
        if not _comes_before(queue, heap[below], item):
            break
        heap[gap] = heap[below]
        standing[heap[gap]] = gap
        gap = below
    heap[gap] = item
    standing[item] = gap


@kernel
def _comes_before(queue: Queue, item: int, other: int) -> bool:
    first, second = queue.priority[item], queue.priority[other]
    return first > second or (first == second and item < other)
