"""The history: sums per minute, hour and day, kept beside the log. Both databases have the same tables and use this module.

A cell has the decisions that were made in a step of time, for one segment, arm and group, and their outcomes, whenever these
came. The position of the log up to which cells are complete is written in the transaction that changes them.
"""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

STEPS = {"minute": 60, "hour": 3600, "day": 86_400}
"""Seconds of a step, by name. Steps begin at multiples of these seconds since 1970: days are those of UTC."""

FIELDS = ("segment", "arm", "group")
"""What cells are kept apart by, besides time."""

FARTHEST_S = 1e13
"""Times are nearer to 1970 than this, in seconds."""

MOST_ROWS = 20_000
"""Rows that one look at the history returns, at most."""

SHOWN_STEPS = {"minute": 120, "hour": 72, "day": 90}
"""How many of the last steps are shown if `since` is not given."""

Place = tuple[float, str, str | None, str]
"""Where deltas go: the number of the minute since 1970, segment, arm and group."""

Cells = Mapping[Place, list[Any]]
"""Per place: decisions, outcomes, rewards and costs to add."""

KEY = ("router", "step", "whole", "start", "segment", "arm", "group_name")
SUMS = ("decisions", "outcomes", "rewards", "costs")
COLUMNS = (*KEY, *SUMS)
ADD = f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET " + ", ".join(f"{name} = history.{name} + excluded.{name}" for name in SUMS)
"""The end of an INSERT that adds to the cells that are there."""


class Reached(NamedTuple):
    """How far the history of a router reaches: all rows of the log up to `position` are counted.

    A history that is being added to in pieces has also counted the rows up to `upto` for the places up to `done`.
    """

    position: int
    upto: int
    done: Place | None = None


class TooManyRowsError(ValueError):
    """More rows of the history were asked for than one answer may have."""


class Deltas(Protocol):
    """What rows of a log add to the history of a router. The router implements it."""

    since: int  # everything after this position of the log is in here

    def between(self, after: int, upto: int) -> Cells:
        """What the rows with after < position <= upto add."""


class LocalHistory(Protocol):
    """The history of one router in a store that only this process writes to."""

    def position(self) -> int:
        """The rows of the log up to this position are counted."""

    def reached(self) -> Reached:
        """How far the history reaches."""

    def write(self, cells: Cells, upto: int, generation: int) -> int:
        """Add cells, and note that the rows up to `upto` are counted; what to wait for. Many cells are added by several commits.

        A StoreError if rows were lost since the journal was of that `generation`: the state is to be restored from the log then.
        """


class SharedHistory(Protocol):
    """The history of one router in a store that several replicas write to: whoever comes first counts a row."""

    def position(self) -> int:
        """The rows of the log up to this position are counted."""

    def reached(self) -> Reached:
        """How far the history reaches."""

    def write(self, deltas: Deltas, upto: int) -> int:
        """Count those rows up to `upto` that nobody has counted yet; the position up to which all are counted then.

        Counts nothing if `deltas` does not have all of them.
        """


@dataclass(frozen=True)
class History:
    """Rows of the history, in the order of time; `upto` is the position of the log up to which they are complete.

    A row has `at`, the begin of its step, those of segment, arm and group that were asked for, and decisions, outcomes, rewards
    and costs.
    """

    router: str
    step: str
    since: float
    until: float
    upto: int
    rows: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def table_rows(router: str, cells: Cells, kept: Mapping[int, int]) -> list[tuple[Any, ...]]:
    """What to add to the table `history`: a row for each step of each place, and one for all segments together (`whole`).

    Parameters
    ----------
    kept : by seconds of a step, the time before which its cells are deleted; nothing is added there

    >>> table_rows("sms", {(0, "DE", "a", "routed"): [2, 1, 1.0, 0.5]}, {60: 60})[0]
    ('sms', 3600, 0, 0, 'DE', 'a', 'routed', 2, 1, 1.0, 0.5)

    """
    found: dict[tuple[Any, ...], list[Any]] = {}
    for (minute, segment, arm, group), sums in cells.items():
        for seconds in STEPS.values():
            start = int(minute) * 60 // seconds * seconds
            if start >= kept.get(seconds, start):
                for key in ((seconds, 0, start, segment, arm, group), (seconds, 1, start, "", arm, group)):
                    known = found.get(key)
                    found[key] = list(sums) if known is None else [a + b for a, b in zip(known, sums, strict=True)]
    return [(router, *key, *sums) for key, sums in found.items()]


