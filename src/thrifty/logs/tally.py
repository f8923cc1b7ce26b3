"""The tally: which rows of a log were left out, and why."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from thrifty.arrays import Floats
from thrifty.logs.statuses import MOST_STATUSES

NO_SEGMENT = "all"
"""The name of the one segment of a log without segments."""

EMPTY_LEVEL = "(empty)"
"""What stands for an empty cell in a segment."""

_DAY_S, _LATE_S = 86_400.0, 1e8

REASONS = (
    "used",
    "no arm",
    "no time",
    "time is not readable",
    "time in the future",
    "repeated id",
    "reward is not a number",
    "reward outside [0, 1]",
    "no outcome",
    "outcome not due yet",
    "no cost",
    "cost is not a number",
    "negative cost",
    "cost above 1e15",
    "no propensity",
    "propensity is not a number",
    "propensity outside (0, 1]",
    "propensity below 1e-9",
    "ragged line",
    "blank line",
)
"""Why a row is left out. The first is not a reason: it marks rows that are used."""

ON_REQUEST = frozenset({"no outcome", "outcome not due yet", "blank line"})
"""Reasons that are no errors of the log: the user asked for them, or nothing was in the row."""

SHOWN = {
    "time is not readable": "time",
    "time in the future": "time",
    "repeated id": "id",
    "reward is not a number": "reward",
    "reward outside [0, 1]": "reward",
    "cost is not a number": "cost",
    "negative cost": "cost",
    "cost above 1e15": "cost",
    "propensity is not a number": "propensity",
    "propensity outside (0, 1]": "propensity",
    "propensity below 1e-9": "propensity",
}
"""The column whose value is shown for a reason."""


@dataclass
class Tally:
    """What was found while a log was read: the number of rows, the rows left out by reason, the first of each, and notes.

    `first` has the row in its file, the value and the file (empty if the log is one file). `statuses` are rows by status, where
    statuses count. `notes` are lines about the log as a whole.
    """

    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    no_outcome: int = 0
    no_segment: int = 0
    no_chain: int = 0
    slashed: int = 0
    out_of_order: int = 0
    at_zero: int = 0
    latest: float = -math.inf
    statuses: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def used(self) -> int:
        """Rows that count."""
        return self.rows - sum(self.left_out.values())

    def lines(self) -> list[str]:
        """One line for each reason and note."""
        lines = []
        for reason, count in self.left_out.items():
            row, value, where = self.first[reason]
            shown = f", {value!r:.60}" if value else ""
            place = f" of {where}" if where else ""
            lines.append(f"{count:,} of {self.rows:,} rows left out: {reason} (first in row {row:,}{place}{shown})")
        if self.out_of_order:
            lines.append(f"{self.out_of_order:,} rows are earlier than the row before them: taken in the order of the log")
        if 0 < self.at_zero < 0.05 * self.used and self.latest > _LATE_S:
            lines.append(
                f"{self.at_zero:,} rows are of 1970-01-01, long before all others: is their time unknown and written as 0? They "
                "stretch the span of the log; take these rows out, or empty their times"
            )
        if self.no_segment:
            lines.append(f"{self.no_segment:,} rows have no segment: taken as segment {EMPTY_LEVEL!r}")
        if self.slashed:
            lines.append(
                f"{self.slashed:,} rows have a / in a column of --segment: columns are joined with /, so that a/b with c and a "
                "with b/c are one segment; write another sign there if they are two"
            )
        if self.no_chain:
            lines.append(f"{self.no_chain:,} rows have an empty column of --chain: each is a request of its own")
        return [*lines, *self.notes]

    def count(self, reason: str, rows: int, first: tuple[int, str, str]) -> None:
        """Count rows left out; `first` is the first of them: its row, value and file."""
        self.left_out[reason] = self.left_out.get(reason, 0) + rows
        self.first.setdefault(reason, first)

    def count_times(self, times: Floats) -> None:
        """Count the times that are on the first day of 1970, which often stand for no time."""
        self.at_zero += int(((times >= 0.0) & (times < _DAY_S)).sum())
        self.latest = max(self.latest, float(times.max(initial=-math.inf)))

    def count_statuses(self, found: Iterable[tuple[str, int]]) -> None:
        """Count rows by status, so many different ones that memory is bounded."""
        for status, rows in found:
            if status in self.statuses or len(self.statuses) < MOST_STATUSES:
                self.statuses[status] = self.statuses.get(status, 0) + rows

    def add(self, later: "Tally") -> None:
        """Add what was found in a later part of the log."""
        self.rows += later.rows
        for reason, rows in later.left_out.items():
            self.count(reason, rows, later.first[reason])
        self.no_outcome += later.no_outcome
        self.no_segment += later.no_segment
        self.no_chain += later.no_chain
        self.slashed += later.slashed
        self.out_of_order += later.out_of_order
        self.at_zero += later.at_zero
        self.latest = max(self.latest, later.latest)
        self.count_statuses(later.statuses.items())
