"""Reading: a log as batches of canonical columns, every row that is left out counted by its reason.

The checks are one lazy polars expression, so that they run on all cores while the rows stream by; what depends on the order of
rows (a repeated id, a time that goes back) is looked at batch by batch. Memory does not grow with the number of rows.
"""

import math
import shutil
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thrifty.replay.columns import Columns
from thrifty.replay.duplicates import SeenIds
from thrifty.replay.exported import fit_export, is_exported, unpack_store
from thrifty.replay.source import require_polars, said, scan

if TYPE_CHECKING:
    import polars

BATCH = 1 << 18
NO_SEGMENT = "all"
"""The name of the one segment of a log without segments, and of rows whose segment is empty."""

MOST_ARMS, MOST_SEGMENTS = 1000, 5000
TOLERATED = 0.05
"""The share of rows that may be unreadable before a log is refused."""

REASONS = (
    "used", "no arm", "no time", "time is not readable", "time in the future", "repeated id", "reward is not a number",
    "reward outside [0, 1]", "no outcome", "outcome not due yet", "no cost", "cost is not a number", "negative cost",
    "no propensity", "propensity is not a number", "propensity outside (0, 1]",
)  # fmt: skip
"""Why a row is left out; the first is not."""

ON_REQUEST = frozenset({"no outcome", "outcome not due yet"})
"""Reasons that the reader of the log chose: they are counted, and not held against the log."""

_BLAMED = {
    "time is not readable": "time", "time in the future": "time", "repeated id": "id", "reward is not a number": "reward",
    "reward outside [0, 1]": "reward", "cost is not a number": "cost", "negative cost": "cost",
    "propensity is not a number": "propensity", "propensity outside (0, 1]": "propensity",
}  # fmt: skip
"""Which column holds the value to show."""

_FORMATS = (
    "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M", "%Y-%m-%d", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M",
)  # fmt: skip


@dataclass
class Tally:
    """What reading a log came across: rows in all, rows left out by reason with the first of each, and notes."""

    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    no_outcome: int = 0
    no_segment: int = 0
    out_of_order: int = 0

    @property
    def used(self) -> int:
        """Rows that count."""
        return self.rows - sum(self.left_out.values())

    def lines(self) -> list[str]:
        """What was done, one line for each reason and note."""
        lines = []
        for reason, count in self.left_out.items():
            row, value = self.first[reason]
            shown = f", {value!r:.60}" if value else ""
            lines.append(f"{count:,} of {self.rows:,} rows left out: {reason} (first in row {row:,}{shown})")
        if self.out_of_order:
            lines.append(f"{self.out_of_order:,} rows are earlier than the row before them: taken in the order of the log")
        if self.no_segment:
            lines.append(f"{self.no_segment:,} rows have no segment: taken as segment {NO_SEGMENT!r}")
        return lines

    def count(self, reason: str, rows: int, first_row: int, value: str) -> None:
        """Count rows left out."""
        self.left_out[reason] = self.left_out.get(reason, 0) + rows
        self.first.setdefault(reason, (first_row, value))


@dataclass(frozen=True)
class Batch:
    """Rows that count, as arrays: codes of arms and segments, rewards, costs, times in seconds (or row numbers), propensities (NaN
    where none are logged) and seconds until the outcome came (NaN where unknown); `answered` is False for outcomes assumed.
    """

    arms: NDArray[np.int32]
    segments: NDArray[np.int32]
    rewards: NDArray[np.float64]
    costs: NDArray[np.float64]
    times: NDArray[np.float64]
    propensities: NDArray[np.float64]
    delays_s: NDArray[np.float64]
    answered: NDArray[np.bool_]


