"""Reading: a log as batches of canonical columns; every row that is left out is counted by its reason.

`plan.py` checks each row alone. What depends on the order of the rows (a repeated id, a time that goes back) is checked here, batch
by batch. Memory does not grow with the number of rows.
"""

import math
import shutil
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thrifty.logs.columns import Columns
from thrifty.logs.duplicates import SeenIds
from thrifty.logs.exported import fit_export, is_exported, unpack_store
from thrifty.logs.plan import make_plan
from thrifty.logs.source import first_line, require_polars, scan
from thrifty.logs.tally import NO_SEGMENT, ON_REQUEST, REASONS, SHOWN, Tally

if TYPE_CHECKING:
    import polars

BATCH = 1 << 18
MOST_ARMS, MOST_SEGMENTS = 1000, 5000
TOLERATED = 0.05
"""The share of rows that may be unreadable before a log is refused."""


@dataclass(frozen=True)
class LogBatch:
    """Rows that count, as arrays of the same length.

    Arms and segments are codes, see `Names`. Times are seconds, or row numbers in a log without times. Propensities are NaN where
    none are logged, delays NaN where they are unknown. `answered` is False where the outcome is missing and was assumed.
    """

    arms: NDArray[np.int32]
    segments: NDArray[np.int32]
    rewards: NDArray[np.float64]
    costs: NDArray[np.float64]
    times: NDArray[np.float64]
    propensities: NDArray[np.float64]
    delays_s: NDArray[np.float64]
    answered: NDArray[np.bool_]
    rows: NDArray[np.float64]
    """Row numbers in the log, from 0; rows that are left out have numbers too."""

    context: "polars.DataFrame | None" = None
    """The other columns that were asked for, by their names."""


class Names:
    """Codes for names, in the order of their first occurrence.

    >>> names = Names("arm", most=10)
    >>> import polars
    >>> names.encode(polars.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """

    def __init__(self, what: str, most: int) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}
        self._what, self._most = what, most

    def encode(self, column: "polars.Series") -> NDArray[np.int32]:
        """The codes of a column of text without nulls."""
        pl = require_polars()
        for name in column.unique(maintain_order=True):
            if name not in self._codes:
                self._codes[name] = len(self.names)
                self.names.append(name)
        if len(self.names) > self._most:
            raise ValueError(
                f"more than {self._most:,} different values for --{self._what} ({', '.join(map(repr, self.names[:3]))}, ...): "
                f"is this the right column? Name a coarser one"
            )
        codes = column.replace_strict(self.names, list(range(len(self.names))), return_dtype=pl.Int32)
        return np.asarray(codes.to_numpy(), dtype=np.int32)


