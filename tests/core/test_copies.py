"""Copies of trees of arrays: what is shared stays shared, and kernels find each of them."""

from typing import NamedTuple

import numpy as np
import pytest

from backcast.core.compiling import kernel
from backcast.core.copies import Copies, Layout, arrays_of, picked, shifted

pytestmark = pytest.mark.interpreted


class Leaf(NamedTuple):
    counts: np.ndarray
    size: int


class Tree(NamedTuple):
    left: Leaf
    right: Leaf
    part_of_left: np.ndarray
    fixed: np.ndarray
    none: np.ndarray


@kernel
def add_numbers(tree, first, last, distance):
    for number in range(first, last):
        each = shifted(tree, number * distance)
        each.left.counts[0] += number
        each.right.counts[1, 1] += 10.0 * number


def a_tree():
    counts, fixed = np.arange(6), np.ones(3)
    fixed.flags.writeable = False
    right = np.zeros((4, 6))[::2, ::3]
    return Tree(Leaf(counts, 6), Leaf(right, 2), counts[2:5], fixed, np.zeros(0))


def test_copies_are_equal_and_apart():
    tree = a_tree()
    copies = Layout(tree).copies(5)
    whole = copies.stacked(copies.first)
    for place in range(5):
        for array, original in zip(arrays_of(picked(whole, place)), arrays_of(tree), strict=True):
            np.testing.assert_array_equal(array, original)
            assert array.dtype == original.dtype
            assert array.strides == original.strides
            assert array.flags.writeable == original.flags.writeable
    picked(whole, 3).left.counts[:] = 7
    assert [int(counts[0]) for counts in whole.left.counts] == [0, 0, 0, 7, 0]
    assert tree.left.counts[0] == 0


def test_what_is_shared_stays_shared():
    copies = Layout(a_tree()).copies(3)
    copies.stacked(copies.first.left.counts)[1, 2] = 99
    assert copies.stacked(copies.first.part_of_left)[:, 0].tolist() == [2, 99, 2]


def test_kernels_find_each_copy():
    copies = Layout(a_tree()).copies(4)
    add_numbers(copies.first, 1, 4, copies.distance)
    assert copies.stacked(copies.first.left.counts)[:, 0].tolist() == [0, 1, 2, 3]
    assert copies.stacked(copies.first.right.counts)[:, 1, 1].tolist() == [0, 10, 20, 30]
    assert copies.stacked(copies.first.right.counts).sum() == 60


def test_one_tree_is_a_copy_of_itself():
    tree = a_tree()
    alone = Copies(tree, 1, 0)
    add_numbers(tree, 0, 1, 0)
    assert picked(alone.stacked(tree), 0).left.size == 6
    assert np.shares_memory(alone.stacked(tree.left.counts), tree.left.counts)
