"""Aggregates: one pass over a log makes sums per segment, arm and block of time. Every estimate is made from these sums.

The width of a block is a power of two. It is doubled whenever the log needs more blocks than `MOST_BLOCKS` (fewer when there are
very many segments), so that one pass is enough and memory is bounded. Sums are added in the order of the rows, so that the same log
gives the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, inlined
from thrifty.logs.reading import MOST_ARMS, MOST_SEGMENTS, Log, LogBatch
from thrifty.logs.tally import Tally

MOST_BLOCKS, FEWEST_BLOCKS = 256, 32
CELL_BUDGET = 16_000_000  # numbers kept, at most: 128 MB
N, R, RR, C, CC, MISSING, W, WW, WR, WWR, WWRR, WC, WWC, WWCC = range(14)
"""The sums in a cell: rows, rewards, costs, missing outcomes, and sums weighted by w = 1/propensity. WWR is the sum of w w r."""

SUMS = 14
DELAY_BINS = 48
_ROW_BLOCKS = 8  # fewer blocks of time than this, and blocks are made of rows instead


@dataclass(frozen=True, eq=False)
class LogSums:
    """The sums of one segment of a log.

    `sums` is (K, B, SUMS) by arm and block, `p_min` and `cost_max` are (K,) the smallest propensity and the largest cost of each
    arm, `delays` is (K, bins) counts of delays.
    """

    name: str
    arms: tuple[str, ...]
    sums: Floats
    p_min: Floats
    cost_max: Floats
    delays: Integers

    @cached_property
    def rows(self) -> int:
        """Rows in all."""
        return int(self.sums[:, :, N].sum())

    @property
    def totals(self) -> Floats:
        """(K, SUMS) over all blocks."""
        return np.asarray(self.sums.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Aggregates:
    """The sums of a whole log.

    `starts` are the times at which blocks begin (row numbers if `by_rows`), `width` is their common width. Empty blocks are left
    out. `weighted` is True if propensities were logged.
    """

    segments: tuple[LogSums, ...]
    starts: Floats
    width: float
    timed: bool
    by_rows: bool
    weighted: bool
    tally: Tally
    first: float
    last: float

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms of all segments, by name."""
        return tuple(sorted({arm for segment in self.segments for arm in segment.arms}))

    @property
    def rows(self) -> int:
        """Rows that count."""
        return sum(segment.rows for segment in self.segments)


def aggregate(log: Log, progress: Callable[[int], None] | None = None) -> Aggregates:
    """Read the log once and sum it up.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 50, "reward": [1, 0] * 50, "cost": [0.2, 0.1] * 50})
    >>> sums = aggregate(Log(frame))
    >>> sums.rows, sums.arms, sums.segments[0].totals[:, R].tolist()
    (100, ('a', 'b'), [50.0, 0.0])
    """
    cells = _read(log, progress, by_rows=not log.timed)
    if log.timed and cells.used_blocks().size < _ROW_BLOCKS:
        cells = _read(log, progress, by_rows=True)
    return cells.summed(log)


def _read(log: Log, progress: Callable[[int], None] | None, *, by_rows: bool) -> "_Cells":
    cells = _Cells(by_rows=by_rows)
    for batch in log.batches(progress):
        cells.add(batch)
    if len({key % MOST_ARMS for key in cells.keys}) == 1:
        raise ValueError(
            f"every row that counts used the arm {log.arms.names[cells.keys[0] % MOST_ARMS]!r}: with one arm only there is nothing "
            "to compare; check --arm"
        )
    return cells


