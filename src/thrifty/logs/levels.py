"""Levels: the same sums by values that are told apart more or less finely.

A fine level finds causes that hide in a few values. A coarse one has enough rows of every arm in each of its values.
"""

from dataclasses import replace

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.logs.context import ContextSums, SegmentContext


def column_rows(context: ContextSums, column: int) -> Floats:
    """(codes,) the rows of every bin of one column."""
    rows = np.add.reduce([each.sums[:, :, 0].sum(axis=0) for each in context.segments.values()])
    return np.asarray(np.bincount(context.codes[:, column], rows, context.empty[column] + 1), np.float64)


def group_of(context: ContextSums, column: int, bins: int) -> Integers:
    """(codes,) the group of every bin of one column, so that there are about `bins` groups.

    Numbers are merged with their neighbours, into groups of about equal size. Of other values the most frequent stay alone, all
    others are one group. Pools of different values are always merged, empty cells never.
    """
    rows, pooled, empty = column_rows(context, column), context.pooled[column], context.empty[column]
    groups = np.arange(empty + 1)
    groups[pooled:empty] = pooled
    alone = np.flatnonzero(rows[:pooled])
    if alone.size <= bins:
        return groups
    if context.ordered[column]:
        middle = np.cumsum(rows[:pooled]) - rows[:pooled] / 2.0
        groups[:pooled] = np.minimum(middle / max(rows[:pooled].sum(), 1.0) * bins, bins - 1).astype(np.int64)
    else:
        frequent = alone[np.argsort(-rows[alone], kind="stable")[:bins]]
        groups[np.setdiff1d(np.arange(pooled), frequent)] = pooled
    return groups


def strata_of_values(context: ContextSums, bins: int, *, last: bool = True) -> Integers:
    """(V,) the stratum of every joint value if each column has about `bins` groups; without the last column if not `last`."""
    columns = range(len(context.columns) - (not last))
    if not columns:
        return np.zeros(context.codes.shape[0], np.int64)
    keys = np.column_stack([group_of(context, column, bins)[context.codes[:, column]] for column in columns])
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()


def merged(context: ContextSums, bins: int) -> ContextSums:
    """The sums with about `bins` groups of values in each column. A group has the name of its first value."""
    return summed_by(context, strata_of_values(context, bins))


def summed_by(context: ContextSums, groups: Integers) -> ContextSums:
    """The sums with the values of each group taken together; `groups` has the number of the group of each value, from 0."""
    first = np.unique(groups, return_index=True)[1]
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(first.size))
    segments = {
        name: SegmentContext(arms, np.add.reduceat(sums[:, order], starts, axis=1))
        for name, (arms, sums) in context.segments.items()
    }
    return replace(context, values=tuple(context.values[place] for place in first), segments=segments, codes=context.codes[first])
