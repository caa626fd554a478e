"""A priority queue without allocation: a tree of the largest priorities.

Items are the numbers 0 … n − 1 (states or state-action pairs), each at most once on the queue. The largest priority
comes first, and among equal ones the smallest number, so that the order never depends on the history of the tree.
A change moves up the tree only as far as it changes a maximum, at most O(log n); most stop at once. (In a binary heap
items move whenever priorities change, and each move is an unpredictable branch.)

A change is negligible if it is at most 10⁻⁹ of the largest observed value: such changes do not matter, and rounding
errors would otherwise keep a queue busy for ever. With a constant instead, negligibility would depend on the unit of
reward.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import kernel, part

NEGLIGIBLE = 1e-9  # relative to the largest observed value: smaller changes are not queued
NONE = -1.0  # the priority of items that are not queued
_BITS = 3
_WIDTH = 1 << _BITS  # numbers in a cache line


@part
class Queue(NamedTuple):
    """The queued items.

    Attributes:
        priority: first that of each item, `NONE` if it is not queued; then the largest of each 8 items, then the
            largest of each 8 of these, and so on to the largest of all.
        level: where each of these levels begins.
        largest: (1,), the largest absolute value observed.
    """

    priority: Vector
    level: Indices
    largest: Vector


def empty_queue(n: int) -> Queue:
    """An empty queue for the items 0 … n − 1."""
    sizes = [n]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // _WIDTH))
    level = np.cumsum([0] + [-(-size // _WIDTH) * _WIDTH for size in sizes])
    return Queue(np.full(level[-1], NONE), level[:-1], np.zeros(1))


@kernel
def enqueue(queue: Queue, item: int, priority: float) -> None:
    """Set the priority of an item, queued or not."""
    at, largest = item, priority
    for level in range(queue.level.size - 1):
        place = queue.level[level] + at
        old = queue.priority[place]
        if largest == old:
            return
        queue.priority[place] = largest
        at >>= _BITS
        above = queue.priority[queue.level[level + 1] + at]
        if largest < above:
            if old < above:
                return
            largest = _largest(queue, queue.level[level] + (at << _BITS))
    queue.priority[queue.level[-1]] = largest


@kernel
def _largest(queue: Queue, first: int) -> float:
    """The largest priority of eight siblings, in pairs, which avoids a chain of dependent comparisons."""
    of = queue.priority
    a, b = _larger(of[first], of[first + 1]), _larger(of[first + 2], of[first + 3])
    c, d = _larger(of[first + 4], of[first + 5]), _larger(of[first + 6], of[first + 7])
    return _larger(_larger(a, b), _larger(c, d))


@kernel
def _larger(one: float, other: float) -> float:
    return one if one > other else other


@kernel
def withdraw(queue: Queue, item: int) -> None:
    """Remove an item, if it is queued."""
    enqueue(queue, item, NONE)


@kernel
def note_observed(queue: Queue, value: float) -> None:
    """Record an observed value: r + γ V(s') of a real step."""
    queue.largest[0] = max(queue.largest[0], abs(value))


@kernel
def is_negligible(queue: Queue, change: float) -> bool:
    """Whether a change is too small to be queued."""
    return change <= NEGLIGIBLE * queue.largest[0]


@kernel
def promote(queue: Queue, item: int, priority: float) -> None:
    """Raise an item to this priority, unless it is negligible or the item has a larger one."""
    if priority > queue.priority[item] and not is_negligible(queue, priority):
        enqueue(queue, item, priority)


@kernel
def settle(queue: Queue, item: int, change: float, cost: float) -> None:
    """Queue an item with priority change / cost, unless the change is negligible."""
    enqueue(queue, item, NONE if is_negligible(queue, change) else change / cost)


@kernel
def first_priority(queue: Queue) -> float:
    """The largest priority; `NONE` if the queue is empty."""
    return queue.priority[queue.level[-1]]


@kernel
def dequeue(queue: Queue) -> int:
    """Remove and return the first item; −1 if the queue is empty."""
    largest = first_priority(queue)
    if largest == NONE:
        return -1
    first = 0
    for level in range(queue.level.size - 2, -1, -1):
        first <<= _BITS
        begin, chosen = queue.level[level] + first, 0
        for sibling in range(_WIDTH - 1, -1, -1):  # to the end, to avoid a branch
            chosen = sibling if queue.priority[begin + sibling] == largest else chosen
        first += chosen
    withdraw(queue, first)
    return first
