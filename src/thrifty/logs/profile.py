"""The profile of a log: arms, segments, time span, gaps, and what looks wrong. Made from the aggregates alone."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.logs.aggregates import MISSING, RR, Aggregates, C, LogSums, N, R, delay_edges
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.outages import find_outages
from thrifty.logs.price_course import price_changes
from thrifty.logs.source import require_polars

_THIN_SHARE = 0.01
_FEWEST = 30  # rows of an arm before its reward is said never to vary


def median_delay_s(sums: LogSums) -> NDArray[np.float64]:
    """(K,) the median seconds until an outcome came back, to a factor of 1.4; NaN where unknown."""
    counts = sums.delays
    total = counts.sum(axis=1)
    place = (np.cumsum(counts, axis=1) * 2 >= total[:, np.newaxis]).argmax(axis=1)
    return np.where(total > 0, delay_edges()[place] / 2.0**0.25, np.nan)


@dataclass(frozen=True, eq=False)
class Profile:
    """A summary of a log: rows by arm and segment (`arms`), and notes on rows left out and on what looks wrong."""

    arms: Any
    segments: int
    rows: int
    span: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows that count, {self.segments} segments, {self.arms['arm'].n_unique()} arms; {self.span}"]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


def profile(aggregates: Aggregates, estimates: tuple[SegmentEstimates, ...]) -> Profile:
    """The profile of a log, from its aggregates and estimates."""
    rows = []
    for each in estimates:
        sums, totals = each.sums, each.sums.totals
        delays = median_delay_s(sums)
        for place, arm in enumerate(sums.arms):
            n = totals[place, N]
            rows.append(
                {
                    "segment": sums.name,
                    "arm": arm,
                    "rows": int(n),
                    "share": n / sums.rows,
                    "mean_reward": totals[place, R] / n,
                    "mean_cost": totals[place, C] / n,
                    "cost_per_success": totals[place, C] / totals[place, R] if totals[place, R] > 0.0 else None,
                    "no_outcome": totals[place, MISSING] / n,
                    "median_delay_s": delays[place],
                    "effective_rows": each.effective[place],
                    "not_in_use": each.unseen[place],
                    "refused": each.refusals[place],
                }
            )
    notes = [*aggregates.tally.lines(), *_outcome_notes(aggregates), *_gaps(aggregates), *_suspicions(aggregates, estimates)]
    table = require_polars().DataFrame(rows, infer_schema_length=None)
    return Profile(table, len(estimates), aggregates.rows, describe_span(aggregates), tuple(notes))


def moment(seconds: float) -> str:
    """A time as people write it, in UTC.

    >>> moment(0.0)
    '1970-01-01 00:00'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """A length of time in a suitable unit.

    >>> duration(5400), duration(259_200)
    ('1.5 hours', '3.0 days')
    """
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size or (unit == "minutes" and seconds >= size):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.3g} seconds"


def describe_span(aggregates: Aggregates) -> str:
    """The first and last time, and the blocks between them."""
    if not aggregates.timed:
        return f"no times: {aggregates.starts.size} blocks of {aggregates.width:,.0f} rows in the order of the log"
    span = f"{moment(aggregates.first)} to {moment(aggregates.last)} UTC"
    if aggregates.by_rows:
        return (
            f"{span}, too short or too coarse for blocks of time: {aggregates.starts.size} blocks of {aggregates.width:,.0f} rows"
        )
    return f"{span} in {aggregates.starts.size} blocks of {duration(aggregates.width)}"


def _outcome_notes(aggregates: Aggregates) -> list[str]:
    if not aggregates.tally.no_outcome:
        return []
    return [f"{aggregates.tally.no_outcome:,} rows have no outcome and count as failures (see --missing)"]


def _gaps(aggregates: Aggregates) -> list[str]:
    if aggregates.by_rows or aggregates.starts.size < 2:
        return []
    empty = np.diff(aggregates.starts) / aggregates.width - 1.0
    worst = int(np.argmax(empty))
    if empty[worst] < 1.0:
        return []
    lasting = duration(float(empty[worst]) * aggregates.width)
    begins = moment(float(aggregates.starts[worst]) + aggregates.width)
    return [f"{int((empty >= 1).sum())} gaps without a row; the longest lasts {lasting} or more, from {begins}"]


def _suspicions(aggregates: Aggregates, estimates: tuple[SegmentEstimates, ...]) -> list[str]:
    """Notes on what a person should check."""
    constant, outages, thin, repriced = [], [], [], []
    pairs = sum(len(each.sums.arms) for each in estimates)
    for each in estimates:
        sums, totals = each.sums, each.sums.totals
        for place, arm in enumerate(sums.arms):
            name, n = f"{arm} in {sums.name}", totals[place, N]
            mean = totals[place, R] / n
            if n >= _FEWEST and totals[place, RR] / n - mean * mean <= 1e-12:
                constant.append(f"{name} (always {mean:g})")
            if n / sums.rows < _THIN_SHARE:
                thin.append(f"{name} ({n / sums.rows:.2%})")
            outages += [
                f"{name} ({_stretch(aggregates, one.first, one.last)}: {one.rate:.1%}, else {one.usual:.1%})"
                for one in find_outages(sums.sums[place], pairs)
            ]
            repriced += [
                f"{name} ({one.before:.4g} to {one.after:.4g} {_when(aggregates, one.block)})"
                for one in price_changes(sums.sums[place], pairs)
            ]
    kinds = (
        ("the reward never varies", constant),
        ("success far below the usual for a while, perhaps an outage", outages),
        ("hardly ever used", thin),
        ("the price changed", repriced),
    )
    return [f"{what}: {_some(names)}" for what, names in kinds if names]


def _stretch(aggregates: Aggregates, first: int, last: int) -> str:
    start, end = float(aggregates.starts[first]), float(aggregates.starts[last]) + aggregates.width
    return f"rows {start + 1:,.0f} to {end:,.0f}" if aggregates.by_rows else f"{moment(start)} to {moment(end)}"


def _when(aggregates: Aggregates, block: int) -> str:
    start = float(aggregates.starts[block])
    return f"from row {start + 1:,.0f} on" if aggregates.by_rows else f"about {moment(start)}"


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
