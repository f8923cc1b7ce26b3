"""Summing: rows of a log are added to cells by segment, arm and block of time. Cells of parts are added to those of the whole.

The width of a block is a power of two. It is doubled whenever the log needs more blocks than `MOST_BLOCKS` (fewer when there are
very many segments), so that one pass is enough and memory is bounded. Rows are added in their order and parts in theirs, so that
the same log gives the same bits on any number of workers.
"""

from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import inlined, kept
from thrifty.logs.batch import LogBatch

MOST_BLOCKS, FEWEST_BLOCKS = 256, 32
CELL_BUDGET = 16_000_000  # numbers kept, at most: 128 MB
N, R, RR, C, CC, MISSING, W, WW, WR, WWR, WWRR, WC, WWC, WWCC = range(14)
"""The sums in a cell: rows, rewards, costs, missing outcomes, and sums weighted by w = 1/propensity. WWR is the sum of w w r."""

SUMS = 14
DELAY_BINS = 48


class Cells:
    """Sums by pair of segment and arm and by block of time. `pairs` are (segment code, arm code), in the order of first use.

    `by_rows` says that blocks are made of row numbers, not of times.
    """

    def __init__(self, *, by_rows: bool) -> None:
        self.by_rows = by_rows
        self.pairs: list[tuple[int, int]] = []
        self._pair_of = np.full((16, 16), -1, np.int32)
        self._limit, self.width, self.first = MOST_BLOCKS, 1.0 if by_rows else 2.0**-10, 0
        self.sums = np.zeros((64, self._limit, SUMS))
        self.extremes = np.tile([np.inf, 0.0], (64, 1))
        self.delays = np.zeros((64, DELAY_BINS), np.int64)
        self.rows, self.earliest, self.latest = 0, np.inf, -np.inf

    def add(self, batch: LogBatch) -> None:
        """Add rows."""
        if batch.arms.size == 0:
            return
        pairs = self._number(batch.segments, batch.arms)
        times = batch.rows if self.by_rows else batch.times
        if self.rows == 0:
            self.first = int(times[0] // self.width)
        self.rows += pairs.size
        self.earliest, self.latest = min(self.earliest, batch.times.min()), max(self.latest, batch.times.max())
        columns = RowColumns(
            pairs=pairs,
            times=times,
            rewards=batch.rewards,
            costs=batch.costs,
            propensities=batch.propensities,
            delays_s=batch.delays_s,
            answered=batch.answered,
        )
        row = 0
        while row < pairs.size:
            cells = CellArrays(self.sums, self.extremes, self.delays)
            row = _accumulate(row, columns, cells, self.first, self.width, self._limit)
            if row < pairs.size:
                self._make_room(float(times[row]))

    def absorb(self, other: "Cells", segments: Integers, arms: Integers) -> None:
        """Add the cells of a later part; `segments` and `arms` translate its codes. The other is not to be used any more."""
        if other.rows == 0:
            return
        theirs = np.array(other.pairs)
        pairs = self._number(segments[theirs[:, 0]], arms[theirs[:, 1]])
        used = other.used_blocks()
        if self.rows == 0:
            self.width, self.first = other.width, other.first + int(used[0])
        while True:
            while self.width < other.width:
                self._double_width()
            while other.width < self.width:
                other._double_width()
            used = other.used_blocks()
            low, high = other.first + int(used[0]), other.first + int(used[-1])
            self._make_room(low * self.width)
            self._make_room(high * self.width)
            if self.width == other.width:
                break
        place, count = low - self.first, high - low + 1
        self.sums[pairs, place : place + count] += other.sums[: pairs.size, used[0] : used[-1] + 1]
        self.extremes[pairs, 0] = np.minimum(self.extremes[pairs, 0], other.extremes[: pairs.size, 0])
        self.extremes[pairs, 1] = np.maximum(self.extremes[pairs, 1], other.extremes[: pairs.size, 1])
        self.delays[pairs] += other.delays[: pairs.size]
        self.rows += other.rows
        self.earliest, self.latest = min(self.earliest, other.earliest), max(self.latest, other.latest)

    def _number(self, segments: Any, arms: Any) -> Integers:
        """The pair of every row; new pairs are numbered in the order of their first row."""
        while segments.max() >= self._pair_of.shape[0]:
            self._pair_of = np.concatenate([self._pair_of, np.full_like(self._pair_of, -1)])
        while arms.max() >= self._pair_of.shape[1]:
            self._pair_of = np.concatenate([self._pair_of, np.full_like(self._pair_of, -1)], axis=1)
        found = self._pair_of[segments, arms]
        if (found < 0).any():
            new = np.flatnonzero(found < 0)
            keys = segments[new].astype(np.int64) * self._pair_of.shape[1] + arms[new]
            for row in new[np.sort(np.unique(keys, return_index=True)[1])].tolist():
                pair = (int(segments[row]), int(arms[row]))
                self._pair_of[pair] = len(self.pairs)
                self.pairs.append(pair)
            self._fit_pairs()
            found = self._pair_of[segments, arms]
        return np.asarray(found, np.int64)

    def _fit_pairs(self) -> None:
        """Make room for all pairs; blocks become fewer rather than memory larger than the budget."""
        while len(self.pairs) > self.sums.shape[0]:
            while 2 * self.sums.size > CELL_BUDGET:
                self._halve_blocks()
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
            self.extremes = np.concatenate([self.extremes, np.tile([np.inf, 0.0], (self.extremes.shape[0], 1))])
            self.delays = np.concatenate([self.delays, np.zeros_like(self.delays)])

    def _halve_blocks(self) -> None:
        if self._limit <= FEWEST_BLOCKS:
            raise ValueError(
                f"the log has {len(self.pairs):,} pairs of segment and arm, too many to sum up: name a coarser --segment, or pool "
                "rare ones with --rare 1000"
            )
        self._limit //= 2
        while self.used_blocks().max(initial=0) >= self._limit:
            self._double_width()
        self.sums = self.sums[:, : self._limit].copy()

    def _make_room(self, when: float) -> None:
        """Move or widen the blocks until one of them contains `when`."""
        while True:
            block, last = int(when // self.width), self.first + int(self.used_blocks().max(initial=0))
            low, high = min(self.first, block), max(last, block)
            if high - low < self._limit:
                shift = self.first - low
                if shift:
                    self.sums = np.concatenate([np.zeros_like(self.sums[:, :shift]), self.sums[:, :-shift]], axis=1)
                self.first = low
                return
            self._double_width()

    def _double_width(self) -> None:
        """Make the blocks twice as wide."""
        wide = np.zeros_like(self.sums)
        for place in range(self.sums.shape[1]):
            wide[:, (self.first + place) // 2 - self.first // 2] += self.sums[:, place]
        self.sums, self.first, self.width = wide, self.first // 2, 2.0 * self.width

    def used_blocks(self) -> Integers:
        """Blocks that have rows."""
        return np.flatnonzero(self.sums[:, :, N].any(axis=0))

    def compact(self) -> "Cells":
        """Without the room for more pairs, to be sent elsewhere."""
        count = len(self.pairs)
        self.sums, self.extremes, self.delays = self.sums[:count], self.extremes[:count], self.delays[:count]
        self._pair_of = np.full((1, 1), -1, np.int32)
        return self


class RowColumns(NamedTuple):
    """Rows as columns; `pairs` number the pairs of segment and arm."""

    pairs: Any
    times: Any
    rewards: Any
    costs: Any
    propensities: Any  # NaN if not logged
    delays_s: Any  # NaN if unknown
    answered: Any  # False if the outcome is assumed


class CellArrays(NamedTuple):
    """What the rows are added to, a row per pair."""

    sums: Floats  # (pairs, blocks, SUMS)
    extremes: Floats  # (pairs, 2) the smallest propensity and the largest cost
    delays: Integers  # (pairs, DELAY_BINS)


@kept
def _accumulate(row, rows, cells, first, width, limit):
    """Add rows from `row` on; returns the number of the first row that has no block yet, or of rows in all."""
    pairs, sums, extremes, delays = rows.pairs, cells.sums, cells.extremes, cells.delays
    while row < pairs.size:
        block = np.int64(np.floor(rows.times[row] / width)) - first
        if block < 0 or block >= limit:
            return row
        pair, reward, cost = pairs[row], rows.rewards[row], rows.costs[row]
        cell = sums[pair, block]
        cell[N] += 1.0
        cell[R] += reward
        cell[RR] += reward * reward
        cell[C] += cost
        cell[CC] += cost * cost
        cell[MISSING] += 0.0 if rows.answered[row] else 1.0
        extremes[pair, 1] = max(extremes[pair, 1], cost)
        p = rows.propensities[row]
        if p == p:
            _add_weighted(cell, 1.0 / p, reward, cost)
            extremes[pair, 0] = min(extremes[pair, 0], p)
        delay_s = rows.delays_s[row]
        if delay_s == delay_s:
            place = np.int64(np.ceil(2.0 * np.log2(max(delay_s, 1e-3)))) + 11
            delays[pair, min(max(place, 0), delays.shape[1] - 1)] += 1
        row += 1
    return row


@inlined
def _add_weighted(cell, w, reward, cost):
    cell[W] += w
    cell[WW] += w * w
    cell[WR] += w * reward
    cell[WWR] += w * w * reward
    cell[WWRR] += w * w * reward * reward
    cell[WC] += w * cost
    cell[WWC] += w * w * cost
    cell[WWCC] += w * w * cost * cost
