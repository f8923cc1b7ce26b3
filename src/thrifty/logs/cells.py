"""Cells of a log as polars expressions: empty cells, numbers, times and rewards."""

from typing import Any

from thrifty.logs.numbers import NumberStyle, parse_number
from thrifty.logs.times import EARLIEST, TimeStyle, parse_times

_LATEST = 253_402_300_800.0  # the end of the year 9999
_EMPTY = ("NaN", "nan", "NULL", "null", "\\N")


def is_empty_text(text: Any) -> Any:
    """Whether text is null, blank, or a spelling of no value that databases and programs write."""
    return text.is_null() | (text.str.strip_chars().str.len_bytes() == 0) | text.is_in(list(_EMPTY))


def is_blank(pl: Any, name: str, schema: Any) -> Any:
    """Whether a cell is empty: null, blank text or NaN."""
    column, kind = pl.col(name), schema[name]
    if kind == pl.String:
        return is_empty_text(column)
    return column.is_null() | column.is_nan() if kind.is_float() else column.is_null()


def filled(pl: Any, name: str, schema: Any) -> Any:
    """The column, null where a cell is empty."""
    return pl.when(~is_blank(pl, name, schema)).then(pl.col(name))


def read_number(pl: Any, name: str, schema: Any, style: NumberStyle) -> Any:
    """The column as numbers, null where it does not hold one."""
    if schema[name] == pl.String:
        return parse_number(pl, pl.col(name), style)
    return pl.col(name).cast(pl.Float64, strict=False).fill_nan(None)


def read_seconds(pl: Any, name: str, schema: Any, style: TimeStyle) -> Any:
    """The column as seconds since 1970, null where it cannot be read, or is before 1900: such times stand for none."""
    seconds = _seconds(pl, name, schema, style)
    return pl.when(seconds >= EARLIEST).then(seconds)


def _seconds(pl: Any, name: str, schema: Any, style: TimeStyle) -> Any:
    column, kind = pl.col(name), schema[name]
    if kind == pl.String:
        return column.map_batches(lambda text: parse_times(text, style), return_dtype=pl.Float64, is_elementwise=True)
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        zone = getattr(kind, "time_zone", None)
        scale = {"ms": 1e3, "us": 1e6, "ns": 1e9}.get(getattr(kind, "time_unit", ""), 1 / 86_400)
        possible = column.to_physical().is_between(int(EARLIEST * scale), int(_LATEST * scale))  # 'infinity', say, is none
        moments = pl.when(possible).then(column).cast(pl.Datetime("us", zone))
        if zone is None and style.zone != "UTC":
            moments = moments.dt.replace_time_zone(style.zone, ambiguous="earliest", non_existent="null")
        return moments.dt.timestamp("us") / 1e6
    if not kind.is_numeric():
        raise ValueError(
            f"the column of --{name.removeprefix('raw_').replace('_', '-')} holds {kind}, which is no time: name another"
        )
    count = column.cast(pl.Float64, strict=False).fill_nan(None)
    size = count.abs()
    divisor = pl.when(size > 1e17).then(1e9).when(size > 1e14).then(1e6).when(size > 1e11).then(1e3).otherwise(1.0)
    if style.unit:
        divisor = pl.lit({"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[style.unit])
    return pl.when(count.is_finite()).then(count / divisor)


def read_reward(pl: Any, schema: Any, success: tuple[str, ...], style: NumberStyle, *, words: bool) -> Any:
    """The reward in `raw_reward`, null where it is empty or unreadable; `words` says that it is true or false."""
    text = filled(pl, "raw_reward", schema)
    if success:
        return text.cast(pl.String).is_in(list(success)).cast(pl.Float64)
    if words and schema["raw_reward"] == pl.String:
        lower = text.str.strip_chars().str.to_lowercase()
        return pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0)
    return read_number(pl, "raw_reward", schema, style)
