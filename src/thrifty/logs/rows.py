"""Rows: the parts of a log as batches of arrays. What depends on the order of rows is checked here: repeated ids, times that go
back, chains of attempts. `plan.py` checks each row alone. Memory does not grow with the number of rows.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thrifty.logs.batch import LogBatch
from thrifty.logs.chains import Chains
from thrifty.logs.duplicates import KnownRepeats, SeenIds
from thrifty.logs.names import MOST_ARMS, Names
from thrifty.logs.parts import Part, explain_fault
from thrifty.logs.plan import make_plan
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.recipe import Recipe
from thrifty.logs.tally import EMPTY_LEVEL, NO_SEGMENT, REASONS, SHOWN, Tally

if TYPE_CHECKING:
    import polars

BATCH = 1 << 18


class RowReader:
    """Reads parts of a log one after the other, and counts what it leaves out in `tally`.

    Parameters
    ----------
    recipe : how parts are read
    arms, segments : codes of names; they grow while parts are read
    before : rows of the log before the first part that is read here
    several : whether the log has several files, so that messages must name them
    repeats : the repeated ids of the part that is read, if they are known already

    """

    def __init__(
        self,
        recipe: Recipe,
        arms: Names,
        segments: Names,
        *,
        before: int = 0,
        several: bool = False,
        repeats: KnownRepeats | None = None,
    ) -> None:
        self.recipe, self.arms, self.segments = recipe, arms, segments
        self.tally = Tally()
        self.first_time, self.last_time = math.nan, -math.inf
        columns = recipe.columns
        self.chains = Chains(columns.within_s) if columns.chain_columns else None
        self._seen = repeats or (SeenIds() if columns.id is not None else None)
        self._before, self._several = before, several

    def read(self, part: Part, context: Sequence[str] = ()) -> Iterator[LogBatch]:
        """The rows of a part that count, as batches of at most `BATCH` rows of the file."""
        pl = require_polars()
        begun = self.tally.rows
        try:
            for frame in make_plan(part, self.recipe, context).collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
                batch = self._encode(frame, part, self.tally.rows - begun)
                self.tally.rows += frame.height
                yield batch
        except pl.exceptions.PolarsError as error:
            read = self.tally.rows - begun
            raise ValueError(f"cannot read {part.name} after {read:,} rows: {explain_fault(part, error)}") from None
        if self.tally.rows - begun != part.rows:
            raise ValueError(
                f"{part.name} has {part.rows:,} rows, and {self.tally.rows - begun:,} were read: was it changed meanwhile, or has "
                "it quotes that are not closed?"
            )

    def finish(self) -> LogBatch | None:
        """What is left at the end of the log: chains that are still open."""
        return None if self.chains is None else self.chains.finish()

    def _encode(self, frame: "polars.DataFrame", part: Part, done: int) -> LogBatch:
        """The rows of a frame that count; `done` rows of the part came before."""
        pl, tally, columns = require_polars(), self.tally, self.recipe.columns
        reasons = frame["reason"].to_numpy().copy()
        ragged = _mark_ragged(part, done, reasons)
        if self._seen is not None:
            fresh = np.flatnonzero(reasons == 0)
            repeated = self._seen.repeated(frame["id"].to_numpy()[fresh])
            reasons[fresh[repeated]] = REASONS.index("repeated id")
        self._count_left_out(frame, reasons, part, done, ragged)
        kept = frame.filter(pl.Series(reasons == 0))
        tally.no_outcome += int((~kept["answered"]).sum())
        tally.no_segment += int(kept["segment"].null_count()) if columns.segment_columns else 0
        tally.slashed += int(kept["slashed"].sum())
        rows = self._before + tally.rows + np.flatnonzero(reasons == 0).astype(np.float64)
        times = self._times(kept) if columns.time is not None else rows
        if columns.success:
            statuses = kept["raw_reward"].cast(pl.String).drop_nulls()
            tally.count_statuses(statuses.value_counts(sort=True).iter_rows())
        batch = self._batch(kept, rows, times)
        return batch if self.chains is None else self.chains.add(batch, self._chain_keys(kept, rows))

    def _batch(self, kept: "polars.DataFrame", rows: Any, times: Any) -> LogBatch:
        pl, columns = require_polars(), self.recipe.columns
        arms = self.arms.encode(kept["arm"])
        segments = self.segments.encode(kept["segment"].fill_null(EMPTY_LEVEL if columns.segment_columns else NO_SEGMENT))
        rewards = _numbers(kept, "reward")
        costs = _numbers(kept, "cost") if columns.prices is None else self._priced(arms, segments, times)
        if columns.fees is not None and arms.size:
            costs = np.add(costs, columns.fees.charge(arms, self.arms.names, kept["raw_reward"].cast(pl.String), rewards))
        return LogBatch(
            arms,
            segments,
            rewards=rewards,
            costs=costs,
            times=np.asarray(times, np.float64),
            propensities=_numbers(kept, "propensity"),
            delays_s=_numbers(kept, "delay_s"),
            answered=kept["answered"].to_numpy(),
            rows=rows,
            context=_context(kept),
        )

    def _times(self, kept: "polars.DataFrame") -> NDArray[np.float64]:
        times = _numbers(kept, "time")
        self.tally.count_times(times)
        self.tally.out_of_order += int((np.diff(times, prepend=self.last_time) < 0).sum())
        if times.size:
            self.first_time = float(times[0]) if math.isnan(self.first_time) else self.first_time
            self.last_time = float(times[-1])
        return times

    def _chain_keys(self, kept: "polars.DataFrame", rows: NDArray[np.float64]) -> NDArray[np.uint64]:
        """Rows without a key are chains of their own."""
        empty = kept["chain"].is_null().to_numpy()
        self.tally.no_chain += int(empty.sum())
        keys = kept["chain"].fill_null(0).to_numpy()
        return np.where(empty, rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15), keys)

    def _priced(self, arms: NDArray[np.int32], segments: NDArray[np.int32], times: NDArray[np.float64]) -> NDArray[np.float64]:
        prices = self.recipe.columns.prices
        assert prices is not None
        costs = np.full(arms.size, np.nan)
        keys = segments.astype(np.int64) * MOST_ARMS + arms
        for key in np.unique(keys):
            mine = keys == key
            segment, arm = self.segments.names[key // MOST_ARMS], self.arms.names[key % MOST_ARMS]
            costs[mine] = prices.at(segment, arm, times[mine])
            if np.isnan(costs[mine]).any():
                raise ValueError(f"--prices has no price for arm {arm!r} in segment {segment!r}: add a line for it")
        return costs

    def _count_left_out(
        self, frame: "polars.DataFrame", reasons: NDArray[np.uint8], part: Part, done: int, ragged: dict[int, str]
    ) -> None:
        """Count the rows of a frame that are left out, with the first of each reason."""
        for code in np.unique(reasons[reasons > 0]):
            where = np.flatnonzero(reasons == code)
            first = int(where[0])
            shown = SHOWN.get(REASONS[code])
            value = ragged.get(first, "") if shown is None else _in_words(frame[f"raw_{shown}"], first)
            row = part.start + done + first + 1
            self.tally.count(REASONS[code], where.size, (row, value, part.name if self._several else ""))


def _in_words(values: "polars.Series", place: int) -> str:
    """A value as people read it. A date that Python has no type for is a number: polars cannot show it."""
    pl = require_polars()
    if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
        days = values.dtype == pl.Date
        stamp = values.to_physical()[place]
        scale = {"ms": 1e3, "us": 1e6, "ns": 1e9}.get(getattr(values.dtype, "time_unit", None) or "", 1.0)
        if stamp is not None and abs(stamp / scale * (86_400.0 if days else 1.0)) > 6e10:
            return f"{stamp} {'days' if days else values.dtype.time_unit} since 1970"  # type: ignore[attr-defined]
    return str(values[place])


def read_ids(part: Part, recipe: Recipe) -> NDArray[np.uint64]:
    """The ids of the rows of a part that count unless their id is repeated, as hashes."""
    done, found = 0, [np.zeros(0, np.uint64)]
    for frame in make_plan(part, recipe).select("reason", "id").collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
        reasons = frame["reason"].to_numpy().copy()
        _mark_ragged(part, done, reasons)
        found.append(frame["id"].to_numpy()[reasons == 0])
        done += frame.height
    return np.concatenate(found)


def _mark_ragged(part: Part, done: int, reasons: NDArray[np.uint8]) -> dict[int, str]:
    """Mark the ragged and blank lines among rows `done` and later of a part; what is wrong with each, by place."""
    if part.ragged is None:
        return {}
    first, last = np.searchsorted(part.ragged[:, 0], [done, done + reasons.size])
    mine = part.ragged[first:last]
    reasons[mine[:, 0] - done] = np.where(mine[:, 2] == 0, REASONS.index("blank line"), REASONS.index("ragged line"))
    return {int(row) - done: f"line {line} has {fields} fields" for row, line, fields in mine.tolist() if fields}


def _context(kept: "polars.DataFrame") -> "polars.DataFrame | None":
    names = [name for name in kept.columns if name.startswith("context_")]
    return kept.select(names).rename(lambda name: name.removeprefix("context_")) if names else None


def _numbers(frame: "polars.DataFrame", name: str) -> NDArray[np.float64]:
    return np.asarray(frame[name].to_numpy(), np.float64)
