"""A priority queue without allocation: a tree of the largest priorities.

Items are the numbers 0 … n − 1 (states, or pairs of a state and an action), each at most once on the queue. The largest
priority comes first; among equal ones the smallest number, so that the order never depends on how the tree came about.
A change goes up the tree only as far as it changes a largest priority, at most O(log n); most stop at once. (In a
binary heap items move whenever priorities change, and each move is a branch that nobody can foresee.)

A change is negligible if it is 10⁻⁹ of the largest value that was observed, or less: such changes are too small to
matter, and rounding errors would otherwise keep a queue busy for ever. Compared with a constant, what is negligible
would depend on the unit of reward.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import kernel, part

NEGLIGIBLE = 1e-9  # of the largest value that was observed: changes that are not worth a place on a queue
NONE = -1.0  # the priority of what does not wait
_BITS = 3
_WIDTH = 1 << _BITS  # numbers in a cache line


@part
class Queue(NamedTuple):
    """The items that wait.

    Attributes:
        priority: first that of each item, `NONE` if it does not wait; then the largest of each 8 items, then the
            largest of each 8 of these, and so on to the largest of all.
        level: where each of these levels begins.
        largest: (1,) the largest absolute value that was observed.
    """

    priority: Vector
    level: Indices
    largest: Vector


def empty_queue(n: int) -> Queue:
    """A queue for the items 0 … n − 1, on which none waits."""
    sizes = [n]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // _WIDTH))
    level = np.cumsum([0] + [-(-size // _WIDTH) * _WIDTH for size in sizes])
    return Queue(np.full(level[-1], NONE), level[:-1], np.zeros(1))


@kernel
def enqueue(queue: Queue, item: int, priority: float) -> None:
    """Let an item wait with this priority, whether or not it waited with another one."""
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
    """The largest priority of eight siblings, in pairs: one after the other would wait for each."""
    of = queue.priority
    a, b = _larger(of[first], of[first + 1]), _larger(of[first + 2], of[first + 3])
    c, d = _larger(of[first + 4], of[first + 5]), _larger(of[first + 6], of[first + 7])
    return _larger(_larger(a, b), _larger(c, d))


@kernel
def _larger(one: float, other: float) -> float:
    return one if one > other else other


@kernel
def withdraw(queue: Queue, item: int) -> None:
    """Take an item off, if it waits."""
    enqueue(queue, item, NONE)


@kernel
def note_observed(queue: Queue, value: float) -> None:
    """A value was observed: r + γ V(s') of a real step."""
    queue.largest[0] = max(queue.largest[0], abs(value))


@kernel
def is_negligible(queue: Queue, change: float) -> bool:
    """Whether a change is not worth a place on the queue."""
    return change <= NEGLIGIBLE * queue.largest[0]


@kernel
def promote(queue: Queue, item: int, priority: float) -> None:
    """Let an item wait with this priority, unless it is negligible or the item waits with a larger one."""
    if priority > queue.priority[item] and not is_negligible(queue, priority):
        enqueue(queue, item, priority)


@kernel
def settle(queue: Queue, item: int, change: float, cost: float) -> None:
    """Let an item that would change by so much wait with priority change / cost; not at all if that is negligible."""
    enqueue(queue, item, NONE if is_negligible(queue, change) else change / cost)


@kernel
def first_priority(queue: Queue) -> float:
    """The largest priority; `NONE` if nothing waits."""
    return queue.priority[queue.level[-1]]


@kernel
def dequeue(queue: Queue) -> int:
    """The first item, which waits no longer; −1 if none does."""
    largest = first_priority(queue)
    if largest == NONE:
        return -1
    first = 0
    for level in range(queue.level.size - 2, -1, -1):
        first <<= _BITS
        begin, chosen = queue.level[level] + first, 0
        for sibling in range(_WIDTH - 1, -1, -1):  # to the end, without a branch
            chosen = sibling if queue.priority[begin + sibling] == largest else chosen
        first += chosen
    withdraw(queue, first)
    return first