class Log:
    """A log. It can be read several times; the rows are not kept in memory.

    Parameters
    ----------
    source : a path, a polars or pandas frame, or a thrifty store such as "sqlite:///thrifty.db"
    columns : what its columns mean; those that `thrifty export` writes are known
    router : only the rows of this router, if the source is a store
    now : seconds since 1970 after which a row is in the future; default: the clock
    tolerated : the largest share of unreadable rows; with more of them the log is refused

    >>> import polars
    >>> log = Log(polars.DataFrame({"arm": ["a", "b", None], "reward": [1, 0, 1], "cost": [0.1, 0.2, 0.2]}), tolerated=0.5)
    >>> sum(batch.arms.size for batch in log.batches())
    2
    >>> log.tally.lines()
    ['1 of 3 rows left out: no arm (first in row 3)']

    """

    def __init__(
        self,
        source: Any,
        columns: Columns | None = None,
        *,
        router: str | None = None,
        now: float | None = None,
        tolerated: float = TOLERATED,
    ) -> None:
        if not 0.0 <= tolerated <= 1.0:
            raise ValueError(f"tolerated must be a share in [0, 1], got {tolerated}")
        if isinstance(source, str) and "://" in source:
            source = unpack_store(source, router)
            weakref.finalize(self, shutil.rmtree, source.parent, ignore_errors=True)
        frame, columns = scan(source), columns or Columns()
        if columns.untouched and is_exported(frame.collect_schema().names()):
            frame, columns = fit_export(frame, columns)
        columns.check(frame.collect_schema().names())
        self.columns = replace(columns, missing=columns.missing or "failure")
        self.now = time.time() if now is None else now
        self.arms, self.segments = Names("arm", MOST_ARMS), Names("segment", MOST_SEGMENTS)
        self.tally = Tally()
        self._frame, self._tolerated = frame, tolerated

    @property
    def timed(self) -> bool:
        """Whether rows have times."""
        return self.columns.time is not None

    @property
    def column_names(self) -> list[str]:
        """All columns of the log."""
        return list(self._frame.collect_schema().names())

    def batches(self, progress: Callable[[int], None] | None = None, *, context: Sequence[str] = ()) -> Iterator[LogBatch]:
        """Read the log once, in order, as batches of `BATCH` rows.

        `progress` is called with the rows read so far. `context` names other columns that a batch should have, see `context_sums`.
        """
        pl = require_polars()
        tally = Tally()
        seen = SeenIds() if self.columns.id is not None else None
        last = -math.inf
        try:
            plan = make_plan(self._frame, self.columns, self.now, context)
            for frame in plan.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
                batch, last = self._encode(pl, frame, tally, seen, last)
                tally.rows += frame.height
                yield batch
                if progress is not None:
                    progress(tally.rows)
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"cannot read the log after {tally.rows:,} rows: {first_line(error)}") from None
        self.tally = tally
        self._judge(tally)

    def _judge(self, tally: Tally) -> None:
        if tally.rows == 0:
            raise ValueError("the log has a header and no rows")
        wrong = sum(count for reason, count in tally.left_out.items() if reason not in ON_REQUEST)
        if wrong > self._tolerated * tally.rows or tally.used == 0:
            raise ValueError(
                f"{wrong:,} of {tally.rows:,} rows cannot be used, and {self._tolerated:.0%} are tolerated (--tolerate): "
                + "; ".join(tally.lines())
            )

    def _encode(
        self, pl: Any, frame: "polars.DataFrame", tally: Tally, seen: SeenIds | None, last: float
    ) -> tuple[LogBatch, float]:
        """The rows of a frame that count, and the time of the last of them; `last` is that of the frame before."""
        reasons = frame["reason"].to_numpy().copy()
        if seen is not None:
            fresh = np.flatnonzero(reasons == 0)
            repeated = seen.repeated(frame["id"].to_numpy()[fresh])
            reasons[fresh[repeated]] = REASONS.index("repeated id")
        _count_left_out(frame, reasons, tally)
        kept = frame.filter(pl.Series(reasons == 0))
        tally.no_outcome += int((~kept["answered"]).sum())
        tally.no_segment += int(kept["segment"].null_count()) if self.columns.segment is not None else 0
        rows = tally.rows + np.flatnonzero(reasons == 0).astype(np.float64)
        if self.timed:
            times = kept["time"].to_numpy()
            tally.out_of_order += int((np.diff(times, prepend=last) < 0).sum())
            last = float(times[-1]) if times.size else last
        else:
            times = rows
        arms = self.arms.encode(kept["arm"])
        segments = self.segments.encode(kept["segment"].fill_null(NO_SEGMENT))
        batch = LogBatch(
            arms,
            segments,
            rewards=_numbers(kept, "reward"),
            costs=_numbers(kept, "cost") if self.columns.prices is None else self._priced(arms, segments, times),
            times=np.asarray(times, np.float64),
            propensities=_numbers(kept, "propensity"),
            delays_s=_numbers(kept, "delay_s"),
            answered=kept["answered"].to_numpy(),
            rows=rows,
            context=kept.select(pl.col("^context_.*$").name.map(lambda name: name.removeprefix("context_"))),
        )
        return batch, last

    def _priced(self, arms: NDArray[np.int32], segments: NDArray[np.int32], times: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self.columns.prices is not None
        costs = np.full(arms.size, np.nan)
        keys = segments.astype(np.int64) * MOST_ARMS + arms
        for key in np.unique(keys):
            mine = keys == key
            segment, arm = self.segments.names[key // MOST_ARMS], self.arms.names[key % MOST_ARMS]
            costs[mine] = self.columns.prices.at(segment, arm, times[mine])
            if np.isnan(costs[mine]).any():
                raise ValueError(f"--prices has no price for arm {arm!r} in segment {segment!r}: add a line for it")
        return costs


def _numbers(frame: "polars.DataFrame", name: str) -> NDArray[np.float64]:
    return np.asarray(frame[name].to_numpy(), np.float64)


def _count_left_out(frame: "polars.DataFrame", reasons: NDArray[np.uint8], tally: Tally) -> None:
    """Count the rows of a frame that are left out, with the first of each reason."""
    for code in np.unique(reasons[reasons > 0]):
        where = np.flatnonzero(reasons == code)
        shown = SHOWN.get(REASONS[code])
        value = "" if shown is None else str(frame[f"raw_{shown}"][int(where[0])])
        tally.count(REASONS[code], where.size, tally.rows + int(where[0]) + 1, value)
