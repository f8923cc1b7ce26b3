"""The tally: which rows of a log were left out, and why."""

from dataclasses import dataclass, field

NO_SEGMENT = "all"
"""The name of the one segment of a log without segments, and of rows whose segment is empty."""

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
    "no propensity",
    "propensity is not a number",
    "propensity outside (0, 1]",
)
"""Why a row is left out. The first is not a reason: it marks rows that are used."""

ON_REQUEST = frozenset({"no outcome", "outcome not due yet"})
"""Reasons that the user of the log asked for: such rows are counted, but they are not errors of the log."""

SHOWN = {
    "time is not readable": "time",
    "time in the future": "time",
    "repeated id": "id",
    "reward is not a number": "reward",
    "reward outside [0, 1]": "reward",
    "cost is not a number": "cost",
    "negative cost": "cost",
    "propensity is not a number": "propensity",
    "propensity outside (0, 1]": "propensity",
}
"""The column whose value is shown for a reason."""


@dataclass
class Tally:
    """What was found while a log was read: the number of rows, the rows left out by reason, the first of each, and notes."""

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
        """One line for each reason and note."""
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
