"""Cells of a log as polars expressions: empty cells, numbers, times and rewards."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars

_FORMATS = (
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%d %H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
)


def is_blank(pl: Any, name: str, schema: Any) -> Any:
    """Whether a cell is empty: null, empty text or NaN."""
    column, kind = pl.col(name), schema[name]
    if kind == pl.String:
        return column.is_null() | (column.str.len_bytes() == 0) | (column == "NaN")
    return column.is_null() | column.is_nan() if kind.is_float() else column.is_null()


def filled(pl: Any, name: str, schema: Any) -> Any:
    """The column, null where a cell is empty."""
    return pl.when(~is_blank(pl, name, schema)).then(pl.col(name))


def read_number(pl: Any, name: str, schema: Any) -> Any:
    """The column as numbers, null where it does not hold one."""
    column = pl.col(name).str.strip_chars() if schema[name] == pl.String else pl.col(name)
    return column.cast(pl.Float64, strict=False).fill_nan(None)


def read_seconds(pl: Any, name: str, schema: Any, sample: "polars.DataFrame") -> Any:
    """The column as seconds since 1970, null where it cannot be read. Numbers above 1e11 are taken as milli- or microseconds."""
    kind = schema[name]
    if kind.is_temporal():
        return pl.col(name).cast(pl.Datetime("us")).dt.timestamp("us") / 1e6
    count = read_number(pl, name, schema)
    scaled = pl.when(count > 1e14).then(count / 1e6).when(count > 1e11).then(count / 1e3).otherwise(count)
    if kind != pl.String:
        return pl.when(count.is_finite()).then(scaled)
    readings = [pl.when(count.is_finite()).then(scaled)] + [
        pl.col(name).str.to_datetime(form, time_unit="us", time_zone="UTC", strict=False, cache=False).dt.timestamp("us") / 1e6
        for form in _FORMATS
    ]
    readable = [sample.select(reading.is_not_null().sum()).item() for reading in readings]
    return readings[int(np.argmax(readable))]


def read_reward(pl: Any, success: tuple[str, ...], column: str, schema: Any, sample: "polars.DataFrame") -> Any:
    """The reward in `raw_reward`, null where it is empty or unreadable. `column` is its name in the log, for an error."""
    text = filled(pl, "raw_reward", schema)
    if success:
        return text.cast(pl.String).is_in(list(success)).cast(pl.Float64)
    value = read_number(pl, "raw_reward", schema)
    if schema["raw_reward"] == pl.String:
        words = pl.when(text.str.to_lowercase() == "true").then(1.0).when(text.str.to_lowercase() == "false").then(0.0)
        found = sample.select(text=text, number=pl.coalesce(value, words)).filter(pl.col("text").is_not_null())
        if found.height and found["number"].null_count() == found.height:
            shown = ", ".join(found["text"].unique(maintain_order=True).to_list()[:4])
            raise ValueError(f"column {column!r} holds words ({shown}): name those that are a success with --success")
        if found.height and sample.select(value.is_null().all()).item():
            return words
    return value
