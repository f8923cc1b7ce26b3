"""Times as people write them: ISO 8601 with and without zones, counts since 1970, day-first and month-first dates.

A column may mix all of these. A date such as 03/04/2026 has two readings: a value that has only one (31/04/2026) settles it, else
the user is asked. A time without a zone is in UTC unless a zone is named.
"""

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.polars_extra import require_polars

if TYPE_CHECKING:
    import polars

ORDERS = ("day-first", "month-first")
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_CLOCKS = ("%H:%M:%S", "%H:%M:%S%.f", "%H:%M:%S,%3f", "%H:%M:%S,%6f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_NAIVE = (
    *(f"%Y-%m-%d{between}{clock}" for between in "T " for clock in _CLOCKS),
    "%Y-%m-%d",
    *(f"%Y/%m/%d {clock}" for clock in _CLOCKS),
    "%Y/%m/%d",
    *(f"%d %b %Y {clock}" for clock in _CLOCKS),
    "%d %b %Y",
    "%Y%m%dT%H%M%S",
)
_ZONED = (
    *(f"%Y-%m-%d{between}{clock}%#z" for between in "T " for clock in _CLOCKS[:5]),
    *(f"%Y-%m-%d{between}{clock} %#z" for between in "T " for clock in _CLOCKS[:5]),
    "%d/%b/%Y:%H:%M:%S %z",
    "%a, %d %b %Y %H:%M:%S %z",
)
_PROBE = 8
EARLIEST = -2_208_988_800.0  # 1900: a pattern would also read 12-01-20 as a day in the year 12
_EARLY = 1e8
_TWO_READINGS = re.compile(r"^\s*(\d{1,2})([/.-])(\d{1,2})\2(\d{4})\b")
_COMPACT = re.compile(r"^\s*(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])\s*$")
_ZONE = re.compile(r"(Z|UTC|GMT|[+-]\d\d:?\d\d)\s*$")
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


class TimeStyle(NamedTuple):
    """How times are written: the order of day and month, or a unit since 1970, or a pattern; and the zone of times without one."""

    order: str = ""
    unit: str = ""
    pattern: str = ""
    zone: str = "UTC"


def check_style(time_format: str | None, zone: str | None) -> TimeStyle:
    """The style that a user asked for; a ValueError if there is no such format or zone.

    >>> check_style("day-first", "Europe/Berlin").order
    'day-first'
    """
    zone = zone or "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"--zone must be the name of a time zone such as Europe/Berlin, got {zone!r}") from None
    if time_format is None:
        return TimeStyle(zone=zone)
    if time_format in ORDERS:
        return TimeStyle(order=time_format, zone=zone)
    if time_format in UNITS:
        return TimeStyle(unit=time_format, zone=zone)
    if "%" in time_format:
        return TimeStyle(pattern=time_format, zone=zone)
    raise ValueError(
        f"--time-format must be {', '.join(ORDERS)}, {', '.join(UNITS)} or a pattern such as '%d.%m.%y %H:%M', got {time_format!r}"
    )


def time_style(sample: "polars.Series", asked: TimeStyle, column: str) -> TimeStyle:
    """The style of a column of text from its first values; a ValueError that names both readings if it has two.

    >>> import polars
    >>> time_style(polars.Series(["03/04/2026", "31/04/2026"]), TimeStyle(), "at").order
    'day-first'
    >>> time_style(polars.Series(["3/5/2026"]), TimeStyle(), "t")
    Traceback (most recent call last):
    ValueError: column 't' holds '3/5/2026': is it 3 May 2026 (--time-format day-first) or 5 March 2026 (--time-format month-first)?
    """
    if asked.order or asked.unit or asked.pattern:
        return asked
    proofs: dict[str, str] = {}
    unclear = ""
    values = sample.drop_nulls().unique(maintain_order=True).to_list()
    for text in values:
        found = _TWO_READINGS.match(text)
        if found is None:
            continue
        first, second = int(found[1]), int(found[3])
        if first > 12 or second > 12:
            proofs.setdefault(ORDERS[0] if first > 12 else ORDERS[1], text)
        elif not unclear or first != second:
            unclear = text
    if len(proofs) == 2:
        raise ValueError(
            f"column {column!r} holds {proofs[ORDERS[0]]!r}, where the day is first, and {proofs[ORDERS[1]]!r}, where the month "
            "is: choose with --time-format day-first or month-first; the others are left out and counted"
        )
    if unclear and not proofs:
        raise ValueError(_question(unclear, column))
    compact = next((text for text in values if _COMPACT.match(text)), None)
    if compact is not None:
        raise ValueError(
            f"column {column!r} holds {compact!r}: is it a date (--time-format %Y%m%d) or seconds since 1970 (--time-format s)?"
        )
    return asked._replace(order=next(iter(proofs), ""))


def zone_note(sample: "polars.Series", style: TimeStyle, column: str) -> str:
    """A note if some times of a column have a zone and others have none; empty if there is nothing to say.

    >>> import polars
    >>> zone_note(polars.Series(["2026-01-31 10:00Z", "2026-01-31 11:00"]), TimeStyle(), "at")
    "some times in 'at' have a zone and others have none, such as '2026-01-31 11:00': these are taken as UTC (--zone)"
    """
    clocks = [text for text in sample.drop_nulls().unique(maintain_order=True).to_list() if ":" in text]
    bare = [text for text in clocks if not _ZONE.search(text)]
    if not bare or len(bare) == len(clocks):
        return ""
    return (
        f"some times in {column!r} have a zone and others have none, such as {bare[0]!r}: these are taken as {style.zone} (--zone)"
    )