@dataclass(frozen=True)
class HistoryQuery:
    """What to show of a history. A ValueError for what cannot be asked.

    Parameters
    ----------
    step : "minute", "hour" or "day"
    since, until : steps that begin in this time, the one that holds `since` included; seconds since 1970. By default up to now, the
        last 120 minutes, 72 hours or 90 days
    segment : only this segment and those below it; "" for all
    by : which of segment, arm and group to keep apart; all others are added up

    >>> HistoryQuery(step="hour", until=7200.0, by=("group", "arm"))
    HistoryQuery(step='hour', since=-252000.0, until=7200.0, segment='', by=('arm', 'group'))
    >>> HistoryQuery(step="week")
    Traceback (most recent call last):
    ValueError: step must be one of minute, hour, day, got 'week'

    """

    step: str = "minute"
    since: float | None = None
    until: float | None = None
    segment: str = ""
    by: Iterable[str] = ("arm",)

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise ValueError(f"step must be one of {', '.join(STEPS)}, got {self.step!r:.80}")
        asked = set(self.by)
        if wrong := sorted(asked - set(FIELDS)):
            raise ValueError(f"by must be made of {', '.join(FIELDS)}, got {wrong[0]!r:.80}")
        until = time.time() if self.until is None else float(self.until)
        since = until - SHOWN_STEPS[self.step] * STEPS[self.step] if self.since is None else float(self.since)
        for name, value in (("until", until), ("since", since)):
            if not abs(value) < FARTHEST_S:
                raise ValueError(f"{name} must be seconds since 1970, got {value!r:.80}")
        if since >= until:
            raise ValueError(f"since must be before until, got {since!r} and {until!r}")
        object.__setattr__(self, "since", since)
        object.__setattr__(self, "until", until)
        object.__setattr__(self, "by", tuple(name for name in FIELDS if name in asked))

    def select(self, router: str, sign: str) -> tuple[str, list[Any]]:
        """A SELECT and its values; `sign` stands for a value in the SQL of the database."""
        assert self.since is not None
        seconds, whole = STEPS[self.step], not self.segment and "segment" not in self.by
        where = [f"router = {sign}", f"step = {seconds}", f"whole = {int(whole)}", f"start >= {sign}", f"start < {sign}"]
        values: list[Any] = [router, math.floor(self.since / seconds) * seconds, self.until]
        where.append(f"start >= coalesce((SELECT before FROM history_kept WHERE step = {seconds}), start)")
        if self.segment:
            # '0' is the character after '/', so this is everything that begins with the segment and a slash.
            where.append(f"(segment = {sign} OR (segment >= {sign} AND segment < {sign}))")
            values += [self.segment, f"{self.segment}/", f"{self.segment}0"]
        order = ", ".join(["start", *("group_name" if name == "group" else name for name in self.by)])
        sums = ", ".join(f"sum({name})" for name in SUMS)
        text = f"SELECT {order}, {sums} FROM history WHERE {' AND '.join(where)} GROUP BY {order} ORDER BY {order}"
        return f"{text} LIMIT {MOST_ROWS + 1}", values

    def answer(self, router: str, upto: int, found: list[Any]) -> History:
        """The rows that the SELECT found; a TooManyRowsError if they are too many."""
        if len(found) > MOST_ROWS:
            raise TooManyRowsError(
                f"the history has more than {MOST_ROWS} rows for that: ask for a shorter time, a longer step, one segment, "
                "or fewer fields in by"
            )
        assert self.since is not None
        assert self.until is not None
        names = ("at", *self.by, *SUMS)
        kinds = (float, *(str for _ in self.by), int, int, float, float)  # PostgreSQL adds up integers as decimal numbers
        rows = [{name: kind(value) for name, kind, value in zip(names, kinds, row, strict=True)} for row in found]
        return History(router, self.step, self.since, self.until, upto, rows)
