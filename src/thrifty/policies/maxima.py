"""The largest of K numbers of which one changes at a time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.compiled import builder, index, kernel, record


@builder
def build_tree(n_leaves, value):
    """A tree of maxima over `n_leaves` leaves of the same value, padded with -inf to a power of two.

    Node n holds the larger of nodes 2n and 2n + 1; leaf i is node size + i, and node 1 is the maximum of all.
    """
    size = 1
    while size < n_leaves:
        size *= 2
    tree = np.full(2 * size, -np.inf)
    tree[size : size + n_leaves] = value
    for node in range(size - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])
    return tree


@kernel
def set_leaf(tree, leaf, value):
    """Change one leaf and the maxima above it that depend on it."""
    node = index(tree.size // 2 + leaf)
    tree[node] = value
    while node > 1:
        sibling = tree[node ^ 1]
        value = value if value >= sibling else sibling
        node >>= 1
        if tree[node] == value:
            break
        tree[node] = value


@kernel
def first_leaf_from(tree, start, value):
    """The first leaf at or after `start` whose value is at least `value`; there is one."""
    size = tree.size // 2
    node = index(size + start)
    while tree[node] < value:  # to the next subtree on the right
        while node & 1:
            node >>= 1
        node += 1
    while node < size:
        node = 2 * node + (tree[2 * node] < value)
    return node - size


@kernel
def largest_between(tree, start, stop):
    """The largest value of leaves start..stop-1; -inf when there are none."""
    size = tree.size // 2
    largest = -np.inf
    left, right = index(size + start), index(size + stop)
    while left < right:
        if left & 1:
            largest = max(largest, tree[left])
            left += 1
        if right & 1:
            right -= 1
            largest = max(largest, tree[right])
        left >>= 1
        right >>= 1
    return largest


_Apart = record(
    [
        ("which", np.int64),  # the number that stands apart, or -1
        ("value", np.float64),  # its value, or -inf
        ("latest", np.int64),  # the last number that changed in the tree: when it changes again, it is to stand apart
    ]
)


class Maximum(NamedTuple):
    """K numbers and the largest of them. One that changes again and again stands apart, so that changing it takes O(1)."""

    apart: NDArray[np.void]  # one record
    tree: Floats  # of maxima over all the others; the leaf of the one apart is -inf


@builder
def build_maximum(n, value):
    """`n` numbers that are all `value`."""
    apart = np.zeros(1, _Apart)
    apart[0].which = apart[0].latest = -1
    apart[0].value = -np.inf
    return Maximum(apart, build_tree(n, value))


@kernel
def change(numbers, which, value):
    """Give number `which` a new value."""
    apart = numbers.apart[0]
    if which != apart.which:
        if which != apart.latest:
            apart.latest = which
            set_leaf(numbers.tree, which, value)
            return
        join(numbers)
        set_leaf(numbers.tree, which, -np.inf)
        apart.which = which
    apart.value = value


@kernel
def join(numbers):
    """Put the number that stands apart back into the tree, which then holds all of them."""
    apart = numbers.apart[0]
    if apart.which >= 0:
        set_leaf(numbers.tree, index(apart.which), apart.value)
        apart.which = -1
        apart.value = -np.inf


@kernel
def largest(numbers):
    """The largest of the numbers."""
    return max(numbers.apart[0].value, numbers.tree[1])


@kernel
def value_of(numbers, which):
    """The value of number `which`."""
    apart = numbers.apart[0]
    return apart.value if which == apart.which else numbers.tree[index(numbers.tree.size // 2 + which)]