def early_note(latest: float, style: TimeStyle) -> list[str]:
    """A note if all times of a log are so early that they may be no seconds since 1970; `latest` is -inf if there are none.

    >>> len(early_note(45_321.0, TimeStyle())), early_note(1.7e9, TimeStyle()), early_note(45_321.0, TimeStyle(unit="s"))
    (1, [], [])
    """
    if style.unit or not -math.inf < latest < _EARLY:
        return []
    return [
        "all times are before March 1973: if they are no seconds since 1970 (but days of a spreadsheet, or years), write them as "
        "dates, or name their unit with --time-format"
    ]


def _question(text: str, column: str) -> str:
    found = _TWO_READINGS.match(text)
    assert found is not None
    first, second, year = int(found[1]), int(found[3]), found[4]
    return (
        f"column {column!r} holds {text!r}: is it {first} {_MONTHS[second - 1]} {year} (--time-format day-first) or "
        f"{second} {_MONTHS[first - 1]} {year} (--time-format month-first)?"
    )


def parse_times(text: "polars.Series", style: TimeStyle) -> "polars.Series":
    """Text as seconds since 1970, null where it cannot be read. Every reading is tried on what the others left.

    >>> import polars
    >>> parse_times(polars.Series(["1970-01-01T00:01:00+01:00", "60", "1970-01-01 00:01", "soon"]), TimeStyle()).to_list()
    [-3540.0, 60.0, 60.0, None]
    """
    pl = require_polars()
    seconds = np.full(text.len(), np.nan)
    left = text.str.strip_chars().str.replace(r" (UTC|GMT)$", " +0000")
    places = np.flatnonzero(left.is_not_null().to_numpy() & (left != "").fill_null(False).to_numpy())
    readings = _readings(style)
    scores: list[int] = []
    while places.size and readings:
        if not scores:
            # Values of one spelling come together: the reading that gets the most of the next values goes first.
            probe = left.gather(places[:_PROBE])
            scores = [int(np.isfinite(read(probe)).sum()) for read in readings]
        best = scores.index(max(scores))
        scores.pop(best)
        values = readings.pop(best)(left.gather(places))
        got = np.isfinite(values)
        if got.any():  # else the next values are the same, and so are their scores
            scores = []
        seconds[places[got]] = values[got]
        places = places[~got]
    return pl.Series(text.name, seconds).fill_nan(None)  # type: ignore[no-any-return]


def _readings(style: TimeStyle) -> list[Any]:
    def patterned(pattern: str, zone: str) -> Any:
        return lambda values: _read_pattern(values, pattern, zone)

    if style.pattern:
        return [patterned(style.pattern, "" if "%z" in style.pattern or "%#z" in style.pattern else style.zone)]
    if style.unit:
        return [lambda values: _read_count(values, style.unit)]
    dates = {ORDERS[0]: "%d{0}%m{0}%Y", ORDERS[1]: "%m{0}%d{0}%Y"}.get(style.order)
    clocks = (*(f" {each}" for each in _CLOCKS), "")
    ordered = [f"{dates.format(mark)}{clock}" for mark in "/.-" for clock in clocks] if dates else []
    naive = [patterned(form, style.zone) for form in (*_NAIVE, *ordered)]
    return [*naive[:1], lambda values: _read_count(values, ""), *(patterned(form, "") for form in _ZONED), *naive[1:]]


def _read_count(values: "polars.Series", unit: str) -> Floats:
    """Counts since 1970, in `unit`; without one their size tells seconds, milli-, micro- and nanoseconds apart."""
    count = np.asarray(values.cast(require_polars().Float64, strict=False).to_numpy(), np.float64)
    return scale_count(count, unit)


def scale_count(count: Floats, unit: str = "") -> Floats:
    """Counts since 1970 as seconds.

    >>> scale_count(np.array([1.7e9, 1.7e12, 1.7e15, 1.7e18])).tolist()
    [1700000000.0, 1700000000.0, 1700000000.0, 1700000000.0]
    """
    if unit:
        return np.asarray(count / UNITS[unit])
    size = np.abs(count)
    return np.asarray(count / np.select([size > 1e17, size > 1e14, size > 1e11], [1e9, 1e6, 1e3], 1.0))


def _read_pattern(values: "polars.Series", pattern: str, zone: str) -> Floats:
    """Times in one pattern; `zone` is that of times without one, "" if the pattern has a zone."""
    pl = require_polars()
    try:
        if not zone:
            moments = values.str.to_datetime(pattern, time_unit="us", time_zone="UTC", strict=False, cache=False)
        else:
            moments = values.str.to_datetime(pattern, time_unit="us", strict=False, cache=False)
    except pl.exceptions.ComputeError:
        return np.full(values.len(), np.nan)
    seconds = seconds_of(moments, zone)
    return np.where(seconds < EARLIEST, np.nan, seconds)


def seconds_of(moments: "polars.Series", zone: str) -> Floats:
    """Dates and times of a column as seconds since 1970; those without a zone are in `zone`. NaN where there is no such time."""
    pl = require_polars()
    moments = moments.cast(pl.Datetime("us", getattr(moments.dtype, "time_zone", None)))
    if zone and zone != "UTC" and getattr(moments.dtype, "time_zone", None) is None:
        moments = moments.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return np.asarray(moments.dt.timestamp("us").cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1e6, np.float64)