class _Cells:
    """The sums while the log is read."""

    def __init__(self, *, by_rows: bool) -> None:
        self.by_rows = by_rows
        self.keys: list[int] = []  # pair -> segment * MOST_ARMS + arm
        self._pair_of = np.full(MOST_SEGMENTS * MOST_ARMS, -1, np.int32)
        self._limit, self._width, self._first = MOST_BLOCKS, 1.0 if by_rows else 2.0**-10, 0
        self._sums = np.zeros((64, self._limit, SUMS))
        self._extremes = np.tile([np.inf, 0.0], (64, 1))
        self._delays = np.zeros((64, DELAY_BINS), np.int64)
        self._rows, self.earliest, self.latest = 0, np.inf, -np.inf

    def add(self, batch: LogBatch) -> None:
        if batch.arms.size == 0:
            return
        keys = batch.segments.astype(np.int64) * MOST_ARMS + batch.arms
        for key in keys[np.sort(np.unique(keys, return_index=True)[1])].tolist():
            if self._pair_of[key] < 0:
                self._pair_of[key] = len(self.keys)
                self.keys.append(key)
        self._fit_pairs()
        times = self._rows + np.arange(keys.size, dtype=np.float64) if self.by_rows else batch.times
        if self._rows == 0:
            self._first = int(times[0] // self._width)
        self._rows += keys.size
        self.earliest, self.latest = min(self.earliest, batch.times.min()), max(self.latest, batch.times.max())
        columns = RowColumns(
            pairs=self._pair_of[keys],
            times=times,
            rewards=batch.rewards,
            costs=batch.costs,
            propensities=batch.propensities,
            delays_s=batch.delays_s,
            answered=batch.answered,
        )
        row = 0
        while row < keys.size:
            cells = CellArrays(self._sums, self._extremes, self._delays)
            row = _accumulate(row, columns, cells, self._first, self._width, self._limit)
            if row < keys.size:
                self._make_room(float(times[row]))

    def _fit_pairs(self) -> None:
        while len(self.keys) > self._sums.shape[0]:
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
            self._extremes = np.concatenate([self._extremes, np.tile([np.inf, 0.0], (self._extremes.shape[0], 1))])
            self._delays = np.concatenate([self._delays, np.zeros_like(self._delays)])
        while self._sums.size > CELL_BUDGET:
            if self._limit <= FEWEST_BLOCKS:
                raise ValueError(
                    f"the log has {len(self.keys):,} pairs of segment and arm, too many to sum up: name a coarser --segment"
                )
            self._limit //= 2
            while self.used_blocks().max(initial=0) >= self._limit:
                self._double_width()
            self._sums = self._sums[:, : self._limit].copy()

    def _make_room(self, when: float) -> None:
        """Move or widen the blocks until one of them contains `when`."""
        while True:
            block, last = int(when // self._width), self._first + int(self.used_blocks().max(initial=0))
            low, high = min(self._first, block), max(last, block)
            if high - low < self._limit:
                shift = self._first - low
                if shift:
                    self._sums = np.concatenate([np.zeros_like(self._sums[:, :shift]), self._sums[:, :-shift]], axis=1)
                self._first = low
                return
            self._double_width()

    def _double_width(self) -> None:
        """Make the blocks twice as wide."""
        wide = np.zeros_like(self._sums)
        for place in range(self._sums.shape[1]):
            wide[:, (self._first + place) // 2 - self._first // 2] += self._sums[:, place]
        self._sums, self._first, self._width = wide, self._first // 2, 2.0 * self._width

    def used_blocks(self) -> Integers:
        """Blocks that have rows."""
        return np.flatnonzero(self._sums[:, :, N].any(axis=0))

    def summed(self, log: Log) -> Aggregates:
        used = self.used_blocks()
        by_segment: dict[int, list[int]] = {}
        for pair, key in enumerate(self.keys):
            by_segment.setdefault(key // MOST_ARMS, []).append(pair)
        segments = []
        for code, pairs in by_segment.items():
            pairs.sort(key=lambda pair: log.arms.names[self.keys[pair] % MOST_ARMS])
            segments.append(
                LogSums(
                    log.segments.names[code],
                    tuple(log.arms.names[self.keys[pair] % MOST_ARMS] for pair in pairs),
                    self._sums[pairs][:, used],
                    self._extremes[pairs, 0],
                    self._extremes[pairs, 1],
                    self._delays[pairs],
                )
            )
        return Aggregates(
            segments=tuple(sorted(segments, key=lambda segment: segment.name)),
            starts=np.asarray((self._first + used) * self._width, np.float64),
            width=self._width,
            timed=log.timed,
            by_rows=self.by_rows,
            weighted=log.columns.propensity is not None,
            tally=log.tally,
            first=float(self.earliest),
            last=float(self.latest),
        )


def delay_edges() -> Floats:
    """(bins,) the upper ends of the bins that delays are counted in, in seconds: half powers of two from 2^-6 on."""
    return np.asarray(2.0 ** ((np.arange(DELAY_BINS) - 11) / 2.0))


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

    sums: Any  # (pairs, blocks, SUMS)
    extremes: Any  # (pairs, 2) the smallest propensity and the largest cost
    delays: Any  # (pairs, DELAY_BINS)


@builder
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