class Names:
    """Codes for names, in the order in which they first come.

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
    """A log to be read as often as need be; nothing is kept but the plan.

    Parameters
    ----------
    source : a path, a polars or pandas frame, or a thrifty store such as "sqlite:///thrifty.db"
    columns : what its columns mean; those that `thrifty export` writes are known
    router : of a store, this router only
    now : seconds since 1970 after which a row is in the future; default: the clock
    tolerated : the share of unreadable rows at which the log is refused

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
        self._plan: Any = None

    @property
    def timed(self) -> bool:
        """Whether rows have times."""
        return self.columns.time is not None

    def batches(self, progress: Callable[[int], None] | None = None) -> Iterator[Batch]:
        """Read the log once, in order, as batches of `BATCH` rows; `progress` is called with the rows read so far."""
        pl = require_polars()
        tally = Tally()
        seen = SeenIds() if self.columns.id is not None else None
        last = -math.inf
        try:
            if self._plan is None:
                self._plan = self._make_plan(pl)
            for frame in self._plan.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
                batch, last = self._encode(pl, frame, tally, seen, last)
                tally.rows += frame.height
                yield batch
                if progress is not None:
                    progress(tally.rows)
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"cannot read the log after {tally.rows:,} rows: {said(error)}") from None
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

    def _encode(self, pl: Any, frame: "polars.DataFrame", tally: Tally, seen: SeenIds | None, last: float) -> tuple[Batch, float]:
        reasons = frame["reason"].to_numpy().copy()
        if seen is not None:
            fresh = np.flatnonzero(reasons == 0)
            repeated = seen.repeated(frame["id"].to_numpy()[fresh])
            reasons[fresh[repeated]] = REASONS.index("repeated id")
        for code in np.unique(reasons[reasons > 0]):
            where = np.flatnonzero(reasons == code)
            blamed = _BLAMED.get(REASONS[code])
            value = "" if blamed is None else str(frame[f"raw_{blamed}"][int(where[0])])
            tally.count(REASONS[code], where.size, tally.rows + int(where[0]) + 1, value)
        kept = frame.filter(pl.Series(reasons == 0))
        tally.no_outcome += int((~kept["answered"]).sum())
        tally.no_segment += int(kept["segment"].null_count()) if self.columns.segment is not None else 0
        if self.timed:
            times = kept["time"].to_numpy()
            tally.out_of_order += int((np.diff(times, prepend=last) < 0).sum())
            last = float(times[-1]) if times.size else last
        else:
            times = tally.rows + np.flatnonzero(reasons == 0).astype(np.float64)
        arms = self.arms.encode(kept["arm"])
        segments = self.segments.encode(kept["segment"].fill_null(NO_SEGMENT))
        numbers = {name: np.asarray(kept[name].to_numpy(), np.float64) for name in ("reward", "cost", "propensity", "delay_s")}
        if self.columns.prices is not None:
            numbers["cost"] = self._priced(arms, segments, times)
            missing = np.isnan(numbers["cost"])
            if missing.any():
                one = int(np.flatnonzero(missing)[0])
                arm, segment = self.arms.names[arms[one]], self.segments.names[segments[one]]
                raise ValueError(f"--prices has no price for arm {arm!r} in segment {segment!r}: add a line for it")
        batch = Batch(
            arms, segments, numbers["reward"], numbers["cost"], np.asarray(times, np.float64), numbers["propensity"],
            numbers["delay_s"], kept["answered"].to_numpy(),
        )  # fmt: skip
        return batch, last

    def _priced(self, arms: NDArray[np.int32], segments: NDArray[np.int32], times: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self.columns.prices is not None
        costs = np.full(arms.size, np.nan)
        keys = segments.astype(np.int64) * MOST_ARMS + arms
        for key in np.unique(keys):
            mine = keys == key
            segment, arm = self.segments.names[key // MOST_ARMS], self.arms.names[key % MOST_ARMS]
            costs[mine] = self.columns.prices.at(segment, arm, times[mine])
        return costs

    def _make_plan(self, pl: Any) -> Any:
        """Canonical columns, with a reason for every row (0: it counts); the columns as they were stay beside them as raw_NAME."""
        named = self.columns.named()
        raw = self._frame.select(**{f"raw_{meaning}": pl.col(name) for meaning, name in named.items()})
        schema, sample = raw.collect_schema(), raw.head(1000).collect()
        none = pl.lit(None, pl.Float64)
        read = raw.with_columns(
            arm=_blanked(pl, "raw_arm", schema).cast(pl.String),
            segment=_blanked(pl, "raw_segment", schema).cast(pl.String) if "segment" in named else pl.lit(None, pl.String),
            time=_seconds(pl, "raw_time", schema, sample) if "time" in named else pl.lit(0.0),
            back=_seconds(pl, "raw_outcome_time", schema, sample) if "outcome_time" in named else none,
            answered=~_blank(pl, "raw_reward", schema),
            reward=self._reward(pl, schema, sample),
            cost=_number(pl, "raw_cost", schema) if "cost" in named else pl.lit(0.0),
            propensity=_number(pl, "raw_propensity", schema) if "propensity" in named else none,
            id=pl.col("raw_id").hash() if "id" in named else pl.lit(0, pl.UInt64),
        )
        reason = pl.lit(0, pl.UInt8)
        for name, wrong in reversed(self._checks(pl, schema, read)):
            reason = pl.when(wrong).then(pl.lit(REASONS.index(name), pl.UInt8)).otherwise(reason)
        return read.with_columns(
            reason=reason,
            reward=pl.col("reward").fill_null(0.0),
            propensity=pl.col("propensity").fill_null(math.nan),
            delay_s=(pl.col("back") - pl.col("time")).fill_null(math.nan),
        )

    def _checks(self, pl: Any, schema: Any, read: Any) -> list[tuple[str, Any]]:
        """What is wrong with a row, in the order in which it is looked for."""
        named = self.columns.named()
        when, reward, cost, p = (pl.col(name) for name in ("time", "reward", "cost", "propensity"))
        answered = pl.col("answered")
        checks = [("no arm", pl.col("arm").is_null())]
        if "time" in named:
            checks += [
                ("no time", _blank(pl, "raw_time", schema)),
                ("time is not readable", when.is_null()),
                ("time in the future", (when > self.now).fill_null(False)),
            ]
        if self.columns.missing == "censored":
            end = read.select(when.filter(when <= self.now).max()).collect(engine="streaming").item()
            young = when > (math.inf if end is None else end) - self.columns.deadline_s
            checks.append(("outcome not due yet", young.fill_null(False)))
        if self.columns.missing == "ignore":
            checks.append(("no outcome", ~answered))
        checks += [
            ("reward is not a number", answered & reward.is_null()),
            ("reward outside [0, 1]", (answered & ((reward < 0.0) | (reward > 1.0))).fill_null(False)),
        ]
        if "cost" in named:
            checks += [
                ("no cost", _blank(pl, "raw_cost", schema)),
                ("cost is not a number", cost.is_null() | cost.is_infinite()),
                ("negative cost", (cost < 0.0).fill_null(False)),
            ]
        if "propensity" in named:
            checks += [
                ("no propensity", _blank(pl, "raw_propensity", schema)),
                ("propensity is not a number", p.is_null()),
                ("propensity outside (0, 1]", ((p <= 0.0) | (p > 1.0)).fill_null(False)),
            ]
        return checks

    def _reward(self, pl: Any, schema: Any, sample: "polars.DataFrame") -> Any:
        """The reward, null where there is none or it is unreadable."""
        success = self.columns.success
        text = _blanked(pl, "raw_reward", schema)
        if success:
            return text.cast(pl.String).is_in(list(success)).cast(pl.Float64)
        number = _number(pl, "raw_reward", schema)
        if schema["raw_reward"] == pl.String:
            words = pl.when(text.str.to_lowercase() == "true").then(1.0).when(text.str.to_lowercase() == "false").then(0.0)
            found = sample.select(text=text, number=pl.coalesce(number, words)).filter(pl.col("text").is_not_null())
            if found.height and found["number"].null_count() == found.height:
                shown = ", ".join(found["text"].unique(maintain_order=True).to_list()[:4])
                raise ValueError(
                    f"column {self.columns.reward!r} holds words ({shown}): say which of them are a success with --success"
                )
            if found.height and sample.select(number.is_null().all()).item():
                return words
        return number


def _blank(pl: Any, name: str, schema: Any) -> Any:
    """Whether a cell holds nothing: null, empty text or NaN."""
    column, kind = pl.col(name), schema[name]
    if kind == pl.String:
        return column.is_null() | (column.str.len_bytes() == 0) | (column == "NaN")
    return column.is_null() | column.is_nan() if kind.is_float() else column.is_null()


def _blanked(pl: Any, name: str, schema: Any) -> Any:
    return pl.when(~_blank(pl, name, schema)).then(pl.col(name))


def _number(pl: Any, name: str, schema: Any) -> Any:
    """The column as numbers, null where it does not hold one."""
    column = pl.col(name).str.strip_chars() if schema[name] == pl.String else pl.col(name)
    return column.cast(pl.Float64, strict=False).fill_nan(None)


def _seconds(pl: Any, name: str, schema: Any, sample: "polars.DataFrame") -> Any:
    """The column as seconds since 1970, null where it cannot be read. Numbers above 1e11 are taken as milli- or microseconds."""
    kind = schema[name]
    if kind.is_temporal():
        return pl.col(name).cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
    number = _number(pl, name, schema)
    scaled = pl.when(number > 1e14).then(number / 1e6).when(number > 1e11).then(number / 1e3).otherwise(number)
    if kind != pl.String:
        return pl.when(number.is_finite()).then(scaled)
    readings = [pl.when(number.is_finite()).then(scaled)] + [
        pl.col(name).str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False, cache=False).dt.timestamp("us") / 1e6
        for form in _FORMATS
    ]
    readable = [sample.select(reading.is_not_null().sum()).item() for reading in readings]
    return readings[int(np.argmax(readable))]
