"""Aggregates: one pass over a log makes sums per segment, arm and block of time. Every estimate is made from these sums."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.logs.names import TooManyNamesError
from thrifty.logs.partial_sums import sum_log
from thrifty.logs.propensities import check_propensities
from thrifty.logs.reading import Log
from thrifty.logs.summing import CC, DELAY_BINS, MISSING, MOST_BLOCKS, RR, SUMS, WC, WR, WW, WWC, WWCC, WWR, WWRR, C, Cells, N, R, W
from thrifty.logs.tally import Tally

__all__ = [
    "CC",
    "DELAY_BINS",
    "MISSING",
    "MOST_BLOCKS",
    "RR",
    "SUMS",
    "WC",
    "WR",
    "WW",
    "WWC",
    "WWCC",
    "WWR",
    "WWRR",
    "Aggregates",
    "C",
    "LogSums",
    "N",
    "R",
    "W",
    "aggregate",
    "delay_edges",
]

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

    @cached_property
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
    try:
        cells = sum_log(log, by_rows=not log.timed, progress=progress)
    except TooManyNamesError as error:
        if error.what != "segment" or log.columns.rare is not None:
            raise
        log.pool_rare()
        cells = sum_log(log, by_rows=not log.timed, progress=progress)
    if log.timed and cells.used_blocks().size < _ROW_BLOCKS:
        cells = sum_log(log, by_rows=True, progress=progress)
    if len({arm for _, arm in cells.pairs}) == 1:
        raise ValueError(
            f"every row that counts used the arm {log.arms.names[cells.pairs[0][1]]!r}: with one arm only there is nothing to "
            "compare; check --arm"
        )
    sums = _summed(cells, log)
    if sums.weighted:
        sums.tally.notes += check_propensities(sums.segments, log.columns.propensity or "")
    return sums


def _summed(cells: Cells, log: Log) -> Aggregates:
    used = cells.used_blocks()
    by_segment: dict[int, list[int]] = {}
    for pair, (segment, _) in enumerate(cells.pairs):
        by_segment.setdefault(segment, []).append(pair)
    names = log.arms.names
    segments = []
    for code, pairs in by_segment.items():
        pairs.sort(key=lambda pair: names[cells.pairs[pair][1]])
        segments.append(
            LogSums(
                log.segments.names[code],
                tuple(names[cells.pairs[pair][1]] for pair in pairs),
                cells.sums[pairs][:, used],
                cells.extremes[pairs, 0],
                cells.extremes[pairs, 1],
                cells.delays[pairs],
            )
        )
    return Aggregates(
        segments=tuple(sorted(segments, key=lambda segment: segment.name)),
        starts=np.asarray((cells.first + used) * cells.width, np.float64),
        width=cells.width,
        timed=log.timed,
        by_rows=cells.by_rows,
        weighted=log.columns.propensity is not None,
        tally=log.tally,
        first=float(cells.earliest),
        last=float(cells.latest),
    )


def delay_edges() -> Floats:
    """(bins,) the upper ends of the bins that delays are counted in, in seconds: half powers of two from 2^-6 on."""
    return np.asarray(2.0 ** ((np.arange(DELAY_BINS) - 11) / 2.0))
